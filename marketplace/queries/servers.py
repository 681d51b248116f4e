"""Servers as their provider and operators see them: each with its present listing, what is sold of it, its devices."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from marketplace.models import Listing, Provider, ProviderApplication, Rental, Server

WAITING, VERIFIED, WITHDRAWN = "waiting", "verified", "withdrawn"
SERVER_STATES = (WAITING, VERIFIED, WITHDRAWN)
_IS_HERE = Q(servers__withdrawn_at__isnull=True, servers__isnull=False)


def servers_of(provider_id: int) -> QuerySet[Server, Any]:
    """Return a provider's servers, newest first, withdrawn ones last; see `with_market`."""
    return with_market(Server.objects.filter(provider_id=provider_id)).order_by(
        F("withdrawn_at").asc(nulls_first=True), "-created_at", "-pk"
    )


def with_market(servers: QuerySet[Server]) -> QuerySet[Server, Any]:
    """Add GPU, provider, `sold_devices`, and in `present_listings` the listing that has not ended. Two queries."""
    rented = Rental.objects.filter(server=OuterRef("pk"), state__in=Rental.OPEN).order_by().values("server")
    listings = Listing.objects.exclude(state=Listing.State.ENDED)
    added: QuerySet[Server, Any] = (
        servers.select_related("gpu", "provider__organisation")
        .annotate(
            sold_devices=Coalesce(Subquery(rented.annotate(found=Sum("gpu_count")).values("found")), Value(0)),
        )
        .prefetch_related(Prefetch("listings", queryset=listings, to_attr="present_listings"))
    )
    return added


def present_listing(server: Any) -> Listing | None:
    """Return the listing of a server that `with_market` read, None where it is not put up."""
    return server.present_listings[0] if server.present_listings else None


def servers_in(state: str = "") -> QuerySet[Server, Any]:
    """Return every provider's servers, or those in a state: waiting for a check first, then the newest."""
    servers = Server.objects.all()
    if state == WITHDRAWN:
        servers = servers.filter(withdrawn_at__isnull=False)
    elif state:
        servers = servers.filter(withdrawn_at=None, verified_at__isnull=state == WAITING)
    return with_market(servers).order_by(
        F("withdrawn_at").asc(nulls_first=True), F("verified_at").asc(nulls_first=True), "-created_at", "-pk"
    )


def servers_by_state() -> Mapping[str, int]:
    """Return the number of servers in each state. One query."""
    is_here, is_verified = Q(withdrawn_at__isnull=True), Q(verified_at__isnull=False)
    counts = Server.objects.aggregate(
        waiting=Count("pk", filter=is_here & ~is_verified),
        verified=Count("pk", filter=is_here & is_verified),
        withdrawn=Count("pk", filter=~is_here),
    )
    return {state: counts[state] for state in SERVER_STATES}


def providers_in(state: str = "") -> QuerySet[Provider, Any]:
    """Return providers, or those in a state, what waits for review first; `has_applied`: there is an application."""
    providers = Provider.objects.filter(state=state) if state else Provider.objects.all()
    is_waiting = Exists(Provider.objects.filter(pk=OuterRef("pk"), state=Provider.State.SUBMITTED))
    found: QuerySet[Provider, Any] = (
        providers.select_related("organisation")
        .annotate(
            is_waiting=is_waiting,
            has_applied=Exists(ProviderApplication.objects.filter(provider=OuterRef("pk"))),
            servers_here=Count("servers", filter=_IS_HERE),
        )
        .order_by(F("is_waiting").desc(), "-created_at", "-pk")
    )
    return found


def providers_by_state() -> Mapping[str, int]:
    """Return the number of providers in each state. One query."""
    counts = dict(Provider.objects.order_by().values_list("state").annotate(Count("pk")))
    return {state: counts.get(state, 0) for state in Provider.State.values}
