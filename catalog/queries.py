"""What pages and API read about prices: one answer per GPU, from offers of every source and the exchange's best ask.

>>> NO_PRICES.headline is None
True
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from django.db.models import Case, Count, F, Prefetch, Q, QuerySet, Sum, Value, When, Window
from django.db.models.functions import Coalesce, RowNumber

from catalog.freshness import LIVE_FOR, SHOWN_FOR, Freshness, freshness, oldest_live_day
from catalog.models import BestAsk, Cloud, Gpu, Offer, Source, SourceDocument, UnmappedName
from catalog.statistics import summarise

PriceKind = Literal["exchange", "on_demand", "list"]
ELSEWHERE = ("on_demand", "spot", "reserved", "list")
LIST = "list"
OFFER_LINES = 40
EXAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The price column: USD per GPU-hour without tax. `cloud_slug` and `cloud_name` are None for the exchange.

    `devices_available`: how many GPUs are free on the exchange; None elsewhere.
    """

    price_usd_per_gpu_hour: Decimal
    kind: PriceKind
    cloud_slug: str | None
    cloud_name: str | None
    observed_at: datetime
    priced_on: date | None
    freshness: Freshness
    devices_available: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether it may be marked as the best price: a dated list price never is."""
        return self.kind != "list"


@dataclass(frozen=True, kw_only=True)
class ExchangePrice:
    """The best ask of the exchange for one device for one hour, USD per GPU-hour."""

    best_ask_per_gpu_hour: Decimal
    devices_available: int
    observed_at: datetime


@dataclass(frozen=True, kw_only=True)
class Stats:
    """Spread over clouds, USD per GPU-hour, one value per cloud: its lowest eligible price.

    `offers` counts clouds. `observed_at` is the newest reading among the values; `priced_on` is the date of the
    lowest value, where its source gives one.
    """

    min: Decimal
    p25: Decimal
    median: Decimal
    p75: Decimal
    offers: int
    observed_at: datetime
    priced_on: date | None


@dataclass(frozen=True, kw_only=True)
class GpuPrices:
    """All prices of one GPU. `elsewhere` has the keys on_demand, spot, reserved and list; None where there is none."""

    headline: Headline | None = None
    exchange: ExchangePrice | None = None
    elsewhere: dict[str, Stats | None] = field(default_factory=lambda: dict.fromkeys(ELSEWHERE))

    @property
    def compared(self) -> Stats | None:
        """The spread a page prints beside the headline: live on-demand prices, or list prices where none is live."""
        return self.elsewhere["on_demand"] or self.elsewhere["list"]


NO_PRICES = GpuPrices()


@dataclass(frozen=True, kw_only=True)
class LowestOffer:
    """A cloud's lowest eligible price for one GPU in one series (a live market, or the dated list)."""

    series: str
    price_usd_per_gpu_hour: Decimal
    cloud_slug: str
    cloud_name: str
    observed_at: datetime
    priced_on: date | None


def price_table(*, now: datetime, gpu_slugs: Iterable[str] | None = None) -> dict[str, GpuPrices]:
    """Return the prices of each GPU asked for (all by default), also of those that have none. Four queries."""
    gpus = Gpu.objects.all() if gpu_slugs is None else Gpu.objects.filter(slug__in=list(gpu_slugs))
    slug_by_id = dict(gpus.values_list("pk", "slug"))
    lowest = _lowest_offers(now=now, gpu_ids=None if gpu_slugs is None else list(slug_by_id))
    asks = {ask.pk: ask for ask in BestAsk.objects.filter(pk__in=list(slug_by_id))}
    return {
        slug: gpu_prices(offers=lowest.get(gpu_id, []), exchange=_exchange_price(asks.get(gpu_id)), now=now)
        for gpu_id, slug in slug_by_id.items()
    }


def median_elsewhere(gpu_id: int, *, now: datetime) -> Decimal | None:
    """Return the median of a GPU's live on-demand prices at other clouds, of their list prices where none is live."""
    compared = gpu_prices(
        offers=_lowest_offers(now=now, gpu_ids=[gpu_id]).get(gpu_id, []), exchange=None, now=now
    ).compared
    return None if compared is None else compared.median


def _lowest_offers(*, now: datetime, gpu_ids: Sequence[int] | None) -> dict[int, list[LowestOffer]]:
    """Read one row per GPU, cloud and series: the lowest price, and of equal ones the newest reading. Two queries."""
    clouds = {pk: (slug, name) for pk, slug, name in Cloud.objects.values_list("pk", "slug", "name")}
    found: dict[int, list[LowestOffer]] = defaultdict(list)
    for gpu_id, cloud_id, series, price, observed_at, priced_on in _lowest_rows(now=now, gpu_ids=gpu_ids):
        slug, name = clouds[cloud_id]
        found[gpu_id].append(
            LowestOffer(
                series=series,
                price_usd_per_gpu_hour=price,
                cloud_slug=slug,
                cloud_name=name,
                observed_at=observed_at,
                priced_on=priced_on,
            )
        )
    return found


