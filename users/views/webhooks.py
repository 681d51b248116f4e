"""`/account/webhooks/`: endpoints, their secrets, what was sent to them and what they answered.

A secret is in the answer to the request that made it and nowhere else: no redirect, no session, no cache. Sending the
form again, as a reload offers to do, finds that the address is taken.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from allauth.account.decorators import reauthentication_required
from django import forms
from django.contrib import messages
from django.core.paginator import InvalidPage, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from users.access import EVERYONE, OWNERS, for_members, may
from users.audit import ip_address_of
from users.models import EventType, Membership, WebhookDelivery, WebhookEndpoint
from users.webhooks.addresses import LONGEST_URL, UrlRefused
from users.webhooks.endpoints import (
    MOST_ENDPOINTS,
    OVERLAP,
    EndpointRefused,
    NoMember,
    ShownSecret,
    TooManyEndpoints,
    UrlTaken,
    add_endpoint,
    remove_endpoint,
    replace_secret,
    switch_on,
)
from users.webhooks.log import KEPT_FOR, deliveries_of, endpoints_of
from users.webhooks.replay import EndpointOff, StillWaiting, send_again, send_test
from users.webhooks.sending import Fault
from users.webhooks.signing import message_of
from users.webhooks.words import FAULTS, URL_REFUSALS

PER_PAGE = 25
REFUSALS: dict[type[EndpointRefused], tuple[str | None, Promise]] = {
    UrlTaken: ("url", _("This address is there already. Its secret was shown when it was added; it can be replaced.")),
    TooManyEndpoints: (None, _("An organisation can have 10 webhooks. Remove one that you no longer need.")),
    NoMember: (None, _("You do not belong to this organisation any more; nothing was added.")),
}
_OFF = _("This webhook is switched off. Switch it on first.")


class EndpointForm(forms.Form):
    """A webhook to add."""

    url = forms.CharField(
        label=_("Address"),
        max_length=LONGEST_URL,
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("A public https address, such as https://example.com/hook."),
    )
    types = forms.MultipleChoiceField(
        label=_("Events"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one event.")},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["types"].choices = [(kind.value, _choice(kind)) for kind in EventType]  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*OWNERS)
def show_webhooks(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the webhooks; an owner adds one from here, after giving the password again."""
    if request.method == "POST":
        response: HttpResponse = _add(request, membership)
        return response
    return _list(request, membership, form=EndpointForm())


@reauthentication_required  # type: ignore[untyped-decorator]
def _add(request: HttpRequest, membership: Membership) -> HttpResponse:
    form = EndpointForm(request.POST)
    shown = _added(request, membership, form) if form.is_valid() else None
    return _list(request, membership, form=EndpointForm() if shown else form, shown=shown)


