"""The one way a rental ends: state, leases, the book that gets its devices back, and the money that is no longer needed.

Steps, in one transaction (of its own or the caller's): lock the book, move the rental and write its event, close its
leases, match the book, lower the hold to what unsettled seconds can cost, pay what is owed with what came free. Lock
order: book, rental, leases, accounts by id (the rental's own with those of the fills), hold: whoever touches a rental's
hold has its rental locked. A rental that is over already, or in another state by then, is left alone.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from marketplace.book import close_leases, lock_book
from marketplace.models import Rental
from marketplace.orders.match import bring_to_rest
from marketplace.rentals.burn import stop_burning
from marketplace.rentals.changes import move
from marketplace.rentals.states import RentalUnknown


def close_rental(
    *,
    rental_id: UUID,
    from_states: tuple[Rental.State, ...],
    to_state: Rental.State,
    now: datetime,
    reason: str = "",
    ended_at: datetime | None = None,
    also_locked: Collection[int] = (),
    detail: dict[str, Any] | None = None,
    **values: Any,
) -> bool:
    """End a rental that is in one of `from_states`; return False, with nothing written, when it is in another by then.

    `reason` empty: the one it has stays. `ended_at`: when it really ended, where we only see it now. `also_locked`:
    accounts the caller goes on to move. `values`: what else the row gets. Raises RentalUnknown.
    """
    rental = Rental.objects.filter(pk=rental_id).first()
    if rental is None:
        raise RentalUnknown
    at = ended_at or now
    if reason:
        values["end_reason"] = reason
    with transaction.atomic():
        lock_book(rental.gpu_id, now=now)
        told = {"reason": reason, **(detail or {})} if reason else detail
        if not move(
            rental_id=rental_id, from_states=from_states, to_state=to_state, at=at, detail=told, ended_at=at, **values
        ):
            return False
        close_leases(rental_id, now=now)
        bring_to_rest(rental.gpu_id, now=now, also_locked=[rental.wallet_id, *also_locked])
        stop_burning(rental, now=now)
    return True
