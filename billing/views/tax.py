"""`/account/tax/`: what will be charged and why, before any money moves; owners change what it hangs on."""

from datetime import UTC, datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from billing.tax.check_vat_ids import AskedTooSoon, check_now
from billing.tax.details import tell_and_check
from billing.tax.form import TaxForm
from billing.tax.queries import tax_page
from billing.tax.seller import vat_register
from users.access import OWNERS, for_members, may
from users.audit import ip_address_of
from users.models import Membership


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*OWNERS)
def show_tax(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the tax of the organisation; an owner changes it from here."""
    now = datetime.now(UTC)
    page = tax_page(membership.organisation, now=now)
    form = TaxForm(request.POST or None, details=page.details)
    if request.method == "POST" and form.is_valid():
        is_changed = _save(request, membership, form, now=now)
        messages.success(request, _("Saved.") if is_changed else _("Nothing was changed."))
        return redirect("billing:tax")
    context = {
        "page": page,
        "form": form,
        "organisation": membership.organisation,
        "now": now,
        "may_change": may(membership, *OWNERS),
    }
    return render(request, "billing/tax.html", context)


def _save(request: HttpRequest, membership: Membership, form: TaxForm, *, now: datetime) -> bool:
    with vat_register() as register:
        return tell_and_check(
            organisation_id=membership.organisation_id,
            told=form.told(),
            told_by=membership.user,
            register=register,
            now=now,
            ip_address=ip_address_of(request),
        )


@require_POST
@for_members(*OWNERS)
def check_vat_id(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Ask the register about the organisation's number now."""
    try:
        with vat_register() as register:
            check_now(organisation_id=membership.organisation_id, register=register, now=datetime.now(UTC))
    except AskedTooSoon:
        messages.warning(request, _("The register was asked less than a minute ago. Try again shortly."))
    return redirect("billing:tax")