def _lowest_rows(*, now: datetime, gpu_ids: Sequence[int] | None) -> QuerySet[Offer, tuple[Any, ...]]:
    """Clouds are named later: narrow rows keep the sort of tens of thousands of offers in memory."""
    eligible = Offer.objects.eligible()
    counted = eligible.live(now) | eligible.dated(now).filter(market=Offer.MarketKind.ON_DEMAND)
    series = Case(When(Q(is_list=True) | Q(priced_on__lt=oldest_live_day(now)), then=Value(LIST)), default=F("market"))
    keys = ("gpu_id", "cloud_id", "series")
    return (
        (counted if gpu_ids is None else counted.filter(gpu_id__in=gpu_ids))
        .annotate(series=series)
        .order_by(*keys, "price_usd_per_gpu_hour", F("observed_at").desc())
        .distinct(*keys)
        .values_list(*keys, "price_usd_per_gpu_hour", "observed_at", "priced_on")
    )


def _exchange_price(ask: BestAsk | None) -> ExchangePrice | None:
    if ask is None:
        return None
    return ExchangePrice(
        best_ask_per_gpu_hour=ask.price_usd_per_gpu_hour,
        devices_available=ask.devices_available,
        observed_at=ask.observed_at,
    )


def gpu_prices(*, offers: Iterable[LowestOffer], exchange: ExchangePrice | None, now: datetime) -> GpuPrices:
    """Combine the lowest price of each cloud and the best ask into one GPU's answer (pure)."""
    by_series: dict[str, list[LowestOffer]] = defaultdict(list)
    for offer in offers:
        by_series[offer.series].append(offer)
    return GpuPrices(
        headline=_headline(by_series, exchange, now),
        exchange=exchange,
        elsewhere={series: _stats(by_series[series]) for series in ELSEWHERE},
    )


def _headline(
    by_series: dict[str, list[LowestOffer]], exchange: ExchangePrice | None, now: datetime
) -> Headline | None:
    """First that exists: the best ask, the lowest live on-demand price elsewhere, the lowest list price."""
    if exchange is not None:
        return Headline(
            price_usd_per_gpu_hour=exchange.best_ask_per_gpu_hour,
            kind="exchange",
            cloud_slug=None,
            cloud_name=None,
            observed_at=exchange.observed_at,
            priced_on=None,
            freshness=freshness(observed_at=exchange.observed_at, priced_on=None, is_list=False, now=now),
            devices_available=exchange.devices_available,
        )
    if by_series["on_demand"]:
        return _headline_of(_lowest(by_series["on_demand"]), kind="on_demand", now=now)
    if by_series[LIST]:
        return _headline_of(_lowest(by_series[LIST]), kind="list", now=now)
    return None


def _headline_of(offer: LowestOffer, *, kind: PriceKind, now: datetime) -> Headline:
    return Headline(
        price_usd_per_gpu_hour=offer.price_usd_per_gpu_hour,
        kind=kind,
        cloud_slug=offer.cloud_slug,
        cloud_name=offer.cloud_name,
        observed_at=offer.observed_at,
        priced_on=offer.priced_on,
        freshness=freshness(observed_at=offer.observed_at, priced_on=offer.priced_on, is_list=kind == "list", now=now),
    )


def _lowest(offers: Iterable[LowestOffer]) -> LowestOffer:
    # The cloud's name breaks a tie, so that two runs over the same rows print the same cloud.
    return min(offers, key=lambda offer: (offer.price_usd_per_gpu_hour, offer.cloud_slug))


def _stats(offers: Sequence[LowestOffer]) -> Stats | None:
    if not offers:
        return None
    spread = summarise([offer.price_usd_per_gpu_hour for offer in offers])
    return Stats(
        min=spread.min,
        p25=spread.p25,
        median=spread.median,
        p75=spread.p75,
        offers=len(offers),
        observed_at=max(offer.observed_at for offer in offers),
        priced_on=_lowest(offers).priced_on,
    )


@dataclass(frozen=True, kw_only=True)
class OfferLine:
    """One line of a GPU's offers: the cheapest place of an instance. `places` = regions and zones that list it."""

    offer: Offer
    places: int
    freshness: Freshness


@dataclass(frozen=True, kw_only=True)
class OfferTier:
    """The offers of one tier, cheapest first: at most `OFFER_LINES` lines of `total`."""

    lines: Sequence[OfferLine]
    total: int


