"""`/provider/bank-account/`: where payouts go, changed by an owner who has just proved to be there."""

from datetime import UTC, datetime

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from marketplace.provider_forms import BankAccountForm, refuse
from marketplace.providers.bank_account import OPEN_IN, NotChangeable, change_bank_account
from marketplace.providers.fields import FieldRefused
from marketplace.providers.onboarding import onboarding_of
from marketplace.views.provider_access import for_providers
from users.access import OWNERS, may, with_second_factor
from users.audit import ip_address_of
from users.models import Membership


@require_http_methods(["GET", "HEAD", "POST"])
@for_providers(*OWNERS, tells_renters=True)
@with_second_factor
def show_bank_account(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show where payouts go, by its hint; an owner changes it from here, after giving the password again."""
    if request.method == "POST":
        response: HttpResponse = _change(request, membership)
        return response
    return _page(request, membership, form=BankAccountForm())


@reauthentication_required  # type: ignore[untyped-decorator]
def _change(request: HttpRequest, membership: Membership) -> HttpResponse:
    form = BankAccountForm(request.POST)
    if form.is_valid() and _changed(request, membership, form):
        return redirect("marketplace:provider-bank-account")
    return _page(request, membership, form=form)


def _changed(request: HttpRequest, membership: Membership, form: BankAccountForm) -> bool:
    try:
        is_new = change_bank_account(
            organisation_id=membership.organisation_id,
            account_holder=form.cleaned_data["account_holder"],
            iban=form.cleaned_data["iban"],
            by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except FieldRefused as refused:
        refuse(form, refused.field, refused.code)
        return False
    except NotChangeable:
        messages.error(
            request, _("The bank account cannot be changed here as the provider stands. Nothing was changed.")
        )
        return True
    words = _("The bank account was changed; every owner gets a mail.") if is_new else _("It is this one already.")
    messages.add_message(request, messages.SUCCESS if is_new else messages.INFO, words)
    return True


def _page(request: HttpRequest, membership: Membership, *, form: BankAccountForm) -> HttpResponse:
    onboarding = onboarding_of(membership.organisation, now=datetime.now(UTC))
    context = {
        "organisation": membership.organisation,
        "onboarding": onboarding,
        "form": form,
        "may_change": may(membership, *OWNERS) and onboarding.provider.state in OPEN_IN,
    }
    return render(request, "marketplace/provider/bank_account.html", context)
