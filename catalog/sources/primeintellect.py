"""Prime Intellect, an aggregator: what its partner clouds, and its own data centres, rent out at this moment.

A price is for the whole instance. The API's documentation does not say so, SkyPilot's catalogue reads it so, and each
body is checked: where most machines of several GPUs cost no more than one of theirs, the prices have become prices
per GPU and the body is refused. Spot machines are entries of their own, marked by a suffix; a machine paid ahead for a
term (`prepaidTime`) has no price per hour and is left out. An empty answer is sent now and then for no reason.
Reference: https://docs.primeintellect.ai/api-reference/check-gpu-availability
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from catalog.names import cloud_slug
from catalog.sources.base import Availability, Body, BodyRejected, Document, Market, OfferRow
from catalog.sources.json_body import (
    Fields,
    at_least_one,
    fields_of,
    is_true,
    list_of,
    number_at,
    once_each,
    read_json,
    read_pages,
    text_at,
)
from catalog.sources.regions import country_of

API = "https://api.primeintellect.ai/api/v1/availability/gpus"
PAGE_SIZE = 100
STOCK = {
    "available": Availability.YES,
    "high": Availability.YES,
    "medium": Availability.YES,
    "low": Availability.LOW,
    "unavailable": Availability.NO,
}
# A board of eight that costs less than this many of its GPUs alone is priced per GPU.
FEWEST_SINGLE_PRICES = Decimal("1.5")
FEWEST_GPUS_TO_TELL = 4


class PrimeIntellect:
    """One document of several pages; the key needs the permission to read availability."""

    name: ClassVar[str] = "primeintellect"
    title: ClassVar[str] = "Prime Intellect"
    homepage: ClassVar[str] = "https://www.primeintellect.ai"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = True
    needs_network: ClassVar[bool] = True
    key_setting: ClassVar[str] = "PRIMEINTELLECT_API_KEY"
    needs_key: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the one document as it is called in saved copies."""
        return self.documents_with("")

    def documents_with(self, key: str) -> Sequence[Document]:
        """Return every machine there is, asked for with `key`."""
        return [
            Document(
                key="primeintellect",
                urls=[_page_url(1)],
                file_name="primeintellect.json",
                headers={"Authorization": f"Bearer {key}"} if key else {},
                next_url=next_page,
            )
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per machine and place.

        Raises BodyRejected when a page has no list of items, and when the prices look like prices per GPU.
        """
        items = [
            item
            for page in read_pages(body.content)
            for item in list_of(fields_of(page, "the page").get("items"), "items")
        ]
        rows = list(at_least_one(once_each(row for item in items for row in _rows(item, body.url))))
        _refuse_prices_per_gpu(rows)
        yield from rows


def next_page(content: bytes, url: str) -> str:
    """Return the address of the page behind this one, as far as the stated number of machines goes."""
    total = number_at(fields_of(read_json(content), "the page"), "totalCount") or Decimal(0)
    page = int(parse_qs(urlsplit(url).query)["page"][0])
    return _page_url(page + 1) if page * PAGE_SIZE < total else ""


def _page_url(page: int) -> str:
    return f"{API}?page={page}&page_size={PAGE_SIZE}"


def _rows(item: Fields, url: str) -> Iterator[OfferRow]:
    gpus, gpu_name = number_at(item, "gpuCount"), text_at(item, "gpuType")
    prices = fields_of(item.get("prices") or {}, "prices")
    price = number_at(prices, "onDemand") or number_at(prices, "communityPrice")
    if not gpus or gpu_name == "CPU_NODE" or price is None or item.get("prepaidTime") is not None:
        return
    instance_type = text_at(item, "cloudId").removesuffix("_SPOT")
    if not gpu_name or not instance_type:
        raise BodyRejected("a machine with GPUs has no name")
    yield OfferRow(
        cloud=cloud_slug(text_at(item, "provider")),
        instance_type=instance_type,
        gpu_name=gpu_name,
        gpu_count=gpus,
        gpu_memory_gb=_memory_in(gpu_name) or number_at(item, "gpuMemory") or None,
        form_factor=text_at(item, "socket"),
        price_per_hour=price,
        currency=text_at(prices, "currency").upper() or "USD",
        market=Market.SPOT if is_true(item, "isSpot") else Market.ON_DEMAND,
        region=text_at(item, "dataCenter") or text_at(item, "region"),
        country=country_of("primeintellect", text_at(item, "country")),
        vcpus=_default_of(item, "vcpu"),
        ram_gb=_default_of(item, "memory"),
        disk_gb=_default_of(item, "disk"),
        availability=STOCK.get(text_at(item, "stockStatus").lower(), Availability.UNKNOWN),
        url=url,
    )


def _memory_in(gpu_name: str) -> Decimal | None:
    """Return the memory the name carries; the field beside it has been seen to hold that of all GPUs.

    >>> _memory_in("H100_80GB"), _memory_in("RTX4090")
    (Decimal('80'), None)
    """
    found = re.search(r"_(\d+)GB$", gpu_name)
    return Decimal(found[1]) if found else None


def _default_of(item: Fields, name: str) -> Decimal | None:
    return number_at(fields_of(item.get(name) or {}, name), "defaultCount") or None


def _refuse_prices_per_gpu(rows: Sequence[OfferRow]) -> None:
    """Raise BodyRejected when more than half of the large machines cost about what one of their GPUs costs alone."""
    singles: dict[tuple[object, ...], Decimal] = {}
    large: dict[tuple[object, ...], list[Decimal]] = defaultdict(list)
    for row in rows:
        kind = (row.cloud, row.gpu_name, row.form_factor, row.market)
        if row.gpu_count == 1:
            singles[kind] = min(row.price_per_hour, singles.get(kind, row.price_per_hour))
        elif row.gpu_count >= FEWEST_GPUS_TO_TELL:
            large[kind].append(row.price_per_hour)
    told = [price < singles[kind] * FEWEST_SINGLE_PRICES for kind in large for price in large[kind] if kind in singles]
    if sum(told) * 2 > len(told):
        raise BodyRejected(f"{sum(told)} of {len(told)} large machines cost what one GPU costs: prices per GPU?")
