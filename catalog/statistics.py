"""The spread of a price over clouds: minimum, quartiles and median, computed on Decimals.

>>> summarise([Decimal("2.10"), Decimal("2.88"), Decimal("4.00"), Decimal("6.98")])
Summary(min=Decimal('2.100000'), p25=Decimal('2.685000'), median=Decimal('3.440000'), p75=Decimal('4.745000'), offers=4)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

MICRO = Decimal("0.000001")
# Of the rules by which prices are read, dated, checked and counted; it changes whenever the same bodies would count otherwise.
METHOD_VERSION = "2026.11"


@dataclass(frozen=True)
class Summary:
    """Prices in the unit they came in. `offers` is how many values were counted: one per cloud."""

    min: Decimal
    p25: Decimal
    median: Decimal
    p75: Decimal
    offers: int


def summarise(prices: Iterable[Decimal]) -> Summary:
    """Return the spread of `prices` (one value per cloud, its lowest: see `lowest_per_cloud`), rounded to a micro.

    Raises ValueError without any price: there is no spread of nothing.
    """
    ordered = sorted(prices)
    if not ordered:
        raise ValueError("no prices to summarise")
    return Summary(
        min=quantile(ordered, Decimal(0)),
        p25=quantile(ordered, Decimal("0.25")),
        median=quantile(ordered, Decimal("0.5")),
        p75=quantile(ordered, Decimal("0.75")),
        offers=len(ordered),
    )


def lowest_per_cloud(prices: Iterable[tuple[str, Decimal]]) -> dict[str, Decimal]:
    """Return each cloud's lowest price, so that a cloud with many regions counts once."""
    lowest: dict[str, Decimal] = {}
    for cloud, price in prices:
        lowest[cloud] = min(price, lowest.get(cloud, price))
    return lowest


def quantile(ordered: Sequence[Decimal], share: Decimal) -> Decimal:
    """Return the value at `share` (0 to 1) of an ascending, non-empty sequence, by linear interpolation.

    >>> quantile([Decimal(1), Decimal(2)], Decimal("0.5"))
    Decimal('1.500000')
    """
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    value = ordered[below] + (ordered[above] - ordered[below]) * (position - below)
    return value.quantize(MICRO, rounding=ROUND_HALF_EVEN)
