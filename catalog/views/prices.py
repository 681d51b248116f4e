"""`/prices/`: what moved: the biggest movers of the week, and the newest changes."""

from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.price_changes import LEAST_PERCENT, movers_of_the_week, newest_changes
from catalog.queries import price_table
from catalog.views.kept import kept_page

CHANGES_SHOWN = 30


@kept_page
def show_prices(request: HttpRequest) -> HttpResponse:
    """Show what moved. Eight queries or nine."""
    now = datetime.now(UTC)
    movers = movers_of_the_week(prices=price_table(now=now), now=now)
    context = {
        "now": now,
        "movers": movers,
        "changes": newest_changes(at_most=CHANGES_SHOWN),
        "least_percent": LEAST_PERCENT,
    }
    return render(request, "catalog/prices.html", context)
