"""What pages and API read of the price history: windows of it, trends over 30 days, coverage. A gap stays a gap."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from typing import Any, Literal

from django.db import connection
from django.db.models import Count, Max, Min, Q, QuerySet

from catalog.models import Gpu, PriceSnapshot
from catalog.step_chart import DAY, HOUR, Point, Spark, sparkline

HOURLY_FOR = timedelta(days=90)
WEEK, MONTH = timedelta(days=7), timedelta(days=30)
# Longer windows are read by the day: a chart has no room for thousands of hours.
LONGEST_BY_HOUR_DAYS = 30
_TENTH = Decimal("0.1")
_SERIES = ("gpu__slug", "market")
_STATISTICS = ("at", "min", "p25", "median", "p75", "offers")

SeriesKey = tuple[str, str]
Direction = Literal["up", "down", "flat"]


def hour_of(at: datetime) -> datetime:
    """Return the beginning of the UTC hour."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def day_of(at: datetime) -> datetime:
    """Return the beginning of the UTC day."""
    return hour_of(at).replace(hour=0)


@dataclass(frozen=True, kw_only=True)
class Change:
    """How a price differs from an earlier one, in percent of the earlier, to a tenth."""

    percent: Decimal

    @property
    def direction(self) -> Direction:
        """Which way; flat where the tenth is zero."""
        return "up" if self.percent > 0 else "down" if self.percent < 0 else "flat"

    @property
    def size(self) -> Decimal:
        """The percentage without its sign."""
        return abs(self.percent)


@dataclass(frozen=True, kw_only=True)
class Trend:
    """The last 30 days of a series: the newest snapshot of each 24 hours, counted back from the hour at hand.

    A series younger than a day has all its hours. `price` is what it costs now, None where nothing is live.
    """

    market: str
    points: Sequence[Point]
    price: Decimal | None
    hour: datetime

    @property
    def since(self) -> datetime:
        """Its first snapshot in that time."""
        return self.points[0].at

    @cached_property
    def spark(self) -> Spark | None:
        """The lowest price as a line; None with fewer than two snapshots."""
        if len(self.points) < 2:
            return None
        return sparkline(self.points, starts_at=self.hour - MONTH, ends_at=self.hour + HOUR)

    @property
    def week(self) -> Change | None:
        """The change against 7 days ago."""
        return self._change_since(WEEK)

    @property
    def month(self) -> Change | None:
        """The change against 30 days ago."""
        return self._change_since(MONTH)

    def _change_since(self, length: timedelta) -> Change | None:
        """Compare with the newest snapshot at or before that moment; None if the 24 hours up to it have none."""
        until = self.hour + HOUR - length
        before = next((point.min for point in self.points if until - DAY <= point.at < until), None)
        if self.price is None or before is None:
            return None
        percent = ((self.price / before - 1) * 100).quantize(_TENTH, rounding=ROUND_HALF_UP)
        return Change(percent=percent)


def trends(*, now: datetime, prices: Mapping[SeriesKey, Decimal | None]) -> dict[SeriesKey, Trend]:
    """Return the trend of each series asked for, by GPU slug and market, with its price now.

    A series without a snapshot in that time is left out. One query, or two where a series is younger than a day.
    """
    hour = hour_of(now)
    found = _last_of_each_day(prices, ending_at=hour + HOUR, days=MONTH.days + 1)
    young = [key for key, points in found.items() if len(points) == 1]
    if young:
        found |= _hours_of(young, after=hour - MONTH, until=hour)
    return {key: Trend(market=key[1], points=points, price=prices[key], hour=hour) for key, points in found.items()}


def _hours_of(keys: Iterable[SeriesKey], *, after: datetime, until: datetime) -> dict[SeriesKey, list[Point]]:
    wanted = Q(pk__in=[])
    for slug, market in keys:
        wanted |= Q(gpu__slug=slug, market=market)
    rows = PriceSnapshot.objects.filter(wanted, at__gt=after, at__lte=until).order_by("at")
    found: dict[SeriesKey, list[Point]] = defaultdict(list)
    for slug, market, *statistics in rows.values_list(*_SERIES, *_STATISTICS):
        found[slug, market].append(_point_of_hour(statistics))
    return found


# One look into the index for each day of each series: a trend of every GPU would else read every hour of a month.
_LAST_OF_EACH_DAY = """
    SELECT series.slug, series.market, newest.*
      FROM unnest(%s::text[], %s::text[]) AS series (slug, market)
      JOIN catalog_gpu AS gpu ON gpu.slug = series.slug
     CROSS JOIN generate_series(%s::timestamptz, %s::timestamptz, interval '24 hours') AS day (begins_at)
     CROSS JOIN LATERAL (
           SELECT day.begins_at, at, min, p25, median, p75, offers FROM catalog_pricesnapshot
            WHERE gpu_id = gpu.id AND market = series.market
              AND at >= day.begins_at AND at < day.begins_at + interval '24 hours'
            ORDER BY at DESC LIMIT 1) AS newest
     ORDER BY day.begins_at
"""


