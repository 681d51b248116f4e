"""At which prices a GPU traded: percentiles, and what share of it would have been sold at a price. Knows no Django.

>>> spread = spread_of([(Decimal("2.00"), 2), (Decimal("3.00"), 1), (Decimal("4.00"), 1)])
>>> str(spread.p25), str(spread.median), str(spread.p75), spread.gpus
('2.00', '2.00', '3.00', 4)
>>> spread.percent_at_or_above(Decimal("2.50"))
50
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, kw_only=True)
class PriceSpread:
    """Prices in USD per GPU-hour with the GPUs that went at each, the lowest first. There is at least one."""

    sold: Sequence[tuple[Decimal, int]]

    @property
    def gpus(self) -> int:
        """How many GPUs were sold, fill by fill."""
        return sum(gpus for _, gpus in self.sold)

    @property
    def lowest(self) -> Decimal:
        """The lowest price paid."""
        return self.sold[0][0]

    @property
    def p25(self) -> Decimal:
        """A quarter of the GPUs went at this price or below."""
        return self.at(25)

    @property
    def median(self) -> Decimal:
        """Half of the GPUs went at this price or below."""
        return self.at(50)

    @property
    def p75(self) -> Decimal:
        """Three quarters of the GPUs went at this price or below."""
        return self.at(75)

    @property
    def highest(self) -> Decimal:
        """The highest price paid."""
        return self.sold[-1][0]

    def at(self, percent: int) -> Decimal:
        """Return the lowest price paid at or below which at least `percent` of the GPUs went (1 to 100)."""
        wanted, counted = percent * self.gpus, 0
        for price, gpus in self.sold:
            counted += gpus
            if 100 * counted >= wanted:
                return price
        return self.highest

    def percent_at_or_above(self, price: Decimal) -> int:
        """Return the share of GPUs, in whole per cent rounded down, whose renters paid this price or more."""
        return 100 * sum(gpus for paid, gpus in self.sold if paid >= price) // self.gpus


def spread_of(sold: Iterable[tuple[Decimal, int]]) -> PriceSpread | None:
    """Return the spread of prices with their GPUs; None where nothing was sold."""
    rows = sorted((price, gpus) for price, gpus in sold if gpus > 0)
    return PriceSpread(sold=rows) if rows else None
