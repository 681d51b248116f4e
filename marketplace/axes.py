"""Round figures for a chart's axes, and coordinates as text that no language changes. Pure.

>>> [str(figure) for figure in round_figures(Decimal("2.50"), Decimal("3.49"), most=5)]
['2.6', '2.8', '3.0', '3.2', '3.4']
>>> [str(figure) for figure in round_figures(Decimal(0), Decimal(77), most=4, are_whole=True)]
['0', '20', '40', '60']
>>> at(Decimal("12.30")), at(Decimal(7))
('12.3', '7')
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal

_STEPS = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))


def round_figures(low: Decimal, high: Decimal, *, most: int, are_whole: bool = False) -> Sequence[Decimal]:
    """Return at most `most` evenly spaced round figures from `low` to `high`, both counted where they are round."""
    step = _step((high - low) / most, are_whole=are_whole)
    first = (low / step).to_integral_value(rounding=ROUND_CEILING) * step
    count = min(most, int((high - first) / step) + 1) if first <= high else 0
    return [Decimal(f"{first + step * index:f}") for index in range(count)]


def at(coordinate: Decimal) -> str:
    """Return a coordinate with one decimal at most."""
    return f"{coordinate:.1f}".removesuffix(".0")


def _step(least: Decimal, *, are_whole: bool) -> Decimal:
    if least <= 0 or (are_whole and least <= 1):
        return Decimal(1)
    power = Decimal(1).scaleb(least.adjusted())
    steps = [step * power for step in _STEPS]
    return next(step for step in steps if step >= least and not (are_whole and step % 1))
