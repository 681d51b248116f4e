"""`/operator/`: all that waits for an operator, with counts; applications, servers, and a stop of the books to lift."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import InvalidPage, Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.books import NotStopped, open_stop, past_stops
from marketplace.models import Provider
from marketplace.provider_forms import FIELD_WORDS, ReasonForm
from marketplace.providers.application import Incomplete, value_of
from marketplace.providers.decisions import decide_on_server, release_books
from marketplace.providers.fleet import ServerUnknown
from marketplace.providers.missing import APPLICATION
from marketplace.providers.onboarding import onboarding_of
from marketplace.providers.review import ProviderBusy, ReasonMissing, decide_on_provider
from marketplace.providers.states import NEEDS_A_REASON, Step, StepRefused, steps_open_to_operators
from marketplace.queries.operator_counts import operator_counts
from marketplace.queries.servers import (
    SERVER_STATES,
    providers_by_state,
    providers_in,
    servers_by_state,
    servers_in,
    servers_of,
)
from users.access import for_operators, person_of
from users.audit import ip_address_of
from users.second_factor import lacks_second_factor

PER_PAGE = 50
VERIFY, UNVERIFY = "verify", "unverify"


@for_operators
@require_safe
def show_operator(request: HttpRequest) -> HttpResponse:
    """Show what there is to decide, with counts, and where."""
    now = datetime.now(UTC)
    context = {"now": now, "counts": operator_counts(now=now), "lacks_second_step": lacks_second_factor(request)}
    return render(request, "marketplace/operator/index.html", context)


@for_operators
@require_safe
def list_applications(request: HttpRequest) -> HttpResponse:
    """Show providers by state, what waits for review first."""
    state, counts = _state(request, Provider.State.values), providers_by_state()
    context = {
        "state": state,
        "states": [(value, label, counts[value]) for value, label in Provider.State.choices],
        "page": _page(request, providers_in(state)),
    }
    return render(request, "marketplace/operator/applications.html", context)


@for_operators
@require_http_methods(["GET", "HEAD", "POST"])
def show_application(request: HttpRequest, provider_id: int) -> HttpResponse:
    """Show a provider with all it said; an operator decides from here, with a reason."""
    provider = get_object_or_404(Provider.objects.select_related("organisation"), pk=provider_id)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _decided(request, provider_id, form):
        return redirect("marketplace:operator-application", provider_id)
    onboarding = onboarding_of(provider.organisation, now=datetime.now(UTC))
    application = onboarding.application
    context = {
        "now": datetime.now(UTC),
        "onboarding": onboarding,
        "organisation": provider.organisation,
        "application": application,
        "fields": [(FIELD_WORDS[name], value_of(application, name)) for name in APPLICATION] if application else [],
        "is_other_holder": application is not None and application.account_holder != application.company_name,
        "missing": [FIELD_WORDS[name] for name in onboarding.missing],
        "servers": servers_of(provider_id),
        "steps": [(step.value, step in NEEDS_A_REASON) for step in steps_open_to_operators(onboarding.provider.state)],
        "form": form,
    }
    return render(request, "marketplace/operator/application.html", context)


@for_operators
@require_safe
def list_servers(request: HttpRequest) -> HttpResponse:
    """Show every provider's servers by state, what waits for a check first."""
    state, counts = _state(request, SERVER_STATES), servers_by_state()
    page = _page(request, servers_in(state))
    context = {"now": datetime.now(UTC), "state": state, "counts": counts, "page": page}
    return render(request, "marketplace/operator/servers.html", context)


@for_operators
@require_POST
def decide_server(request: HttpRequest, server_id: UUID) -> HttpResponse:
    """Verify a server, or take that back, with a reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid() or form.cleaned_data["decision"] not in (VERIFY, UNVERIFY):
        messages.error(request, _("There is no such decision; nothing was changed."))
        return redirect("marketplace:operator-servers")
    try:
        changed = decide_on_server(
            server_id=server_id,
            is_verified=form.cleaned_data["decision"] == VERIFY,
            operator=person_of(request),
            reason=form.cleaned_data["reason"],
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except ServerUnknown:
        raise Http404 from None
    except ReasonMissing:
        messages.error(request, _("Give a reason; nothing was changed."))
    else:
        words = _("Decided and written down.") if changed else _("It stands like that already; nothing was changed.")
        messages.add_message(request, messages.SUCCESS if changed else messages.INFO, words)
    return redirect("marketplace:operator-servers")


@for_operators
@require_http_methods(["GET", "HEAD", "POST"])
def show_breaches(request: HttpRequest) -> HttpResponse:
    """Show the stop of the books that is in force; an operator lifts it from here, with a reason."""
    form = ReasonForm(request.POST or None, initial={"decision": "lift"})
    if request.method == "POST" and form.is_valid() and _released(request, form):
        return redirect("marketplace:operator-breaches")
    context = {"now": datetime.now(UTC), "stop": open_stop(), "past": past_stops(), "form": form}
    return render(request, "marketplace/operator/breaches.html", context)


def _decided(request: HttpRequest, provider_id: int, form: ReasonForm) -> bool:
    try:
        decide_on_provider(
            provider_id=provider_id,
            step=Step(form.cleaned_data["decision"]),
            operator=person_of(request),
            reason=form.cleaned_data["reason"],
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except ReasonMissing:
        form.add_error("reason", _("Give a reason: the owners read it."))
    except (StepRefused, ValueError):
        form.add_error(None, _("This is not open to the provider as it stands now. Nothing was changed."))
    except Incomplete:
        form.add_error(None, _("The application lacks something: it cannot be approved. Nothing was changed."))
    except ProviderBusy:
        form.add_error(None, _("A rental is open on one of its servers: suspend it first. Nothing was changed."))
    else:
        messages.success(request, _("Decided, written down, and mailed to the owners."))
        return True
    return False


def _released(request: HttpRequest, form: ReasonForm) -> bool:
    try:
        release_books(
            operator=person_of(request),
            reason=form.cleaned_data["reason"],
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except ReasonMissing:
        form.add_error("reason", _("Give a reason: it is kept with the stop."))
        return False
    except NotStopped:
        messages.info(request, _("The books are not stopped; nothing was changed."))
    else:
        messages.success(request, _("New money may leave again."))
    return True


def _state(request: HttpRequest, known: Any) -> str:
    state = request.GET.get("state", "")
    if state and state not in known:
        raise Http404
    return state


def _page(request: HttpRequest, rows: QuerySet[Any, Any]) -> Page[Any]:
    """Return the page asked for; one that is not there is a 404."""
    try:
        return Paginator(rows, PER_PAGE).page(request.GET.get("page", 1))
    except InvalidPage:
        raise Http404 from None
