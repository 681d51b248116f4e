"""`/wallet/top-up/`: paying in; and where each top-up stands, told by its row and nothing else.

The page that a payer comes back to credits nothing: money arrives by the gateway's message, or when somebody presses
the button that asks the gateway, both by the one crediting path.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.accounts import WALLET_CURRENCIES
from billing.forms import TopUpForm
from billing.gateway import client
from billing.gateway.errors import GatewayError, GatewayRefused, GatewayUnavailable
from billing.models import Posting, TopUp
from billing.queries.payments import recent_top_ups
from billing.queries.wallets import wallets_of
from billing.topups.checkout import open_checkout
from billing.topups.limits import Tier, left_micros, tier_of
from billing.topups.look import refresh_top_up
from billing.topups.start import OtherTopUp, TopUpRefused, TopUpsOff, history_of, limits_in_force, start_top_up
from common.money import MICROS, from_micros
from users.access import EVERYONE, PAYERS, for_members, may
from users.models import Membership, Organisation

SUGGESTED = (25, 50, 100, 250, 500, 1000, 2500)
_MOST_SUGGESTED = 4
_RECENT = 10
_HOME_CURRENCIES = {"GB": "GBP", "US": "USD"}
# How long a page that waits for its payment waits between looks: often at first, then less, then it stops.
LOOK_AFTER_SECONDS = (2, 3, 5, 5, 10, 10, 15, 30, 30, 60, 60, 60)


class Trouble(StrEnum):
    """Why a top-up was not started, where the form is not at fault."""

    OFF = "off"
    AWAY = "away"
    REFUSED = "refused"
    USED = "used"


@dataclass(frozen=True, kw_only=True)
class Room:
    """What may be paid in now: from `least` up to `most` (0: nothing), by the tier that holds."""

    least_micros: int
    most_micros: int
    tier: Tier
    next_tier: Tier | None
    day_micros: int
    week_micros: int

    @property
    def suggestions(self) -> list[int]:
        """Amounts in whole units that may be paid in, a few of them."""
        fitting = [units for units in SUGGESTED if self.least_micros <= units * MICROS <= self.most_micros]
        return fitting[:: max(1, -(-len(fitting) // _MOST_SUGGESTED))]


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*PAYERS)
def top_up(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the form; POST starts a top-up and leads to its payment page. The same form sent twice is one top-up."""
    now = datetime.now(UTC)
    organisation = membership.organisation
    form = TopUpForm(request.POST or None, organisation_id=organisation.pk, initial=_wished(request, organisation))
    trouble = None if client.is_on() else Trouble.OFF
    if request.method == "POST" and form.is_valid():
        started = _start(request, membership, form, now=now)
        if isinstance(started, TopUp):
            return _see_other(_way_on(started))
        trouble = started
    context = _page(organisation, form, now=now) | {"trouble": trouble, "may_pay": may(membership, *PAYERS)}
    return render(request, "billing/top_up.html", context)


@require_safe
@for_members(*EVERYONE)
def show_top_up(request: HttpRequest, membership: Membership, top_up_id: UUID) -> HttpResponse:
    """Show where a top-up stands. While it waits for a payment the page looks again by itself, a few times."""
    found = get_object_or_404(
        TopUp.objects.select_related("wallet"), pk=top_up_id, organisation=membership.organisation
    )
    looks = _looks(request)
    is_waiting = found.state in (TopUp.State.CREATED, TopUp.State.OPEN, TopUp.State.PROCESSING)
    looks_again = is_waiting and looks < len(LOOK_AFTER_SECONDS)
    context = {
        "top_up": found,
        "now": datetime.now(UTC),
        "is_waiting": is_waiting,
        "looks_again": looks_again,
        "credited_micros": _credited_micros(found),
        "whole_amount": f"{from_micros(found.amount_micros):.2f}",
        "may_pay": may(membership, *PAYERS),
    }
    response = render(request, "billing/top_up_state.html", context)
    if looks_again:
        response["Refresh"] = f"{LOOK_AFTER_SECONDS[looks]}; url={request.path}?look={looks + 1}"
    return response


