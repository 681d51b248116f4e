"""What the gateway says of a refund becomes ours: the one way, for our own call, its messages and the reconciler alike."""

import logging
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext_noop

from billing.gateway import client
from billing.gateway.objects import GatewayRefund
from billing.models import Refund, TopUp
from billing.refunds import set_aside
from billing.refunds.outflow import lock_top_up, note_refunded
from billing.refunds.postings import post_clawed, post_failed, post_left_gateway
from billing.refunds.states import State, next_state, state_of
from users.freezing import freeze

log = logging.getLogger("refunds")
OWED_REASON = gettext_noop(
    "A payment was refunded at the payment provider after its money had been spent. The rest is owed."
)


class PaymentNotCredited(Exception):
    """The gateway speaks of a payment that is not in our books yet: ask again later."""


class RefundDiffers(Exception):
    """The refund at the gateway has another amount or currency than our row: a person must look."""


def follow_refund(told: GatewayRefund, *, now: datetime) -> Refund | None:
    """Bring our row in line with a refund at the gateway; return it, None where no wallet had the payment's money.

    1. Find the top-up that the payment paid. A payment that was set aside leaves the clearing account instead.
    2. Lock the top-up. Find the row by the gateway's id, else by ours in its metadata; one that was made at the
       gateway alone is written now, and taken from the wallet; what is not there is owed, and freezes the organisation.
    3. Move the state forward and post what that means: cleared once it succeeded, given back once it failed.

    A refund that we took for failed and that seems to live is asked for once more, and is clawed back if it does.
    Run twice, late or in any order: each entry is written once. Lock order: top-up, accounts by id, organisation.
    Raises PaymentNotCredited, RefundDiffers, or what the gateway's client raises; then nothing is written.
    """
    top_up_id = (
        TopUp.objects.filter(payment_intent_id=told.payment_intent_id, state=TopUp.State.PAID)
        .values_list("pk", flat=True)
        .first()
    )
    if top_up_id is None:
        _follow_set_aside(told, now=now)
        return None
    refund = _apply(told, top_up_id=top_up_id, now=now)
    if refund.state == Refund.State.FAILED and state_of(told.status) not in ("failed", None):
        refund = _apply(client.get_refund(told.id), top_up_id=top_up_id, is_fresh=True, now=now)
    return refund


def give_up_refund(refund_id: UUID, *, reason: str, now: datetime) -> None:
    """The gateway refused it and has no such refund: give the money back. Changes nothing for one it knows."""
    with transaction.atomic():
        top_up = lock_top_up(Refund.objects.get(pk=refund_id).top_up_id)
        refund = Refund.objects.select_related("top_up").get(pk=refund_id)
        if refund.state == Refund.State.REQUESTED and refund.gateway_refund_id is None:
            _move(refund, top_up, "failed", reason=reason, now=now)


def _follow_set_aside(told: GatewayRefund, *, now: datetime) -> None:
    payment_id = told.payment_intent_id
    if not payment_id:
        log.warning("Refund %s at the gateway names no payment: not ours.", told.id)
        return
    if not set_aside.is_set_aside(payment_id):
        raise PaymentNotCredited(f"Refund {told.id}: its payment {payment_id} is not in the books yet.")
    departure = set_aside.Departure(
        payment_intent_id=payment_id, source_id=told.id, amount_micros=told.amount_micros, currency=told.currency
    )
    state = state_of(told.status)
    if state == "succeeded":
        set_aside.post_gone(departure, now=now)
    elif state == "failed" and set_aside.has_gone(departure):
        set_aside.post_back(departure, now=now)


def _apply(told: GatewayRefund, *, top_up_id: UUID, now: datetime, is_fresh: bool = False) -> Refund:
    with transaction.atomic():
        top_up = lock_top_up(top_up_id)
        refund = _known(told, top_up) or _found(told, top_up, now=now)
        _refuse_other(told, refund, top_up)
        if refund.gateway_refund_id is None:
            Refund.objects.filter(pk=refund.pk, gateway_refund_id=None).update(gateway_refund_id=told.id)
            refund.gateway_refund_id = told.id
        told_state = state_of(told.status)
        if told_state is None:
            log.error("Refund %s has the unknown status %r at the gateway.", told.id, told.status)
            return refund
        state = next_state(refund.state, told=told_state, is_fresh=is_fresh)
        if state is not None:
            _move(refund, top_up, state, reason=told.failure_reason, now=now)
        return refund


def _known(told: GatewayRefund, top_up: TopUp) -> Refund | None:
    rows = list(Refund.objects.filter(top_up=top_up).select_related("top_up"))
    for row in rows:
        if row.gateway_refund_id == told.id:
            return row
    for row in rows:
        if str(row.pk) == told.refund_id and row.gateway_refund_id is None:
            return row
    if told.refund_id:
        log.error("Refund %s at the gateway says it is our %s, which is another one.", told.id, told.refund_id)
    return None


def _found(told: GatewayRefund, top_up: TopUp, *, now: datetime) -> Refund:
    """Write a refund that somebody made at the gateway; its money has left, whether the wallet still has it or not."""
    refund = Refund(
        top_up=top_up,
        amount_micros=told.amount_micros,
        origin=Refund.Origin.GATEWAY,
        gateway_key=f"gateway:{told.id}",
        gateway_refund_id=told.id,
        requested_at=told.created_at,
    )
    _refuse_other(told, refund, top_up)
    owed_micros = post_clawed(refund, top_up, now=now)
    refund.save(force_insert=True)
    note_refunded(top_up)
    if owed_micros and state_of(told.status) != "failed":
        freeze(organisation_id=top_up.organisation_id, reason=OWED_REASON, now=now)
    return refund


def _refuse_other(told: GatewayRefund, refund: Refund, top_up: TopUp) -> None:
    theirs, ours = (told.amount_micros, told.currency), (refund.amount_micros, top_up.currency)
    if theirs != ours:
        raise RefundDiffers(f"Refund {told.id} is {theirs} at the gateway and {ours} here.")


def _move(refund: Refund, top_up: TopUp, state: State, *, reason: str, now: datetime) -> None:
    """Move the state in the caller's transaction and post what that means. Money is shared out before the row counts."""
    was, owed_micros = refund.state, 0
    if state == "failed":
        post_failed(refund, top_up, now=now)
    elif was == Refund.State.FAILED:
        log.error("Refund %s was taken for failed and is %s at the gateway: clawed back.", refund.pk, state)
        refund.state = state  # its next round begins
        owed_micros = post_clawed(refund, top_up, now=now)
    moved = Refund.objects.filter(pk=refund.pk, state=was).update(
        state=state,
        failure_reason=reason[:200] if state == "failed" else "",
        settled_at=None if state == "submitted" else now,
    )
    if moved != 1:
        raise RuntimeError(f"Refund {refund.pk} changed outside its top-up's lock.")
    refund.refresh_from_db()
    if state == "succeeded":
        post_left_gateway(refund, now=now)
    note_refunded(top_up)
    if owed_micros:
        freeze(organisation_id=top_up.organisation_id, reason=OWED_REASON, now=now)
