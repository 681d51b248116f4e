"""RunPod's GPU types: a price per single GPU, apart for data centres ("secure") and for hosts ("community").

Null and 0 mean: not offered that way. With a key the catalogue of the second API is read, which tells data centres but
no spot prices yet; without one the older query, which RunPod says it will retire early in 2027. In the older answer a
card without a stock status has none free. The second one tells stock only where it is asked to, and then that of data
centres: nothing is said about hosts. Its price for serverless is that of another product.
Reference: https://docs.runpod.io/api-reference-v2/catalog/list-gpu-types and the first API's own GraphQL schema.
"""

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
)
from catalog.sources.regions import country_of

QUERY = """query {
  gpuTypes {
    id displayName memoryInGb maxGpuCount securePrice communityPrice secureSpotPrice communitySpotPrice
    lowestPrice(input: {gpuCount: 1}) { stockStatus availableGpuCounts }
  }
}"""
PRICES = (
    ("secure", Market.ON_DEMAND, "securePrice"),
    ("community", Market.ON_DEMAND, "communityPrice"),
    ("secure", Market.SPOT, "secureSpotPrice"),
    ("community", Market.SPOT, "communitySpotPrice"),
)
STOCK = {
    "high": Availability.YES,
    "medium": Availability.YES,
    "low": Availability.LOW,
    "none": Availability.NO,
}
# The second API tells the largest pod only; pods come in any size up to it, and these are the sizes people compare.
POD_SIZES = tuple(map(Decimal, (1, 2, 4, 8)))


class RunPod:
    """One document: the second API with a key, the first one's public query without."""

    name: ClassVar[str] = "runpod"
    title: ClassVar[str] = "RunPod"
    homepage: ClassVar[str] = "https://www.runpod.io"
    adapter_version: ClassVar[str] = "2"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True
    key_setting: ClassVar[str] = "RUNPOD_API_KEY"
    needs_key: ClassVar[bool] = False

    def documents(self) -> Sequence[Document]:
        """Return the query that needs no key."""
        return self.documents_with("")

    def documents_with(self, key: str) -> Sequence[Document]:
        """Return the catalogue of the second API when there is a key, else the query of the first.

        Both share a key, because they hold the same offers: reading one replaces what the other said.
        """
        if key:
            url, headers, json_body = (
                "https://api.runpod.io/v2/catalog/gpus?include=AVAILABILITY&product=POD",
                {"Authorization": f"Bearer {key}"},
                None,
            )
        else:
            url, headers, json_body = "https://api.runpod.io/graphql", {}, {"query": QUERY}
        return [Document(key="gpus", urls=[url], file_name="runpod.json", headers=headers, json_body=json_body)]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield the rows of either answer, told apart by its fields. Raises BodyRejected when it is neither."""
        answer = fields_of(read_json(body.content), "the body")
        if "gpus" in answer:
            yield from at_least_one(
                row for gpu in list_of(answer["gpus"], "gpus") for row in _catalogue_rows(gpu, body.url)
            )
            return
        data = answer.get("data")
        if answer.get("errors") or not isinstance(data, dict):
            raise BodyRejected("the query was not answered")
        yield from at_least_one(
            row for gpu in list_of(data.get("gpuTypes"), "gpuTypes") for row in _type_rows(gpu, body.url)
        )


def _type_rows(gpu: Fields, url: str) -> Iterator[OfferRow]:
    lowest = fields_of(gpu.get("lowestPrice") or {}, "lowestPrice")
    sizes = _sizes(lowest.get("availableGpuCounts"))
    stock = _stock(text_at(lowest, "stockStatus") or "none")
    for kind, market, field in PRICES:
        price = number_at(gpu, field)
        if price:
            for size in sizes or [Decimal(1)]:
                yield _row(
                    gpu,
                    kind=kind,
                    market=market,
                    size=size,
                    price=price,
                    memory_gb=number_at(gpu, "memoryInGb"),
                    availability=stock if sizes else Availability.NO,
                    url=url,
                )


def _catalogue_rows(gpu: Fields, url: str) -> Iterator[OfferRow]:
    prices = fields_of(gpu.get("price") or {}, "price")
    largest = fields_of(gpu.get("maxCount") or {}, "maxCount")
    centres = [
        (text_at(centre, "id"), text_at(centre, "availability"))
        for centre in list_of(gpu.get("dataCenters") or [], "dataCenters")
    ]
    for kind, places in (("secure", centres or [("", text_at(gpu, "availability"))]), ("community", [("", "")])):
        price = number_at(prices, kind)
        if not price:
            continue
        for region, stock in places:
            for size in (size for size in POD_SIZES if size <= (number_at(largest, kind) or 1)):
                yield _row(
                    gpu,
                    kind=kind,
                    market=Market.ON_DEMAND,
                    size=size,
                    price=price,
                    memory_gb=number_at(gpu, "memory"),
                    availability=_stock(stock),
                    url=url,
                    region=region,
                )


def _row(
    gpu: Fields,
    *,
    kind: str,
    market: Market,
    size: Decimal,
    price: Decimal,
    memory_gb: Decimal | None,
    availability: Availability,
    url: str,
    region: str = "",
) -> OfferRow:
    name = text_at(gpu, "id")
    if not name:
        raise BodyRejected("a GPU type has no id")
    return OfferRow(
        cloud="runpod",
        instance_type=f"{size:f}x {name}, {kind}",
        gpu_name=name,
        gpu_count=size,
        gpu_memory_gb=memory_gb or None,
        price_per_hour=price * size,
        market=market,
        region=region,
        country=_country(region),
        availability=availability,
        url=url,
    )


def _country(region: str) -> str:
    """Return the country of a data centre: America's names begin with it, all others with their continent.

    >>> _country("US-KS-2"), _country("EU-RO-1"), _country("EUR-IS-1"), _country("")
    ('US', 'RO', 'IS', '')
    """
    area, _, rest = region.partition("-")
    return country_of("runpod", area if area in {"US", "CA"} else rest.partition("-")[0])


def _sizes(counts: object) -> list[Decimal]:
    """Return the pod sizes that are free now; [] when none is told. One GPU may be gone while eight are left."""
    if not isinstance(counts, list):
        return []
    return [count for count in counts if isinstance(count, Decimal) and count > 0]


def _stock(stated: str) -> Availability:
    return STOCK.get(stated.lower(), Availability.UNKNOWN)
