"""A price over time as steps: recorded points in, SVG path data out, and nothing that was not recorded.

A price holds until the next recorded one, so lines run level and jump. Each point stands for a span of time, its hour
or its day; where a span has no point the line stops and begins again, it is never bridged. Coordinates are text, so
that no reader's language turns a decimal point into a comma.

>>> from datetime import UTC
>>> noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
>>> hours = [noon, noon + timedelta(hours=1), noon + timedelta(hours=3)]
>>> prices = [Decimal("2.00"), Decimal("3.00"), Decimal("2.00")]
>>> points = [
...     Point(at=at, stands_from=at, stands_until=at + HOUR, min=price, p25=price, median=price, p75=price, offers=1)
...     for at, price in zip(hours, prices)
... ]
>>> sparkline(points, starts_at=noon, ends_at=noon + timedelta(hours=4)).path
'M0 21H23V3H46M69 21H92'
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from operator import attrgetter
from typing import Literal

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
# Drawing units. The sparkline leaves room for the dot of its last point, the chart for labels beside it.
SPARK_WIDTH, SPARK_TOP, SPARK_BOTTOM = 92, 3, 21
CHART_WIDTH, CHART_HEIGHT = 820, 230
LABEL_HEIGHT = 16
EDGE = 45
MOST_TIME_TICKS = 5
_NICE_STEPS = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
_SMALLEST_SPAN = Decimal("0.01")

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, kw_only=True)
class Point:
    """What was recorded at `at`, USD per GPU-hour. It stands for `[stands_from, stands_until)`, which holds `at`.

    `offers` is how many clouds were counted.
    """

    at: datetime
    stands_from: datetime
    stands_until: datetime
    min: Decimal
    p25: Decimal
    median: Decimal
    p75: Decimal
    offers: int


ValueOf = Callable[[Point], Decimal]


@dataclass(frozen=True, kw_only=True)
class Spark:
    """A sparkline of the lowest price in a view box of 96 x 24, and where its last point is."""

    path: str
    dot_x: str
    dot_y: str
    lowest: Decimal
    highest: Decimal
    last: Decimal


@dataclass(frozen=True, kw_only=True)
class PriceTick:
    """A line across the chart at a round price."""

    y: str
    price: Decimal


@dataclass(frozen=True, kw_only=True)
class TimeTick:
    """A place on the time axis: midnight UTC, or an hour (`is_clock`) where the chart is shorter than two days."""

    x: str
    at: datetime
    anchor: Anchor
    is_clock: bool


@dataclass(frozen=True, kw_only=True)
class StepChart:
    """A chart of 820 x 230 drawing units: lowest and median as lines, p25 to p75 as a band, and its axes.

    `median_path` and `band_path` are blank where every point has one price: there is no spread to draw.
    """

    lowest_path: str
    median_path: str
    band_path: str
    lowest_label_y: str
    median_label_y: str
    price_ticks: Sequence[PriceTick]
    time_ticks: Sequence[TimeTick]
    last: Point

    @property
    def starts_at_price(self) -> Decimal:
        """The price at the foot of the chart."""
        return self.price_ticks[0].price


def sparkline(points: Sequence[Point], *, starts_at: datetime, ends_at: datetime) -> Spark:
    """Draw the lowest price from `starts_at` to `ends_at`. Raises ValueError without any point."""
    if not points:
        raise ValueError("no points to draw")
    prices = [point.min for point in points]
    frame = _Frame(
        starts_at=starts_at,
        ends_at=ends_at,
        width=SPARK_WIDTH,
        top=SPARK_TOP,
        bottom=SPARK_BOTTOM,
        lowest=min(prices),
        highest=max(prices),
    )
    levels = list(_levels(points, frame, attrgetter("min")))
    return Spark(
        path=_line(levels),
        dot_x=_text(levels[-1][-1].x_until),
        dot_y=_text(levels[-1][-1].y),
        lowest=min(prices),
        highest=max(prices),
        last=prices[-1],
    )


def step_chart(points: Sequence[Point], *, starts_at: datetime, ends_at: datetime) -> StepChart:
    """Draw lowest, median and band from `starts_at` to `ends_at`. Raises ValueError without any point."""
    if not points:
        raise ValueError("no points to draw")
    prices = round_prices(lowest=min(point.min for point in points), highest=max(point.p75 for point in points))
    frame = _Frame(
        starts_at=starts_at,
        ends_at=ends_at,
        width=CHART_WIDTH,
        top=0,
        bottom=CHART_HEIGHT,
        lowest=prices[0],
        highest=prices[-1],
    )
    lowest, p25, median, p75 = (
        list(_levels(points, frame, attrgetter(name))) for name in ("min", "p25", "median", "p75")
    )
    has_spread = any(point.p75 != point.min for point in points)
    lowest_label_y, median_label_y = _apart(lowest[-1][-1].y, median[-1][-1].y)
    return StepChart(
        lowest_path=_line(lowest),
        median_path=_line(median) if has_spread else "",
        band_path=_band(upper=p75, lower=p25) if has_spread else "",
        lowest_label_y=_text(lowest_label_y if has_spread else lowest[-1][-1].y),
        median_label_y=_text(median_label_y),
        price_ticks=[PriceTick(y=_text(frame.y(price)), price=price) for price in prices],
        time_ticks=_time_ticks(frame),
        last=points[-1],
    )


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """Maps times and prices to drawing units; y grows downward."""

    starts_at: datetime
    ends_at: datetime
    width: int
    top: int
    bottom: int
    lowest: Decimal
    highest: Decimal

    def x(self, at: datetime) -> Decimal:
        within = min(max(at, self.starts_at), self.ends_at)
        share = Decimal((within - self.starts_at) // timedelta(seconds=1)) / (
            (self.ends_at - self.starts_at) // timedelta(seconds=1)
        )
        return _rounded(share * self.width)

    def y(self, price: Decimal) -> Decimal:
        if self.highest == self.lowest:
            return _rounded(Decimal(self.top + self.bottom) / 2)
        share = (price - self.lowest) / (self.highest - self.lowest)
        return _rounded(self.bottom - share * (self.bottom - self.top))


@dataclass(frozen=True)
class _Level:
    """One level piece of a line."""

    x_from: Decimal
    x_until: Decimal
    y: Decimal


def runs(points: Sequence[Point]) -> Iterator[Sequence[Point]]:
    """Split points, oldest first, where a span of time has none."""
    begin = 0
    for index in range(1, len(points) + 1):
        if index == len(points) or points[index].stands_from > points[index - 1].stands_until:
            yield points[begin:index]
            begin = index


def _levels(points: Sequence[Point], frame: _Frame, value_of: ValueOf) -> Iterator[list[_Level]]:
    """Yield each run as level pieces: a price holds from its own moment to the next one's, the last to its span's end."""
    for run in runs(points):
        ends = [*(point.at for point in run[1:]), run[-1].stands_until]
        levels: list[_Level] = []
        for point, until in zip(run, ends, strict=True):
            level = _Level(frame.x(point.at), frame.x(until), frame.y(value_of(point)))
            if levels and levels[-1].y == level.y:
                level = _Level(levels.pop().x_from, level.x_until, level.y)
            levels.append(level)
        yield levels


def _line(lines: Sequence[Sequence[_Level]]) -> str:
    parts = []
    for levels in lines:
        parts.append(f"M{_text(levels[0].x_from)} {_text(levels[0].y)}H{_text(levels[0].x_until)}")
        parts += [f"V{_text(level.y)}H{_text(level.x_until)}" for level in levels[1:]]
    return "".join(parts)


def _band(*, upper: Sequence[Sequence[_Level]], lower: Sequence[Sequence[_Level]]) -> str:
    """Go along the upper edge and back along the lower one, for each run."""
    parts = []
    for above, below in zip(upper, lower, strict=True):
        parts.append(_line([above]))
        parts += [f"V{_text(level.y)}H{_text(level.x_from)}" for level in reversed(below)]
        parts.append("Z")
    return "".join(parts)


def round_prices(*, lowest: Decimal, highest: Decimal) -> list[Decimal]:
    """Return three to seven round prices, evenly apart, the first at or below `lowest`, the last at or above `highest`.

    >>> [str(price) for price in round_prices(lowest=Decimal("2.88"), highest=Decimal("3.99"))]
    ['2.5', '3.0', '3.5', '4.0']
    """
    step = _nice_step(max((highest - lowest) / 3, highest / 50, _SMALLEST_SPAN / 3))
    first = (lowest / step).to_integral_value(rounding=ROUND_FLOOR)
    last = max((highest / step).to_integral_value(rounding=ROUND_CEILING), first + 2)
    return [step * number for number in range(int(first), int(last) + 1)]


def _nice_step(at_least: Decimal) -> Decimal:
    scale = Decimal(1).scaleb(at_least.adjusted())
    return next(nice * scale for nice in _NICE_STEPS if nice * scale >= at_least)


def _time_ticks(frame: _Frame) -> list[TimeTick]:
    length = frame.ends_at - frame.starts_at
    unit = DAY if length >= 2 * DAY else HOUR
    every = unit * max(1, -(-(length // unit) // (MOST_TIME_TICKS - 1)))
    at = _round_up(frame.starts_at, unit)
    ticks = []
    while at <= frame.ends_at:
        x = frame.x(at)
        anchor: Anchor = "start" if x < EDGE else "end" if x > frame.width - EDGE else "middle"
        ticks.append(TimeTick(x=_text(x), at=at, anchor=anchor, is_clock=unit == HOUR))
        at += every
    return ticks


def _round_up(at: datetime, unit: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch - (epoch - at) // unit * unit


def _apart(lowest_y: Decimal, median_y: Decimal) -> tuple[Decimal, Decimal]:
    """Return where two labels stand so that they do not overlap; the median's is above."""
    missing = LABEL_HEIGHT - (lowest_y - median_y)
    if missing <= 0:
        return lowest_y, median_y
    return lowest_y + missing / 2, median_y - missing / 2


def _rounded(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)


def _text(value: Decimal) -> str:
    return f"{_rounded(value):f}".removesuffix(".0")
