"""What time alone does to rentals. Every part asks what is due, in this order, and may run twice or late.

Starts that took too long fail; lost machines are interrupted before anything else is judged of them; what is paid no
longer ends; the rentals of frozen organisations stop before an hour more is held; then open-ended rentals get their next
hour, servers that did not answer a stop are taken at that, and organisations hear that their money runs out.
"""

from collections.abc import Callable
from datetime import datetime

from marketplace.rentals.alerts import tell_runway
from marketplace.rentals.end import end_over, end_unanswered
from marketplace.rentals.fail_unstarted import fail_unstarted
from marketplace.rentals.interrupt import interrupt_lost
from marketplace.rentals.raise_hold import raise_due
from marketplace.rentals.stop import stop_rentals_of_frozen

PARTS: dict[str, Callable[..., int]] = {
    "rentals_failed": fail_unstarted,
    "rentals_interrupted": interrupt_lost,
    "rentals_over": end_over,
    "rentals_of_frozen_stopped": stop_rentals_of_frozen,
    "hours_held": raise_due,
    "stops_unanswered": end_unanswered,
    "wallets_told": tell_runway,
}


def sweep_rentals(*, now: datetime) -> dict[str, int]:
    """Do everything that is due and return how much of each there was."""
    return {name: part(now=now) for name, part in PARTS.items()}
