"""The price history: one snapshot of each live series per UTC hour, one per day after 90 days. Nothing is filled in.

A series is a GPU in one market. What is not live in an hour has no snapshot for it, and gets none later.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection

from catalog.freshness import LIVE_FOR
from catalog.history_queries import HOURLY_FOR, day_of, hour_of
from catalog.models import Gpu, PriceSnapshot
from catalog.models import Source as SourceRow
from catalog.queries import GpuPrices, price_table
from catalog.sources import ALL_SOURCES

_TRACKED_ELSEWHERE = (PriceSnapshot.Market.ON_DEMAND, PriceSnapshot.Market.SPOT, PriceSnapshot.Market.RESERVED)


@dataclass(frozen=True, kw_only=True)
class _Recorded:
    """The statistics of one series, USD per GPU-hour."""

    market: str
    min: Decimal
    p25: Decimal
    median: Decimal
    p75: Decimal
    offers: int


def take_snapshots(*, now: datetime) -> int:
    """Record each live series that the hour of `now` does not hold yet; return how many were missing.

    The first reading of an hour stays: a second run, or a doubled one, changes nothing. Seven queries.
    """
    hour = hour_of(now)
    gpu_ids = dict(Gpu.objects.values_list("slug", "pk"))
    known = set(PriceSnapshot.objects.filter(at=hour).values_list("gpu_id", "market"))
    missing = [
        PriceSnapshot(
            gpu_id=gpu_ids[slug],
            market=series.market,
            at=hour,
            min=series.min,
            p25=series.p25,
            median=series.median,
            p75=series.p75,
            offers=series.offers,
        )
        for slug, prices in price_table(now=now).items()
        for series in _live_series(prices, now=now)
        if (gpu_ids[slug], series.market) not in known
    ]
    PriceSnapshot.objects.bulk_create(missing, ignore_conflicts=True)
    return len(missing)


def _live_series(prices: GpuPrices, *, now: datetime) -> Iterator[_Recorded]:
    for market in _TRACKED_ELSEWHERE:
        if stats := prices.elsewhere[market]:
            yield _Recorded(
                market=market,
                min=stats.min,
                p25=stats.p25,
                median=stats.median,
                p75=stats.p75,
                offers=stats.offers,
            )
    ask = prices.exchange
    if ask and now - ask.observed_at < LIVE_FOR:
        price = ask.best_ask_per_gpu_hour
        yield _Recorded(market=PriceSnapshot.Market.EXCHANGE, min=price, p25=price, median=price, p75=price, offers=1)


def is_every_source_read(*, now: datetime) -> bool:
    """Tell whether each source was tried while its prices would still be live.

    On a first start, and after a long stop, the quickest source alone would otherwise speak for the whole hour.
    """
    lately = SourceRow.objects.filter(last_attempt_at__gt=now - LIVE_FOR).values_list("name", flat=True)
    return {source.name for source in ALL_SOURCES} <= set(lately)


def thin_snapshots(*, now: datetime) -> int:
    """Keep the last snapshot of each series for every UTC day that ended more than 90 days before `now`'s day.

    Returns how many rows went. A second run changes nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT catalog_thin_price_snapshots(%s)", [day_of(now) - HOURLY_FOR])
        [thinned] = cursor.fetchone()
    return int(thinned)
