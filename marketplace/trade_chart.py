"""Trades over time as SVG path data: a dot for each, and the last price as a line that holds until the next. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from marketplace.axes import at, round_figures
from marketplace.depth_chart import Tick

WIDTH, TOP, BOTTOM = Decimal(640), Decimal(16), Decimal(160)
DAY, WEEK = timedelta(days=1), timedelta(days=7)
_LEAST_TRADES = 2
_MOST_PRICE_TICKS = 4
_LEAST_RADIUS, _MOST_RADIUS = Decimal("2.5"), Decimal(7)
_LABEL_HALF_WIDTH = 24
_ROOM = Decimal("0.02")  # above and below the prices, as a share of them


@dataclass(frozen=True, kw_only=True)
class Trade:
    """One fill, as anybody may see it."""

    price: Decimal
    gpu_count: int
    traded_at: datetime


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One trade on the chart; larger for more GPUs."""

    x: str
    y: str
    radius: str


@dataclass(frozen=True, kw_only=True)
class TimeTick:
    """A full hour or the start of a UTC day on the axis."""

    when: datetime
    position: str


@dataclass(frozen=True, kw_only=True)
class TradeChart:
    """What the chart is drawn from. `is_day`: it shows 24 hours, else 7 days."""

    is_day: bool
    trades: int
    lowest: Decimal
    highest: Decimal
    line: str
    dots: Sequence[Dot]
    price_ticks: Sequence[Tick]
    time_ticks: Sequence[TimeTick]


@dataclass(frozen=True, kw_only=True)
class _Scale:
    starts_at: datetime
    ends_at: datetime
    low: Decimal
    high: Decimal

    def x(self, when: datetime) -> Decimal:
        share = (when - self.starts_at) / (self.ends_at - self.starts_at)
        return Decimal(share) * WIDTH

    def y(self, price: Decimal) -> Decimal:
        return BOTTOM - (price - self.low) / (self.high - self.low) * (BOTTOM - TOP)


def trade_chart(newest_first: Sequence[Trade], *, now: datetime) -> TradeChart | None:
    """Draw the trades of a day, of a week where the day has fewer than two; None where that has fewer, too."""
    for length in (DAY, WEEK):
        trades = [trade for trade in reversed(newest_first) if now - length < trade.traded_at <= now]
        if len(trades) >= _LEAST_TRADES:
            return _chart(trades, length, now)
    return None


def _chart(trades: Sequence[Trade], length: timedelta, now: datetime) -> TradeChart:
    lowest, highest = min(trade.price for trade in trades), max(trade.price for trade in trades)
    scale = _Scale(starts_at=now - length, ends_at=now, low=lowest * (1 - _ROOM), high=highest * (1 + _ROOM))
    most_gpus = max(trade.gpu_count for trade in trades)
    return TradeChart(
        is_day=length == DAY,
        trades=len(trades),
        lowest=lowest,
        highest=highest,
        line=_line(trades, scale),
        dots=[_dot(trade, most_gpus, scale) for trade in trades],
        price_ticks=[
            Tick(figure=figure, position=at(scale.y(figure)))
            for figure in round_figures(scale.low, scale.high, most=_MOST_PRICE_TICKS)
        ],
        time_ticks=_time_ticks(scale, step=timedelta(hours=6) if length == DAY else timedelta(days=2)),
    )


def _line(trades: Sequence[Trade], scale: _Scale) -> str:
    first, *later = trades
    steps = "".join(f"H{at(scale.x(trade.traded_at))}V{at(scale.y(trade.price))}" for trade in later)
    return f"M{at(scale.x(first.traded_at))} {at(scale.y(first.price))}{steps}H{WIDTH}"


def _dot(trade: Trade, most_gpus: int, scale: _Scale) -> Dot:
    radius = _LEAST_RADIUS + (_MOST_RADIUS - _LEAST_RADIUS) * trade.gpu_count / most_gpus
    return Dot(x=at(scale.x(trade.traded_at)), y=at(scale.y(trade.price)), radius=at(radius))


def _time_ticks(scale: _Scale, *, step: timedelta) -> list[TimeTick]:
    midnight = scale.starts_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    whens = [midnight + step * count for count in range(int((scale.ends_at - midnight) / step) + 1)]
    return [
        TimeTick(when=when, position=at(scale.x(when)))
        for when in whens
        if _LABEL_HALF_WIDTH <= scale.x(when) <= WIDTH - _LABEL_HALF_WIDTH
    ]