def _last_of_each_day(keys: Iterable[SeriesKey], *, ending_at: datetime, days: int) -> dict[SeriesKey, list[Point]]:
    """Return by series the newest snapshot of each of the last `days` times 24 hours, oldest first. One query."""
    wanted = list(keys)
    slugs, markets = [slug for slug, _ in wanted], [market for _, market in wanted]
    found: dict[SeriesKey, list[Point]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_LAST_OF_EACH_DAY, [slugs, markets, ending_at - days * DAY, ending_at - DAY])
        for slug, market, day, *statistics in cursor.fetchall():
            found[slug, market].append(_point(statistics, stands_from=day, stands_until=day + DAY))
    return dict(found)


def _point_of_hour(statistics: Sequence[Any]) -> Point:
    at: datetime = statistics[0]
    return _point(statistics, stands_from=at, stands_until=at + HOUR)


def _point(statistics: Sequence[Any], *, stands_from: datetime, stands_until: datetime) -> Point:
    """Return a row's `_STATISTICS` as a point."""
    return Point(**dict(zip(_STATISTICS, statistics, strict=True)), stands_from=stands_from, stands_until=stands_until)


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """How long and how completely one series has been recorded.

    `hours` of `expected_hours` have a snapshot: since the first one, or since hours are kept (90 days).
    """

    since: datetime
    until: datetime
    hours: int
    expected_hours: int

    @property
    def coverage_percent(self) -> int:
        """The share of hours that have a snapshot, rounded down: 100 means every one."""
        return 100 * self.hours // self.expected_hours


def tracking(*, gpu: Gpu, now: datetime) -> dict[str, Tracking]:
    """Return how each market of `gpu` that has any snapshot is tracked. One query."""
    hours_from = day_of(now) - HOURLY_FOR
    rows = (
        PriceSnapshot.objects.filter(gpu=gpu)
        .values("market")
        .annotate(since=Min("at"), until=Max("at"), hours=Count("pk", filter=Q(at__gte=hours_from)))
        .order_by("market")
    )
    return {row["market"]: _tracking(row, hours_from=hours_from, hour=hour_of(now)) for row in rows}


def _tracking(row: Mapping[str, Any], *, hours_from: datetime, hour: datetime) -> Tracking:
    # The hour at hand counts once it has its snapshot: until then it is not late.
    elapsed = (hour - max(row["since"], hours_from)) // HOUR + (row["until"] >= hour)
    return Tracking(since=row["since"], until=row["until"], hours=row["hours"], expected_hours=max(elapsed, 1))


@dataclass(frozen=True, kw_only=True)
class Window:
    """The points of one series over some days, oldest first, by the hour or by the UTC day.

    `by_day` has every UTC day from the first point's to today, newest first: its last point, or None.
    """

    points: Sequence[Point]
    is_by_hour: bool
    by_day: Sequence[tuple[date, Point | None]]


def snapshots_of(*, gpu: Gpu, market: str, days: int, now: datetime) -> QuerySet[PriceSnapshot]:
    """Return the snapshots of one series whose hour began in the last `days` days."""
    return PriceSnapshot.objects.filter(gpu=gpu, market=market, at__gt=now - timedelta(days=days), at__lte=now)


def window(*, gpu: Gpu, market: str, days: int, now: datetime) -> Window:
    """Return what was recorded of one series in the last `days` days. One query."""
    is_by_hour = days <= LONGEST_BY_HOUR_DAYS
    if is_by_hour:
        rows = snapshots_of(gpu=gpu, market=market, days=days, now=now).order_by("at")
        points = [_point_of_hour(statistics) for statistics in rows.values_list(*_STATISTICS)]
    else:
        key = (gpu.slug, market)
        points = _last_of_each_day([key], ending_at=day_of(now) + DAY, days=days).get(key, [])
    return Window(points=points, is_by_hour=is_by_hour, by_day=_days(points, today=day_of(now).date()))


def _days(points: Sequence[Point], *, today: date) -> list[tuple[date, Point | None]]:
    last_of = {point.at.date(): point for point in points}
    first = points[0].at.date() if points else today + DAY
    return [(today - age * DAY, last_of.get(today - age * DAY)) for age in range((today - first).days + 1)]
