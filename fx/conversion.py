"""Exact conversion between currencies, and the one place where a rate is rounded.

A rate is stored as units of the currency per 1 USD, rounded once, half-even, to 10 decimals; only the stored number
is used afterwards, so anyone can recompute a converted price from the two figures shown beside it.

>>> units_per_usd(units_per_eur=Decimal(1), usd_per_eur=Decimal("1.1476"))
Decimal('0.8713837574')
>>> from_usd(Decimal("2.88"), units_per_usd=Decimal("0.8713837574"))
Decimal('2.509585')
"""

from decimal import ROUND_HALF_EVEN, Decimal, localcontext

_RATE_STEP = Decimal("1e-10")
_PRICE_STEP = Decimal("1e-6")
_EXACT_DIGITS = 60


def units_per_usd(*, units_per_eur: Decimal, usd_per_eur: Decimal, margin: Decimal = Decimal(0)) -> Decimal:
    """Return units of a currency per 1 USD, 10 decimals. EUR has `units_per_eur` 1. Raises ValueError below zero."""
    if units_per_eur <= 0 or usd_per_eur <= 0 or margin < 0:
        raise ValueError("Rates are positive and a margin is not negative.")
    with localcontext() as context:
        context.prec = _EXACT_DIGITS
        return (units_per_eur / usd_per_eur * (1 + margin)).quantize(_RATE_STEP, ROUND_HALF_EVEN)


def from_usd(amount_usd: Decimal, *, units_per_usd: Decimal) -> Decimal:
    """Return the amount in the currency, rounded half-even to a millionth for show."""
    with localcontext() as context:
        context.prec = _EXACT_DIGITS
        return (amount_usd * units_per_usd).quantize(_PRICE_STEP, ROUND_HALF_EVEN)


def to_usd(amount: Decimal, *, units_per_usd: Decimal) -> Decimal:
    """Return the amount in USD, rounded half-even to a millionth. Raises ValueError for a rate that is not positive."""
    if units_per_usd <= 0:
        raise ValueError("Rates are positive.")
    with localcontext() as context:
        context.prec = _EXACT_DIGITS
        return (amount / units_per_usd).quantize(_PRICE_STEP, ROUND_HALF_EVEN)
