"""The operator's lists: listings, the record of decisions, prices that wait for a person."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import InvalidPage, Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from marketplace.listings import ListingUnknown
from marketplace.models import Listing
from marketplace.operator_forms import RULINGS, AuditForm, RulingForm
from marketplace.provider_forms import ReasonForm
from marketplace.providers.decisions import pause_listing
from marketplace.providers.price_rulings import NameUnknown, rule_on_name
from marketplace.providers.review import ReasonMissing
from marketplace.queries.records import (
    held_back_offers,
    listings_by_state,
    listings_in,
    records,
    unclear_names,
    with_rulings,
)
from users.access import for_operators, person_of
from users.audit import ip_address_of
from users.views.audit import line_of

PER_PAGE = 50


@for_operators
@require_safe
def list_listings(request: HttpRequest) -> HttpResponse:
    """Show every provider's listings by state, with price and what is free of each."""
    state, counts = request.GET.get("state", ""), listings_by_state()
    if state and state not in counts:
        raise Http404
    context = {
        "now": datetime.now(UTC),
        "state": state,
        "states": [(value, label, counts[value]) for value, label in Listing.State.choices],
        "page": _page(request, listings_in(state)),
    }
    return render(request, "marketplace/operator/listings.html", context)


@for_operators
@require_POST
def stop_listing(request: HttpRequest, listing_id: UUID) -> HttpResponse:
    """Pause a listing, with a reason that its owners read."""
    form = ReasonForm({**request.POST.dict(), "decision": "pause"})
    try:
        changed = pause_listing(
            listing_id=listing_id,
            operator=person_of(request),
            reason=form.cleaned_data["reason"] if form.is_valid() else "",
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except ListingUnknown:
        raise Http404 from None
    except ReasonMissing:
        messages.error(request, _("Give a reason; nothing was changed."))
    else:
        words = _("Paused, written down, and mailed to the owners.") if changed else _("It is paused already.")
        messages.add_message(request, messages.SUCCESS if changed else messages.INFO, words)
    return redirect("marketplace:operator-listings")


@for_operators
@require_safe
def show_audit(request: HttpRequest) -> HttpResponse:
    """Show the record of decisions, newest first, narrowed as the form says."""
    form = AuditForm(request.GET)
    page = _page(request, records(**form.wanted))
    reader = person_of(request)
    context = {
        "now": datetime.now(UTC),
        "form": form,
        "page": page,
        "lines": [(record, line_of(record, reader=reader)) for record in page],
        "is_narrowed": any(form.wanted.values()),
    }
    return render(request, "marketplace/operator/audit.html", context)


@for_operators
@require_safe
def show_prices(request: HttpRequest) -> HttpResponse:
    """Show GPU names that no rule can read, and prices that the sanity rules keep out."""
    page = _page(request, unclear_names())
    context = {
        "now": datetime.now(UTC),
        "page": page,
        "names": with_rulings(list(page)),
        "rulings": RULINGS,
        "held": held_back_offers(),
    }
    return render(request, "marketplace/operator/prices.html", context)


@for_operators
@require_POST
def rule_on_price(request: HttpRequest, name_pk: int) -> HttpResponse:
    """Write down what an unclear name is."""
    form = RulingForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Choose what it is and give a reason; nothing was changed."))
        return redirect("marketplace:operator-prices")
    try:
        rule_on_name(
            name_pk=name_pk,
            ruling=form.cleaned_data["decision"],
            operator=person_of(request),
            reason=form.cleaned_data["reason"],
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except NameUnknown:
        raise Http404 from None
    else:
        messages.success(request, _("Written down."))
    return redirect("marketplace:operator-prices")


def _page(request: HttpRequest, rows: QuerySet[Any, Any]) -> Page[Any]:
    """Return the page asked for; one that is not there is a 404."""
    try:
        return Paginator(rows, PER_PAGE).page(request.GET.get("page", 1))
    except InvalidPage:
        raise Http404 from None
