"""The contract of a price source: fetch bodies, parse them into typed rows, nothing else.

A source is one adapter in one file. It may read one cloud or many, in one body or many. It knows no Django
model, no clock and no GPU catalogue: names leave it exactly as the source spells them, with the hints that tell
two cards of one name apart. `catalog.refresh` fetches, keeps the raw body, resolves names, checks prices and
stores offers.

Rules each adapter keeps:
    read by field name; money as Decimal; a missing, null or "none" price yields no row; a number that is merely
    odd (zero, placeholder, spot above on-demand) is yielded and held back later with its reason; a body that is
    not what the source promises (HTML, half a file, no known column) raises `BodyRejected` and changes nothing.
"""

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

# What an offer's columns hold; nothing a source sells comes near.
LARGEST_NUMBER = Decimal(10**8)


class Market(StrEnum):
    """How an offer is sold."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"


class Availability(StrEnum):
    """What a source says about stock; `unknown` when it says nothing."""

    YES = "yes"
    LOW = "low"
    NO = "no"
    UNKNOWN = "unknown"


class BodyRejected(ValueError):
    """The body is not what this source promises; the message says what was wrong."""


class FetchFailed(OSError):
    """The network, or the other side, gave no usable answer; the message says which."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """One body a source reads. `key` is stable between runs (for example the cloud's name).

    `urls` are tried in order; the first that answers 200 or 304 wins. `last_change_urls` name, for each of them, a
    GitHub commit list (JSON, newest first) that tells when the body last changed; "" where there is none.
    `file_name` is what a saved copy is called by `refresh_offers --from FOLDER`. A document with `companion_of` holds
    no offers of its own: it is only read beside the document of that key; without `urls` it exists in saved copies only.
    `dated_by_content`: where the source names no day, its prices are of the day this very content was first seen.
    With `json_body` the address is asked by POST. `next_url` makes the address of the next page of a page and its own
    address ("" behind the last); the body is then all pages, one after another. `headers` may hold a key, so they are in
    no `repr`.
    """

    key: str
    urls: Sequence[str]
    file_name: str
    last_change_urls: Sequence[str] = ()
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    companion_of: str = ""
    dated_by_content: bool = False
    json_body: Mapping[str, Any] | None = None
    next_url: Callable[[bytes, str], str] | None = None


@dataclass(frozen=True, kw_only=True)
class Body:
    """A body as read. `priced_on` is the date the source itself gives for the content, if it gives one."""

    document: Document
    content: bytes
    fetched_at: datetime
    url: str = ""
    etag: str = ""
    last_modified: str = ""
    priced_on: date | None = None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True)
class OfferRow:
    """One offer as a source states it. Prices are for the whole instance, per hour, in `currency`.

    `gpu_name` is the source's own spelling; `gpu_memory_gb` (per GPU), `form_factor` and `instance_type` are the
    hints `catalog.names` may use. `gpu_slug` is set where the source's name holds more than the card (a TPU slice), or
    names our slug itself. `gpu_count` may be a fraction (a slice of a card); `gpu_count_in_name` is the count the
    instance name carries, only where that source's naming is known. `verified` is False only where the source itself
    marks a host as unverified. `is_list` marks a dated list price that is never live.
    """

    cloud: str
    instance_type: str
    gpu_name: str
    gpu_count: Decimal
    price_per_hour: Decimal
    market: Market = Market.ON_DEMAND
    currency: str = "USD"
    gpu_slug: str = ""
    gpu_count_in_name: Decimal | None = None
    gpu_memory_gb: Decimal | None = None
    form_factor: str = ""
    term_months: int | None = None
    region: str = ""
    zone: str = ""
    country: str = ""
    vcpus: Decimal | None = None
    ram_gb: Decimal | None = None
    disk_gb: Decimal | None = None
    interconnect: str = ""
    billing_step_seconds: int | None = None
    availability: Availability = Availability.UNKNOWN
    priced_on: date | None = None
    url: str = ""
    verified: bool = True
    is_list: bool = False


class Source(Protocol):
    """What every adapter offers. Instances hold no state between calls."""

    name: ClassVar[str]
    title: ClassVar[str]
    homepage: ClassVar[str]
    adapter_version: ClassVar[str]
    is_collector: ClassVar[bool]
    """True when it gathers other clouds' prices: a fresh direct source of the same cloud replaces its rows."""
    needs_network: ClassVar[bool]

    def documents(self) -> Sequence[Document]:
        """Return every body to read; each is fetched, parsed and stored on its own."""
        ...

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield the rows of one body. `companions` holds the run's other bodies by key.

        Raises BodyRejected before or while yielding; the caller then stores nothing of this body.
        """
        ...


@runtime_checkable
class KeyedSource(Source, Protocol):
    """A source asked with a key: the value of the setting `key_setting`. `needs_key`: without one it is not asked."""

    key_setting: ClassVar[str]
    needs_key: ClassVar[bool]

    def documents_with(self, key: str) -> Sequence[Document]:
        """Return the documents as they are asked for with `key`; the same keys and file names as `documents`."""
        ...


@runtime_checkable
class PacedSource(Source, Protocol):
    """A source that is asked less often than the others, because its answer is large or changes rarely."""

    interval_minutes: ClassVar[int]


@runtime_checkable
class LocalSource(Source, Protocol):
    """A source whose bodies lie in the repository."""

    def read(self, document: Document) -> Path:
        """Return the path of the document's file."""
        ...


def read_csv(
    content: bytes, *, required: Collection[str], repaired: Callable[[list[str]], list[str]] | None = None
) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV body by column name, cells stripped. A byte order mark and CRLF are accepted.

    `repaired` may mend a row of the wrong length. Raises BodyRejected for HTML, other encodings than UTF-8, missing
    columns, and for anything that shows a half-written file: no final line end, an open quote, a row of the wrong length.
    """
    text = _text(content)
    if not text.endswith("\n"):
        raise BodyRejected("the last line has no end: the file looks cut")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(lines)]
        missing = sorted(set(required) - set(header))
        if missing:
            raise BodyRejected(f"column {', '.join(missing)} is missing")
        for cells in lines:
            row = repaired(cells) if repaired and len(cells) != len(header) else cells
            if row and len(row) != len(header):
                raise BodyRejected(f"line {lines.line_num} has {len(row)} of {len(header)} cells")
            if row:
                yield dict(zip(header, (cell.strip() for cell in row), strict=True))
    except csv.Error as error:
        raise BodyRejected(f"line {lines.line_num} is not CSV: {error}") from error


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BodyRejected(f"not UTF-8: {error.reason} at byte {error.start}") from error
    if not text.strip():
        raise BodyRejected("the body is empty")
    if text.lstrip().startswith("<") or "\0" in text:
        raise BodyRejected("not a CSV file: it looks like a page or a binary file")
    return text


def read_price(text: str) -> Decimal | None:
    """Return a price, or a count, as the source states it; None where it states none.

    >>> read_price("0.30979999999999996"), read_price(" "), read_price("None")
    (Decimal('0.30979999999999996'), None, None)

    Raises BodyRejected for anything that is no plain number: a column has shifted, or the format has changed.
    """
    stated = text.strip()
    if stated.lower() in {"", "none", "null", "nan", "n/a", "-"}:
        return None
    try:
        number = Decimal(stated)
    except InvalidOperation as error:
        raise BodyRejected(f"{stated[:40]!r} is not a number") from error
    if not number.is_finite() or abs(number) >= LARGEST_NUMBER:
        raise BodyRejected(f"{stated[:40]!r} is not a price or a count")
    return number
