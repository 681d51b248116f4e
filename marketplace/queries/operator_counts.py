"""How much of everything waits for an operator."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from billing.books import open_stop
from billing.reconcile.attention import (
    disputes,
    frozen_organisations,
    top_ups_and_waiting,
    waiting_events,
)
from marketplace.models import Listing, Provider, Rental, Server
from marketplace.queries.operations import due
from marketplace.queries.records import names_waiting


@dataclass(frozen=True, kw_only=True)
class OperatorCounts:
    """What there is, and what of it waits for a person."""

    applications_waiting: int
    providers: int
    servers_waiting: int
    servers: int
    listings: int
    rentals_open: int
    rentals_due: int
    top_ups: int
    top_ups_quarantined: int
    messages_waiting: int
    disputes: int
    frozen: int
    names_unclear: int
    breach: str


def operator_counts(*, now: datetime) -> OperatorCounts:
    """Return what the operator's first page counts. Eleven queries."""
    top_ups, quarantined = top_ups_and_waiting()
    providers = Provider.objects.aggregate(
        waiting=Count("pk", filter=Q(state=Provider.State.SUBMITTED)),
        approved=Count("pk", filter=Q(state=Provider.State.APPROVED)),
    )
    servers = Server.objects.filter(withdrawn_at=None).aggregate(
        waiting=Count("pk", filter=Q(verified_at=None)), here=Count("pk")
    )
    stop = open_stop()
    return OperatorCounts(
        applications_waiting=providers["waiting"],
        providers=providers["approved"],
        servers_waiting=servers["waiting"],
        servers=servers["here"],
        listings=Listing.objects.filter(state=Listing.State.ACTIVE).count(),
        rentals_open=Rental.objects.filter(state__in=Rental.OPEN).count(),
        rentals_due=due(now=now).rentals,
        top_ups=top_ups,
        top_ups_quarantined=quarantined,
        messages_waiting=len(waiting_events()),
        disputes=disputes().count(),
        frozen=len(frozen_organisations()),
        names_unclear=names_waiting(),
        breach=stop.breach if stop else "",
    )
