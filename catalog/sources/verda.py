"""Verda (formerly DataCrunch): instance types with a price per whole instance, written as texts.

`gpu_memory` is the sum over the instance's GPUs. Where a type can be started is a document of its own, for
on-demand and for spot; without it nothing is said about stock. Prices are asked for in USD.
Reference: https://api.verda.com/v1/docs
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import ClassVar

from catalog.sources.base import Availability, Body, BodyRejected, Document, Market, OfferRow
from catalog.sources.json_body import (
    Fields,
    at_least_one,
    fields_of,
    list_of,
    number_at,
    read_json,
    text_at,
    texts_at,
)
from catalog.sources.regions import country_of

API = "https://api.verda.com/v1"
FORMER_API = "https://api.datacrunch.io/v1"
TYPES = "instance-types"
STOCK_KEYS = {Market.ON_DEMAND: "availability", Market.SPOT: "spot-availability"}
PRICE_FIELDS = {Market.ON_DEMAND: "price_per_hour", Market.SPOT: "spot_price"}
HUNDREDTH = Decimal("0.01")


class Verda:
    """The types, and two companions that say where they are free."""

    name: ClassVar[str] = "verda"
    title: ClassVar[str] = "Verda"
    homepage: ClassVar[str] = "https://verda.com"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the types, the former address behind the present one, and their two companions."""
        types = f"{TYPES}?currency=usd"
        return [
            Document(
                key=TYPES, urls=[f"{API}/{types}", f"{FORMER_API}/{types}"], file_name="verda_instance_types.json"
            ),
            _stock_document(Market.ON_DEMAND, "verda_instance_availability.json"),
            _stock_document(Market.SPOT, "verda_spot_availability.json"),
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per type, market and location where it is free.

        Raises BodyRejected when the body, or a companion that was read, is not such a list.
        """
        types = list_of(read_json(body.content), "the body")
        stock = {market: _locations(companions.get(key)) for market, key in STOCK_KEYS.items()}
        yield from at_least_one(
            row for kind in types for market, found in stock.items() for row in _rows(kind, market, found, body.url)
        )


def _stock_document(market: Market, file_name: str) -> Document:
    is_spot = "true" if market is Market.SPOT else "false"
    return Document(
        key=STOCK_KEYS[market],
        urls=[f"{API}/instance-availability?is_spot={is_spot}"],
        file_name=file_name,
        companion_of=TYPES,
    )


def _locations(body: Body | None) -> dict[str, list[str]] | None:
    """Return the locations by instance type; None when nobody told."""
    if body is None:
        return None
    found: dict[str, list[str]] = {}
    for location in list_of(read_json(body.content), "the availability"):
        for name in texts_at(location, "availabilities"):
            found.setdefault(name, []).append(text_at(location, "location_code"))
    return found


def _rows(kind: Fields, market: Market, stock: dict[str, list[str]] | None, url: str) -> Iterator[OfferRow]:
    gpu, memory = fields_of(kind.get("gpu"), "gpu"), fields_of(kind.get("gpu_memory"), "gpu_memory")
    gpus, price, name = number_at(gpu, "number_of_gpus"), number_at(kind, PRICE_FIELDS[market]), text_at(kind, "model")
    if not gpus or price is None:
        return
    if not name:
        raise BodyRejected("an instance type with GPUs names no model")
    instance_type, total_gb = text_at(kind, "instance_type"), number_at(memory, "size_in_gigabytes")
    regions = (stock or {}).get(instance_type, [])
    for region in regions or [""]:
        yield OfferRow(
            cloud="verda",
            instance_type=instance_type,
            gpu_name=name,
            gpu_count=gpus,
            gpu_count_in_name=_count_in(instance_type),
            gpu_memory_gb=(total_gb / gpus).quantize(HUNDREDTH) if total_gb else None,
            form_factor=_form_factor(text_at(gpu, "description")),
            price_per_hour=price,
            currency=text_at(kind, "currency").upper() or "USD",
            market=market,
            region=region,
            country=country_of("verda", region),
            vcpus=number_at(fields_of(kind.get("cpu") or {}, "cpu"), "number_of_cores"),
            ram_gb=number_at(fields_of(kind.get("memory") or {}, "memory"), "size_in_gigabytes"),
            availability=_availability(stock, regions),
            url=url,
        )


def _availability(stock: dict[str, list[str]] | None, regions: list[str]) -> Availability:
    if stock is None:
        return Availability.UNKNOWN
    return Availability.YES if regions else Availability.NO


def _count_in(instance_type: str) -> Decimal | None:
    found = re.match(r"(\d+)[A-Z]", instance_type)
    return Decimal(found[1]) if found else None


def _form_factor(description: str) -> str:
    """Return the form factor a description names.

    >>> _form_factor("8x B200 SXM6 180GB"), _form_factor("1x L40S 48GB")
    ('SXM', '')
    """
    found = re.search(r"\b(SXM|PCIe|NVL)\d?\b", description)
    return found[1] if found else ""
