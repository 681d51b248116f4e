"""Stop a rental: billing ends with the request, whatever the server does then.

Steps, in one transaction: lock the rental, note the second billing ends with, keep what unsettled seconds can cost and
give the rest back. It is `ending` until the server says it has stopped, or for 120 seconds; one that never began is
over at once. A rental whose machine was lost before the request is interrupted instead, one whose paid time was over
ended then. Lock order: book (only where it ends at once), rental, hold, account. A second request changes nothing.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from marketplace.models import Rental
from marketplace.rentals.burn import stop_burning
from marketplace.rentals.changes import lock_rental, move
from marketplace.rentals.closing import close_rental
from marketplace.rentals.end import end_if_over
from marketplace.rentals.interrupt import interrupt_if_lost
from marketplace.rentals.one_by_one import one_by_one
from marketplace.rentals.states import RentalUnknown, whole_second_before

BY_RENTER = "stopped"
FROZEN = "frozen"


def request_stop(*, organisation_id: int, rental_id: UUID, now: datetime) -> Rental:
    """Stop a rental for its renter and return it as it is then, also when it was over before. Raises RentalUnknown."""
    if not Rental.objects.filter(pk=rental_id, organisation_id=organisation_id).exists():
        raise RentalUnknown
    stop_rental(rental_id=rental_id, reason=BY_RENTER, now=now)
    return Rental.objects.get(pk=rental_id)


def stop_rentals_of_frozen(*, now: datetime) -> int:
    """Stop the rentals of frozen organisations; return how many."""
    due = Rental.objects.filter(
        state__in=(*Rental.STARTING, Rental.State.RUNNING), organisation__frozen_at__isnull=False
    ).order_by("fill__sequence")
    return one_by_one(
        due.values_list("pk", flat=True), lambda rental_id: stop_rental(rental_id=rental_id, reason=FROZEN, now=now)
    )


def stop_rental(*, rental_id: UUID, reason: str, now: datetime) -> bool:
    """Stop a rental that is not over; return whether this did it."""
    if interrupt_if_lost(rental_id=rental_id, now=now) or end_if_over(rental_id=rental_id, now=now):
        return False
    if Rental.objects.filter(pk=rental_id, state=Rental.State.PENDING).exists() and close_rental(
        rental_id=rental_id,
        from_states=(Rental.State.PENDING,),
        to_state=Rental.State.ENDED,
        reason=reason,
        now=now,
    ):
        return True
    with transaction.atomic():
        rental = lock_rental(rental_id)
        stopped = move(
            rental_id=rental_id,
            from_states=(Rental.State.PROVISIONING, Rental.State.RUNNING),
            to_state=Rental.State.ENDING,
            at=now,
            detail={"reason": reason},
            stop_requested_at=whole_second_before(now),
            end_reason=reason,
        )
        if stopped:
            stop_burning(rental, now=now)
    return stopped
