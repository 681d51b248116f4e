"""The demo fleet at work: what the agents of the sample servers say about starts and stops.

A start is taken on with the first look and ready a few seconds later; a stop is acknowledged at once. Only the server
named "flaky" has bad luck, and which kind is a matter of the rental's id: it does not start, falls silent for two
minutes, or is lost. Every part asks what is due and may run twice or late.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from enum import IntEnum
from hashlib import sha256
from uuid import UUID

from django.db.models import QuerySet

from marketplace.models import Rental, RentalEvent, Server
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.provision import accept_start, report_failed
from marketplace.rentals.ready import Access, report_ready
from marketplace.rentals.states import RentalStateRefused
from marketplace.sample_market.rows import FLAKY

STARTS_IN = timedelta(seconds=3)
SILENT_AFTER = timedelta(minutes=3)
SILENT_FOR = timedelta(minutes=2)
LOST_FOR = timedelta(minutes=8)

log = logging.getLogger(__name__)


class Luck(IntEnum):
    """What happens to a rental on the flaky server."""

    DOES_NOT_START = 0
    FALLS_SILENT = 1
    IS_LOST = 2


def play_agents(*, now: datetime) -> dict[str, int]:
    """Say for every sample server what is due, and return how many starts were taken on, readied, and stops made."""
    sample = Rental.objects.filter(server__is_sample=True)
    starting = _accepted_before(now - STARTS_IN)
    return {
        "stopped": _each(sample.filter(state=Rental.State.ENDING), lambda pk: acknowledge_stop(rental_id=pk, now=now)),
        "readied": _each(sample.filter(state=Rental.State.PROVISIONING, pk__in=starting), lambda pk: _start(pk, now)),
        "accepted": _each(sample.filter(state=Rental.State.PENDING), lambda pk: accept_start(rental_id=pk, now=now)),
    }


def silent_servers(*, now: datetime) -> set[UUID]:
    """Return the servers that do not beat now: the flaky one, while a rental on it has its bad luck."""
    running = Rental.objects.filter(server__is_sample=True, server__name=FLAKY, ready_at__gt=now - timedelta(hours=1))
    return {server_id for pk, server_id, ready_at in _ready(running) if _is_silent(pk, since=ready_at, now=now)}


def luck_of(rental_id: UUID) -> Luck:
    """Return what happens to this rental, were it on the flaky server; the same whenever it is asked."""
    return Luck(sha256(rental_id.bytes).digest()[0] % len(Luck))


def sample_access(rental: Rental) -> Access:
    """Return how a sample machine would be reached: nothing listens there, and its page says so."""
    key = sha256(f"host key of {rental.server_id}".encode()).hexdigest()
    return Access(
        ssh_host=f"{rental.server.name}.demo-fleet.example",
        ssh_port=22,
        ssh_user="renter",
        host_key=f"SHA256:{key[:43]}",
    )


def _start(rental_id: UUID, now: datetime) -> bool:
    rental = Rental.objects.select_related("server").get(pk=rental_id)
    if rental.server.name == FLAKY and luck_of(rental_id) is Luck.DOES_NOT_START:
        return report_failed(rental_id=rental_id, reason="image_pull_failed", now=now)
    return report_ready(rental_id=rental_id, access=sample_access(rental), now=now)


def _accepted_before(moment: datetime) -> QuerySet[RentalEvent, UUID]:
    accepted = RentalEvent.objects.filter(kind=Rental.State.PROVISIONING, at__lte=moment)
    return accepted.values_list("rental_id", flat=True)


def _ready(rentals: QuerySet[Rental]) -> Iterable[tuple[UUID, UUID, datetime]]:
    return ((pk, server_id, at) for pk, server_id, at in rentals.values_list("pk", "server_id", "ready_at") if at)


def _is_silent(rental_id: UUID, *, since: datetime, now: datetime) -> bool:
    lasting = {Luck.FALLS_SILENT: SILENT_FOR, Luck.IS_LOST: LOST_FOR}.get(luck_of(rental_id), timedelta(0))
    return since + SILENT_AFTER <= now < since + SILENT_AFTER + lasting


def _each(rentals: QuerySet[Rental], say: Callable[[UUID], bool]) -> int:
    return sum(_say(pk, say) for pk in rentals.order_by("filled_at").values_list("pk", flat=True))


def _say(rental_id: UUID, say: Callable[[UUID], bool]) -> bool:
    try:
        return say(rental_id)
    except RentalStateRefused as refused:  # it changed while we looked
        log.info("The fleet's word on rental %s came too late: %s", rental_id, refused)
        return False


def servers_that_beat(*, now: datetime) -> list[UUID]:
    """Return the sample servers that are heard of now."""
    silent = silent_servers(now=now)
    servers = Server.objects.filter(is_sample=True, withdrawn_at__isnull=True).values_list("pk", flat=True)
    return [pk for pk in servers if pk not in silent]