@require_POST
@for_members(*PAYERS)
def ask_about_top_up(request: HttpRequest, membership: Membership, top_up_id: UUID) -> HttpResponse:
    """Ask the gateway now: for the payment page of a top-up that never got one, else whether the payment has come."""
    now = datetime.now(UTC)
    found = get_object_or_404(
        TopUp.objects.select_related("organisation"), pk=top_up_id, organisation=membership.organisation
    )
    try:
        if found.state == TopUp.State.CREATED:
            return _see_other(_way_on(open_checkout(found, now=now)))
        refresh_top_up(found, now=now)
    except GatewayError:
        messages.warning(request, _("The payment partner gave no answer that helps. Nothing was charged by asking."))
    return _see_other(_state_href(found))


def _start(request: HttpRequest, membership: Membership, form: TopUpForm, *, now: datetime) -> TopUp | Trouble | None:
    """Start the top-up of a form; return it, or why not. What is wrong with the form stands in the form."""
    try:
        return start_top_up(
            organisation=membership.organisation,
            currency=form.cleaned_data["currency"],
            amount=form.cleaned_data["amount"],
            created_by=membership.user,
            now=now,
            return_url_of=lambda row_id: request.build_absolute_uri(reverse("billing:top-up-state", args=[row_id])),
            locale=get_language() or "en",
            top_up_id=form.cleaned_data["ticket"],
        )
    except TopUpRefused as refusal:
        form.add_error(refusal.field, refusal.message)
        return None
    except TopUpsOff:
        return Trouble.OFF
    except GatewayUnavailable:  # the row is there: the same form goes on with it
        return Trouble.AWAY
    except GatewayRefused:
        form.renew()
        return Trouble.REFUSED
    except OtherTopUp:
        form.renew()
        return Trouble.USED


def _page(organisation: Organisation, form: TopUpForm, *, now: datetime) -> dict[str, Any]:
    if organisation.kind == Organisation.Kind.PROVIDER:
        return {"organisation": organisation}
    return {
        "organisation": organisation,
        "form": form,
        "currency": form["currency"].value(),
        "room": _room(organisation, now=now),
        "owing": [wallet for wallet in wallets_of(organisation.pk) if wallet.owed_micros],
        "recent": recent_top_ups(organisation, limit=_RECENT),
        "is_test": client.is_test(),
    }


def _room(organisation: Organisation, *, now: datetime) -> Room:
    history, limits = history_of(organisation, now=now), limits_in_force()
    tier = tier_of(history, limits.tiers)
    later = list(limits.tiers)[list(limits.tiers).index(tier) + 1 :]
    return Room(
        least_micros=limits.minimum_micros,
        most_micros=left_micros(history=history, limits=limits),
        tier=tier,
        next_tier=later[0] if later else None,
        day_micros=history.day_micros,
        week_micros=history.week_micros,
    )


def _wished(request: HttpRequest, organisation: Organisation) -> dict[str, Any]:
    """Return what the form starts with: what the address asks for, as far as it makes sense."""
    currency = request.GET.get("currency", "")
    if currency not in WALLET_CURRENCIES:
        currency = _HOME_CURRENCIES.get(organisation.country, WALLET_CURRENCIES[0])
    return {"currency": currency, "amount": _plain(request.GET.get("amount", ""))}


def _plain(text: str) -> str:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return ""
    return text if amount.is_finite() and amount > 0 and len(text) <= len("999999999.99") else ""


def _way_on(found: TopUp) -> str:
    """Return where a started top-up is paid, or where it says why not."""
    return found.checkout_url if found.state == TopUp.State.OPEN and found.checkout_url else _state_href(found)


def _state_href(found: TopUp) -> str:
    return reverse("billing:top-up-state", args=[found.pk])


def _see_other(href: str) -> HttpResponse:
    return HttpResponseRedirect(href, status=HTTPStatus.SEE_OTHER)  # whatever was sent, the next page is fetched


def _looks(request: HttpRequest) -> int:
    text = request.GET.get("look", "")
    return int(text) if text.isdecimal() and len(text) < 4 else 0


def _credited_micros(found: TopUp) -> int:
    """Return what reached the wallet; the rest of a paid top-up paid what was owed."""
    if found.credit_entry_id is None:
        return 0
    lines = Posting.objects.filter(entry_id=found.credit_entry_id, account_id=found.wallet_id)
    return sum(lines.values_list("amount_micros", flat=True))
