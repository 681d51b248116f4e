"""Depth: how many GPUs one could have up to a price, and how many are wanted down to it, as SVG path data. Pure.

Running totals in steps: a level counts from its price on. Prices far from where the sides meet are left out and
counted, so that one strange order does not flatten the rest. The table twin holds every level.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from marketplace.axes import at, round_figures
from marketplace.levels import Book, Level

WIDTH, TOP, BOTTOM = Decimal(640), Decimal(24), Decimal(230)
FARTHEST = Decimal("1.6")  # times the best price of a side
_ROOM = Decimal("0.04")  # beyond the farthest prices, as a share of the span (of the price, where there is one only)
_MOST_GPU_TICKS, _MOST_PRICE_TICKS = 4, 6


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A round figure on an axis, at a coordinate."""

    figure: Decimal
    position: str


@dataclass(frozen=True, kw_only=True)
class Total:
    """A level with all that is nearer to the other side: the table twin's line."""

    price: Decimal
    gpu_count: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side: the outline and the area under it, where its label stands, and what it says in figures.

    `farthest`: the last price drawn; `total`: GPUs up to it; `beyond`: GPUs at prices that are left out.
    """

    line: str
    area: str
    label_x: str
    label_y: str
    farthest: Decimal
    total: int
    beyond: int


@dataclass(frozen=True, kw_only=True)
class DepthChart:
    """What the chart is drawn from. A side is None when nobody is on it."""

    bids: Side | None
    asks: Side | None
    gpu_ticks: Sequence[Tick]
    price_ticks: Sequence[Tick]


@dataclass(frozen=True, kw_only=True)
class _Scale:
    low: Decimal
    high: Decimal
    most_gpus: int

    def x(self, price: Decimal) -> Decimal:
        return (price - self.low) / (self.high - self.low) * WIDTH

    def y(self, gpus: Decimal) -> Decimal:
        return BOTTOM - gpus / self.most_gpus * (BOTTOM - TOP)


def depth_chart(book: Book) -> DepthChart | None:
    """Draw both sides; None for an empty book."""
    bids = [total for total in totals(book.bids) if total.price * FARTHEST >= book.bids[0].price]
    asks = [total for total in totals(book.asks) if total.price <= book.asks[0].price * FARTHEST]
    if not bids and not asks:
        return None
    scale = _scale(bids, asks)
    return DepthChart(
        bids=_side(bids, book.bids, scale, edge=scale.low) if bids else None,
        asks=_side(asks, book.asks, scale, edge=scale.high) if asks else None,
        gpu_ticks=[
            Tick(figure=figure, position=at(scale.y(figure)))
            for figure in round_figures(Decimal(0), Decimal(scale.most_gpus), most=_MOST_GPU_TICKS, are_whole=True)
            if figure
        ],
        price_ticks=[
            Tick(figure=figure, position=at(scale.x(figure)))
            for figure in round_figures(scale.low, scale.high, most=_MOST_PRICE_TICKS)
        ],
    )


def totals(levels: Sequence[Level]) -> list[Total]:
    """Return the running totals of a side, best price first."""
    found: list[Total] = []
    total = 0
    for level in levels:
        total += level.gpu_count
        found.append(Total(price=level.price, gpu_count=level.gpu_count, total=total))
    return found


def _scale(bids: Sequence[Total], asks: Sequence[Total]) -> _Scale:
    prices = [total.price for total in (*bids, *asks)]
    low, high = min(prices), max(prices)
    room = (high - low or high) * _ROOM
    return _Scale(low=low - room, high=high + room, most_gpus=max(total.total for total in (*bids, *asks)))


def _side(drawn: Sequence[Total], levels: Sequence[Level], scale: _Scale, *, edge: Decimal) -> Side:
    steps = "".join(f"H{at(scale.x(total.price))}V{at(scale.y(Decimal(total.total)))}" for total in drawn)
    line = f"M{at(scale.x(drawn[0].price))} {BOTTOM}{steps}H{at(scale.x(edge))}"
    last = drawn[-1]
    return Side(
        line=line,
        area=f"{line}V{BOTTOM}Z",
        label_x=at(scale.x(edge)),
        label_y=at(scale.y(Decimal(last.total)) - 8),
        farthest=last.price,
        total=last.total,
        beyond=sum(level.gpu_count for level in levels) - last.total,
    )
