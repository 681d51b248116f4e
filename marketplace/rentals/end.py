"""A rental's time is over, or its server has stopped: running -> ending -> ended.

What is paid is over at `paid_until`: a lot after its hours, an open-ended rental when its devices were taken for no
longer or no money was there for one more hour. The server has 120 seconds to say that it has stopped; then it counts as
stopped. When the platform was down at that moment, the server stopped by itself then, and so the rental ended then. Once ended, its
last hours are settled at once, in a transaction of their own: what fails there is due at the next settlement. Lock
order: book, rental, hold, accounts. A second run changes nothing.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Least

from marketplace.book import lock_book
from marketplace.limits import STOP_WITHIN
from marketplace.models import Rental
from marketplace.rentals.burn import stop_burning
from marketplace.rentals.changes import lock_rental, move
from marketplace.rentals.closing import close_rental
from marketplace.rentals.one_by_one import one_by_one
from marketplace.rentals.raise_hold import why_over
from marketplace.rentals.states import RentalStateRefused
from marketplace.settlement.settle import settle_rental_now


def acknowledge_stop(*, rental_id: UUID, now: datetime) -> bool:
    """The server has stopped: ending -> ended, and the last hours are settled. Return whether that is new.

    A server that stopped by itself at `paid_until` may say so before we noticed. Raises RentalUnknown,
    RentalStateRefused.
    """
    end_if_over(rental_id=rental_id, now=now)
    if _close(rental_id, now=now, how="acknowledged"):
        return True
    state = Rental.objects.values_list("state", flat=True).get(pk=rental_id)
    if state != Rental.State.ENDED:
        raise RentalStateRefused(state)
    return False


def end_over(*, now: datetime) -> int:
    """End the running rentals whose paid time is over; return how many."""
    due = Rental.objects.filter(state=Rental.State.RUNNING, paid_until__lte=now).order_by(
        "paid_until", "fill__sequence"
    )
    return one_by_one(due.values_list("pk", flat=True), lambda rental_id: end_if_over(rental_id=rental_id, now=now))


def end_unanswered(*, now: datetime) -> int:
    """Close the rentals whose server did not say within 120 seconds that it has stopped; return how many."""
    ending = Rental.objects.filter(state=Rental.State.ENDING)
    due = ending.annotate(since=Least("stop_requested_at", "paid_until")).filter(since__lte=now - STOP_WITHIN)
    since = dict(due.order_by("since", "fill__sequence").values_list("pk", "since"))
    return one_by_one(
        since,
        lambda rental_id: _close(rental_id, now=now, how="unanswered", ended_at=since[rental_id] + STOP_WITHIN),
    )


def end_if_over(*, rental_id: UUID, now: datetime) -> bool:
    """End one running rental if its paid time is over; return whether it was."""
    rental = Rental.objects.filter(pk=rental_id, state=Rental.State.RUNNING, paid_until__lte=now).first()
    if rental is None:
        return False
    with transaction.atomic():
        lock_book(rental.gpu_id, now=now)  # first of all: what was over for long is closed here, too
        rental = lock_rental(rental_id)
        if rental.state != Rental.State.RUNNING or rental.paid_until is None or rental.paid_until > now:
            return False
        reason = why_over(rental)
        move(
            rental_id=rental_id,
            from_states=(Rental.State.RUNNING,),
            to_state=Rental.State.ENDING,
            at=rental.paid_until,
            detail={"reason": reason},
            end_reason=reason,
        )
        if rental.paid_until + STOP_WITHIN > now:
            stop_burning(rental, now=now)
            return True
        _end(rental_id, now=now, how="by_itself", ended_at=rental.paid_until)
    settle_rental_now(rental_id=rental_id, now=now)
    return True


def _close(rental_id: UUID, *, now: datetime, how: str, ended_at: datetime | None = None) -> bool:
    closed = _end(rental_id, now=now, how=how, ended_at=ended_at)
    if closed:
        settle_rental_now(rental_id=rental_id, now=now)
    return closed


def _end(rental_id: UUID, *, now: datetime, how: str, ended_at: datetime | None) -> bool:
    return close_rental(
        rental_id=rental_id,
        from_states=(Rental.State.ENDING,),
        to_state=Rental.State.ENDED,
        now=now,
        ended_at=ended_at,
        detail={"how": how},
    )
