"""A rental's rows, read under their lock and changed by one conditional update with an event row each."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from marketplace.models import Rental, RentalEvent
from marketplace.rentals.states import RentalUnknown, may_move
from marketplace.webhooks import tell_of_rental


def lock_rental(rental_id: UUID) -> Rental:
    """Return the rental, locked until the caller's transaction ends. Raises RentalUnknown."""
    rental = Rental.objects.select_for_update(no_key=True).filter(pk=rental_id).first()
    if rental is None:
        raise RentalUnknown
    return rental


def move(
    *,
    rental_id: UUID,
    from_states: tuple[Rental.State, ...],
    to_state: Rental.State,
    at: datetime,
    detail: dict[str, Any] | None = None,
    **values: Any,
) -> bool:
    """Move a rental that is in one of `from_states`, and write its event; return whether it was.

    `at`: the instant it counts from. `values`: what else the row gets. Every change of a state passes through here.
    """
    for from_state in from_states:
        if not may_move(from_state, to_state):
            raise ValueError(f"No way leads from {from_state} to {to_state}.")
    with transaction.atomic():
        changed = Rental.objects.filter(pk=rental_id, state__in=from_states).update(state=to_state, **values)
        if changed:
            note(rental_id=rental_id, kind=to_state.value, at=at, detail=detail)
            tell_of_rental(rental_id=rental_id, state=to_state, now=at)
    return bool(changed)


def note(*, rental_id: UUID, kind: str, at: datetime, detail: dict[str, Any] | None = None) -> None:
    """Write an event of a rental."""
    RentalEvent.objects.create(rental_id=rental_id, kind=kind, at=at, detail=detail or {})
