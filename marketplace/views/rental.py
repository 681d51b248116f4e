"""`/rentals/<id>/`: how a rental went, how to reach it, what it costs, and the proof of every hour; stopping it.

The part in `#live` is rendered by itself and looked at again while somebody looks, as on a book's page.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import InvalidPage, Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from common.templatetags.figures import sum_in
from marketplace.limits import START_WITHIN
from marketplace.models import Rental, RentalEvent
from marketplace.queries.rentals import Proof, proof_of, rental_in_full, told_hours
from marketplace.rental_words import end_reason
from marketplace.rentals.states import RentalUnknown
from marketplace.rentals.stop import request_stop
from users.access import EVERYONE, TRADERS, for_members, may
from users.models import Membership

HOURS_PER_PAGE = 24
_COUNTED = ("raised", "raise_refused")  # of these the last one speaks for all


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something that happened: an event, how often until then, and its reason in words."""

    event: RentalEvent
    times: int
    why: str | Promise


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a rental's page shows: its proof (hours newest first), its steps, and why it is over."""

    rental: Rental
    proof: Proof
    steps: Sequence[Step]
    why: str | Promise
    page: Page[datetime]
    starts_by: datetime
    shortfall_micros: int
    ssh_command: str


@require_safe
@for_members(*EVERYONE)
def show_rental(request: HttpRequest, membership: Membership, rental_id: UUID) -> HttpResponse:
    """Show a rental of the organisation."""
    now = datetime.now(UTC)
    told = _told(request, membership, rental_id, now=now)
    html, etag = _live(request, membership, told)
    context = {"now": now, "rental": told.rental, "told": told, "html": html, "etag": etag}
    return render(request, "marketplace/rental.html", context)


@require_safe
@for_members(*EVERYONE)
def show_live_rental(request: HttpRequest, membership: Membership, rental_id: UUID) -> HttpResponse:
    """Give the part of the page that moves, or 304 where the page shows it already."""
    html, etag = _live(request, membership, _told(request, membership, rental_id, now=datetime.now(UTC)))
    response = get_conditional_response(request, etag=etag) or HttpResponse(html)
    response["ETag"] = etag
    response["X-Robots-Tag"] = "noindex"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*TRADERS)
def stop(request: HttpRequest, membership: Membership, rental_id: UUID) -> HttpResponse:
    """Say what stopping now costs and gives back; when that is confirmed, stop."""
    now = datetime.now(UTC)
    if request.method == "POST":
        return _stop(request, membership, rental_id, now=now)
    rental = get_object_or_404(rental_in_full(membership.organisation), pk=rental_id)
    standing = proof_of(rental, now=now, hours=()).standing
    if not standing.may_stop:
        messages.info(request, _("There is nothing to stop any more."))
        return redirect("marketplace:rental", rental_id)
    context = {"now": now, "rental": rental, "standing": standing, "may_trade": may(membership, *TRADERS)}
    return render(request, "marketplace/stop_rental.html", context)


def _stop(request: HttpRequest, membership: Membership, rental_id: UUID, *, now: datetime) -> HttpResponse:
    try:
        rental = request_stop(organisation_id=membership.organisation_id, rental_id=rental_id, now=now)
    except RentalUnknown:
        raise Http404 from None
    rental = rental_in_full(membership.organisation).get(pk=rental_id)
    standing = proof_of(rental, now=now, hours=()).standing
    cost = sum_in(standing.cost_micros, rental.currency)
    if rental.state == Rental.State.INTERRUPTED:
        messages.warning(request, _("The machine had been lost before. It cost %s in all.") % cost)
    elif rental.stop_requested_at is not None:
        messages.success(request, _("Stopped. It cost %s in all; what is left of the hold comes back.") % cost)
    elif rental.state == Rental.State.ENDED and rental.ready_at is None:
        messages.success(request, _("Stopped before it started. It cost nothing, and its hold is released."))
    else:
        messages.info(request, _("There is nothing to stop any more."))
    return redirect("marketplace:rental", rental_id)


def _told(request: HttpRequest, membership: Membership, rental_id: UUID, *, now: datetime) -> Told:
    """Return what the page shows. A page of hours that is not there is a 404."""
    rental = get_object_or_404(rental_in_full(membership.organisation), pk=rental_id)
    try:
        newest_first = list(reversed(told_hours(rental, now=now)))
        page = Paginator(newest_first, HOURS_PER_PAGE).page(request.GET.get("page", 1))
    except InvalidPage:
        raise Http404 from None
    proof = proof_of(rental, now=now, hours=sorted(page))
    next_micros = proof.standing.next_hold_micros or 0
    raises = proof.standing.raises_at is not None
    return Told(
        rental=rental,
        proof=proof,
        steps=steps_of(rental),
        why=end_reason(rental.end_reason),
        page=page,
        starts_by=rental.filled_at + START_WITHIN,
        shortfall_micros=max(0, next_micros - rental.wallet.available_micros) if raises else 0,
        ssh_command=ssh_command(rental),
    )


def ssh_command(rental: Rental) -> str:
    """Return the command that reaches the machine; blank unless it runs. A host's word of itself stays one argument."""
    if rental.state != Rental.State.RUNNING or not rental.access:
        return ""
    address = f"{rental.access['ssh_user']}@{rental.access['ssh_host']}".lstrip("-")
    return shlex.join(["ssh", "-p", str(rental.access["ssh_port"]), address])


def steps_of(rental: Rental) -> list[Step]:
    """Return what happened to a rental, oldest first; hours held one after the other are one step."""
    events = list(rental.events.all())
    last = {event.kind: event.pk for event in events if event.kind in _COUNTED}
    return [
        Step(
            event=event,
            times=sum(other.kind == event.kind for other in events),
            why=end_reason(str(event.detail.get("reason", ""))),
        )
        for event in events
        if last.get(event.kind, event.pk) == event.pk
    ]


def _live(request: HttpRequest, membership: Membership, told: Told) -> tuple[SafeString, str]:
    """Render the part that moves, and its entity tag."""
    context: dict[str, Any] = {
        "told": told,
        "rental": told.rental,
        "standing": told.proof.standing,
        "hours": list(reversed(told.proof.hours)),
        "may_trade": may(membership, *TRADERS),
    }
    html = render_to_string("marketplace/parts/rental_live.html", context, request)
    return html, f'W/"{sha256(html.encode()).hexdigest()[:32]}"'
