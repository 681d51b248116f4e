"""A hold keeps what its rental's unsettled seconds can cost, and gives back the rest.

The settlement does the same for each hour it settles, in its own statement; this is for a stop, and for an end.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from billing import holds
from billing.receivables import pay_receivable
from marketplace.models import HeldHours, Rental
from marketplace.settlement.formula import Part, Priced, hold_needed_micros
from marketplace.settlement.seconds import Billable, billable, held_seconds, touched_hours


def lower_hold(*, rental_id: UUID, now: datetime) -> int:
    """Release what a rental's hold has beyond what its unsettled seconds can cost; return the micros released.

    Those seconds end with the request to stop and with what is paid. A rental that is starting keeps its hold; one
    that was stopped or ended before it ran needs none. What is owed in that currency is paid from what is released. Locks the
    rental, the hold and the wallet, in this order. A second run finds nothing to release.
    """
    with transaction.atomic():
        rental = Rental.objects.select_for_update(no_key=True, of=("self",)).select_related("hold").get(pk=rental_id)
        surplus_micros = rental.hold.remaining_micros - _needed_micros(rental)
        if surplus_micros <= 0:
            return 0
        # What was released before only grows: each release of a hold has a key of its own.
        key = f"lowered:{rental_id}:{rental.hold.released_micros}"
        holds.release(key=key, hold_id=rental.hold_id, amount_micros=surplus_micros)
        pay_receivable(organisation_id=rental.organisation_id, currency=rental.currency, now=now)
    return surplus_micros


def _needed_micros(rental: Rental) -> int:
    if rental.ready_at is None or rental.paid_until is None:
        return rental.hold.remaining_micros if rental.state in Rental.STARTING else 0
    if rental.state == Rental.State.INTERRUPTED and rental.unbilled_from is None:
        return rental.hold.remaining_micros  # its end is not known yet
    period = billable(
        ready_at=rental.ready_at,
        paid_until=rental.paid_until,
        stop_requested_at=rental.stop_requested_at,
        unbilled_from=rental.unbilled_from,
    )
    since = max(rental.settled_until or period.ready_at, period.ready_at)
    if since >= period.ends_at:
        return 0
    priced = Priced(price=rental.price_usd_per_gpu_hour, gpu_count=rental.gpu_count, fee_percent=rental.fee_percent)
    touched = touched_hours(since, period.ends_at)
    return hold_needed_micros(priced, _parts(rental, period, since), touched_hours=touched)


def _parts(rental: Rental, period: Billable, since: datetime) -> list[Part]:
    return [
        Part(
            seconds=held_seconds(period, since=since, first_hour=held.first_hour, hours=held.hours),
            fx_rate=held.fx_rate,
            held_tax_rate_percent=held.tax_rate_percent,
        )
        for held in HeldHours.objects.filter(rental=rental).order_by("first_hour")
    ]
