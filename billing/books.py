"""Are the books right? Check them, say so loudly when they are not, and refuse new outgoing money until a person lifts it.

A breach stops new orders, refunds and payouts. Stops of rentals, settlement and top-up credits go on: they only
finish what was promised. A second breach while stopped adds nothing; a lift needs a name and a reason.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import IntegrityError, transaction

from billing.checks import Check, run_checks
from billing.models import BooksStop

log = logging.getLogger("books")
_LISTED = 100


class BooksStopped(Exception):
    """New outgoing money is refused; `breach` says what was found."""

    def __init__(self, breach: str) -> None:
        super().__init__(f"The books are stopped: {breach}")
        self.breach = breach


class NotStopped(Exception):
    """There is nothing to lift."""


def audit(*, now: datetime, checks: Sequence[Callable[..., list[Check]]] = (run_checks,)) -> list[Check]:
    """Run every check and return the outcomes; a breach is logged as an error and stops the books."""
    outcomes = [outcome for run in checks for outcome in run(now=now)]
    breach = "; ".join(f"{outcome.name}: {outcome.detail}" for outcome in outcomes if not outcome.ok)
    if breach:
        log.error("The books do not add up: %s", breach)
        _stop(breach, now=now)
    return outcomes


def open_stop() -> BooksStop | None:
    """Return the stop that is in force."""
    return BooksStop.objects.filter(lifted_at__isnull=True).first()


def past_stops() -> Sequence[BooksStop]:
    """Return the last stops that were lifted, the newest first."""
    return list(BooksStop.objects.filter(lifted_at__isnull=False).order_by("-stopped_at")[:_LISTED])


def refuse_when_stopped() -> None:
    """Raise BooksStopped while a stop is in force. Called first by everything that lets new money out."""
    stop = open_stop()
    if stop is not None:
        raise BooksStopped(stop.breach)


def lift_stop(*, operator: str, reason: str, now: datetime) -> BooksStop:
    """End the stop that is in force. Raises NotStopped, or ValueError without a name or a reason."""
    if not operator.strip() or not reason.strip():
        raise ValueError("A lift needs an operator and a reason.")
    stop = open_stop()
    changed = stop and BooksStop.objects.filter(pk=stop.pk, lifted_at__isnull=True).update(
        lifted_at=now, lifted_by=operator, lift_reason=reason
    )
    if stop is None or not changed:
        raise NotStopped("The books are not stopped.")
    log.warning("The books were released by %s: %s", operator, reason)
    stop.refresh_from_db()
    return stop


def _stop(breach: str, *, now: datetime) -> None:
    try:
        with transaction.atomic():
            BooksStop.objects.create(breach=breach, stopped_at=now)
    except IntegrityError:  # already stopped: one stop at a time
        return
