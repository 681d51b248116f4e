"""What pages and API read about clouds: their facts, what they offer, and which sources say so."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Prefetch, Q, QuerySet, Window

from catalog.freshness import SHOWN_FOR, Freshness, freshness, oldest_live_day
from catalog.models import Cloud, CloudFact, Gpu, Offer, Source

_PRICE_COLUMNS: tuple[str, ...] = (
    "cloud_id",
    "gpu__slug",
    "gpu__label",
    "price_usd_per_gpu_hour",
    "observed_at",
    "priced_on",
    "is_list",
)


@dataclass(frozen=True, kw_only=True)
class CloudPrice:
    """A cloud's lowest whole-GPU price for one GPU, USD per GPU-hour: live on-demand, or the dated list price."""

    gpu_slug: str
    gpu_label: str
    price_usd_per_gpu_hour: Decimal
    observed_at: datetime
    priced_on: date | None
    freshness: Freshness

    @property
    def is_live(self) -> bool:
        """Whether it was read lately and is not dated."""
        return self.freshness is not Freshness.LIST


@dataclass(frozen=True, kw_only=True)
class CloudRow:
    """One cloud of the list. `live_offers` counts offers on sale read lately; `prices` is one per GPU, lowest first."""

    cloud: Cloud
    facts: Mapping[str, CloudFact]
    live_offers: int
    prices: Sequence[CloudPrice]

    @property
    def next_prices(self) -> Sequence[CloudPrice]:
        """The two GPUs after the cheapest."""
        return self.prices[1:3]


def cloud_rows(*, now: datetime) -> list[CloudRow]:
    """Return every cloud by name. Four queries."""
    live_offers = _live_offers(now=now)
    prices = _lowest_prices(now=now)
    return [
        CloudRow(
            cloud=cloud,
            facts=facts_of(cloud),
            live_offers=live_offers.get(cloud.pk, 0),
            prices=prices.get(cloud.pk, []),
        )
        for cloud in with_facts(Cloud.objects.order_by("name"))
    ]


def with_facts(clouds: QuerySet[Cloud]) -> QuerySet[Cloud]:
    """Return the clouds with their facts read beside them: one more query for all of them."""
    return clouds.prefetch_related(Prefetch("facts", queryset=CloudFact.objects.order_by("pk")))


def facts_of(cloud: Cloud) -> dict[str, CloudFact]:
    """Return a cloud's facts by their name."""
    return {fact.fact: fact for fact in cloud.facts.all()}


def live_offer_counts(*, now: datetime, clouds: Iterable[Cloud]) -> dict[int, int]:
    """Return how many live offers each of `clouds` has, by key. One query."""
    return _live_offers(now=now, cloud_ids=[cloud.pk for cloud in clouds])


def _live_offers(*, now: datetime, cloud_ids: Sequence[int] | None = None) -> dict[int, int]:
    offers = Offer.objects.on_sale().live(now)
    if cloud_ids is not None:
        offers = offers.filter(cloud_id__in=cloud_ids)
    return dict(offers.order_by().values_list("cloud_id").annotate(Count("pk")))


def _lowest_prices(*, now: datetime) -> dict[int, list[CloudPrice]]:
    """Return each cloud's lowest price per GPU; a dated one only where the cloud has no live one for any GPU."""
    on_demand = Offer.objects.eligible().filter(market=Offer.MarketKind.ON_DEMAND)
    found: dict[int, list[CloudPrice]] = {}
    for offers in (on_demand.live(now), on_demand.dated(now)):
        of_tier: dict[int, list[CloudPrice]] = defaultdict(list)
        for row in _lowest_per_gpu(offers):
            of_tier[row["cloud_id"]].append(_cloud_price(row, now=now))
        for cloud_id, prices in of_tier.items():
            found.setdefault(cloud_id, sorted(prices, key=lambda price: (price.price_usd_per_gpu_hour, price.gpu_slug)))
    return found


def _lowest_per_gpu(offers: QuerySet[Offer]) -> QuerySet[Offer, dict[str, Any]]:
    keys = ("cloud_id", "gpu_id")
    rows: QuerySet[Offer, dict[str, Any]] = (
        offers.order_by(*keys, "price_usd_per_gpu_hour", F("observed_at").desc())
        .distinct(*keys)
        .values(*_PRICE_COLUMNS)
    )
    return rows


def _cloud_price(row: Mapping[str, Any], *, now: datetime) -> CloudPrice:
    return CloudPrice(
        gpu_slug=row["gpu__slug"],
        gpu_label=row["gpu__label"],
        price_usd_per_gpu_hour=row["price_usd_per_gpu_hour"],
        observed_at=row["observed_at"],
        priced_on=row["priced_on"],
        freshness=freshness(
            observed_at=row["observed_at"], priced_on=row["priced_on"], is_list=row["is_list"], now=now
        ),
    )


@dataclass(frozen=True, kw_only=True)
class CloudOffer:
    """A cloud's cheapest way to one GPU in one market and term. `places` = regions, zones and machines that list it."""

    offer: Offer
    places: int
    freshness: Freshness


@dataclass(frozen=True, kw_only=True)
class GpuGroup:
    """A cloud's offers of one GPU: undated ones first, then dated ones, each by market and term."""

    gpu: Gpu
    lines: Sequence[CloudOffer]


def offers_of_cloud(*, cloud: Cloud, now: datetime) -> list[GpuGroup]:
    """Return what a cloud offers, by GPU in the catalogue's order. Stale offers are left out. Two queries."""
    on_sale = Offer.objects.on_sale().filter(cloud=cloud)
    undated = on_sale.filter(is_list=False, observed_at__gt=now - SHOWN_FOR).exclude(priced_on__lt=oldest_live_day(now))
    groups: dict[int, list[CloudOffer]] = defaultdict(list)
    gpus: dict[int, Gpu] = {}
    for offers in (undated, on_sale.dated(now)):
        for line in _cheapest_per_market(offers, now=now):
            groups[line.offer.gpu_id].append(line)
            gpus[line.offer.gpu_id] = line.offer.gpu
    return [
        GpuGroup(gpu=gpu, lines=groups[gpu.pk]) for gpu in sorted(gpus.values(), key=lambda listed: listed.position)
    ]


def _cheapest_per_market(offers: QuerySet[Offer], *, now: datetime) -> list[CloudOffer]:
    keys = ("gpu_id", "market", "term_months")
    cheapest = (
        offers.annotate(places=Window(Count("pk"), partition_by=[F(key) for key in keys]))
        .select_related("gpu", "source")
        .order_by(*keys, "-is_whole", "price_usd_per_gpu_hour", "instance_type", "region", "zone")
        .distinct(*keys)
    )
    return [
        CloudOffer(
            offer=offer,
            places=offer.places,
            freshness=freshness(
                observed_at=offer.observed_at, priced_on=offer.priced_on, is_list=offer.is_list, now=now
            ),
        )
        for offer in cheapest
    ]


def sources_of_cloud(*, cloud: Cloud) -> list[Source]:
    """Return the sources that list this cloud, each with `cloud_offers`, the rows it gives. One query."""
    shown = Count("offers", filter=Q(offers__cloud=cloud, offers__gone_at__isnull=True, offers__held_back=""))
    return list(Source.objects.annotate(cloud_offers=shown).filter(cloud_offers__gt=0).order_by("title"))
