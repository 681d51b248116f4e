"""Azure's retail prices: meters per machine size and region, paged, a renter's Linux price among many others.

What is left out: Windows, Low Priority, Cloud Services, sovereign regions and machines without a GPU. A reservation
states the price of its whole term, whatever its unit says. Availability is not told. `effectiveStartDate` is when a
price came into force, not when it was last confirmed, so it does not date the offer.

The API names a size and no GPU: which card, and how many, is in SERIES, from Microsoft's page per series
(https://learn.microsoft.com/en-us/azure/virtual-machines/sizes/overview, read November 2026). A size that is not
there keeps its own name and no count, so that it ends up in the review queue and not on a wrong card.
Reference: https://learn.microsoft.com/en-us/rest/api/cost-management/retail-prices/azure-retail-prices
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import ClassVar
from urllib.parse import urlencode

from catalog.sources.base import Body, BodyRejected, Document, Market, OfferRow
from catalog.sources.json_body import (
    Fields,
    at_least_one,
    fields_of,
    is_true,
    list_of,
    number_at,
    read_json,
    read_pages,
    text_at,
)
from catalog.sources.regions import country_of

API = "https://prices.azure.com/api/retail/prices"
# One document per region, because a list that is paged over all of them can repeat or lose rows while it changes.
GPU_REGIONS = (
    "australiaeast austriaeast belgiumcentral brazilsouth canadacentral canadaeast centralindia centralus chilecentral "
    "eastasia eastus eastus2 francecentral germanywestcentral indonesiacentral israelcentral italynorth japaneast "
    "japanwest koreacentral malaysiawest mexicocentral newzealandnorth northcentralus northeurope norwayeast "
    "polandcentral qatarcentral southafricanorth southcentralus southeastasia southindia spaincentral swedencentral "
    "switzerlandnorth uaenorth uksouth ukwest westcentralus westeurope westus westus2 westus3"
)
REGIONS = tuple(GPU_REGIONS.split())
FIRST_REGION = "eastus"
SOVEREIGN = re.compile(r"us(gov|dod|sec|nat)|china")
HOURS_BY_TERM = {"1 Year": (12, 8760), "3 Years": (36, 26280), "5 Years": (60, 43800)}
MICRO = Decimal("0.000001")
SLICE = Decimal("0.0001")


@dataclass(frozen=True, kw_only=True)
class Series:
    """Sizes that hold the same card. The first number of a size is its vCPUs.

    `vcpus_per_gpu` gives the count; where it does not, `counts` gives it by vCPUs. Under one GPU it is a slice.
    """

    pattern: str
    gpu_name: str
    memory_gb: int
    form_factor: str = ""
    vcpus_per_gpu: int = 0
    counts: dict[int, int] = field(default_factory=dict)


SERIES = (
    Series(pattern=r"NCC?(\d+)adi?s_H100_v5", gpu_name="H100", memory_gb=94, form_factor="NVL", vcpus_per_gpu=40),
    Series(pattern=r"NC(\d+)ads_A100_v4", gpu_name="A100", memory_gb=80, form_factor="PCIe", vcpus_per_gpu=24),
    Series(pattern=r"NC(\d+)ads_A10_v4", gpu_name="A10", memory_gb=24, counts={8: 1, 16: 1, 32: 2}),
    Series(pattern=r"NC(\d+)as_T4_v3", gpu_name="T4", memory_gb=16, counts={4: 1, 8: 1, 16: 1, 64: 4}),
    Series(pattern=r"NC(\d+)r?s_v3", gpu_name="V100", memory_gb=16, form_factor="PCIe", vcpus_per_gpu=6),
    Series(pattern=r"ND(\d+)rs_v2", gpu_name="V100", memory_gb=32, form_factor="SXM", counts={40: 8}),
    Series(pattern=r"ND(\d+)asr_v4", gpu_name="A100", memory_gb=40, form_factor="SXM", counts={96: 8}),
    Series(pattern=r"ND(\d+)amsr_A100_v4", gpu_name="A100", memory_gb=80, form_factor="SXM", counts={96: 8}),
    Series(pattern=r"ND(\d+)isr_H100_v5", gpu_name="H100", memory_gb=80, form_factor="SXM", counts={96: 8}),
    Series(pattern=r"ND(\d+)isr_H200_v5", gpu_name="H200", memory_gb=141, form_factor="SXM", counts={96: 8}),
    Series(pattern=r"ND(\d+)isr?_MI300X_v5", gpu_name="MI300X", memory_gb=192, counts={96: 8}),
    Series(pattern=r"ND(\d+)isr_(?:NDR_)?GB200_v6", gpu_name="GB200", memory_gb=186, counts={128: 4}),
    Series(pattern=r"NV(\d+)adm?s_A10_v5", gpu_name="A10", memory_gb=24, vcpus_per_gpu=36),
    Series(pattern=r"NV(\d+)s_v3", gpu_name="M60", memory_gb=8, vcpus_per_gpu=12),
    Series(pattern=r"NV(\d+)as_v4", gpu_name="MI25", memory_gb=16, vcpus_per_gpu=32),
    Series(pattern=r"NV(\d+)adm?s_V710_v5", gpu_name="Radeon PRO V710", memory_gb=28, vcpus_per_gpu=24, counts={28: 1}),
    Series(pattern=r"NG(\d+)adm?s_V620_v1", gpu_name="Radeon PRO V620", memory_gb=32, vcpus_per_gpu=32),
)
# Field-programmable gate arrays, and the sizes with K80, P40, P100 and M60 that nobody can start since 2023.
NOT_SOLD = re.compile(r"NP\d+s|NC\d+r?|NC\d+r?s_v2|ND\d+r?s|NV\d+|N[CV]\d+r?_Promo")


class Azure:
    """One document per region, each a handful of pages."""

    name: ClassVar[str] = "azure"
    title: ClassVar[str] = "Azure retail prices"
    homepage: ClassVar[str] = "https://azure.microsoft.com/pricing/"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return one document per region that sells GPU machines."""
        return [_document(region) for region in REGIONS]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per size, region, market and term. Raises BodyRejected when a page has no `Items`."""
        items = [
            item
            for page in read_pages(body.content)
            for item in list_of(fields_of(page, "the page").get("Items"), "Items")
        ]
        rows = (row for item in _primary_last(items) if _is_for_renters(item) for row in _rows(item, body.url))
        yield from at_least_one(one_per_offer(rows))


def _document(region: str) -> Document:
    query = {
        "api-version": "2023-01-01-preview",
        "currencyCode": "USD",
        "$filter": (
            f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}' and startswith(armSkuName,'Standard_N')"
        ),
    }
    # Saved pages without a region in their file's name count as the first region's, whatever they hold.
    file_name = "azure.json" if region == FIRST_REGION else f"azure_{region}.json"
    return Document(key=region, urls=[f"{API}?{urlencode(query)}"], file_name=file_name, next_url=next_page)


def next_page(content: bytes, _url: str) -> str:
    """Return the address of the page behind this one; "" behind the last. Raises BodyRejected for no page at all."""
    return text_at(fields_of(read_json(content), "the page"), "NextPageLink")


def _primary_last(items: list[Fields]) -> list[Fields]:
    """Return the items so that of two for one offer the meter that bills it comes last, and the newest of those."""
    return sorted(items, key=lambda item: (is_true(item, "isPrimaryMeterRegion"), text_at(item, "effectiveStartDate")))


def _is_for_renters(item: Fields) -> bool:
    product = text_at(item, "productName").lower()
    meter = f"{text_at(item, 'skuName')} {text_at(item, 'meterName')}".lower()
    region, size = text_at(item, "armRegionName"), _size(item)
    return (
        size.startswith("N")
        and not NOT_SOLD.fullmatch(size)
        and "windows" not in product
        and "cloudservices" not in product.replace(" ", "")
        and "low priority" not in meter
        and not SOVEREIGN.match(region)
        and text_at(item, "unitOfMeasure") == "1 Hour"
    )


def _rows(item: Fields, url: str) -> Iterator[OfferRow]:
    price, size, region = number_at(item, "retailPrice"), _size(item), text_at(item, "armRegionName")
    sale = _sale(item)
    if price is None or sale is None:
        return
    market, term_months, hours = sale
    series = next((found for found in SERIES if re.fullmatch(found.pattern, size)), None)
    vcpus = _vcpus(size)
    yield OfferRow(
        cloud="azure",
        instance_type=f"Standard_{size}",
        gpu_name=series.gpu_name if series else size,
        gpu_count=gpu_count(series, vcpus) if series else Decimal(0),
        gpu_memory_gb=Decimal(series.memory_gb) if series else None,
        form_factor=series.form_factor if series else "",
        price_per_hour=(price / hours).quantize(MICRO, rounding=ROUND_HALF_EVEN),
        currency=text_at(item, "currencyCode").upper() or "USD",
        market=market,
        term_months=term_months,
        region=region,
        country=country_of("azure", region),
        vcpus=Decimal(vcpus) if vcpus else None,
        url=url,
    )


def _sale(item: Fields) -> tuple[Market, int | None, int] | None:
    """Return market, term in months, and the hours a price covers; None for what is not sold by the hour or term."""
    kind = text_at(item, "type")
    if kind == "Reservation":
        term = text_at(item, "reservationTerm")
        if term not in HOURS_BY_TERM:
            raise BodyRejected(f"unknown reservation term {term[:40]!r}")
        months, hours = HOURS_BY_TERM[term]
        return Market.RESERVED, months, hours
    if kind != "Consumption":
        return None
    is_spot = any(text_at(item, name).endswith("Spot") for name in ("skuName", "meterName"))
    return Market.SPOT if is_spot else Market.ON_DEMAND, None, 1


def one_per_offer(rows: Iterable[OfferRow]) -> Iterator[OfferRow]:
    """Yield each size, region, market and term once, as the last row has it: pages can repeat rows."""
    offers = {(row.instance_type, row.region, row.market, row.term_months): row for row in rows}
    yield from offers.values()


def _size(item: Fields) -> str:
    return text_at(item, "armSkuName").removeprefix("Standard_")


def _vcpus(size: str) -> int:
    found = re.match(r"[A-Z]+(\d+)", size)
    return int(found[1]) if found else 0


def gpu_count(series: Series, vcpus: int) -> Decimal:
    """Return how many GPUs a size of `vcpus` holds, a part of one for slices; 0 when the series does not tell."""
    if vcpus in series.counts:
        return Decimal(series.counts[vcpus])
    if not series.vcpus_per_gpu:
        return Decimal(0)
    return (Decimal(vcpus) / series.vcpus_per_gpu).quantize(SLICE, rounding=ROUND_HALF_EVEN)
