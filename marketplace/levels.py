"""Both sides of a book, added up by price. Pure; prices are USD per GPU-hour."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from marketplace.matching import Ask


@dataclass(frozen=True, kw_only=True)
class Level:
    """All that is wanted or for rent at one price. `orders`: how many orders or listings; `min_gpus`: asks only."""

    price: Decimal
    gpu_count: int
    orders: int
    min_gpus: int = 1


@dataclass(frozen=True, kw_only=True)
class Book:
    """Both sides of a book, best first."""

    bids: Sequence[Level]
    asks: Sequence[Level]

    @property
    def spread(self) -> Decimal | None:
        """Best ask less best bid; negative where the best bid does not fit the best ask."""
        return self.asks[0].price - self.bids[0].price if self.asks and self.bids else None


def ask_levels(asks: Iterable[Ask]) -> list[Level]:
    """Return what is for rent at each price, lowest first."""
    offered: dict[Decimal, list[Ask]] = defaultdict(list)
    for ask in asks:
        offered[ask.price].append(ask)
    return [
        Level(
            price=price,
            gpu_count=sum(len(ask.free_device_ids) for ask in offered[price]),
            orders=len(offered[price]),
            min_gpus=min(ask.min_gpus for ask in offered[price]),
        )
        for price in sorted(offered)
    ]


def bid_levels(wanted: Iterable[tuple[Decimal, int]]) -> list[Level]:
    """Return what is wanted at each limit, highest first, from the limit and the open GPUs of each order."""
    by_price: dict[Decimal, list[int]] = defaultdict(list)
    for price, gpus in wanted:
        by_price[price].append(gpus)
    return [
        Level(price=price, gpu_count=sum(by_price[price]), orders=len(by_price[price]))
        for price in sorted(by_price, reverse=True)
    ]
