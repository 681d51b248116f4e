"""`/keys/`: the organisation's API keys. A new one's secret is on the answer to the form, and nowhere else.

It is never kept, so nothing but that answer can show it: no address, no session, no cache. Sending the form again,
as a reload offers to do, finds the key that its hidden id names and leads back to the list.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from allauth.account.decorators import reauthentication_required
from django import forms
from django.contrib import messages
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods
from uuid6 import uuid7

from users.access import OWNERS, for_members, may
from users.api_keys import (
    MOST_LIVE_KEYS,
    AlreadyExpired,
    IssuedKey,
    KeyAlreadyIssued,
    KeyRefused,
    NoScope,
    NotAMember,
    ScopeNotOpen,
    TooManyKeys,
    ended_keys_of,
    issue_key,
    live_keys_of,
    revoke_key,
    scopes_open_to,
)
from users.audit import ip_address_of
from users.models import ApiKey, Membership, Scope

MOST_ENDED_SHOWN = 20
SCOPES: dict[str, Promise] = {
    Scope.READ: _("read: see balances, statements, orders and rentals"),
    Scope.TRADE: _("trade: place and cancel orders, stop rentals"),
    Scope.BILLING: _("billing: top up and ask for refunds"),
    Scope.PROVIDER: _("provider: manage servers and listings"),
}
LIFETIMES = [(30, _("30 days")), (90, _("90 days")), (365, _("1 year")), (0, _("no end"))]
REFUSALS: dict[type[KeyRefused], tuple[str | None, Promise]] = {
    NoScope: ("scopes", _("Choose at least one scope.")),
    ScopeNotOpen: ("scopes", _("This scope is not for your kind of organisation.")),
    AlreadyExpired: ("lifetime", _("The key would be over before it began.")),
    NotAMember: (None, _("You do not belong to this organisation any more; no key was made.")),
    TooManyKeys: (None, _("An organisation can have 50 keys that work. Revoke one that you no longer need.")),
}


class KeyForm(forms.Form):
    """A key to make. Takes the organisation's `kind`."""

    name = forms.CharField(
        label=_("Name"),
        max_length=80,
        help_text=_("Where the key will be used, so that you know later which one to revoke."),
        validators=[RegexValidator(r"^[^\x00-\x1f\x7f]*\Z", _("Letters, digits and signs only."))],
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes: what the key may do"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one scope.")},
    )
    lifetime = forms.TypedChoiceField(label=_("Valid for"), choices=LIFETIMES, coerce=int, initial=90)
    key_id = forms.UUIDField(widget=forms.HiddenInput, initial=uuid7)

    def __init__(self, *args: Any, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["scopes"].choices = [(scope, SCOPES[scope]) for scope in scopes_open_to(kind)]  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*OWNERS)
def show_keys(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the keys; an owner makes one from here, after giving the password again."""
    if request.method == "POST":
        response: HttpResponse = _make(request, membership)
        return response
    return _page(request, membership, form=KeyForm(kind=membership.organisation.kind))


@reauthentication_required  # type: ignore[untyped-decorator]
def _make(request: HttpRequest, membership: Membership) -> HttpResponse:
    form = KeyForm(request.POST, kind=membership.organisation.kind)
    try:
        issued = _issued(request, membership, form) if form.is_valid() else None
    except KeyAlreadyIssued:
        messages.warning(
            request, _("This key was made before, and its secret was shown then. It cannot be shown again.")
        )
        return redirect("users:keys")
    if issued is not None:
        form = KeyForm(kind=membership.organisation.kind)
    return _page(request, membership, form=form, issued=issued)


def _issued(request: HttpRequest, membership: Membership, form: KeyForm) -> IssuedKey | None:
    now, wanted = datetime.now(UTC), form.cleaned_data
    try:
        return issue_key(
            organisation=membership.organisation,
            name=wanted["name"],
            scopes=wanted["scopes"],
            created_by=membership.user,
            expires_at=now + timedelta(days=wanted["lifetime"]) if wanted["lifetime"] else None,
            now=now,
            key_id=wanted["key_id"],
            ip_address=ip_address_of(request),
        )
    except KeyAlreadyIssued:
        raise
    except KeyRefused as refusal:
        field, message = REFUSALS[type(refusal)]
        form.add_error(field, str(message))
        return None


def _page(
    request: HttpRequest, membership: Membership, *, form: KeyForm, issued: IssuedKey | None = None
) -> HttpResponse:
    now, organisation = datetime.now(UTC), membership.organisation
    page = {
        "now": now,
        "organisation": organisation,
        "live_keys": list(live_keys_of(organisation, now=now)),
        "ended_keys": list(ended_keys_of(organisation, now=now)[:MOST_ENDED_SHOWN]),
        "form": form,
        "issued": issued,
        "may_change": may(membership, *OWNERS),
        "most_keys": MOST_LIVE_KEYS,
        "example_url": request.build_absolute_uri("/api/v1/wallets/"),
    }
    return render(request, "users/keys.html", page)


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*OWNERS)
def revoke(request: HttpRequest, membership: Membership, key_id: UUID) -> HttpResponse:
    """Ask whether to end a key; POST ends it."""
    key = get_object_or_404(ApiKey, pk=key_id, organisation=membership.organisation)
    if request.method != "POST":
        return render(request, "users/revoke_key.html", {"key": key, "may_change": may(membership, *OWNERS)})
    revoke_key(
        organisation=membership.organisation,
        key_id=key_id,
        now=datetime.now(UTC),
        revoked_by=membership.user,
        ip_address=ip_address_of(request),
    )
    messages.success(
        request, _("The key %(name)s was revoked. Requests with it are refused from now on.") % {"name": key.name}
    )
    return redirect("users:keys")
