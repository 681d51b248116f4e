"""A rental whose machine is lost is interrupted: the renter gets the hour of the last beat and the one before for nothing.

Lost is: silent for more than five minutes of the platform's own up time, or so the server said itself. Steps, in one
transaction: close the rental (leases, book, hold) and say from where on nothing is billed; settle what is open before
that, reverse the settled lines from there on and the one before it. Nothing is reversed that was not charged. Lock order: book, rental, accounts by id (wallet, fills, the provider's payable), hold. A second run
finds it interrupted and changes nothing.
"""

from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from billing.accounts import open_payable
from marketplace.book import lock_book
from marketplace.limits import LOST_AFTER
from marketplace.models import Rental
from marketplace.rentals.closing import close_rental
from marketplace.rentals.one_by_one import one_by_one
from marketplace.settlement.reverse import reverse_last_lines
from marketplace.settlement.seconds import hour_of

LOST = "server_lost"
_LOST_AFTER_SECONDS = int(LOST_AFTER.total_seconds())


def interrupt_lost(*, now: datetime) -> int:
    """Interrupt every running rental whose server was silent too long; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rental.id FROM marketplace_silences(%s::timestamptz, make_interval(secs => %s::integer)) AS silence"
            " JOIN marketplace_rental AS rental ON rental.id = silence.rental_id"
            " JOIN marketplace_fill AS fill ON fill.id = rental.fill_id ORDER BY silence.last_beat_at, fill.sequence",
            [now, _LOST_AFTER_SECONDS],
        )
        lost = [rental_id for (rental_id,) in cursor.fetchall()]
    return one_by_one(lost, lambda rental_id: interrupt_if_lost(rental_id=rental_id, now=now))


def interrupt_if_lost(*, rental_id: UUID, now: datetime) -> bool:
    """Interrupt one rental if its server was silent too long; return whether it was."""
    if _beat_before_silence(rental_id, now) is None:
        return False
    gpu_id = Rental.objects.values_list("gpu_id", flat=True).get(pk=rental_id)
    with transaction.atomic():
        lock_book(gpu_id, now=now)  # the first beat after a silence holds it too: what we read now is what was heard
        last_beat_at = _beat_before_silence(rental_id, now)
        if last_beat_at is None:
            return False
        return interrupt(rental_id=rental_id, reason=LOST, last_beat_at=last_beat_at, now=now)


def interrupt(*, rental_id: UUID, reason: str, now: datetime, last_beat_at: datetime | None = None) -> bool:
    """Interrupt a running rental; return False when it is not running. `last_beat_at`: the server's last, unless given."""
    rental = Rental.objects.select_related("server").filter(pk=rental_id, state=Rental.State.RUNNING).first()
    if rental is None:
        return False
    heard_at = last_beat_at or rental.server.last_beat_at or now
    payable_id = open_payable(owner_id=rental.server.provider_id)
    with transaction.atomic():
        interrupted = close_rental(
            rental_id=rental_id,
            from_states=(Rental.State.RUNNING,),
            to_state=Rental.State.INTERRUPTED,
            reason=reason,
            now=now,
            also_locked=[payable_id],
            detail={"last_beat_at": heard_at.isoformat()},
            unbilled_from=hour_of(heard_at),
        )
        if interrupted:
            reverse_last_lines(rental_id=rental_id, last_beat_at=heard_at, now=now)
    return interrupted


def _beat_before_silence(rental_id: UUID, now: datetime) -> datetime | None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT last_beat_at FROM marketplace_silences(%s::timestamptz, make_interval(secs => %s::integer)) WHERE rental_id = %s::uuid",
            [now, _LOST_AFTER_SECONDS, rental_id],
        )
        found = cursor.fetchone()
    return None if found is None else found[0]
