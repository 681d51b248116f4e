"""Every market at a glance, and one book with its trades: what anyone may see. No identities."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from catalog.models import BestAsk, Gpu
from catalog.queries import median_elsewhere
from marketplace.book import live_asks
from marketplace.levels import Book, ask_levels, bid_levels
from marketplace.limits import OPEN_ENDED_HOURS_AT_FIRST, REFERENCE_PERIOD
from marketplace.matching import Ask
from marketplace.models import Fill, Listing, Order
from marketplace.pricing import Traded, reference_price

DAY = timedelta(hours=24)


@dataclass(frozen=True, kw_only=True)
class Market:
    """One GPU's market. Prices in USD per GPU-hour; `change_24h` in per cent of the last price a day ago; None: none.

    `best_ask_at`: when the best ask was last confirmed.
    """

    gpu: Gpu
    best_bid: Decimal | None
    best_ask: Decimal | None
    best_ask_at: datetime | None
    devices_available: int
    last_price: Decimal | None
    last_traded_at: datetime | None
    change_24h: Decimal | None
    volume_24h_gpu_hours: int
    as_of: datetime | None


@dataclass(frozen=True, kw_only=True)
class OpenBid:
    """What one order still wants; whose it is stays between us and them."""

    price: Decimal
    gpu_count: int
    organisation_id: int


def markets(*, now: datetime) -> list[Market]:
    """Return the market of every GPU that is or was traded or listed here, in the catalogue's order. One query."""
    has_market = Exists(Listing.objects.filter(gpu=OuterRef("pk"))) | Exists(Order.objects.filter(gpu=OuterRef("pk")))
    return [_market(gpu) for gpu in _with_figures(Gpu.objects.filter(has_market), now=now).order_by("position")]


def market_of(gpu: Gpu, *, now: datetime) -> Market:
    """Return one GPU's market, also when nothing ever happened in it. One query."""
    return _market(_with_figures(Gpu.objects.filter(pk=gpu.pk), now=now).get())


def market_at(slug: str, *, now: datetime) -> Market | None:
    """Return the market of the GPU with this slug, None where there is no such GPU. One query."""
    gpu = _with_figures(Gpu.objects.filter(slug=slug), now=now).first()
    return None if gpu is None else _market(gpu)


def book_of(gpu: Gpu, *, now: datetime, depth: int | None = None) -> Book:
    """Return a book aggregated by price, `depth` levels a side (all by default). Two queries."""
    bids = bid_levels((bid.price, bid.gpu_count) for bid in open_bids(gpu, now=now))
    return Book(bids=bids[:depth], asks=ask_levels(live_asks(gpu.pk, now=now))[:depth])


def open_bids(gpu: Gpu, *, now: datetime) -> list[OpenBid]:
    """Return the open part of each order that rests in a book, in no order. One query."""
    gpus = (F("server_count") - F("filled_servers")) * F("gpu_count")
    rows = resting_orders(now).filter(gpu=gpu).order_by()
    return [
        OpenBid(price=price, gpu_count=count, organisation_id=organisation_id)
        for price, count, organisation_id in rows.values_list("limit_price_usd_per_gpu_hour", gpus, "organisation_id")
    ]


def resting_orders(now: datetime) -> QuerySet[Order]:
    """Return the orders that rest in a book."""
    return Order.objects.filter(state__in=Order.RESTING, expires_at__gt=now, organisation__frozen_at__isnull=True)


def reference_of(gpu: Gpu, *, asks: Sequence[Ask], now: datetime) -> Decimal | None:
    """Return what a GPU-hour costs by the market's own word: what a limit far above it is held against. 1 to 3 queries."""
    day = Fill.objects.filter(gpu=gpu, filled_at__gt=now - REFERENCE_PERIOD).aggregate(
        fills=Count("pk"), gpus=Sum("gpu_count"), value=Sum(F("price_usd_per_gpu_hour") * F("gpu_count"))
    )
    traded = Traded(fills=day["fills"], gpus=day["gpus"] or 0, value=day["value"] or Decimal(0))
    median_ask = median(ask.price for ask in asks) if asks else None
    found = reference_price(traded=traded, median_ask=median_ask, elsewhere=None)
    return median_elsewhere(gpu.pk, now=now) if found is None else found


def trades_of(gpu: Gpu) -> QuerySet[Fill]:
    """Return the fills of a GPU, newest first."""
    return Fill.objects.filter(gpu=gpu).order_by("-filled_at", "-pk")


def _with_figures(gpus: QuerySet[Gpu], *, now: datetime) -> QuerySet[Gpu, Any]:
    fills = Fill.objects.filter(gpu=OuterRef("pk")).order_by("-filled_at", "-sequence")
    a_day_ago = fills.filter(filled_at__lte=now - DAY)
    bids = resting_orders(now).filter(gpu=OuterRef("pk")).order_by("-limit_price_usd_per_gpu_hour")
    hours = Coalesce(F("order__hours"), Value(OPEN_ENDED_HOURS_AT_FIRST))
    volume = Fill.objects.filter(gpu=OuterRef("pk"), filled_at__gt=now - DAY).order_by().values("gpu_id")
    figures: QuerySet[Gpu, Any] = gpus.select_related("best_ask").annotate(
        best_bid=Subquery(bids.values("limit_price_usd_per_gpu_hour")[:1]),
        last_price=Subquery(fills.values("price_usd_per_gpu_hour")[:1]),
        last_traded_at=Subquery(fills.values("filled_at")[:1]),
        old_price=Subquery(a_day_ago.values("price_usd_per_gpu_hour")[:1]),
        volume_24h=Subquery(volume.annotate(gpu_hours=Sum(F("gpu_count") * hours)).values("gpu_hours")),
    )
    return figures


def _market(gpu: Any) -> Market:
    ask: BestAsk | None = getattr(gpu, "best_ask", None)
    moments = [moment for moment in (gpu.last_traded_at, ask and ask.observed_at) if moment]
    has_change = gpu.last_price is not None and gpu.old_price is not None
    return Market(
        gpu=gpu,
        best_bid=gpu.best_bid,
        best_ask=ask.price_usd_per_gpu_hour if ask else None,
        best_ask_at=ask.observed_at if ask else None,
        devices_available=ask.devices_available if ask else 0,
        last_price=gpu.last_price,
        last_traded_at=gpu.last_traded_at,
        change_24h=(gpu.last_price - gpu.old_price) / gpu.old_price * 100 if has_change else None,
        volume_24h_gpu_hours=gpu.volume_24h or 0,
        as_of=max(moments, default=None),
    )
