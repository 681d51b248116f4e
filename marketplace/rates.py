"""The exchange rate of an order: wallet units per USD, of the last reference day, with our margin; never too old."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from django.conf import settings

from fx.queries import NoRate, usd_rate


class FxTooOld(Exception):
    """There is no reference rate young enough to order in this currency; `last_on` is the day of the last one."""

    def __init__(self, currency: str, last_on: date | None) -> None:
        super().__init__(f"The last exchange rate for {currency} is too old.")
        self.currency = currency
        self.last_on = last_on


@dataclass(frozen=True, kw_only=True)
class OrderRate:
    """Wallet units per USD, as stored and used; `on` is the reference rate's day (None: the wallet is in USD)."""

    rate: Decimal
    on: date | None
    margin: Decimal
    is_sample: bool = False


def order_rate(currency: str, *, now: datetime, may_be_old: bool = False) -> OrderRate:
    """Return the rate for a wallet's currency. One query, none for USD. Raises FxTooOld.

    `may_be_old`: for a running rental, which the age of a rate never stops.
    """
    if currency == "USD":
        return OrderRate(rate=Decimal(1), on=None, margin=Decimal(0))
    try:
        found = usd_rate(currency, day=now.date(), margin=settings.FX_MARGIN)
    except NoRate:
        raise FxTooOld(currency, None) from None
    oldest = settings.FX_MAX_AGE_DAYS
    if oldest is not None and not may_be_old and found.day < now.date() - timedelta(days=oldest):
        raise FxTooOld(currency, found.day)
    return OrderRate(
        rate=found.units_per_usd, on=found.day, margin=settings.FX_MARGIN, is_sample=found.origin == "sample"
    )
