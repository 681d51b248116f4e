"""Settle everything that is due, hour after hour, many rentals at a time.

A pass goes through all rentals by id, in chunks with a commit each, and settles the next hour of each; passes go on
until none is left. So a crash loses no more than a chunk, hours of downtime are caught up in order, and two at once
share the work: whoever comes second finds the hour settled.
"""

import logging
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db import OperationalError
from psycopg import errors

from billing.accounts import open_settlement_accounts
from billing.receivables import pay_open_receivables
from marketplace.models import Provider
from marketplace.settlement.settle import FIRST, Chunk, settle_next_hours

RENTALS_PER_CHUNK = 50_000
_TRIES = 4
log = logging.getLogger(__name__)


def settle_due(*, until: datetime, now: datetime, rentals_per_chunk: int = RENTALS_PER_CHUNK) -> dict[str, int]:
    """Settle every rental-hour that is due at `until`, in order; return counts: hours, chunks, above_hold.

    The sweep up to `now` runs before it, which knows who fell silent. Not inside a transaction: each chunk commits.
    A second run finds nothing. Raises ValueError for a time to come: seconds that have not passed are nobody's debt.
    """
    if until > now:
        raise ValueError(f"{until} is still to come.")
    providers = Provider.objects.filter(approved_at__isnull=False)
    open_settlement_accounts(owner_ids=list(providers.values_list("pk", flat=True)))
    counts = {"hours": 0, "chunks": 0, "above_hold": 0}
    has_more = True
    while has_more:
        chunks = list(_pass(until, now, rentals_per_chunk))
        counts["hours"] += sum(chunk.hours for chunk in chunks)
        counts["chunks"] += len(chunks)
        counts["above_hold"] = sum(chunk.above_hold for chunk in chunks)
        has_more = any(chunk.has_progress for chunk in chunks)
    if counts["hours"]:
        pay_open_receivables(now=now)
    return counts


def _pass(until: datetime, now: datetime, limit: int) -> Iterator[Chunk]:
    after = FIRST
    while (chunk := _chunk(until, now, after, limit)).last_rental is not None:
        yield chunk
        after = chunk.last_rental


def _chunk(until: datetime, now: datetime, after: UUID, limit: int) -> Chunk:
    """Settle one chunk; when the database chose us to give way in a deadlock, again: nothing of it was written."""
    for attempt in range(1, _TRIES):
        try:
            return settle_next_hours(until=until, now=now, after=after, limit=limit)
        except OperationalError as refused:
            if not isinstance(refused.__cause__, errors.DeadlockDetected | errors.SerializationFailure):
                raise
            log.warning("Settling after rental %s gave way, attempt %s", after, attempt)
    return settle_next_hours(until=until, now=now, after=after, limit=limit)
