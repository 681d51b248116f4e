"""Payment into wallet: the one path, whoever calls it (events, reconciler, the retry of what was cut off)."""

import logging
from datetime import datetime
from enum import StrEnum

from django.db import transaction
from django.db.models import Q

from billing import ledger
from billing.accounts import open_account
from billing.gateway.objects import Payment
from billing.ledger import Line, Reference
from billing.models import Account, GatewayCustomer, JournalEntry, TopUp
from billing.receivables import receivable_first
from billing.topups.match import Expected, differences, row_id_of
from common.money import from_micros
from users.audit import record

log = logging.getLogger("topups")


class Credit(StrEnum):
    """What became of a payment."""

    CREDITED = "credited"  # now, by this call
    KNOWN = "known"  # credited or set aside before
    QUARANTINED = "quarantined"  # it does not fit its top-up: set aside, and the top-up waits for a person
    UNMATCHED = "unmatched"  # no top-up waits for it: set aside
    NOT_PAID = "not_paid"  # no money has come


def credit_top_up(*, payment: Payment, now: datetime) -> Credit:
    """Put a payment into its wallet, once, and say what became of it. One transaction.

    1. Lock the top-up that the payment names. Lock order: top-up, accounts (the wallet, by `receivable_first`).
    2. Compare amount, currency, customer and ids with our row. What does not fit is quarantined: the money goes to
       the clearing account `unmatched`, the row waits for a person, the audit log has both sides.
    3. Post `topup:<id>`, what the organisation owes in that currency first; the row is `paid`, whatever it was before.

    A second run, at the same time or years later, finds the row paid by this payment and does nothing; another payment
    for a paid row is set aside. Entry and state are written together or not at all.
    """
    if payment.status != "succeeded" or payment.received_micros <= 0:
        return Credit.NOT_PAID
    with transaction.atomic():
        top_up = _locked(payment)
        if top_up is None or top_up.state == TopUp.State.QUARANTINED:
            return _set_aside(payment, now=now)
        if top_up.state == TopUp.State.PAID:
            is_ours = top_up.payment_intent_id == payment.id
            return Credit.KNOWN if is_ours else _set_aside(payment, now=now)
        if wrong := differences(_expected(top_up), payment):
            return _quarantine(top_up, payment, wrong, now=now)
        post_credit(top_up, payment, now=now)
        return Credit.CREDITED


def _locked(payment: Payment) -> TopUp | None:
    """Return the top-up this payment is known to pay, else the one it names itself."""
    named = TopUp.objects.select_for_update(no_key=True).filter(named_by(payment))
    found = sorted(named.order_by("pk"), key=lambda top_up: top_up.payment_intent_id != payment.id)
    return found[0] if found else None


def named_by(payment: Payment) -> Q:
    """Return what finds the top-ups that a payment may be meant for: known to be paid by it, or named in it."""
    known = Q(payment_intent_id=payment.id)
    row_id = row_id_of(payment.top_up_id)
    return known if row_id is None else known | Q(pk=row_id)


def _expected(top_up: TopUp) -> Expected:
    customers = GatewayCustomer.objects.filter(organisation_id=top_up.organisation_id)
    return Expected(
        top_up_id=str(top_up.pk),
        amount_micros=top_up.amount_micros,
        currency=top_up.currency,
        customer_id=customers.values_list("customer_id", flat=True).first(),
        payment_intent_id=top_up.payment_intent_id,
    )


def post_credit(top_up: TopUp, payment: Payment, *, now: datetime) -> None:
    """Post a payment that is the top-up's, whole, and mark the row paid; the caller has locked it."""
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=top_up.currency)
    lines = receivable_first(
        organisation_id=top_up.organisation_id, currency=top_up.currency, amount_micros=top_up.amount_micros
    )
    entry_id = ledger.post(
        key=f"topup:{top_up.pk}",
        kind="topup",
        lines=[Line(gateway.pk, -top_up.amount_micros), *lines],
        effective_at=now,
        reference=Reference(type="top_up", id=str(top_up.pk)),
        description=_described(top_up, lines),
    )
    TopUp.objects.filter(pk=top_up.pk).update(
        state=TopUp.State.PAID,
        credit_entry_id=entry_id,
        paid_at=now,
        payment_intent_id=payment.id,
        failure_reason="",
    )


def _described(top_up: TopUp, lines: list[Line]) -> str:
    """Return the entry's text, in the books' language. What went to the receivable is said beside the whole."""
    whole = f"{from_micros(top_up.amount_micros):.2f} {top_up.currency}"
    owed = sum(line.amount_micros for line in lines if line.account_id != top_up.wallet_id)
    if not owed:
        return f"Top-up of {whole}"
    rest = f"{from_micros(top_up.amount_micros - owed):f} {top_up.currency}"
    return f"Top-up of {whole}: {from_micros(owed):f} {top_up.currency} paid what was owed, {rest} into the wallet"


def _quarantine(top_up: TopUp, payment: Payment, wrong: list[str], *, now: datetime) -> Credit:
    """Set the money aside and hold the row for review."""
    _set_aside(payment, now=now)
    reason = "differs: " + ", ".join(wrong)
    TopUp.objects.filter(pk=top_up.pk).update(state=TopUp.State.QUARANTINED, failure_reason=reason)
    record(
        at=now,
        action="top_up.quarantined",
        organisation=top_up.organisation,
        subject_type="top_up",
        subject_id=top_up.pk,
        reason=reason,
        before={"state": top_up.state, "amount_micros": top_up.amount_micros, "currency": top_up.currency},
        after={"payment": payment.id, "amount_micros": payment.received_micros, "currency": payment.currency},
    )
    log.error("Top-up %s is quarantined: payment %s %s", top_up.pk, payment.id, reason)
    return Credit.QUARANTINED


def _set_aside(payment: Payment, *, now: datetime) -> Credit:
    """Post money that nothing waits for to the clearing account `unmatched`, once for each payment."""
    key = f"unmatched:{payment.id}"
    if JournalEntry.objects.filter(key=key).exists():
        return Credit.KNOWN
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=payment.currency)
    unmatched = open_account(kind=Account.Kind.UNMATCHED, currency=payment.currency)
    ledger.post(
        key=key,
        kind="unmatched",
        lines=[Line(gateway.pk, -payment.received_micros), Line(unmatched.pk, payment.received_micros)],
        effective_at=now,
        reference=Reference(type="payment", id=payment.id),
        description="A payment that fits no top-up",
    )
    log.error("Payment %s of %s micros fits no top-up: set aside", payment.id, payment.received_micros)
    return Credit.UNMATCHED
