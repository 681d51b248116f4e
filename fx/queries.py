"""Which rate holds on a day."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from fx.conversion import from_usd, to_usd, units_per_usd
from fx.models import Rate

WALLET_CURRENCIES = ("USD", "EUR", "GBP")


class NoRate(LookupError):
    """There is no rate for this currency on or before this day."""

    def __init__(self, currency: str) -> None:
        super().__init__(f"No rate is known for {currency}.")
        self.currency = currency


@dataclass(frozen=True, kw_only=True)
class UsdRate:
    """Units of a currency per 1 USD, with the day of the reference rates it was made from."""

    currency: str
    units_per_usd: Decimal
    day: date
    origin: str

    def from_usd(self, amount_usd: Decimal) -> Decimal:
        """Return a USD amount in this currency."""
        return from_usd(amount_usd, units_per_usd=self.units_per_usd)

    def to_usd(self, amount: Decimal) -> Decimal:
        """Return an amount of this currency in USD."""
        return to_usd(amount, units_per_usd=self.units_per_usd)


def usd_rate(currency: str, *, day: date, margin: Decimal = Decimal(0)) -> UsdRate:
    """Return the last rate on or before a day, with a margin; both legs are of one day. One query. Raises NoRate."""
    wanted = {currency, "USD"} - {"EUR"}
    newest: dict[date, dict[str, Rate]] = {}
    rows = Rate.objects.filter(currency__in=wanted, held_back="", day__lte=day).order_by("-day")[: 20 * len(wanted)]
    for row in rows:
        newest.setdefault(row.day, {})[row.currency] = row
    for found in newest.values():
        if wanted <= found.keys():
            return _cross(currency, found, margin)
    raise NoRate(currency)


def _cross(currency: str, found: dict[str, Rate], margin: Decimal) -> UsdRate:
    usd = found["USD"]
    per_eur = Decimal(1) if currency == "EUR" else found[currency].units_per_eur
    rate = units_per_usd(units_per_eur=per_eur, usd_per_eur=usd.units_per_eur, margin=margin)
    return UsdRate(currency=currency, units_per_usd=rate, day=usd.day, origin=usd.origin)
