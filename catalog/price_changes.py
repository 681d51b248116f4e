"""Price changes worth telling: noted with each hour's snapshots, read by the feeds and by `/prices/`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from django.db import connection

from catalog.history_queries import Change, Trend, hour_of, trends
from catalog.models import Gpu, PriceChange, PriceSnapshot
from catalog.queries import GpuPrices

LEAST_PERCENT = Decimal(1)
IN_A_FEED = 50
MOVERS = 5
_TENTH = Decimal("0.1")
_TELLABLE = (PriceSnapshot.Market.EXCHANGE, PriceSnapshot.Market.ON_DEMAND)

# Against the last change; before there is one, against the first snapshot. The share is taken without a division, so
# that exactly one per cent counts.
_NOTE = """
    INSERT INTO catalog_pricechange (gpu_id, market, at, price_before, price, offers)
    SELECT snapshot.gpu_id, snapshot.market, snapshot.at, told.price, snapshot.min, snapshot.offers
      FROM catalog_pricesnapshot AS snapshot
     CROSS JOIN LATERAL (
           SELECT coalesce(
                  (SELECT price FROM catalog_pricechange AS change
                    WHERE change.gpu_id = snapshot.gpu_id AND change.market = snapshot.market
                      AND change.at < snapshot.at ORDER BY at DESC LIMIT 1),
                  (SELECT min FROM catalog_pricesnapshot AS first
                    WHERE first.gpu_id = snapshot.gpu_id AND first.market = snapshot.market
                      AND first.at < snapshot.at ORDER BY at LIMIT 1)) AS price) AS told
     WHERE snapshot.at = %s::timestamptz AND abs(snapshot.min - told.price) * 100 >= told.price * %s::numeric
    ON CONFLICT DO NOTHING
"""


def note_changes(*, now: datetime) -> int:
    """Note each lowest price of the hour at hand that moved by `LEAST_PERCENT` or more; return how many.

    One statement over the snapshots of the hour. A second run, or a doubled one, changes nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [hour_of(now), LEAST_PERCENT])
        return int(cursor.rowcount)


@dataclass(frozen=True, kw_only=True)
class NotedChange:
    """A change as pages and feeds tell it, with its size in percent to a tenth."""

    row: PriceChange
    change: Change


def newest_changes(*, gpu: Gpu | None = None, at_most: int = IN_A_FEED) -> list[NotedChange]:
    """Return the newest changes, of one GPU or of all, newest first. One query."""
    rows = PriceChange.objects.select_related("gpu") if gpu is None else gpu.price_changes.select_related("gpu")
    newest = rows.order_by("-at", "gpu__position", "market")[:at_most]
    return [NotedChange(row=row, change=_change(row.price_before, row.price)) for row in newest]


def _change(before: Decimal, after: Decimal) -> Change:
    return Change(percent=((after / before - 1) * 100).quantize(_TENTH, rounding=ROUND_HALF_UP))


@dataclass(frozen=True, kw_only=True)
class Mover:
    """A GPU whose price moved within a week, in one market."""

    gpu: Gpu
    market: PriceSnapshot.Market
    trend: Trend
    week: Change


@dataclass(frozen=True, kw_only=True)
class Movers:
    """The biggest movers of the week: fallen and risen, the largest change first."""

    fallen: Sequence[Mover]
    risen: Sequence[Mover]


def movers_of_the_week(*, prices: dict[str, GpuPrices], now: datetime) -> Movers:
    """Return which prices of `prices` (by GPU slug) moved most in 7 days, on demand or here. Two or three queries.

    Changes under `LEAST_PERCENT` are none.
    """
    wanted = {
        (slug, market.value): price
        for slug, row in prices.items()
        for market in _TELLABLE
        if (price := _price(row, market)) is not None
    }
    if not wanted:
        return Movers(fallen=(), risen=())
    gpus = Gpu.objects.in_bulk({slug for slug, _ in wanted}, field_name="slug")
    moved = [
        Mover(gpu=gpus[slug], market=PriceSnapshot.Market(market), trend=trend, week=trend.week)
        for (slug, market), trend in trends(now=now, prices=wanted).items()
        if trend.week and trend.week.size >= LEAST_PERCENT
    ]
    moved.sort(key=lambda mover: (-mover.week.size, mover.gpu.position, mover.market))
    return Movers(
        fallen=[mover for mover in moved if mover.week.direction == "down"][:MOVERS],
        risen=[mover for mover in moved if mover.week.direction == "up"][:MOVERS],
    )


def _price(prices: GpuPrices, market: PriceSnapshot.Market) -> Decimal | None:
    if market is PriceSnapshot.Market.EXCHANGE:
        return prices.exchange.best_ask_per_gpu_hour if prices.exchange else None
    stats = prices.elsewhere[market.value]
    return stats.min if stats else None
