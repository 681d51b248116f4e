"""Settle rentals: hours become entries of their renter and their provider, and holds give back what no hour needs.

All of it happens in `marketplace/sql/40_settlement.sql`, where the lines of many rentals are written at once; here is
how it is asked for. Lock order: rental, hold, accounts by id. An hour that is settled is never settled again, whoever
asks, however often and at the same time.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from billing.accounts import open_settlement_accounts
from billing.receivables import pay_receivable
from marketplace.models import Rental
from marketplace.settlement.lower import lower_hold

FIRST = UUID(int=0)
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """What one statement did: the last rental it looked at (None: there was none), and how many of what."""

    last_rental: UUID | None
    rentals: int
    hours: int
    above_hold: int

    @property
    def has_progress(self) -> bool:
        """Whether asking again may find the next hour of a rental."""
        return self.rentals > self.above_hold


def settle_rental_now(*, rental_id: UUID, now: datetime) -> int:
    """Settle all that is due of one rental; return the number of hours. Of a rental that is over that is everything.

    Steps: lock the rental, open its accounts, settle hour by hour; one that is over gives back the rest of its hold,
    also when it never ran; what is owed in that currency is paid from it. Call it in the transaction that ends a rental,
    after its state was changed (of an interrupted one: `reverse_last_lines`, which calls it). A second run finds nothing.
    """
    with transaction.atomic():
        rental = Rental.objects.select_for_update(no_key=True, of=("self",)).select_related("server").get(pk=rental_id)
        open_settlement_accounts(owner_ids=[rental.server.provider_id])
        hours = 0
        while (chunk := settle_next_hours(until=now, now=now, rental_id=rental_id)).has_progress:
            hours += chunk.hours
        if rental.ended_at is not None and rental.ready_at is None:
            lower_hold(rental_id=rental_id, now=now)
        pay_receivable(organisation_id=rental.organisation_id, currency=rental.currency, now=now)
    return hours


def settle_next_hours(
    *, until: datetime, now: datetime, after: UUID = FIRST, limit: int = 1, rental_id: UUID | None = None
) -> Chunk:
    """Settle the next hour of each of up to `limit` rentals, by id, that have one due at `until`. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT last_rental, rentals, lines, above_hold"
            " FROM marketplace_settle(%s::timestamptz, %s::timestamptz, %s::uuid, %s::integer, %s::uuid)",
            [until, now, after, limit, rental_id],
        )
        last_rental, rentals, hours, above_hold = cursor.fetchone()
    if above_hold:
        log.error("%s hours up to rental %s come to more than their hold and were not settled", above_hold, last_rental)
    return Chunk(last_rental=last_rental, rentals=rentals, hours=hours, above_hold=above_hold)
