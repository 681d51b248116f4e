"""Asking the gateway for a refund that our books have made already; again until there is an answer, never twice."""

import logging
from datetime import datetime, timedelta

from billing.books import open_stop
from billing.gateway import client
from billing.gateway.errors import GatewayOff, GatewayRefused, GatewayUnavailable, KeyConflict
from billing.gateway.objects import GatewayRefund
from billing.models import Refund
from billing.refunds.follow import RefundDiffers, follow_refund, give_up_refund

log = logging.getLogger("refunds")
# The gateway remembers a key for 24 hours. After that the same call would make a second refund, so we look first.
KEY_LIVES = timedelta(hours=23)
_CLOCKS_DIFFER_BY = timedelta(minutes=5)
_AT_ONCE = 50


def submit_refund(refund: Refund, *, now: datetime) -> Refund:
    """Ask the gateway for a refund that stands `requested` and is committed; return the row as it is then.

    Call it outside any transaction. No answer: the row stays, and whoever asks again uses the same key, so that two
    at once or a lost answer are one refund. Refused: the money is back in the wallet. Raises nothing of the gateway's.
    """
    if refund.state == Refund.State.REQUESTED and refund.gateway_refund_id is None:
        try:
            _ask(refund, now=now)
        except GatewayRefused as refusal:
            log.error("The gateway refused refund %s: %s %s", refund.pk, refusal.code, refusal)
            give_up_refund(refund.pk, reason=refusal.code or "refused", now=now)
        except (GatewayUnavailable, GatewayOff) as silence:
            log.warning("Refund %s waits: %r", refund.pk, silence)
        except (KeyConflict, RefundDiffers) as trouble:
            log.error("Refund %s waits for a person: %r", refund.pk, trouble)
    return Refund.objects.select_related("top_up").get(pk=refund.pk)


def submit_due_refunds(*, now: datetime) -> int:
    """Ask once more for refunds without an answer; return how many have one now. Waits while the books are stopped."""
    if open_stop() is not None or not client.is_on():
        return 0
    due = Refund.objects.select_related("top_up").filter(state=Refund.State.REQUESTED, gateway_refund_id=None)
    waiting = list(due.order_by("requested_at")[:_AT_ONCE])
    return sum(submit_refund(refund, now=now).state != Refund.State.REQUESTED for refund in waiting)


def _ask(refund: Refund, *, now: datetime) -> None:
    """Make the refund at the gateway, or find the one that an earlier call made, and follow it."""
    told = _made_before(refund) if now - refund.requested_at > KEY_LIVES else None
    follow_refund(told or _create(refund), now=now)


def _create(refund: Refund) -> GatewayRefund:
    try:
        return client.create_refund(
            payment_intent_id=refund.top_up.payment_intent_id or "",
            amount_micros=refund.amount_micros,
            currency=refund.top_up.currency,
            refund_id=str(refund.pk),
            key=refund.gateway_key,
        )
    except GatewayRefused:
        told = _made_before(refund)  # "already refunded" may mean our own, whose answer was lost
        if told is None:
            raise
        return told


def _made_before(refund: Refund) -> GatewayRefund | None:
    recent = client.refunds_since(refund.requested_at - _CLOCKS_DIFFER_BY)
    return next((told for told in recent if told.refund_id == str(refund.pk)), None)