def _added(request: HttpRequest, membership: Membership, form: EndpointForm) -> ShownSecret | None:
    try:
        return add_endpoint(
            organisation=membership.organisation,
            url=form.cleaned_data["url"],
            types=form.cleaned_data["types"],
            created_by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except UrlRefused as refusal:
        form.add_error("url", str(URL_REFUSALS[refusal.code]))
    except EndpointRefused as refusal:
        field, message = REFUSALS[type(refusal)]
        form.add_error(field, str(message))
    return None


def _list(
    request: HttpRequest, membership: Membership, *, form: EndpointForm, shown: ShownSecret | None = None
) -> HttpResponse:
    page = {
        "now": datetime.now(UTC),
        "organisation": membership.organisation,
        "endpoints": list(endpoints_of(membership.organisation)),
        "form": form,
        "shown": shown,
        "may_change": may(membership, *OWNERS),
        "most_endpoints": MOST_ENDPOINTS,
    }
    return render(request, "users/webhooks.html", page)


@require_safe
@for_members(*EVERYONE)
def show_webhook(request: HttpRequest, membership: Membership, endpoint_id: UUID) -> HttpResponse:
    """Show one webhook and its log; a page of the log that is not there is a 404."""
    return _detail(request, membership, endpoint_id)


@require_POST
@for_members(*OWNERS)
def replace_webhook_secret(request: HttpRequest, membership: Membership, endpoint_id: UUID) -> HttpResponse:
    """Give a webhook another secret, after the password was given again, and show it once."""
    response: HttpResponse = _replace(request, membership, endpoint_id)
    return response


@reauthentication_required  # type: ignore[untyped-decorator]
def _replace(request: HttpRequest, membership: Membership, endpoint_id: UUID) -> HttpResponse:
    endpoint = _own(membership, endpoint_id)
    shown = replace_secret(
        organisation=membership.organisation,
        endpoint_id=endpoint.pk,
        now=datetime.now(UTC),
        replaced_by=membership.user,
        ip_address=ip_address_of(request),
    )
    return _detail(request, membership, endpoint_id, shown=shown)


def _detail(
    request: HttpRequest, membership: Membership, endpoint_id: UUID, *, shown: ShownSecret | None = None
) -> HttpResponse:
    endpoint = _own(membership, endpoint_id)
    try:
        log = Paginator(deliveries_of(endpoint), PER_PAGE).page(request.GET.get("page", 1))
    except InvalidPage:
        raise Http404 from None
    page = {
        "now": datetime.now(UTC),
        "endpoint": endpoint,
        "page": log,
        "shown": shown,
        "may_change": may(membership, *OWNERS),
        "kept_days": KEPT_FOR.days,
        "overlap_hours": OVERLAP // timedelta(hours=1),
    }
    return render(request, "users/webhook.html", page)


@require_safe
@for_members(*EVERYONE)
def show_delivery(request: HttpRequest, membership: Membership, endpoint_id: UUID, event_id: UUID) -> HttpResponse:
    """Show one message as it is sent, and every answer to it."""
    endpoint = _own(membership, endpoint_id)
    delivery = get_object_or_404(deliveries_of(endpoint), event_id=event_id)
    page = {
        "endpoint": endpoint,
        "delivery": delivery,
        "message": json.dumps(message_of(delivery.event), indent=2, ensure_ascii=False),
        "attempts": [(attempt, FAULTS.get(Fault(attempt.fault), "")) for attempt in delivery.attempts.all()],
        "may_change": may(membership, *OWNERS),
    }
    return render(request, "users/webhook_delivery.html", page)


@require_POST
@for_members(*OWNERS)
def send_delivery_again(
    request: HttpRequest, membership: Membership, endpoint_id: UUID, event_id: UUID
) -> HttpResponse:
    """Send a message again."""
    own: Mapping[str, Any] = {"organisation": membership.organisation, "endpoint_id": endpoint_id}
    try:
        send_again(**own, event_id=event_id, now=datetime.now(UTC))
    except (WebhookEndpoint.DoesNotExist, WebhookDelivery.DoesNotExist):
        raise Http404 from None
    except EndpointOff:
        messages.error(request, _OFF)
    else:
        messages.success(request, _("It is sent again within seconds. Reload this page to see the answer."))
    return redirect("users:webhook-delivery", endpoint_id, event_id)


@require_POST
@for_members(*OWNERS)
def test_webhook(request: HttpRequest, membership: Membership, endpoint_id: UUID) -> HttpResponse:
    """Send a test event."""
    try:
        send_test(organisation=membership.organisation, endpoint_id=endpoint_id, now=datetime.now(UTC))
    except WebhookEndpoint.DoesNotExist:
        raise Http404 from None
    except EndpointOff:
        messages.error(request, _OFF)
    except StillWaiting:
        messages.warning(request, _("The test event before has not been sent yet. Reload this page in a few seconds."))
    else:
        messages.success(request, _("A test event is sent within seconds. Reload this page to see the answer."))
    return redirect("users:webhook", endpoint_id)


@require_POST
@for_members(*OWNERS)
def switch_webhook_on(request: HttpRequest, membership: Membership, endpoint_id: UUID) -> HttpResponse:
    """Tell a webhook again from now on."""
    switch_on(
        organisation=membership.organisation,
        endpoint_id=_own(membership, endpoint_id).pk,
        now=datetime.now(UTC),
        switched_by=membership.user,
        ip_address=ip_address_of(request),
    )
    messages.success(request, _("Switched on. It is told what happens from now on."))
    return redirect("users:webhook", endpoint_id)


@require_http_methods(["GET", "HEAD", "POST"])
@for_members(*OWNERS)
def remove_webhook(request: HttpRequest, membership: Membership, endpoint_id: UUID) -> HttpResponse:
    """Ask whether to remove a webhook; POST removes it."""
    endpoint = _own(membership, endpoint_id)
    if request.method != "POST":
        return render(
            request, "users/remove_webhook.html", {"endpoint": endpoint, "may_change": may(membership, *OWNERS)}
        )
    remove_endpoint(
        organisation=membership.organisation,
        endpoint_id=endpoint_id,
        now=datetime.now(UTC),
        removed_by=membership.user,
        ip_address=ip_address_of(request),
    )
    messages.success(request, _("The webhook was removed with its log. Nothing more is sent to it."))
    return redirect("users:webhooks")


def _own(membership: Membership, endpoint_id: UUID) -> WebhookEndpoint:
    return get_object_or_404(endpoints_of(membership.organisation), pk=endpoint_id)


def _choice(kind: EventType) -> str:
    return f"{kind.value}: {kind.label}"
