"""Sample renters give their machines back soon, so that visitors find devices.

What runs is stopped as any renter stops it, and charged. What has not started ends by the renter's own wish, and so
counts as no failure of the provider; nothing is charged.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from marketplace.models import Rental
from marketplace.rentals.closing import close_rental
from marketplace.rentals.stop import stop_rental
from users.models import Membership

REASON = "given_back"


def give_back(
    renters: Sequence[Membership], *, filled_before: datetime, now: datetime, gpu_id: int | None = None
) -> int:
    """End what sample renters took up to then; return how many rentals. A second run finds none of them."""
    due = Rental.objects.filter(
        organisation__in=[membership.organisation_id for membership in renters],
        state__in=(*Rental.STARTING, Rental.State.RUNNING),
        filled_at__lte=filled_before,
    )
    if gpu_id is not None:
        due = due.filter(gpu_id=gpu_id)
    return sum(_give_back(rental_id, now=now) for rental_id in due.order_by("filled_at").values_list("pk", flat=True))


def _give_back(rental_id: UUID, *, now: datetime) -> bool:
    return stop_rental(rental_id=rental_id, reason=REASON, now=now) or close_rental(
        rental_id=rental_id, from_states=Rental.STARTING, to_state=Rental.State.ENDED, reason=REASON, now=now
    )
