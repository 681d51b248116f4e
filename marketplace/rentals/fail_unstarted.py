"""A rental that is not ready ten minutes after its fill has failed: nothing is charged, the devices go back.

The provider gets a strike, unless the platform itself was down in these ten minutes. A second run finds none of them.
"""

from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from marketplace.limits import START_WITHIN
from marketplace.models import Rental, Strike
from marketplace.rentals.closing import close_rental
from marketplace.rentals.one_by_one import one_by_one

NOT_STARTED = "not_started_in_time"


def fail_unstarted(*, now: datetime) -> int:
    """Close what is overdue; return how many rentals failed."""
    due = Rental.objects.filter(state__in=Rental.STARTING, filled_at__lte=now - START_WITHIN)
    return one_by_one(
        due.order_by("filled_at", "fill__sequence").values_list("pk", flat=True),
        lambda rental_id: fail_start(rental_id=rental_id, reason=NOT_STARTED, now=now),
    )


def fail_start(*, rental_id: UUID, reason: str, now: datetime) -> bool:
    """Close one rental that did not start, with a strike for its provider; return whether it was still starting.

    One transaction; lock order as `close_rental`. A second call changes nothing.
    """
    with transaction.atomic():
        failed = close_rental(
            rental_id=rental_id,
            from_states=Rental.STARTING,
            to_state=Rental.State.FAILED,
            reason=reason,
            now=now,
        )
        if failed:
            _strike(rental_id, reason, now)
    return failed


def _strike(rental_id: UUID, reason: str, now: datetime) -> None:
    rental = Rental.objects.select_related("server").get(pk=rental_id)
    if reason == NOT_STARTED and not _was_up_to_hear_it(rental.filled_at):
        return
    Strike.objects.create(
        provider_id=rental.server.provider_id,
        server_id=rental.server_id,
        rental_id=rental_id,
        reason=reason,
        struck_at=now,
    )


def _was_up_to_hear_it(filled_at: datetime) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT marketplace_up_time(%s::timestamptz, %s::timestamptz)", [filled_at, filled_at + START_WITHIN]
        )
        return bool(cursor.fetchone()[0] == START_WITHIN)
