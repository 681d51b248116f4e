"""Applying stored events: each only says what to ask the gateway about.

Beat runs this every few seconds, and the webhook nudges it; whatever stopped an event before, it is due again.
"""

import logging
from datetime import datetime, timedelta

from django.db.models import F

from billing.disputes import follow_dispute
from billing.gateway import client
from billing.gateway.errors import GatewayError, GatewayRefused, GatewayUnavailable
from billing.models import GatewayEvent
from billing.refunds.follow import follow_refund
from billing.topups.look import follow_checkout, follow_payment

log = logging.getLogger("topups")

# While one worker is at an event no other takes it up, unless the first was killed: then after this long.
_LEASE = timedelta(minutes=2)
_WAITS = [timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900, 3600)]
_CURRENCY_NOT_HELD = "currency_not_held"  # the gateway client's own: another business on the same account
_WORRY_AT = 10  # attempts: a person should look


def apply_due_events(*, now: datetime, limit: int = 50) -> int:
    """Apply what is due, oldest first; return how many were applied.

    1. Claim an event by a conditional update: it is due again after the lease, should this process be killed.
    2. Ask the gateway for the object, outside any transaction, and follow it (each follower owns its transaction).
    3. Note that it was applied; on an error of any kind the error, and when to try again. While the gateway gives no
       answer the others wait as they are, so that no worker is kept by it.

    No lock is held between the steps. A second run, or one at the same time, takes other events or does the same again,
    which changes nothing: followers move forward only.
    """
    due = GatewayEvent.objects.filter(applied_at=None, next_attempt_at__lte=now).order_by("next_attempt_at", "pk")
    applied = 0
    for event in list(due[:limit]):
        try:
            applied += _apply_if_due(event, now=now)
        except GatewayUnavailable:
            break
    return applied


def _apply_if_due(event: GatewayEvent, *, now: datetime) -> bool:
    claimed = GatewayEvent.objects.filter(pk=event.pk, applied_at=None, next_attempt_at__lte=now)
    if not claimed.update(attempts=F("attempts") + 1, next_attempt_at=now + _LEASE):
        return False  # someone else was first
    try:
        _follow(event, now=now)
    except Exception as problem:  # whatever it is, this event waits and the others go on
        _put_off(event, problem, now=now)
        if isinstance(problem, GatewayUnavailable):
            raise
        return False
    GatewayEvent.objects.filter(pk=event.pk).update(applied_at=now, last_error="")
    return True


def _put_off(event: GatewayEvent, problem: Exception, *, now: datetime) -> None:
    """Note what stopped an event and when it is due again; one about money that no account of ours can hold never is."""
    attempts = event.attempts + 1
    is_foreign = isinstance(problem, GatewayRefused) and problem.code == _CURRENCY_NOT_HELD
    is_usual = isinstance(problem, GatewayError) and attempts < _WORRY_AT and not is_foreign
    log.log(
        logging.WARNING if is_usual else logging.ERROR,
        "Event %s (%s) failed at attempt %s: %r",
        event.event_id,
        event.type,
        attempts,
        problem,
        exc_info=None if isinstance(problem, GatewayError) else problem,
    )
    GatewayEvent.objects.filter(pk=event.pk, applied_at=None).update(
        applied_at=now if is_foreign else None,
        next_attempt_at=now + wait_after(attempts),
        last_error=repr(problem)[:500],
    )


def wait_after(attempts: int) -> timedelta:
    """Return how long to wait after so many attempts: longer each time, at most an hour.

    >>> wait_after(1), wait_after(99)
    (datetime.timedelta(seconds=5), datetime.timedelta(seconds=3600))
    """
    return _WAITS[min(attempts, len(_WAITS)) - 1]


def _follow(event: GatewayEvent, *, now: datetime) -> None:
    """Ask for what the event is about. Money in comes before money out, whichever event came first."""
    kind = event.type
    if kind.startswith("checkout.session."):
        follow_checkout(client.get_checkout(event.object_id), now=now)
    elif kind.startswith("payment_intent."):
        follow_payment(client.get_payment(event.object_id), now=now)
    elif kind.startswith("charge.dispute."):
        dispute = client.get_dispute(event.object_id)
        _follow_payment_of(dispute.payment_intent_id, now=now)
        follow_dispute(dispute, now=now)
    elif kind.startswith("refund.") or kind == "charge.refund.updated":
        refund = client.get_refund(event.object_id)
        _follow_payment_of(refund.payment_intent_id, now=now)
        follow_refund(refund, now=now)
    else:
        _follow_charge(event, now=now)


def _follow_payment_of(payment_intent_id: str, *, now: datetime) -> None:
    if payment_intent_id:
        follow_payment(client.get_payment(payment_intent_id), now=now)


def _follow_charge(event: GatewayEvent, *, now: datetime) -> None:
    """`charge.refunded` names the payment, not its refunds: they are looked for among all made since it."""
    payment_intent_id = event.payload["data"]["object"].get("payment_intent") or ""
    if not payment_intent_id:
        return
    payment = client.get_payment(payment_intent_id)
    follow_payment(payment, now=now)
    for refund in client.refunds_since(payment.created_at):
        if refund.payment_intent_id == payment.id:
            follow_refund(refund, now=now)
