"""What GPUs would bring at a price, before and after the fee: the earnings calculator. Knows no Django.

>>> at_price(Decimal("2.88"), Lent(gpu_count=8, utilisation_percent=50, fee_percent=Decimal(10)))
Brought(price=Decimal('2.88'), gpu_hours=2880, net_micros=8294400000, fee_micros=829440000)
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from common.money import MICROS

DAYS = 30
HOURS = DAYS * 24
MOST_GPUS = 1024
UTILISATIONS = (10, 20, 30, 40, 50, 60, 70, 80, 90)  # nobody is rented out all the time
USUAL_UTILISATION = 50


@dataclass(frozen=True, kw_only=True)
class Lent:
    """GPUs on sale for 30 days: how many, which share of the time they are rented, and our fee in per cent."""

    gpu_count: int
    utilisation_percent: int
    fee_percent: Decimal


@dataclass(frozen=True, kw_only=True)
class Brought:
    """What 30 days come to at one price in USD per GPU-hour; amounts in micros of USD, without tax."""

    price: Decimal
    gpu_hours: int
    net_micros: int
    fee_micros: int

    @property
    def payable_micros(self) -> int:
        """What is left for the provider."""
        return self.net_micros - self.fee_micros


def at_price(price: Decimal, lent: Lent) -> Brought:
    """Return what lent GPUs bring in 30 days at a price; hours and sums are rounded once, half to the even digit."""
    hours = Decimal(lent.gpu_count * HOURS * lent.utilisation_percent) / 100
    net = (MICROS * price * hours).quantize(Decimal(1), ROUND_HALF_EVEN)
    fee = (net * lent.fee_percent / 100).quantize(Decimal(1), ROUND_HALF_EVEN)
    return Brought(
        price=price,
        gpu_hours=int(hours.quantize(Decimal(1), ROUND_HALF_EVEN)),
        net_micros=int(net),
        fee_micros=int(fee),
    )
