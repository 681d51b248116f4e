"""Reading a JSON body by field name: exact numbers, and a clear refusal of anything a source does not promise.

Every number is a Decimal, so that no price passes through a binary fraction. A paged body is its pages one after
another; a body of one page reads the same way.

>>> [page["Items"] for page in read_pages(b'{"Items": [1.10]} {"Items": []}')]
[[Decimal('1.10')], []]
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NoReturn

from catalog.sources.base import LARGEST_NUMBER, Availability, BodyRejected, OfferRow, read_price

Fields = Mapping[str, object]


def read_json(content: bytes) -> object:
    """Return the one value of a JSON body, numbers as Decimal.

    Raises BodyRejected for HTML, half a body, anything behind the value, NaN, and nesting nobody sends.
    """
    pages = read_pages(content)
    if len(pages) != 1:
        raise BodyRejected(f"{len(pages)} JSON values where one is promised")
    return pages[0]


def read_pages(content: bytes) -> list[object]:
    """Return the values of a body that is one page behind the other. Raises BodyRejected as `read_json` does."""
    text = _text(content)
    pages: list[object] = []
    position = 0
    while position < len(text):
        try:
            page, position = _DECODER.raw_decode(text, position)
        except (ValueError, ArithmeticError, RecursionError) as error:
            raise BodyRejected(f"not JSON: {error}"[:200]) from error
        pages.append(page)
        position = _next_value(text, position)
    return pages


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise BodyRejected(f"not UTF-8: {error.reason} at byte {error.start}") from error
    if not text:
        raise BodyRejected("the body is empty")
    if text.startswith("<"):
        raise BodyRejected("not JSON: it looks like a page")
    return text


def _next_value(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse_constant)


def fields_of(value: object, what: str) -> Fields:
    """Return a JSON object. Raises BodyRejected naming `what` for anything else."""
    if not isinstance(value, dict):
        raise BodyRejected(f"{what} is not an object")
    return value


def list_of(value: object, what: str) -> list[Fields]:
    """Return a JSON list of objects. Raises BodyRejected naming `what` for anything else."""
    if not isinstance(value, list):
        raise BodyRejected(f"{what} is not a list")
    return [fields_of(item, f"an entry of {what}") for item in value]


def text_at(fields: Fields, name: str) -> str:
    """Return a text field, stripped; "" when it is null or missing. Raises BodyRejected for another type."""
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BodyRejected(f"{name} is not a text")
    return value.strip()


def number_at(fields: Fields, name: str, *, unit: Decimal = Decimal(1)) -> Decimal | None:
    """Return a number in units of `unit`, also one written as a text; None when null or missing.

    Raises BodyRejected for another type, and for what is no price, count or size in that unit.
    """
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        number = read_price(value)
        return None if number is None else number / unit
    if not isinstance(value, Decimal):
        raise BodyRejected(f"{name} is not a number")
    if abs(value) >= LARGEST_NUMBER * unit:
        raise BodyRejected(f"{name} is too large for a price or a count")
    return value / unit


def is_true(fields: Fields, name: str) -> bool:
    """Tell whether a flag is set; a missing one is not. Raises BodyRejected for another type."""
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise BodyRejected(f"{name} is neither true nor false")
    return value is True


def texts_at(fields: Fields, name: str) -> list[str]:
    """Return a list of texts; [] when it is null or missing. Raises BodyRejected for another type."""
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BodyRejected(f"{name} is not a list of texts")
    return value


def at_least_one(rows: Iterable[OfferRow]) -> Iterator[OfferRow]:
    """Yield the rows. Raises BodyRejected when there is none: an answer without prices must not empty the site."""
    found = False
    for row in rows:
        found = True
        yield row
    if not found:
        raise BodyRejected("the body holds no price of a GPU")


def once_each(rows: Iterable[OfferRow]) -> Iterator[OfferRow]:
    """Yield each offer once: pages repeat rows, and aggregators list one machine under several names of their own.

    Of two rows for one offer the one that is in stock stands, then the cheaper.
    """
    offers: dict[tuple[object, ...], OfferRow] = {}
    for row in rows:
        key = (
            row.cloud,
            row.instance_type,
            row.gpu_name,
            row.gpu_count,
            row.region,
            row.zone,
            row.market,
            row.term_months,
        )
        known = offers.get(key)
        if known is None or _rank(row) < _rank(known):
            offers[key] = row
    yield from offers.values()


def _rank(row: OfferRow) -> tuple[bool, Decimal]:
    return row.availability is Availability.NO, row.price_per_hour
