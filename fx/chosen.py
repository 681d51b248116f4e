"""`?currency=EUR` on a page: look the rate up, show every price of the page in it."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import wraps

from django.http import HttpRequest, HttpResponse

from common.shown_currency import ShownCurrency, shown_in
from fx.queries import WALLET_CURRENCIES, NoRate, usd_rate

View = Callable[..., HttpResponse]


def in_chosen_currency(view: View) -> View:
    """Let a page be read in another currency; without a rate, or for a currency we do not show, it stays in USD and says so."""

    @wraps(view)
    def show(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        with shown_in(chosen_currency(request.GET.get("currency", "USD"), day=datetime.now(UTC).date())):
            return view(request, *args, **kwargs)

    return show


def chosen_currency(code: str, *, day: date) -> ShownCurrency:
    """Return the currency asked for with its last rate, or USD with what was refused. At most one query."""
    if code == "USD":
        return ShownCurrency()
    if code not in WALLET_CURRENCIES:
        return ShownCurrency(refused=code[:12])
    try:
        rate = usd_rate(code, day=day)
    except NoRate:
        return ShownCurrency(refused=code)
    return ShownCurrency(code=code, units_per_usd=rate.units_per_usd, day=rate.day, origin=rate.origin)
