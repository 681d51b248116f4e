"""`/operator/rentals/`: every rental by state, what is late, silent or lost, and how settling goes."""

from datetime import UTC, datetime

from django.core.paginator import InvalidPage, Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from marketplace.models import Rental
from marketplace.queries import operations
from marketplace.rental_words import end_reason
from users.access import for_operators

PER_PAGE = 50


@for_operators
@require_safe
def show_rentals(request: HttpRequest) -> HttpResponse:
    """Show rentals by state, overdue starts, silent machines, what was lost, settled hours and what is due."""
    now, state = datetime.now(UTC), request.GET.get("state", "")
    if state and state not in Rental.State.values:
        raise Http404
    counts = operations.rentals_by_state()
    due, settled = operations.due(now=now), operations.settled_by_hour(now=now)
    context = {
        "now": now,
        "state": state,
        "states": [(value, label, counts[value]) for value, label in Rental.State.choices],
        "page": _page(request, state, count=counts[state] if state else sum(counts.values())),
        "running": counts[Rental.State.RUNNING],
        "starting": sum(counts[each] for each in Rental.STARTING),
        "overdue": list(operations.overdue_starts(now=now)),
        "silent": list(operations.silent_now(now=now)),
        "lost": [(rental, end_reason(rental.end_reason)) for rental in operations.failed_and_lost(now=now)],
        "settled": settled,
        "totals": operations.totals_of(settled),
        "due": due,
        "due_rentals": operations.due_rentals(now=now) if due.rentals else [],
    }
    return render(request, "marketplace/operator_rentals.html", context)


def _page(request: HttpRequest, state: str, *, count: int) -> Page[Rental]:
    """Return the page asked for; one that is not there is a 404. The number of rows is known."""
    paginator = Paginator(operations.all_rentals(state), PER_PAGE)
    paginator.count = count
    try:
        return paginator.page(request.GET.get("page", 1))
    except InvalidPage:
        raise Http404 from None
