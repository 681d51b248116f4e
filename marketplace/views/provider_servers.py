"""`/provider/servers/`: the provider's servers, and of each its listing, its enrol token, its end."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from catalog.models import BestAsk
from marketplace.listings import AlreadyListed, ListingUnknown, TermsRefused
from marketplace.models import Listing, Server
from marketplace.provider_forms import OfferForm, ServerForm, refuse
from marketplace.providers.enrol_tokens import issue_enrol_token
from marketplace.providers.fleet import (
    MachineRefused,
    ServerUnknown,
    add_server,
    change_offer,
    pause_offer,
    put_up,
    resume_offer,
    take_server_away,
)
from marketplace.providers.onboarding import onboarding_of
from marketplace.queries.earnings import fills_of_30_days
from marketplace.queries.servers import present_listing, servers_of
from marketplace.servers import DeviceKnown, NameTaken, NotApproved, ServerBusy
from marketplace.views.provider_access import for_providers
from users.access import EVERYONE, TRADERS, may
from users.audit import ip_address_of
from users.models import Membership

_NOT_APPROVED = _("Only an approved provider does this. The overview says what is missing. Nothing was changed.")


@require_safe
@for_providers(*EVERYONE, tells_renters=True)
def list_own_servers(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the servers with what each lacks."""
    now = datetime.now(UTC)
    servers = [
        {"server": server, "listing": present_listing(server), "is_heard": server.was_heard(now)}
        for server in servers_of(membership.organisation_id)
    ]
    context = {
        "now": now,
        "organisation": membership.organisation,
        "onboarding": onboarding_of(membership.organisation, now=now),
        "rows": servers,
        "may_change": may(membership, *TRADERS),
    }
    return render(request, "marketplace/provider/servers.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@for_providers(*TRADERS, tells_renters=True)
def new_server(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the form of a server; adding it leads to its page."""
    form = ServerForm(request.POST or None, country=membership.organisation.country)
    if request.method == "POST" and form.is_valid():
        server_id = _added(request, membership, form)
        if server_id is not None:
            return redirect("marketplace:provider-server", server_id)
    context = {
        "form": form,
        "onboarding": onboarding_of(membership.organisation, now=datetime.now(UTC)),
        "may_change": may(membership, *TRADERS),
    }
    return render(request, "marketplace/provider/new_server.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@for_providers(*TRADERS)
def show_server(request: HttpRequest, membership: Membership, server_id: UUID) -> HttpResponse:
    """Show a server; its terms are set or changed from here."""
    server = get_object_or_404(servers_of(membership.organisation_id), pk=server_id)
    form = OfferForm(request.POST or None, devices=server.device_count, listing=present_listing(server))
    if request.method == "POST" and form.is_valid() and _offered(request, membership, server, form):
        return redirect("marketplace:provider-server", server_id)
    return _page(request, membership, server_id, form=form)


@require_POST
@for_providers(*TRADERS)
def issue_token(request: HttpRequest, membership: Membership, server_id: UUID) -> HttpResponse:
    """Issue an enrol token and show it: this answer is the only place where it ever stands."""
    try:
        issued = issue_enrol_token(
            organisation_id=membership.organisation_id,
            server_id=server_id,
            by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except ServerUnknown:
        raise Http404 from None
    except NotApproved:
        messages.error(request, _NOT_APPROVED)
        return redirect("marketplace:provider-server", server_id)
    return _page(request, membership, server_id, issued=issued)


@require_POST
@for_providers(*TRADERS)
def withdraw(request: HttpRequest, membership: Membership, server_id: UUID) -> HttpResponse:
    """Take a server away for good."""
    try:
        take_server_away(
            organisation_id=membership.organisation_id,
            server_id=server_id,
            by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        )
    except ServerUnknown:
        raise Http404 from None
    except ServerBusy:
        messages.error(request, _("A rental is open on this server: pause its listing and wait. Nothing was changed."))
    else:
        messages.success(request, _("The server is withdrawn."))
    return redirect("marketplace:provider-server", server_id)


@require_POST
@for_providers(*TRADERS)
def pause(request: HttpRequest, membership: Membership, server_id: UUID) -> HttpResponse:
    """Sell nothing more of a server for now."""
    return _set(request, membership, server_id, pause_offer, _("Paused. What is sold goes on."))


@require_POST
@for_providers(*TRADERS)
def resume(request: HttpRequest, membership: Membership, server_id: UUID) -> HttpResponse:
    """Sell a server again."""
    return _set(request, membership, server_id, resume_offer, _("For rent again, at its old place in line."))


def _set(
    request: HttpRequest, membership: Membership, server_id: UUID, change: Callable[..., Listing], words: Promise
) -> HttpResponse:
    server = get_object_or_404(servers_of(membership.organisation_id), pk=server_id)
    listing = present_listing(server)
    if listing is None:
        raise Http404
    try:
        change(organisation_id=membership.organisation_id, listing_id=listing.pk, now=datetime.now(UTC))
    except ListingUnknown:
        raise Http404 from None
    except NotApproved:
        messages.error(request, _NOT_APPROVED)
    else:
        messages.success(request, str(words))
    return redirect("marketplace:provider-server", server_id)


def _added(request: HttpRequest, membership: Membership, form: ServerForm) -> UUID | None:
    try:
        return add_server(
            organisation_id=membership.organisation_id,
            machine=form.machine(),
            by=membership.user,
            now=datetime.now(UTC),
            ip_address=ip_address_of(request),
        ).pk
    except MachineRefused as refused:
        refuse(form, refused.field, refused.code)
    except DeviceKnown:
        form.add_error("device_uuids", str(_("A server with one of these devices is here already.")))
    except NameTaken:
        form.add_error("name", str(_("You have a server of this name.")))
    except NotApproved:
        form.add_error(None, str(_NOT_APPROVED))
    return None


def _offered(request: HttpRequest, membership: Membership, server: Server, form: OfferForm) -> bool:
    now, organisation_id = datetime.now(UTC), membership.organisation_id
    listing = present_listing(server)
    try:
        if listing is None:
            put_up(organisation_id=organisation_id, server_id=server.pk, offered=form.offered(), now=now)
        else:
            change_offer(organisation_id=organisation_id, listing_id=listing.pk, offered=form.offered(), now=now)
    except TermsRefused as refused:
        refuse(form, refused.field, refused.code)
    except NotApproved:
        form.add_error(None, str(_NOT_APPROVED))
    except (AlreadyListed, ServerUnknown, ListingUnknown):
        form.add_error(None, str(_("The server or its listing changed meanwhile. Look again; nothing was changed.")))
    else:
        messages.success(request, _("The server is listed.") if listing is None else _("The terms are changed."))
        return True
    return False


def _page(
    request: HttpRequest,
    membership: Membership,
    server_id: UUID,
    *,
    form: OfferForm | None = None,
    issued: object = None,
) -> HttpResponse:
    now = datetime.now(UTC)
    server = get_object_or_404(servers_of(membership.organisation_id), pk=server_id)
    listing = present_listing(server)
    spread = fills_of_30_days(server.gpu_id, now=now)
    context = {
        "now": now,
        "server": server,
        "devices": server.devices.order_by("index"),
        "listing": listing,
        "form": form or OfferForm(devices=server.device_count, listing=listing),
        "issued": issued,
        "is_heard": server.was_heard(now),
        "spread": spread,
        "share": spread.percent_at_or_above(listing.price_usd_per_gpu_hour) if spread and listing else None,
        "best_ask": BestAsk.objects.filter(gpu=server.gpu_id).first(),
        "provider": server.provider,
        "may_change": may(membership, *TRADERS),
    }
    return render(request, "marketplace/provider/server.html", context)
