"""The currency a page's prices are shown in, active for the length of a request like its language is.

Prices are kept in USD. A page that offers a choice activates a rate; the `price` filters convert by it, and the page
says which rate of which day it was.

>>> with shown_in(ShownCurrency(code="EUR", units_per_usd=Decimal("0.5"))):
...     current().of(Decimal("2.88"))
Decimal('1.440')
>>> current().of(Decimal("2.88"))
Decimal('2.88')
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, kw_only=True)
class ShownCurrency:
    """A currency with its rate (units per 1 USD) and the day and origin of the reference rates behind it.

    `refused` is what was asked for instead and could not be shown.
    """

    code: str = "USD"
    units_per_usd: Decimal = Decimal(1)
    day: date | None = None
    origin: str = ""
    refused: str = ""

    @property
    def is_converted(self) -> bool:
        """Whether prices differ from the stored ones."""
        return self.code != "USD"

    def of(self, amount_usd: Decimal) -> Decimal:
        """Return a USD amount in this currency, exact; formatting rounds it."""
        return amount_usd * self.units_per_usd if self.is_converted else amount_usd


_USD = ShownCurrency()
_current: ContextVar[ShownCurrency] = ContextVar("shown_currency", default=_USD)


def current() -> ShownCurrency:
    """Return the currency that is active now; USD unless a page chose another."""
    return _current.get()


@contextmanager
def shown_in(currency: ShownCurrency) -> Iterator[None]:
    """Show prices in this currency for the length of the block."""
    token = _current.set(currency)
    try:
        yield
    finally:
        _current.reset(token)
