"""`/operator/top-ups/` and `/operator/disputes/`: payments, what waits for a person, and freezing organisations."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import InvalidPage, Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.models import TopUp
from billing.reconcile import attention
from billing.reconcile.close import last_closes
from billing.reconcile.retry import retry_event
from billing.reconcile.transactions import unmatched_transactions
from users.access import for_operators, person_of
from users.audit import ip_address_of
from users.freezing import freeze, unfreeze
from users.models import Organisation

PER_PAGE = 50
FREEZE, UNFREEZE = "freeze", "unfreeze"


class DecisionForm(forms.Form):
    """Freezing an organisation, or lifting that. The reason is mailed to its owners and kept."""

    decision = forms.ChoiceField(choices=[(FREEZE, FREEZE), (UNFREEZE, UNFREEZE)], widget=forms.HiddenInput)
    organisation = forms.ModelChoiceField(
        Organisation.objects.all(),
        label=gettext_lazy("Number of the organisation"),
        widget=forms.NumberInput(attrs={"min": 1}),
        error_messages={"invalid_choice": gettext_lazy("There is no organisation with this number.")},
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=500,
        help_text=gettext_lazy("Its owners read it in their mail, and it is kept with the decision."),
    )


@for_operators
@require_safe
def show_top_ups(request: HttpRequest) -> HttpResponse:
    """Show top-ups by state, movements without an entry, messages not applied, and the last daily close."""
    state = request.GET.get("state", "")
    if state and state not in TopUp.State.values:
        raise Http404
    counts = attention.top_ups_by_state()
    context = {
        "now": datetime.now(UTC),
        "state": state,
        "states": [(value, label, counts[value]) for value, label in TopUp.State.choices],
        "page": _page(request, attention.top_ups(state)),
        "set_aside": attention.waiting_payments(),
        "unmatched": unmatched_transactions(),
        "events": attention.waiting_events(),
        "closes": last_closes(),
    }
    return render(request, "billing/operator_topups.html", context)


@for_operators
@require_POST
def try_event_again(request: HttpRequest, event_pk: int) -> HttpResponse:
    """Have a message of the gateway applied again, at once."""
    retried = retry_event(
        event_pk=event_pk,
        operator=person_of(request),
        ip_address=ip_address_of(request),
        now=datetime.now(UTC),
    )
    if retried:
        messages.success(request, _("The message is due again and will be applied within seconds."))
    else:
        messages.info(request, _("The message is applied already."))
    return redirect("billing:operator-top-ups")


@for_operators
@require_http_methods(["GET", "HEAD", "POST"])
def show_disputes(request: HttpRequest) -> HttpResponse:
    """Show disputes and frozen organisations; an operator freezes one from here, or lifts that, with a reason."""
    form = DecisionForm(request.POST or None, initial={"decision": FREEZE})
    if request.method == "POST" and form.is_valid():
        _decide(request, form.cleaned_data)
        return redirect("billing:operator-disputes")
    context = {
        "now": datetime.now(UTC),
        "page": _page(request, attention.disputes()),
        "frozen": attention.frozen_organisations(),
        "form": form,
    }
    return render(request, "billing/operator_disputes.html", context)


def _decide(request: HttpRequest, decided: dict[str, Any]) -> None:
    organisation, reason = decided["organisation"], decided["reason"]
    operator, now = person_of(request), datetime.now(UTC)
    if decided["decision"] == FREEZE:
        changed = freeze(organisation_id=organisation.pk, operator=operator, reason=reason, now=now)
        words = _("%s is frozen.") if changed else _("%s is frozen already; nothing was changed.")
    else:
        changed = unfreeze(organisation_id=organisation.pk, operator=operator, reason=reason, now=now)
        words = _("%s is no longer frozen.") if changed else _("%s is not frozen; nothing was changed.")
    messages.add_message(request, messages.SUCCESS if changed else messages.INFO, words % organisation.name)


def _page(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    """Return the page asked for; one that is not there is a 404."""
    try:
        return Paginator(rows, PER_PAGE).page(request.GET.get("page", 1))
    except InvalidPage:
        raise Http404 from None
