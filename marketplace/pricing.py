"""What an order costs at most, and which limit is suspiciously high. Pure; prices are USD per GPU-hour.

>>> lot = Terms(gpu_count=4, hours=3, fx_rate=Decimal("0.8713837574"), tax_rate_percent=Decimal("25.5"))
>>> hold_micros(Decimal("2.88"), lot)
37794362
>>> hold_micros(Decimal("4.19"), Terms(gpu_count=1, hours=None, fx_rate=lot.fx_rate, tax_rate_percent=Decimal("25.5")))
4582132
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext

from common.money import round_up_to_micros
from marketplace.limits import COLLAR_FACTOR, FILLS_FOR_A_REFERENCE, HOLD_SPARE_MICROS_PER_HOUR
from marketplace.matching import hours_at_first

_EXACT_DIGITS = 60


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What turns a price into money of a wallet, for one server: wallet units per USD and the tax rate in per cent."""

    gpu_count: int
    hours: int | None
    fx_rate: Decimal
    tax_rate_percent: Decimal


@dataclass(frozen=True, kw_only=True)
class Traded:
    """The fills of a period: how many, over how many devices, and the sum of price times devices."""

    fills: int
    gpus: int
    value: Decimal


def hold_micros(price: Decimal, terms: Terms) -> int:
    """Return what one server's rental holds at first, in micros of the wallet: never less than its lines can come to.

    Gross for the hours held (one, when open-ended), rounded up, and two micros for each UTC hour it may touch.
    """
    hours = hours_at_first(terms.hours)
    touched_hours = hours + 1
    gross = gross_per_hour(price, terms) * hours
    return round_up_to_micros(gross) + HOLD_SPARE_MICROS_PER_HOUR * touched_hours


def net_per_hour(price: Decimal, terms: Terms) -> Decimal:
    """Return the exact net price of an hour on one server, in the wallet's currency."""
    with localcontext() as context:
        context.prec = _EXACT_DIGITS
        return price * terms.gpu_count * terms.fx_rate


def gross_per_hour(price: Decimal, terms: Terms) -> Decimal:
    """Return the exact price of an hour on one server with tax, in the wallet's currency."""
    with localcontext() as context:
        context.prec = _EXACT_DIGITS
        return net_per_hour(price, terms) * (100 + terms.tax_rate_percent) / 100


def reference_price(*, traded: Traded, median_ask: Decimal | None, elsewhere: Decimal | None) -> Decimal | None:
    """Return what the market says a GPU-hour costs: a day's fills by volume, else the median ask, else elsewhere."""
    if traded.fills >= FILLS_FOR_A_REFERENCE:
        return traded.value / traded.gpus
    return elsewhere if median_ask is None else median_ask


def is_far_above(limit: Decimal, *, reference: Decimal | None) -> bool:
    """Whether a limit needs to be confirmed. Without a reference none does."""
    return reference is not None and limit > reference * COLLAR_FACTOR
