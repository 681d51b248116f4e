"""`/provider/`: where a company that sells stands, its application, and the terms it agrees to."""

from datetime import UTC, datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from marketplace import provider_terms
from marketplace.models import Provider
from marketplace.provider_forms import FIELD_WORDS, ApplicationForm, refuse
from marketplace.providers.application import (
    ApplicationLocked,
    Incomplete,
    save_application,
    submit_application,
    take_application_back,
)
from marketplace.providers.fields import FieldRefused
from marketplace.providers.missing import APPLICATION, SELF_BILLING, TERMS
from marketplace.providers.onboarding import Onboarding, onboarding_of
from marketplace.providers.states import StepRefused
from marketplace.queries.earnings import earned, use_of_servers
from marketplace.views.provider_access import for_providers
from users.access import EVERYONE, OWNERS, may
from users.audit import ip_address_of
from users.models import Membership, Organisation

SUBMIT = "send"


@require_safe
@for_providers(*EVERYONE, tells_renters=True)
def show_provider(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show where the provider stands: what is missing, what sells, what was earned."""
    now = datetime.now(UTC)
    onboarding = onboarding_of(membership.organisation, now=now)
    context = {
        "now": now,
        "organisation": membership.organisation,
        "onboarding": onboarding,
        "missing": [FIELD_WORDS[name] for name in onboarding.missing],
        "earned": earned(membership.organisation_id),
        "uses": use_of_servers(membership.organisation_id, now=now),
        "may_apply": may(membership, *OWNERS),
    }
    return render(request, "marketplace/provider/overview.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@for_providers(*OWNERS, tells_renters=True)
def show_application(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the application; an owner saves it from here, or sends it for review."""
    onboarding = onboarding_of(membership.organisation, now=datetime.now(UTC))
    form = _form(request, membership.organisation, onboarding)
    if request.method == "POST" and form.is_valid() and _saved(request, membership, form):
        return redirect("marketplace:provider-application")
    context = {
        "now": datetime.now(UTC),
        "organisation": membership.organisation,
        "onboarding": onboarding,
        "form": form,
        "terms_in_force": provider_terms,
        "missing": [(name, FIELD_WORDS[name]) for name in onboarding.missing],
        "may_apply": may(membership, *OWNERS),
        "is_draft": onboarding.provider.state == Provider.State.DRAFT,
    }
    return render(request, "marketplace/provider/application.html", context)


@require_POST
@for_providers(*OWNERS)
def take_back(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Make a draft again of what waits for review."""
    try:
        take_application_back(
            organisation_id=membership.organisation_id,
            by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except StepRefused:
        messages.info(request, _("The application does not wait for a review; nothing was changed."))
    else:
        messages.success(request, _("The application is a draft again."))
    return redirect("marketplace:provider-application")


@require_safe
def show_terms(request: HttpRequest) -> HttpResponse:
    """Show the provider terms and the self-billing agreement in force."""
    return render(request, "marketplace/provider/terms.html", {"terms_in_force": provider_terms})


def _form(request: HttpRequest, organisation: Organisation, onboarding: Onboarding) -> ApplicationForm:
    application = onboarding.application
    typed = application or organisation
    initial = {name: getattr(typed, name, "") for name in APPLICATION if name != "iban"}
    if application is None:
        initial |= {"company_name": organisation.name}
    agreed = {TERMS, SELF_BILLING} - set(onboarding.missing)
    hint = application.iban_hint if application else ""
    return ApplicationForm(request.POST or None, initial=initial, agreed=agreed, iban_hint=hint)


def _saved(request: HttpRequest, membership: Membership, form: ApplicationForm) -> bool:
    organisation_id, now, ip_address = membership.organisation_id, datetime.now(UTC), ip_address_of(request)
    try:
        save_application(
            organisation_id=organisation_id,
            changes=form.changes(),
            agrees_to=form.agrees_to(),
            by=membership.user,
            now=now,
            ip_address=ip_address,
        )
        if SUBMIT in request.POST:
            submit_application(organisation_id=organisation_id, by=membership.user, now=now, ip_address=ip_address)
    except FieldRefused as refused:
        refuse(form, refused.field, refused.code)
        return False
    except Incomplete:
        messages.warning(request, _("Saved, but not sent: what is missing is named below."))
    except (ApplicationLocked, StepRefused):
        messages.error(request, _("The application is no draft any more. Nothing was changed."))
    else:
        sent = SUBMIT in request.POST
        messages.success(request, _("Sent for review. We answer by mail.") if sent else _("Saved."))
    return True
