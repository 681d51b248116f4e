"""Scaleway's server types: one list per zone, whole servers in EUR by the hour, and a list of what is in stock.

Most types hold no GPU. Memory is in bytes, that of a GPU as that of one card. A type at the end of its service cannot
be started any more and is left out. A type with a MIG profile is a part of a card: its memory against the card's tells
which. Only zones with data centre GPUs are asked, because a zone without any would look like a failure; they are those
of the availability table in Scaleway's documentation (https://github.com/scaleway/docs-content/pull/5583, read November
2026), without fr-par-1, which has a single card of an older kind.
Reference: https://www.scaleway.com/en/developers/api/instance/instance-types
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from catalog.sources.base import Availability, Body, BodyRejected, Document, OfferRow
from catalog.sources.json_body import (
    Fields,
    at_least_one,
    fields_of,
    is_true,
    number_at,
    once_each,
    read_json,
    read_pages,
    text_at,
)
from catalog.sources.regions import country_of

API = "https://api.scaleway.com/instance/v1/zones"
ZONES = ("fr-par-2", "pl-waw-2")
PAGE_SIZE = 100
GIB = Decimal(1024**3)
HUNDREDTH = Decimal("0.01")
SLICE = Decimal("0.0001")
STOCK = {"available": Availability.YES, "scarce": Availability.LOW, "shortage": Availability.NO}


class Scaleway:
    """Two documents per zone: its types, and the companion that says which of them are in stock."""

    name: ClassVar[str] = "scaleway"
    title: ClassVar[str] = "Scaleway"
    homepage: ClassVar[str] = "https://www.scaleway.com"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the types and the stock of every zone that has GPUs."""
        return [document for zone in ZONES for document in _documents(zone)]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per type with GPUs. Raises BodyRejected when a page, or the stock beside it, is no such map."""
        zone = body.document.key
        stock = _stock(companions.get(stock_key(zone)))
        yield from at_least_one(
            once_each(
                row
                for page in read_pages(body.content)
                for name, kind in _types(page).items()
                for row in _rows(name, fields_of(kind, name), zone, stock, body.url)
            )
        )


def stock_key(zone: str) -> str:
    """Return the key of the zone's companion document."""
    return f"{zone}-availability"


def _documents(zone: str) -> Sequence[Document]:
    products = f"{API}/{zone}/products/servers"
    # Saved copies without a zone in their file's name count as the first zone's.
    suffix = "" if zone == ZONES[0] else f"_{zone}"
    return [
        Document(
            key=zone,
            urls=[f"{products}?per_page={PAGE_SIZE}&page=1"],
            file_name=f"scaleway{suffix}.json",
            next_url=next_page,
        ),
        Document(
            key=stock_key(zone),
            urls=[f"{products}/availability?per_page={PAGE_SIZE}&page=1"],
            file_name=f"scaleway_availability{suffix}.json",
            companion_of=zone,
            next_url=next_page,
        ),
    ]


def next_page(content: bytes, url: str) -> str:
    """Return the address behind a full page; a page that is not full is the last."""
    if len(_types(read_json(content))) < PAGE_SIZE:
        return ""
    page = int(parse_qs(urlsplit(url).query)["page"][0])
    return f"{url.removesuffix(f'&page={page}')}&page={page + 1}"


def _types(page: object) -> Fields:
    return fields_of(fields_of(page, "the page").get("servers"), "servers")


def _stock(body: Body | None) -> Mapping[str, Availability]:
    if body is None:
        return {}
    return {
        name: STOCK.get(text_at(fields_of(state, name), "availability"), Availability.UNKNOWN)
        for page in read_pages(body.content)
        for name, state in _types(page).items()
    }


def _rows(name: str, kind: Fields, zone: str, stock: Mapping[str, Availability], url: str) -> Iterator[OfferRow]:
    gpus, price = number_at(kind, "gpu"), number_at(kind, "hourly_price")
    if not gpus or price is None or is_true(kind, "end_of_service"):
        return
    gpu = fields_of(kind.get("gpu_info"), f"gpu_info of {name}")
    gpu_name, memory_gb = text_at(gpu, "gpu_name"), _in_gib(gpu, "gpu_memory")
    if not gpu_name:
        raise BodyRejected(f"{name} has GPUs without a name")
    yield OfferRow(
        cloud="scaleway",
        instance_type=name,
        gpu_name=gpu_name,
        gpu_count=_part(text_at(kind, "mig_profile"), memory_gb) * gpus,
        gpu_memory_gb=memory_gb,
        price_per_hour=price,
        currency="EUR",
        region=zone,
        country=country_of("scaleway", zone),
        vcpus=number_at(kind, "ncpus"),
        ram_gb=_in_gib(kind, "ram"),
        availability=stock.get(name, Availability.UNKNOWN),
        url=url,
    )


def _part(mig_profile: str, memory_gb: Decimal | None) -> Decimal:
    """Return which part of a card a profile is, 1 without one, 0 where that cannot be told.

    >>> _part("1g.10gb", Decimal(80)), _part("", Decimal(80))
    (Decimal('0.1250'), Decimal('1'))
    """
    if not mig_profile:
        return Decimal(1)
    found = re.search(r"\.(\d+)gb", mig_profile)
    return (Decimal(found[1]) / memory_gb).quantize(SLICE, ROUND_HALF_EVEN) if found and memory_gb else Decimal(0)


def _in_gib(fields: Fields, name: str) -> Decimal | None:
    size = number_at(fields, name, unit=GIB)
    return size.quantize(HUNDREDTH) if size else None
