"""`/account/`: how a person signs in, and the organisation they act for."""

from datetime import UTC, datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from users.access import OWNERS, may, person_of
from users.address import Address, change_address
from users.audit import ip_address_of
from users.forms import AddressForm
from users.models import Membership
from users.sign_in import sign_in_of


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def show_account(request: HttpRequest) -> HttpResponse:
    """Show both; POST changes the organisation's address. An operator without an organisation sees the person alone."""
    person = person_of(request)
    membership = Membership.objects.select_related("organisation").filter(user=person).first()
    is_owner = membership is not None and may(membership, *OWNERS)
    form = AddressForm(request.POST or None, instance=membership.organisation if membership else None)
    if request.method == "POST":
        if membership is None or not is_owner:
            raise PermissionDenied
        if form.is_valid():
            change_address(
                organisation_id=membership.organisation_id,
                address=Address(**form.cleaned_data),
                changed_by=person,
                now=datetime.now(UTC),
                ip_address=ip_address_of(request),
            )
            messages.success(request, _("The address was changed."))
            return redirect("users:account")
    page = {"sign_in": sign_in_of(person), "membership": membership, "is_owner": is_owner, "form": form}
    return render(request, "users/account.html", page)
