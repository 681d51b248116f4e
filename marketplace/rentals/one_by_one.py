"""Many rentals, each in a transaction of its own: one that fails is logged, and the others go on."""

import logging
from collections.abc import Callable, Iterable
from uuid import UUID

from django.db import DatabaseError

from billing.ledger import LedgerError

log = logging.getLogger(__name__)


def one_by_one(rental_ids: Iterable[UUID], flow: Callable[[UUID], bool]) -> int:
    """Run a flow for each rental; return for how many it did something. What failed is due again at the next sweep."""
    return sum(_tried(rental_id, flow) for rental_id in list(rental_ids))


def _tried(rental_id: UUID, flow: Callable[[UUID], bool]) -> bool:
    try:
        return flow(rental_id)
    except (DatabaseError, LedgerError):
        log.exception("Rental %s was passed over", rental_id)
        return False
