"""Net, tax and gross of an amount, exactly: micros, each rounded half-even once. Rates are percent.

>>> add_tax(9_285_465, rate_percent=Decimal("25.5"))
Amounts(net_micros=9285465, tax_micros=2367794, gross_micros=11653259)
>>> gross_up(Decimal("8.64"), rate_percent=Decimal("25.5"))
10843200
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext

from common.money import round_up_to_micros

_EXACT_DIGITS = 60


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """What a settled line says; gross = net + tax."""

    net_micros: int
    tax_micros: int
    gross_micros: int


def add_tax(net_micros: int, *, rate_percent: Decimal) -> Amounts:
    """Return a net amount with its tax on top. Raises ValueError for a negative rate."""
    rate, hundred = _as_fraction(rate_percent)
    tax = _half_even(net_micros * rate, hundred)
    return Amounts(net_micros=net_micros, tax_micros=tax, gross_micros=net_micros + tax)


def split_gross(gross_micros: int, *, rate_percent: Decimal) -> Amounts:
    """Return a gross amount taken apart: tax = gross x r / (1 + r). Raises ValueError for a negative rate."""
    rate, hundred = _as_fraction(rate_percent)
    tax = _half_even(gross_micros * rate, hundred + rate)
    return Amounts(net_micros=gross_micros - tax, tax_micros=tax, gross_micros=gross_micros)


def settle(net_micros: int, *, rate_percent: Decimal, held_rate_percent: Decimal) -> Amounts:
    """Return an hour's line when its rate may differ from the one its hold was made at.

    A higher rate takes no more than was promised: the gross stays, the tax comes out of it and the net gives way. A
    lower one costs less; the hold's rest is released.
    """
    if rate_percent <= held_rate_percent:
        return add_tax(net_micros, rate_percent=rate_percent)
    promised = add_tax(net_micros, rate_percent=held_rate_percent)
    return split_gross(promised.gross_micros, rate_percent=rate_percent)


def gross_up(net: Decimal, *, rate_percent: Decimal) -> int:
    """Return an exact net amount with its tax in micros, rounded up: what a hold needs, before its micros per hour."""
    _as_fraction(rate_percent)
    with localcontext() as context:
        context.prec = _EXACT_DIGITS
        return round_up_to_micros(net * (100 + rate_percent) / 100)


def _as_fraction(rate_percent: Decimal) -> tuple[int, int]:
    """Return whole numbers whose quotient is the rate as a share of one."""
    if rate_percent < 0:
        raise ValueError(f"{rate_percent} % is not a rate of tax.")
    numerator, denominator = rate_percent.as_integer_ratio()
    return numerator, denominator * 100


def _half_even(numerator: int, denominator: int) -> int:
    """Return the quotient rounded to a whole number; a half goes to the even one."""
    whole, rest = divmod(numerator, denominator)
    is_over = 2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1)
    return whole + is_over
