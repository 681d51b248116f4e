"""Our asks and the live offers of other clouds in the format of SkyPilot's catalogue files, so that its reader loads them.

What that reader (`sky/catalog/common.py` of github.com/skypilot-org/skypilot, read 30 November 2026) asks of a file:
- one row per `InstanceType`, `Region` and `AvailabilityZone`, on-demand and spot price of the whole machine in one row;
- vCPUs and memory the same in all rows of an instance type, so both are part of its name; an empty one equals no other,
  so where one is not published the zone is part of the name too;
- a zone in every row, in one region only: it drops rows without one from its list of regions;
- `GpuInfo` as a Python literal, of which it takes the memory of the first GPU.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Any

from catalog.models import Offer
from catalog.names.skypilot import skypilot_name
from marketplace.limits import LIVE_FOR
from marketplace.models import Listing

COLUMNS = (
    "InstanceType",
    "vCPUs",
    "MemoryGiB",
    "AcceleratorName",
    "AcceleratorCount",
    "GpuInfo",
    "Price",
    "SpotPrice",
    "Region",
    "AvailabilityZone",
)
OURS = "gpu-bourse"
NO_REGION = "default"
_MIB_PER_GB = 1024
_ROWS_AT_ONCE = 2000
_COUNTS = (1, 2, 4, 8, 16, 32, 64)
_GPU = ("gpu__slug", "gpu__label", "gpu__vendor", "gpu__memory_gb")
_SAME_MACHINE = (
    "cloud__slug",
    "instance_type",
    "gpu__slug",
    "gpu_count",
    "vcpus",
    "ram_gb",
    "region",
    "country",
    "zone",
)
Row = Mapping[str, Any]


def skypilot_rows(*, now: datetime) -> Iterator[tuple[object, ...]]:
    """Yield our asks, then the live offers of whole GPUs by cloud, each as `COLUMNS`. Two queries, read as a stream."""
    yield from _ask_rows(now=now)
    yield from _offer_rows(now=now)


def _ask_rows(*, now: datetime) -> Iterator[tuple[object, ...]]:
    """Yield per GPU, country and usual count the lowest ask. A part of a server has no vCPUs and memory of its own."""
    listings = Listing.objects.filter(is_for_rent=True, free_count__gt=0, server__last_beat_at__gte=now - LIVE_FOR)
    asks = listings.order_by("gpu__position", "server__country", "price_usd_per_gpu_hour").values(
        *_GPU, "server__country", "price_usd_per_gpu_hour", "min_gpus", "free_count"
    )
    for (slug, country), same in groupby(asks, key=lambda ask: (ask["gpu__slug"], ask["server__country"])):
        cheapest = list(same)
        for count in _COUNTS:
            fits = (ask for ask in cheapest if ask["min_gpus"] <= count <= ask["free_count"])
            if ask := next(fits, None):
                yield _row(
                    ask,
                    instance_type=f"{OURS}--{slug}-x{count}--{country}",
                    gpu_count=Decimal(count),
                    price=ask["price_usd_per_gpu_hour"] * count,
                    spot_price=None,
                    region=country,
                    zone=country,
                )


def _offer_rows(*, now: datetime) -> Iterator[tuple[object, ...]]:
    offers = Offer.objects.eligible().live(now).filter(market__in=("on_demand", "spot"))
    rows = offers.order_by(*_SAME_MACHINE).values(*_SAME_MACHINE, *_GPU[1:], "market", "price_usd_per_hour")
    stream: Iterable[Row] = rows.iterator(chunk_size=_ROWS_AT_ONCE)
    for _, same in groupby(stream, key=lambda row: tuple(row[name] for name in _SAME_MACHINE)):
        yield _machine(list(same))


def _machine(same: list[Row]) -> tuple[object, ...]:
    """Return one machine in one place at the lowest price that any source gives for it."""
    row = same[0]
    region = row["region"] or row["country"] or NO_REGION
    zone = _zone(row["zone"], region=region)
    return _row(
        row,
        instance_type=_instance_type(row, zone=zone),
        gpu_count=row["gpu_count"],
        price=_lowest(same, Offer.MarketKind.ON_DEMAND),
        spot_price=_lowest(same, Offer.MarketKind.SPOT),
        region=region,
        zone=zone,
        vcpus=row["vcpus"],
        ram_gb=row["ram_gb"],
    )


def _lowest(same: list[Row], market: Offer.MarketKind) -> Decimal | None:
    return min((row["price_usd_per_hour"] for row in same if row["market"] == market), default=None)


def _instance_type(row: Row, *, zone: str) -> str:
    sizes = [f"{_plain(row[name])}{unit}" for name, unit in (("vcpus", "v"), ("ram_gb", "g")) if row[name] is not None]
    is_sized = len(sizes) == 2
    machine = "-".join([f"{_plain(row['gpu_count'])}x", row["gpu__slug"], *sizes, *([] if is_sized else [zone])])
    return "--".join([row["cloud__slug"], row["instance_type"], machine])


def _zone(zone: str, *, region: str) -> str:
    return zone if zone.startswith(region) else f"{region}-{zone}" if zone else region


def _row(
    gpu: Row,
    *,
    instance_type: str,
    gpu_count: Decimal,
    price: Decimal | None,
    spot_price: Decimal | None,
    region: str,
    zone: str,
    vcpus: Decimal | None = None,
    ram_gb: Decimal | None = None,
) -> tuple[object, ...]:
    name = skypilot_name(gpu["gpu__slug"], label=gpu["gpu__label"])
    mib = int(gpu["gpu__memory_gb"] * _MIB_PER_GB)
    info = {
        "Gpus": [
            {
                "Name": name,
                "Manufacturer": gpu["gpu__vendor"],
                "Count": int(gpu_count),
                "MemoryInfo": {"SizeInMiB": mib},
            }
        ],
        "TotalGpuMemoryInMiB": mib * int(gpu_count),
    }
    figures = [None if value is None else _plain(value) for value in (vcpus, ram_gb)]
    prices = [None if value is None else _plain(value) for value in (price, spot_price)]
    return instance_type, *figures, name, _plain(gpu_count), repr(info), *prices, region, zone


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"
