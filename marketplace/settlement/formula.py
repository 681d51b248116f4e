"""What an hour of a rental comes to, exactly: one rounding for each amount, half-even, to the micro. Pure.

The same formula stands in `marketplace/sql/40_settlement.sql`. Prices are USD per GPU-hour, an `fx_rate` is wallet
units per USD, rates of tax and the fee are per cent.

>>> lot = Priced(price=Decimal("2.88"), gpu_count=4, fee_percent=Decimal(10))
>>> part = Part(seconds=3330, fx_rate=Decimal("0.8713837574"), held_tax_rate_percent=Decimal("25.5"))
>>> hour = settle_hour(lot, [part], tax_rate_percent=Decimal("25.5"))
>>> hour.net_micros, hour.tax_micros, hour.gross_micros, hour.payable_micros
(9285465, 2367794, 11653259, 9590400)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from common.money import MICROS
from marketplace.limits import HOLD_SPARE_MICROS_PER_HOUR

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Priced:
    """What was fixed at the fill."""

    price: Decimal
    gpu_count: int
    fee_percent: Decimal


@dataclass(frozen=True, kw_only=True)
class Part:
    """Seconds of one held hour, with the rates its money was held at."""

    seconds: int
    fx_rate: Decimal
    held_tax_rate_percent: Decimal


@dataclass(frozen=True, kw_only=True)
class HourAmounts:
    """What an hour comes to: the renter's side in the wallet's currency, the provider's in USD."""

    net_micros: int
    tax_micros: int
    gross_micros: int
    usd_net_micros: int
    payable_micros: int
    fee_micros: int


def settle_hour(priced: Priced, parts: Sequence[Part], *, tax_rate_percent: Decimal | None) -> HourAmounts:
    """Return an hour's amounts from its parts (one or two held hours) and the rate of tax decided for it.

    A rate above the one a part was held at takes no more than was promised there: the gross stays and the net gives
    way. Without a decided rate (None) each part is taxed as it was held.
    """
    net = round(_net(priced, parts))
    added = round(net * _added_share(parts, tax_rate_percent))
    gross = net + added
    tax = added
    if tax_rate_percent is not None and _is_promised(parts, tax_rate_percent):
        tax = round(gross * Fraction(tax_rate_percent) / (100 + Fraction(tax_rate_percent)))
    usd_net, payable = _provider_side(priced, sum(part.seconds for part in parts))
    return HourAmounts(
        net_micros=gross - tax,
        tax_micros=tax,
        gross_micros=gross,
        usd_net_micros=usd_net,
        payable_micros=payable,
        fee_micros=usd_net - payable,
    )


def hold_needed_micros(priced: Priced, parts: Sequence[Part], *, touched_hours: int) -> int:
    """Return what seconds that are not settled yet can cost at most: gross at the held rates, and what rounding may add.

    `touched_hours` is how many UTC hours they lie in: each becomes a line, and its rounding may add two micros.
    """
    gross = sum(
        (_net(priced, [part]) * (1 + Fraction(part.held_tax_rate_percent) / 100) for part in parts), Fraction(0)
    )
    return math.ceil(gross) + HOLD_SPARE_MICROS_PER_HOUR * touched_hours


def _net(priced: Priced, parts: Sequence[Part]) -> Fraction:
    """Return micros of the wallet's currency, exact."""
    return MICROS * Fraction(priced.price) * priced.gpu_count * _weight(parts) / SECONDS_PER_HOUR


def _weight(parts: Sequence[Part]) -> Fraction:
    return sum((part.seconds * Fraction(part.fx_rate) for part in parts), Fraction(0))


def _added_share(parts: Sequence[Part], rate: Decimal | None) -> Fraction:
    """Return what comes on top of the net, as a share of it: the decided rate, in each part no more than was held."""
    weight = _weight(parts)
    if not weight:
        return Fraction(0)
    taxed = Fraction(0)
    for part in parts:
        held = part.held_tax_rate_percent
        taxed += part.seconds * Fraction(part.fx_rate) * Fraction(held if rate is None else min(rate, held)) / 100
    return taxed / weight


def _is_promised(parts: Sequence[Part], rate: Decimal) -> bool:
    return any(part.seconds and part.held_tax_rate_percent < rate for part in parts)


def _provider_side(priced: Priced, seconds: int) -> tuple[int, int]:
    """Return the USD net and what of it the provider earns, in micros, each rounded once."""
    usd_net = MICROS * Fraction(priced.price) * priced.gpu_count * seconds / SECONDS_PER_HOUR
    return round(usd_net), round(usd_net * (100 - Fraction(priced.fee_percent)) / 100)
