"""Money as integers: micros, 10^-6 of a currency. Decimal lives at the edges; rounding happens here and once.

>>> to_micros(Decimal("12.50"), currency="EUR")
12500000
>>> to_micros(Decimal("0.001"), currency="EUR")
Traceback (most recent call last):
    ...
common.money.TooFine: EUR has 2 decimals; 0.001 is finer.
>>> from_micros(12500000)
Decimal('12.500000')
>>> split_micros(100, [1, 1, 1])
[34, 33, 33]
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, ROUND_UP, Decimal, localcontext

MICROS = 1_000_000
# Decimals of money that comes in or goes out (ISO 4217). JPY has none and keeps the table honest.
SCALES = {"EUR": 2, "USD": 2, "GBP": 2, "JPY": 0}
_EXACT_DIGITS = 60


class TooFine(ValueError):
    """The amount has more decimals than its currency, or than a micro."""


class UnknownCurrency(ValueError):
    """The currency is not in the scale table."""


def to_micros(amount: Decimal, *, currency: str) -> int:
    """Return money in whole micros. Raises TooFine for an amount finer than the currency, UnknownCurrency."""
    scale = scale_of(currency)
    if not amount.is_finite():
        raise TooFine(f"{amount} is not an amount.")
    if amount != _at_scale(amount, scale):
        raise TooFine(f"{currency} has {scale} decimals; {amount} is finer.")
    return int(amount * MICROS)


def from_micros(micros: int) -> Decimal:
    """Return micros as a Decimal with six decimals."""
    return Decimal(micros).scaleb(-6)


def round_to_micros(amount: Decimal) -> int:
    """Return an exact amount rounded half-even to micros: the one rounding of rates and shares."""
    return _whole(amount, ROUND_HALF_EVEN)


def round_up_to_micros(amount: Decimal) -> int:
    """Return an exact amount rounded up (away from zero) to micros: for holds, which must never be too small."""
    return _whole(amount, ROUND_UP)


def to_minor_units(micros: int, *, currency: str) -> int:
    """Return whole cents (or what the currency has) for the payment gateway. Raises TooFine for a rest."""
    units, rest = divmod(micros, _micros_per_minor_unit(currency))
    if rest:
        raise TooFine(f"{micros} micros are not whole minor units of {currency}.")
    return units


def from_minor_units(units: int, *, currency: str) -> int:
    """Return micros for whole cents (or what the currency has)."""
    return units * _micros_per_minor_unit(currency)


def split_micros(total: int, weights: Sequence[int]) -> list[int]:
    """Split a total by weights: the parts sum to it exactly and each is within one micro of its share.

    Largest remainder; equal remainders go to the earlier part. Raises ValueError without a positive weight.
    """
    whole = sum(weights)
    if whole <= 0 or min(weights) < 0:
        raise ValueError("A split needs weights that are not negative, and one that is positive.")
    sign = -1 if total < 0 else 1
    shares = [divmod(abs(total) * weight, whole) for weight in weights]
    parts = [share for share, _ in shares]
    order = sorted(range(len(weights)), key=lambda index: (-shares[index][1], index))
    for index in order[: abs(total) - sum(parts)]:
        parts[index] += 1
    return [sign * part for part in parts]


def scale_of(currency: str) -> int:
    """Return the decimals of a currency. Raises UnknownCurrency."""
    try:
        return SCALES[currency]
    except KeyError:
        raise UnknownCurrency(f"{currency} is not a currency we keep.") from None


def _micros_per_minor_unit(currency: str) -> int:
    return int(MICROS // 10 ** scale_of(currency))


def _at_scale(amount: Decimal, scale: int) -> Decimal:
    with localcontext() as context:
        context.prec = _EXACT_DIGITS
        return amount.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_EVEN)


def _whole(amount: Decimal, rounding: str) -> int:
    with localcontext() as context:
        context.prec = _EXACT_DIGITS
        return int((amount * MICROS).to_integral_value(rounding))
