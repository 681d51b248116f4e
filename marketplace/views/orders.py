"""`/orders/`: what is open, then what is closed, newest first."""

from datetime import UTC, datetime

from django.core.paginator import InvalidPage, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from marketplace.models import Order
from marketplace.queries.orders import orders_of
from users.access import EVERYONE, TRADERS, for_members, may
from users.models import Membership

PER_PAGE = 50


@require_safe
@for_members(*EVERYONE)
def list_orders(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the orders of the organisation; a page of closed ones that is not there is a 404."""
    orders = orders_of(membership.organisation)
    paginator = Paginator(orders.exclude(state__in=Order.RESTING), PER_PAGE)
    try:
        page = paginator.page(request.GET.get("page", 1))
    except InvalidPage:
        raise Http404 from None
    context = {
        "now": datetime.now(UTC),
        "organisation": membership.organisation,
        "open": list(orders.filter(state__in=Order.RESTING)) if page.number == 1 else [],
        "page": page,
        "may_trade": may(membership, *TRADERS),
    }
    return render(request, "marketplace/orders.html", context)
