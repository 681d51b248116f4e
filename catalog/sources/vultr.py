"""Vultr's plans: whole plans by the hour, among them parts of a card.

Cloud plans state the memory a plan gets, which is that of several cards or of a part of one: it is counted in cards
of the size the type has. Bare metal plans name their GPUs in the plan's id only; one whose id tells no number keeps
none and is held back. RAM is in MB. A plan without locations is sold out; a free plan exists and holds no GPU.
Reference: https://www.vultr.com/api/#tag/plans
"""

import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from catalog.sources.base import Availability, Body, Document, OfferRow
from catalog.sources.json_body import (
    Fields,
    at_least_one,
    fields_of,
    list_of,
    number_at,
    once_each,
    read_json,
    read_pages,
    text_at,
    texts_at,
)
from catalog.sources.regions import country_of

API = "https://api.vultr.com/v2"
MB_PER_GB = 1024
SLICE = Decimal("0.0001")
HUNDREDTH = Decimal("0.01")
# The memory of one whole card, in GB, by the makers' figures; of the A100 the 80 GB card is the one sold here.
CARDS_GB = {
    "NVIDIA_A16": 16,
    "NVIDIA_A40": 48,
    "NVIDIA_A100": 80,
    "NVIDIA_GH200": 96,
    "NVIDIA_H100": 80,
    "NVIDIA_L40S": 48,
    "AMD_MI300X": 192,
    "AMD_MI325X": 256,
}
METAL_ID = re.compile(r"vbm-\d+c-\d+gb-(?:(?P<count>\d+)-)?(?P<gpu>[a-z0-9]+(?:-[a-z0-9]+)*)-gpu")


class Vultr:
    """Two documents, each of one page or more: cloud plans and bare metal plans."""

    name: ClassVar[str] = "vultr"
    title: ClassVar[str] = "Vultr"
    homepage: ClassVar[str] = "https://www.vultr.com"
    adapter_version: ClassVar[str] = "1"
    is_collector: ClassVar[bool] = False
    needs_network: ClassVar[bool] = True

    def documents(self) -> Sequence[Document]:
        """Return the plans of every type, and those of bare metal."""
        return [
            Document(
                key="plans", urls=[f"{API}/plans?type=all&per_page=500"], file_name="vultr.json", next_url=next_page
            ),
            Document(
                key="plans-metal",
                urls=[f"{API}/plans-metal?per_page=500"],
                file_name="vultr_metal.json",
                next_url=next_page,
            ),
        ]

    def parse(self, body: Body, companions: dict[str, Body]) -> Iterator[OfferRow]:
        """Yield one row per plan and location. Raises BodyRejected when a page has no list of plans."""
        plans = [plan for page in read_pages(body.content) for plan in _plans(fields_of(page, "the page"))]
        yield from at_least_one(once_each(row for plan in plans for row in _rows(plan, body.url)))


def next_page(content: bytes, url: str) -> str:
    """Return the address behind this page: the same one with the cursor the page names; "" behind the last."""
    meta = fields_of(fields_of(read_json(content), "the page").get("meta") or {}, "meta")
    cursor = text_at(fields_of(meta.get("links") or {}, "links"), "next")
    if not cursor:
        return ""
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "cursor"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("cursor", cursor)])))


def _plans(page: Fields) -> list[Fields]:
    return list_of(page["plans_metal"] if "plans_metal" in page else page.get("plans"), "plans")


def _rows(plan: Fields, url: str) -> Iterator[OfferRow]:
    price, card, disks = number_at(plan, "hourly_cost"), _card(plan), number_at(plan, "disk_count") or Decimal(1)
    if card is None or price is None:
        return
    gpu_name, gpu_count, memory_gb = card
    ram_mb, disk_gb, locations = number_at(plan, "ram"), number_at(plan, "disk"), texts_at(plan, "locations")
    for location in locations or [""]:
        yield OfferRow(
            cloud="vultr",
            instance_type=text_at(plan, "id"),
            gpu_name=gpu_name,
            gpu_count=gpu_count,
            gpu_memory_gb=memory_gb,
            price_per_hour=price,
            region=location,
            country=country_of("vultr", location),
            vcpus=number_at(plan, "vcpu_count") or number_at(plan, "cpu_threads"),
            ram_gb=(ram_mb / MB_PER_GB).quantize(HUNDREDTH) if ram_mb else None,
            disk_gb=disk_gb * disks if disk_gb else None,
            availability=Availability.YES if locations else Availability.NO,
            url=url,
        )


def _card(plan: Fields) -> tuple[str, Decimal, Decimal | None] | None:
    """Return the card's name, how many the plan holds and one's memory in GB; None for a plan without GPUs.

    Of a type that is not in the table the number is unknown: 0, which holds the plan back.
    """
    name = text_at(plan, "gpu_type")
    if not name:
        metal = METAL_ID.fullmatch(text_at(plan, "id"))
        return (metal["gpu"], Decimal(metal["count"] or 0), None) if metal else None
    card_gb, plan_gb = CARDS_GB.get(name), number_at(plan, "gpu_vram_gb")
    if card_gb is None or plan_gb is None:
        return name, Decimal(0), None
    return name, (plan_gb / card_gb).quantize(SLICE, rounding=ROUND_HALF_EVEN), Decimal(card_gb)
