"""An interrupted rental: the UTC hour of the last beat costs nothing, and the settled line before it is given back.

Lines are reversed on both sides by entries that mirror them; the renter's money goes back to the wallet, where what is
owed takes it first. So a renter never gets back more than was charged.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from billing import ledger
from billing.receivables import pay_receivable
from marketplace.models import Rental, Settlement
from marketplace.settlement.seconds import hour_of
from marketplace.settlement.settle import settle_rental_now


class NotInterrupted(Exception):
    """The rental is in another state: its lines stay."""


def reverse_last_lines(*, rental_id: UUID, last_beat_at: datetime, now: datetime) -> int:
    """Settle an interrupted rental for good and reverse what it owes its renter; return the number of lines reversed.

    Steps: note where billing ends (the start of the UTC hour of the last beat), settle what is open before that and give
    the rest of the hold back, reverse the lines from there on and the one before them. Call it in the transaction that
    interrupts the rental, after its state was changed. Lock order: rental, hold, accounts by id. A second run keeps the
    first one's beat and finds its lines reversed. Raises NotInterrupted.
    """
    with transaction.atomic():
        rental = Rental.objects.select_for_update(no_key=True).get(pk=rental_id)
        if rental.state != Rental.State.INTERRUPTED:
            raise NotInterrupted(f"Rental {rental_id} is {rental.state}.")
        unbilled_from = rental.unbilled_from or hour_of(last_beat_at)
        Rental.objects.filter(pk=rental_id, unbilled_from__isnull=True).update(unbilled_from=unbilled_from)
        settle_rental_now(rental_id=rental_id, now=now)
        lines = [*_from(rental_id, unbilled_from), *_last_before(rental_id, unbilled_from)]
        reversed_lines = sum(_reverse(line, now) for line in lines)
        pay_receivable(organisation_id=rental.organisation_id, currency=rental.currency, now=now)
    return reversed_lines


def _from(rental_id: UUID, hour: datetime) -> list[Settlement]:
    return list(Settlement.objects.filter(rental=rental_id, hour__gte=hour).order_by("hour"))


def _last_before(rental_id: UUID, hour: datetime) -> list[Settlement]:
    return list(Settlement.objects.filter(rental=rental_id, hour__lt=hour).order_by("-hour")[:1])


def _reverse(line: Settlement, now: datetime) -> bool:
    if line.reversed_at is not None:
        return False
    marked = Settlement.objects.filter(pk=line.pk, reversed_at__isnull=True).update(
        reversed_at=now,
        reversal_entry_id=_mirror(line.entry_id, now),
        provider_reversal_entry_id=_mirror(line.provider_entry_id, now),
    )
    return bool(marked)


def _mirror(entry_id: int | None, now: datetime) -> int | None:
    if entry_id is None:
        return None
    return ledger.reverse(key=f"interrupted:{entry_id}", entry_id=entry_id, effective_at=now)
