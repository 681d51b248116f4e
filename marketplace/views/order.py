"""`/orders/<id>/`: how an order went, step by step with its money; why it is open; taking it back, or asking for more."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from common import formats
from common.money import from_micros
from marketplace.forms import LIMIT, LOT, OPEN_ENDED, PriceField
from marketplace.models import Fill, Order, Rental
from marketplace.orders.close import OrderUnknown, cancel_order
from marketplace.pricing import Terms, hold_micros
from marketplace.queries.orders import order_in_full, why_open
from marketplace.words import CLOSE_REASONS
from users.access import EVERYONE, TRADERS, for_members, may
from users.models import Membership


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that happened: `kind` is placed, filled, waits or closed.

    `held_micros` was set aside by it, `freed_micros` given back; `filled` counts the servers filled by then.
    """

    kind: str
    at: datetime
    held_micros: int = 0
    freed_micros: int = 0
    fill: Fill | None = None
    filled: int = 0


@require_safe
@for_members(*EVERYONE)
def show_order(request: HttpRequest, membership: Membership, order_id: UUID) -> HttpResponse:
    """Show an order of the organisation."""
    now = datetime.now(UTC)
    order = get_object_or_404(order_in_full(membership.organisation), pk=order_id)
    why = why_open(order, now=now)
    rentals = [fill.rental for fill in order.fills.all()]
    context = {
        "order": order,
        "now": now,
        "steps": list(steps_of(order)),
        "places": [place < order.filled_servers for place in range(order.server_count)],
        "why": why,
        "raise_to": why.why.best_price if why and why.why.gap else None,
        "close_reason": CLOSE_REASONS.get(order.close_reason, ""),
        "rentals": rentals,
        "waits_for_a_machine": any(rental.state in Rental.STARTING for rental in rentals),
        "again": f"{reverse('marketplace:book', args=[order.gpu.slug])}?{ticket_query(order)}#ticket",
        "may_trade": may(membership, *TRADERS),
    }
    return render(request, "marketplace/order.html", context)


@require_POST
@for_members(*TRADERS)
def cancel(request: HttpRequest, membership: Membership, order_id: UUID) -> HttpResponse:
    """Take back what is still open. With `raise_to` lead on to a ticket at that price; nothing is placed by it."""
    open_before = Order.objects.filter(pk=order_id, state__in=Order.RESTING).exists()
    try:
        order = cancel_order(organisation_id=membership.organisation_id, order_id=order_id, now=datetime.now(UTC))
    except OrderUnknown:
        raise Http404 from None
    was_cancelled = open_before and order.state == Order.State.CANCELLED
    _tell(request, order, was_cancelled=was_cancelled)
    price = _price(request.POST.get("raise_to", ""))
    if was_cancelled and price is not None:
        query = ticket_query(order, price=price)
        return redirect(f"{reverse('marketplace:book', args=[order.gpu.slug])}?{query}#ticket")
    return redirect("marketplace:order", order_id)


def steps_of(order: Order) -> Iterator[Step]:
    """Return what happened to an order in full, and what it waits for."""
    terms = Terms(
        gpu_count=order.gpu_count,
        hours=order.hours,
        fx_rate=order.fx_rate,
        tax_rate_percent=Decimal(order.tax_rate_percent),
    )
    yield Step(kind="placed", at=order.placed_at, held_micros=order.hold.placed_micros if order.hold else 0)
    for filled, fill in enumerate(order.fills.all(), start=1):
        held = hold_micros(fill.price_usd_per_gpu_hour, terms)
        rested = order.hold is not None and fill.filled_at > order.placed_at
        freed = order.hold_per_server_micros - held if rested else 0
        yield Step(kind="filled", at=fill.filled_at, held_micros=held, freed_micros=freed, fill=fill, filled=filled)
    if order.closed_at is None:
        yield Step(kind="waits", at=order.expires_at or order.placed_at, held_micros=_left_micros(order))
    else:
        freed = order.hold_per_server_micros * (order.server_count - order.filled_servers) if order.hold else 0
        yield Step(kind="closed", at=order.closed_at, freed_micros=freed)


def ticket_query(order: Order, *, price: Decimal | None = None) -> str:
    """Return the ticket that asks for the same again, as an address does, at another price if given."""
    wishes: dict[str, Any] = {
        "kind": LIMIT,
        "gpu_count": order.gpu_count,
        "server_count": order.server_count - order.filled_servers or order.server_count,
        "term": OPEN_ENDED if order.hours is None else LOT,
        "hours": order.hours,
        "price": price or order.limit_price_usd_per_gpu_hour,
        "wallet": order.currency,
        "countries": order.countries,
        "interconnect": order.interconnect,
        "min_ram_gb": order.min_ram_gb,
        "min_vcpus": order.min_vcpus,
        "min_disk_gb": order.min_disk_gb,
    }
    return urlencode({name: value for name, value in wishes.items() if value}, doseq=True)


def _left_micros(order: Order) -> int:
    return order.hold.remaining_micros if order.hold else 0


def _price(text: str) -> Decimal | None:
    try:
        price: Decimal | None = PriceField(required=False).clean(text)
    except ValidationError:
        return None
    return price


def _tell(request: HttpRequest, order: Order, *, was_cancelled: bool) -> None:
    if was_cancelled:
        freed = from_micros(order.hold_per_server_micros * (order.server_count - order.filled_servers))
        amount = formats.total(freed, order.currency, language=get_language() or "en")
        messages.success(request, _("Cancelled. %s are available again.") % amount)
    elif order.state == Order.State.FILLED:
        messages.warning(request, _("It had been filled before the cancel arrived."))
