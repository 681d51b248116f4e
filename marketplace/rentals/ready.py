"""The readiness probe was passed: the rental runs, and only from here on anything is billed.

Steps, in one transaction: lock the rental, see that it is starting and in time, set from when and to when it is paid,
write its event and what it burns an hour. Lock order: rental, hold. A second report changes nothing. One that comes
more than ten minutes after the fill fails the rental instead.
"""

from datetime import datetime, timedelta
from typing import TypedDict
from uuid import UUID

from django.db import transaction

from marketplace.limits import START_WITHIN
from marketplace.models import Rental
from marketplace.rentals.burn import set_burn
from marketplace.rentals.changes import lock_rental, move
from marketplace.rentals.fail_unstarted import NOT_STARTED, fail_start
from marketplace.rentals.states import RentalStateRefused, RentalUnknown, whole_second_after, whole_second_before

HOUR = timedelta(hours=1)


class Access(TypedDict):
    """How the renter reaches the machine."""

    ssh_host: str
    ssh_port: int
    ssh_user: str
    host_key: str


def report_ready(*, rental_id: UUID, access: Access, now: datetime) -> bool:
    """The machine answered the platform's own probe: provisioning -> running. Return whether that is new.

    Raises RentalUnknown, RentalStateRefused (it is not starting, or it was too late: then it has failed).
    """
    ready_at = whole_second_after(now)
    filled_at = Rental.objects.filter(pk=rental_id).values_list("filled_at", flat=True).first()
    if filled_at is None:
        raise RentalUnknown
    if ready_at > filled_at + START_WITHIN and fail_start(rental_id=rental_id, reason=NOT_STARTED, now=now):
        raise RentalStateRefused(Rental.State.FAILED)
    with transaction.atomic():
        rental = lock_rental(rental_id)
        if rental.state == Rental.State.RUNNING:
            return False
        if rental.state != Rental.State.PROVISIONING:
            raise RentalStateRefused(rental.state)
        held = rental.held_hours.get()  # the fill's own; more are held only while it runs
        paid_until = paid_to(rental, ready_at=ready_at, held_hours=held.hours)
        move(
            rental_id=rental_id,
            from_states=(Rental.State.PROVISIONING,),
            to_state=Rental.State.RUNNING,
            at=now,
            detail={"ready_at": ready_at.isoformat(), "paid_until": paid_until.isoformat()},
            ready_at=ready_at,
            paid_until=paid_until,
            access=dict(access),
        )
        set_burn(rental, held)
    return True


def paid_to(rental: Rental, *, ready_at: datetime, held_hours: int) -> datetime:
    """Return the instant that so many held hours reach to: never past what the devices were taken for."""
    return min(ready_at + held_hours * HOUR, whole_second_before(rental.lease_until))
