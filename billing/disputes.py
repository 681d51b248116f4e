"""Payments that their payer's bank takes back. The gateway takes the money at once; who bears it is decided here.

What the payment brought in is clawed back: what the wallet has available, the rest is owed. What the bank takes beyond
it (a larger amount, a payment that was refunded too) is our loss. The clearing account stands between the two and is
back at zero as soon as both are posted; a dispute that is lost posts nothing more.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext_noop

from billing import ledger
from billing.accounts import open_account
from billing.gateway.objects import GatewayDispute
from billing.ledger import Line, Reference
from billing.models import Account, Dispute, TopUp
from billing.receivables import claw_back, receivable_first
from billing.refunds import set_aside
from billing.refunds.follow import PaymentNotCredited
from billing.refunds.outflow import lock_top_up, share_of
from users.freezing import freeze

log = logging.getLogger("disputes")
FROZEN_REASON = gettext_noop("A payment is disputed: its payer's bank has taken the money back.")
_UNDECIDED = ("needs_response", "under_review")


class DisputeDiffers(Exception):
    """The dispute at the gateway has another amount or currency than our row or its payment: a person must look."""


def follow_dispute(told: GatewayDispute, *, now: datetime) -> Dispute | None:
    """Bring our row in line with a dispute at the gateway; return it, None where no wallet had the payment's money.

    1. An inquiry that has moved no money is left alone. A payment that was set aside leaves the clearing account.
    2. Lock the top-up. The first time, whatever the dispute has come to since: write the row, claw back, clear what
       the gateway took, freeze the organisation.
    3. Won: what came back goes to what we lost, what is owed, the wallet, in this order. The freeze is an operator's
       to lift. Lost: the row says so. Both are final.

    Run twice, late or in any order: one end, each entry once. Lock order: top-up, accounts by id, organisation.
    Raises PaymentNotCredited or DisputeDiffers; then nothing is written.
    """
    if not (told.status in _UNDECIDED or told.is_won or told.is_lost):
        log.log(logging.INFO if told.is_inquiry else logging.ERROR, "Dispute %s is %s.", told.id, told.status)
        return None
    top_up_id = _paid_by(told)
    if top_up_id is None:
        _follow_set_aside(told, now=now)
        return None
    with transaction.atomic():
        top_up = lock_top_up(top_up_id)
        dispute = Dispute.objects.filter(gateway_dispute_id=told.id).first() or _open(told, top_up, now=now)
        _refuse_other(told, dispute)
        if told.is_won and dispute.state == Dispute.State.LOST:
            log.error("Dispute %s was lost and is won at the gateway: a person must look.", told.id)
        elif told.is_won and dispute.state == Dispute.State.OPEN:
            _win(dispute, top_up, now=now)
        elif told.is_lost:
            _close(dispute, Dispute.State.LOST, now=now)
    return Dispute.objects.get(pk=dispute.pk)


def _paid_by(told: GatewayDispute) -> UUID | None:
    paid = TopUp.objects.filter(payment_intent_id=told.payment_intent_id, state=TopUp.State.PAID)
    return paid.values_list("pk", flat=True).first()


def _follow_set_aside(told: GatewayDispute, *, now: datetime) -> None:
    payment_id = told.payment_intent_id
    if not payment_id:
        log.warning("Dispute %s at the gateway names no payment: not ours.", told.id)
        return
    if not set_aside.is_set_aside(payment_id):
        raise PaymentNotCredited(f"Dispute {told.id}: its payment {payment_id} is not in the books yet.")
    departure = set_aside.Departure(
        payment_intent_id=payment_id, source_id=told.id, amount_micros=told.amount_micros, currency=told.currency
    )
    with transaction.atomic():
        set_aside.post_gone(departure, now=now)
        if told.is_won:
            set_aside.post_back(departure, now=now)


def _open(told: GatewayDispute, top_up: TopUp, *, now: datetime) -> Dispute:
    """Claw back, then clear what the gateway took. What is shared out is shared before the row counts."""
    if told.currency != top_up.currency:
        raise DisputeDiffers(f"Dispute {told.id} is in {told.currency}, its payment in {top_up.currency}.")
    share = share_of(top_up, change_micros=told.amount_micros)
    taken = claw_back(
        organisation_id=top_up.organisation_id, currency=top_up.currency, amount_micros=share.customer_micros
    )
    dispute = Dispute.objects.create(
        top_up=top_up,
        gateway_dispute_id=told.id,
        currency=told.currency,
        amount_micros=told.amount_micros,
        clawed_micros=taken.clawed_micros,
        owed_micros=taken.owed_micros,
        loss_micros=share.loss_micros,
        reason=told.reason[:60],
        opened_at=told.created_at,
    )
    accounts = _accounts(told.currency)
    lines = [*taken.lines, *_unless_zero(accounts.losses, -share.loss_micros)]
    _post(dispute, "", "dispute", [*lines, Line(accounts.clearing, told.amount_micros)], now=now)
    left = [Line(accounts.clearing, -told.amount_micros), Line(accounts.gateway, told.amount_micros)]
    _post(dispute, ":withdrawn", "dispute", left, now=now)
    freeze(organisation_id=top_up.organisation_id, reason=FROZEN_REASON, now=now)
    return dispute


def _win(dispute: Dispute, top_up: TopUp, *, now: datetime) -> None:
    share = share_of(top_up, change_micros=-dispute.amount_micros)
    back = receivable_first(
        organisation_id=top_up.organisation_id, currency=top_up.currency, amount_micros=-share.customer_micros
    )
    accounts = _accounts(dispute.currency)
    came = [Line(accounts.gateway, -dispute.amount_micros), Line(accounts.clearing, dispute.amount_micros)]
    _post(dispute, ":reinstated", "dispute_won", came, now=now)
    back_lines = [*_unless_zero(accounts.losses, -share.loss_micros), *back]
    _post(dispute, ":won", "dispute_won", [*back_lines, Line(accounts.clearing, -dispute.amount_micros)], now=now)
    _close(dispute, Dispute.State.WON, now=now)


def _close(dispute: Dispute, state: Dispute.State, *, now: datetime) -> None:
    Dispute.objects.filter(pk=dispute.pk, state=Dispute.State.OPEN).update(state=state, closed_at=now)


def _refuse_other(told: GatewayDispute, dispute: Dispute) -> None:
    theirs, ours = (told.amount_micros, told.currency), (dispute.amount_micros, dispute.currency)
    if theirs != ours:
        raise DisputeDiffers(f"Dispute {told.id} is {theirs} at the gateway and {ours} here.")


@dataclass(frozen=True, kw_only=True)
class _Accounts:
    gateway: int
    clearing: int
    losses: int


def _accounts(currency: str) -> _Accounts:
    return _Accounts(
        gateway=open_account(kind=Account.Kind.GATEWAY, currency=currency).pk,
        clearing=open_account(kind=Account.Kind.DISPUTES, currency=currency).pk,
        losses=open_account(kind=Account.Kind.LOSSES, currency=currency).pk,
    )


def _unless_zero(account_id: int, amount_micros: int) -> list[Line]:
    return [Line(account_id, amount_micros)] if amount_micros else []


def _post(dispute: Dispute, step: str, kind: str, lines: list[Line], *, now: datetime) -> int:
    return ledger.post(
        key=f"dispute:{dispute.pk}{step}",
        kind=kind,
        lines=lines,
        effective_at=now,
        reference=Reference(type="dispute", id=str(dispute.pk)),
    )
