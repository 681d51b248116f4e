"""A server's word on a start: it has taken it on, or it failed. What a host says is untrusted, and never bills."""

import re
from datetime import datetime
from uuid import UUID

from marketplace.models import Rental
from marketplace.rentals.changes import move
from marketplace.rentals.fail_unstarted import fail_start
from marketplace.rentals.interrupt import interrupt
from marketplace.rentals.states import RentalStateRefused, RentalUnknown

_REASON = re.compile(r"[a-z][a-z0-9_]{0,39}")


def accept_start(*, rental_id: UUID, now: datetime) -> bool:
    """The server begins: pending -> provisioning. Return whether that is new; told twice it is the same.

    One conditional update with its event. Raises RentalUnknown, RentalStateRefused.
    """
    if move(rental_id=rental_id, from_states=(Rental.State.PENDING,), to_state=Rental.State.PROVISIONING, at=now):
        return True
    state = _state(rental_id)
    if state != Rental.State.PROVISIONING:
        raise RentalStateRefused(state)
    return False


def report_failed(*, rental_id: UUID, reason: str, now: datetime) -> bool:
    """The server could not start it (-> failed, with a strike), or lost it while it ran (-> interrupted).

    Return whether that is new; told twice it is the same. `reason` is a short name (`image_pull_failed`).
    Raises RentalUnknown, RentalStateRefused; ValueError for a reason that is no name.
    """
    if not _REASON.fullmatch(reason):
        raise ValueError(f"{reason!r} is not the name of a reason.")
    if fail_start(rental_id=rental_id, reason=reason, now=now):
        return True
    if interrupt(rental_id=rental_id, reason=reason, now=now):
        return True
    state = _state(rental_id)
    if state not in (Rental.State.FAILED, Rental.State.INTERRUPTED):
        raise RentalStateRefused(state)
    return False


def _state(rental_id: UUID) -> str:
    state = Rental.objects.filter(pk=rental_id).values_list("state", flat=True).first()
    if state is None:
        raise RentalUnknown
    return state
