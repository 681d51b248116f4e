"""A wallet drawn: how much of it is held and burns next, and its balance over time in steps. Pure.

Coordinates are text, so that no reader's language turns a decimal point into a comma. A balance holds until the next
change, so its line runs level and jumps; the scale always holds zero.

>>> from datetime import UTC
>>> noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
>>> points = [Point(at=noon, balance=Decimal(0)), Point(at=noon + 6 * HOUR, balance=Decimal(100))]
>>> balance_chart(points, starts_at=noon, ends_at=noon + 12 * HOUR).line_path
'M0 230H410V0H820'
>>> meter(posted_micros=200, held_micros=50, next_micros=100)
Meter(held_width='25', next_width='50', held_percent=25)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Literal

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WIDTH, HEIGHT = 820, 230
MOST_TIME_TICKS = 5
_FEWEST_STEPS = 3
_EDGE = 45
_NICE_STEPS = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
_SMALLEST_STEP = Decimal("0.01")

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, kw_only=True)
class Point:
    """The balance from `at` on, in whole units of its currency."""

    at: datetime
    balance: Decimal


@dataclass(frozen=True, kw_only=True)
class AmountTick:
    """A line across the chart at a round amount."""

    y: str
    amount: Decimal


@dataclass(frozen=True, kw_only=True)
class TimeTick:
    """A place on the time axis: midnight UTC, or an hour (`is_clock`) where the chart is shorter than two days."""

    x: str
    at: datetime
    anchor: Anchor
    is_clock: bool


@dataclass(frozen=True, kw_only=True)
class BalanceChart:
    """A chart of 820 x 230 drawing units: the line, the tint between it and zero, and its axes."""

    line_path: str
    area_path: str
    zero_y: str
    last_y: str
    last: Point
    amount_ticks: Sequence[AmountTick]
    time_ticks: Sequence[TimeTick]


@dataclass(frozen=True, kw_only=True)
class Meter:
    """A wallet as a bar 100 units wide: what is held, then what burns next; the rest is free."""

    held_width: str
    next_width: str
    held_percent: int


def meter(*, posted_micros: int, held_micros: int, next_micros: int) -> Meter:
    """Return the bar of a wallet; `next_micros` is what the next day burns, of which no more is drawn than there is."""
    if posted_micros <= 0:
        return Meter(held_width="0", next_width="0", held_percent=0)
    free_micros = posted_micros - held_micros
    return Meter(
        held_width=_text(_percent(held_micros, posted_micros)),
        next_width=_text(_percent(min(next_micros, free_micros), posted_micros)),
        held_percent=int(_percent(held_micros, posted_micros).to_integral_value(rounding=ROUND_HALF_UP)),
    )


def balance_chart(points: Sequence[Point], *, starts_at: datetime, ends_at: datetime) -> BalanceChart | None:
    """Return the chart of points, oldest first, over a window; None where it is no hour long or has no point."""
    if not points or ends_at - max(starts_at, points[0].at) < HOUR:
        return None
    balances = [Decimal(0), *(point.balance for point in points)]
    amounts = round_amounts(lowest=min(balances), highest=max(balances))
    frame = _Frame(starts_at=starts_at, ends_at=ends_at, lowest=amounts[0], highest=amounts[-1])
    line = _line(points, frame)
    zero_y = _text(frame.y(Decimal(0)))
    return BalanceChart(
        line_path=line,
        area_path=f"{line}V{zero_y}H{_text(frame.x(points[0].at))}Z",
        zero_y=zero_y,
        last_y=_text(frame.y(points[-1].balance)),
        last=points[-1],
        amount_ticks=[AmountTick(y=_text(frame.y(amount)), amount=amount) for amount in amounts],
        time_ticks=_time_ticks(frame),
    )


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """Maps times and amounts to drawing units; y grows downward."""

    starts_at: datetime
    ends_at: datetime
    lowest: Decimal
    highest: Decimal

    def x(self, at: datetime) -> Decimal:
        within = min(max(at, self.starts_at), self.ends_at)
        second = timedelta(seconds=1)
        share = Decimal((within - self.starts_at) // second) / ((self.ends_at - self.starts_at) // second)
        return _rounded(share * WIDTH)

    def y(self, amount: Decimal) -> Decimal:
        share = (amount - self.lowest) / (self.highest - self.lowest)
        return _rounded(HEIGHT - share * HEIGHT)


def _line(points: Sequence[Point], frame: _Frame) -> str:
    """Draw each balance level from its own moment to the next one's, the last to the window's end."""
    y = frame.y(points[0].balance)
    parts = [f"M{_text(frame.x(points[0].at))} {_text(y)}"]
    for point in points[1:]:
        if frame.y(point.balance) != y:
            y = frame.y(point.balance)
            parts.append(f"H{_text(frame.x(point.at))}V{_text(y)}")
    return "".join(parts) + f"H{WIDTH}"


def round_amounts(*, lowest: Decimal, highest: Decimal) -> list[Decimal]:
    """Return round amounts, evenly apart, from at or below `lowest` to at or above `highest`.

    >>> [str(amount) for amount in round_amounts(lowest=Decimal(0), highest=Decimal("1840.20"))]
    ['0', '1000', '2000']
    """
    step = _nice_step(max((highest - lowest) / _FEWEST_STEPS, _SMALLEST_STEP))
    first = (lowest / step).to_integral_value(rounding=ROUND_FLOOR)
    last = max((highest / step).to_integral_value(rounding=ROUND_CEILING), first + 1)
    return [step * number for number in range(int(first), int(last) + 1)]


def _nice_step(at_least: Decimal) -> Decimal:
    scale = Decimal(1).scaleb(at_least.adjusted())
    step = next(nice * scale for nice in _NICE_STEPS if nice * scale >= at_least)
    return step.quantize(Decimal(1)) if step == step.to_integral_value() else step


def _time_ticks(frame: _Frame) -> list[TimeTick]:
    length = frame.ends_at - frame.starts_at
    unit = DAY if length >= 2 * DAY else HOUR
    every = unit * max(1, -(-(length // unit) // (MOST_TIME_TICKS - 1)))
    at = _round_up(frame.starts_at, unit)
    ticks = []
    while at <= frame.ends_at:
        x = frame.x(at)
        anchor: Anchor = "start" if x < _EDGE else "end" if x > WIDTH - _EDGE else "middle"
        ticks.append(TimeTick(x=_text(x), at=at, anchor=anchor, is_clock=unit == HOUR))
        at += every
    return ticks


def _round_up(at: datetime, unit: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch - (epoch - at) // unit * unit


def _percent(part: int, whole: int) -> Decimal:
    return _rounded(Decimal(100) * max(0, part) / whole)


def _rounded(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)


def _text(value: Decimal) -> str:
    return f"{_rounded(value):f}".removesuffix(".0")
