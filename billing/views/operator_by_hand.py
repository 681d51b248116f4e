"""Decisions of an operator about money that fits nothing: each with its reason, each once."""

from datetime import UTC, datetime

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from billing.accounts import UnknownCurrency
from billing.gateway import client
from billing.gateway.errors import GatewayError, NoSuchObject
from billing.reconcile.by_hand import AlreadyExplained, Meant, explain_movement
from billing.topups.settle_by_hand import (
    Elsewhere,
    NothingWaits,
    NotProven,
    ReasonMissing,
    clear_set_aside,
    credit_set_aside,
)
from users.access import for_operators, person_of
from users.audit import ip_address_of

CREDIT = "credit"
_NOT_PROVEN = {
    "status": gettext_lazy("At the payment provider this payment has not succeeded. Nothing was credited."),
    "customer": gettext_lazy("The payment names no customer of ours: it proves nobody's. Nothing was credited."),
    "organisation": gettext_lazy("Another organisation paid than the one whose top-up it names. Nothing was credited."),
    "amount": gettext_lazy("Part of the payment has gone already: it cannot be credited whole. Nothing was credited."),
}


class ByHandForm(forms.Form):
    """What an operator decides about money that fits nothing, and why."""

    decision = forms.CharField(max_length=20)
    reason = forms.CharField(max_length=500)


@for_operators
@require_POST
def settle_payment(request: HttpRequest, payment_id: str) -> HttpResponse:
    """Credit a payment that was set aside, or say where else its money went."""
    form = ByHandForm(request.POST)
    if not form.is_valid() or form.cleaned_data["decision"] not in (CREDIT, *Elsewhere):
        messages.error(request, _("Choose what happened and give a reason; nothing was changed."))
        return redirect("billing:operator-top-ups")
    try:
        words = _settle(request, payment_id, form.cleaned_data["decision"], form.cleaned_data["reason"])
    except NotProven as refused:
        messages.error(request, str(_NOT_PROVEN[refused.why]))
    except NothingWaits:
        messages.info(request, _("Nothing of this payment waits any more; nothing was changed."))
    except NoSuchObject:
        messages.error(request, _("The payment provider does not know this payment. Nothing was credited."))
    except GatewayError:
        messages.error(request, _("The payment provider does not answer just now. Nothing was credited."))
    else:
        messages.success(request, words)
    return redirect("billing:operator-top-ups")


@for_operators
@require_POST
def settle_movement(request: HttpRequest, movement_pk: int) -> HttpResponse:
    """Say what a movement is that fits no entry."""
    form = ByHandForm(request.POST)
    if not form.is_valid() or form.cleaned_data["decision"] not in list(Meant):
        messages.error(request, _("Choose what happened and give a reason; nothing was changed."))
        return redirect("billing:operator-top-ups")
    try:
        explain_movement(
            movement_pk=movement_pk,
            meant=Meant(form.cleaned_data["decision"]),
            operator=person_of(request),
            reason=form.cleaned_data["reason"],
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except ReasonMissing:
        messages.error(request, _("Choose what happened and give a reason; nothing was changed."))
    except AlreadyExplained:
        messages.info(request, _("The movement has its entry already; nothing was changed."))
    except UnknownCurrency:
        messages.error(request, _("No account of ours is kept in this currency; nothing was changed."))
    else:
        messages.success(request, _("Posted, and written down."))
    return redirect("billing:operator-top-ups")


def _settle(request: HttpRequest, payment_id: str, decision: str, reason: str) -> str:
    operator, now, ip_address = person_of(request), datetime.now(UTC), ip_address_of(request)
    if decision != CREDIT:
        clear_set_aside(
            payment_id=payment_id,
            elsewhere=Elsewhere(decision),
            operator=operator,
            reason=reason,
            now=now,
            ip_address=ip_address,
        )
        return _("Posted, and written down.")
    top_up = credit_set_aside(
        payment=client.get_payment(payment_id), operator=operator, reason=reason, now=now, ip_address=ip_address
    )
    return _("Credited to %s, and written down.") % top_up.organisation.name