@dataclass(frozen=True, kw_only=True)
class GpuOffers:
    """Outside offers of one GPU by tier. Stale ones (not read for a day) are left out."""

    live: OfferTier
    old: OfferTier
    dated: OfferTier


def offers_of_gpu(*, gpu: Gpu, now: datetime) -> GpuOffers:
    """Return the offers of `gpu`, one line per cloud, instance, market and term at its lowest price. Three queries."""
    on_sale = Offer.objects.on_sale().filter(gpu=gpu)
    undated = on_sale.filter(is_list=False).exclude(priced_on__lt=oldest_live_day(now))
    return GpuOffers(
        live=_offer_tier(on_sale.live(now), now=now),
        old=_offer_tier(undated.filter(observed_at__lte=now - LIVE_FOR, observed_at__gt=now - SHOWN_FOR), now=now),
        dated=_offer_tier(on_sale.dated(now), now=now),
    )


def _offer_tier(offers: QuerySet[Offer], *, now: datetime) -> OfferTier:
    keys = ("cloud_id", "instance_type", "gpu_count", "market", "term_months")
    cheapest = (
        offers.annotate(places=Window(Count("pk"), partition_by=[F(key) for key in keys]))
        .select_related("cloud", "source")
        .order_by(*keys, "price_usd_per_gpu_hour", "region", "zone")
        .distinct(*keys)
    )
    lines = sorted(
        (
            OfferLine(
                offer=offer,
                places=offer.places,
                freshness=freshness(
                    observed_at=offer.observed_at, priced_on=offer.priced_on, is_list=offer.is_list, now=now
                ),
            )
            for offer in cheapest
        ),
        key=lambda line: (line.offer.price_usd_per_gpu_hour, line.offer.cloud.slug, line.offer.instance_type),
    )
    return OfferTier(lines=lines[:OFFER_LINES], total=len(lines))


@dataclass(frozen=True, kw_only=True)
class SourceState:
    """One price source as `/sources/` and the API show it. `held_back_examples` are a few rows with their reason."""

    source: Source
    offers: int
    held_back: int
    unmapped: int
    band_skipped: int
    held_back_examples: Sequence[Offer]
    unmapped_examples: Sequence[UnmappedName]


def source_states() -> list[SourceState]:
    """Return every source with its counts and its documents, by title. Five queries.

    `unmapped` and `band_skipped` count rows of the last body read; `offers` and `held_back` count rows on file.
    """
    held_back = _held_back_examples()
    unmapped = _unmapped_examples()
    counts = _offer_counts()
    return [
        SourceState(
            source=source,
            offers=counts.get(source.pk, (0, 0))[0],
            held_back=counts.get(source.pk, (0, 0))[1],
            unmapped=source.rows_unmapped,
            band_skipped=source.rows_band_skipped,
            held_back_examples=held_back[source.pk],
            unmapped_examples=unmapped[source.pk],
        )
        for source in Source.objects.annotate(
            rows_unmapped=Coalesce(Sum("documents__unmapped"), 0),
            rows_band_skipped=Coalesce(Sum("documents__band_skipped"), 0),
        )
        .prefetch_related(Prefetch("documents", queryset=SourceDocument.objects.order_by("key")))
        .order_by("title")
    ]


def _offer_counts() -> dict[int, tuple[int, int]]:
    """Return how many offers are shown and how many are held back, by source."""
    rows = (
        Offer.objects.filter(gone_at__isnull=True)
        .values("source_id")
        .annotate(
            shown=Count("pk", filter=Q(held_back="", hidden_by_direct=False)),
            kept_out=Count("pk", filter=~Q(held_back="")),
        )
    )
    return {row["source_id"]: (row["shown"], row["kept_out"]) for row in rows}


def _held_back_examples() -> dict[int, list[Offer]]:
    rank = Window(RowNumber(), partition_by=F("source_id"), order_by=[F("held_back"), F("pk")])
    rows = Offer.objects.filter(gone_at__isnull=True).exclude(held_back="").annotate(rank=rank)
    found: dict[int, list[Offer]] = defaultdict(list)
    for offer in rows.filter(rank__lte=EXAMPLES).select_related("gpu", "cloud"):
        found[offer.source_id].append(offer)
    return found


def _unmapped_examples() -> dict[int, list[UnmappedName]]:
    rank = Window(RowNumber(), partition_by=F("source_id"), order_by=[F("rows").desc(), F("pk")])
    found: dict[int, list[UnmappedName]] = defaultdict(list)
    for name in UnmappedName.objects.annotate(rank=rank).filter(rank__lte=EXAMPLES):
        found[name.source_id].append(name)
    return found
