"""The ladder: what is offered and wanted at each price, the best of both sides where they meet. Pure.

>>> offered = [Level(price=Decimal("2.88"), gpu_count=5, orders=1), Level(price=Decimal("2.95"), gpu_count=20, orders=2)]
>>> shown = ladder(Book(asks=offered, bids=[]), best_ask=Decimal("2.88"), yours={})
>>> [(str(rung.price), rung.width, rung.is_best) for rung in shown.asks]
[('2.95', 100, False), ('2.88', 25, True)]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from marketplace.levels import Book, Level

MOST_RUNGS = 8
FULL_WIDTH = 100
CENT = Decimal("0.01")


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One price of one side. `width` of its bar, 1 to 100; `is_best`: the one to mark; `your_gpus`: the reader's own."""

    price: Decimal
    gpu_count: int
    orders: int
    min_gpus: int
    width: int
    is_best: bool
    your_gpus: int

    @property
    def as_typed(self) -> str:
        """The price as one would type it: what the ticket is filled with."""
        return f"{self.price.normalize():f}" if self.price % CENT else f"{self.price:.2f}"

    @property
    def bar_start(self) -> int:
        """Where a bar begins that ends at the right."""
        return FULL_WIDTH - self.width


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Offers with the dearest first, bids with the highest first, so that the best of both stand together.

    `spread`: best offer less best bid. `asks_beyond` and `bids_beyond`: GPUs at prices that are left out.
    """

    asks: Sequence[Rung]
    bids: Sequence[Rung]
    spread: Decimal | None
    asks_beyond: int
    bids_beyond: int

    @property
    def is_crossed(self) -> bool:
        """Whether somebody bids more than the best offer asks, and still does not get it."""
        return self.spread is not None and self.spread <= 0


def ladder(
    book: Book, *, best_ask: Decimal | None, yours: Mapping[Decimal, int], most_rungs: int = MOST_RUNGS
) -> Ladder:
    """Return the rungs nearest to where the sides meet. `yours`: GPUs of the reader's open orders by their limit."""
    asks, bids = book.asks[:most_rungs], book.bids[:most_rungs]
    largest = max((level.gpu_count for level in (*asks, *bids)), default=1)
    return Ladder(
        asks=[_rung(level, largest, is_best=level.price == best_ask) for level in reversed(asks)],
        bids=[_rung(level, largest, your_gpus=yours.get(level.price, 0)) for level in bids],
        spread=book.spread,
        asks_beyond=sum(level.gpu_count for level in book.asks[most_rungs:]),
        bids_beyond=sum(level.gpu_count for level in book.bids[most_rungs:]),
    )


def _rung(level: Level, largest: int, *, is_best: bool = False, your_gpus: int = 0) -> Rung:
    return Rung(
        price=level.price,
        gpu_count=level.gpu_count,
        orders=level.orders,
        min_gpus=level.min_gpus,
        width=max(1, FULL_WIDTH * level.gpu_count // largest),
        is_best=is_best,
        your_gpus=your_gpus,
    )
