"""Money that was set aside leaves the clearing account by a person's decision, once, with its reason in the record.

Either the payment is proven to be a customer's, by the gateway's own object, and becomes a top-up like any other; or an
operator says where else the money went. Lock order: top-up, accounts by id.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import transaction
from django.db.models import Q, Sum

from billing import ledger
from billing.accounts import open_account
from billing.gateway.objects import Payment
from billing.ledger import Line, Reference
from billing.models import Account, GatewayCustomer, GatewayTransaction, JournalEntry, Posting, TopUp
from billing.topups.credit import named_by, post_credit
from users.audit import record
from users.models import AuditRecord, Organisation, User


class Elsewhere(StrEnum):
    """Where set-aside money went that no wallet gets."""

    PAID_BACK = "paid_back"  # from our own bank account
    OURS = "ours"  # it is nobody's: our gain, or (less than nothing waits) our loss


class NothingWaits(Exception):
    """Nothing of this payment waits on the clearing account: it was settled before."""


class NotProven(Exception):
    """The gateway's object does not prove whose payment it is; `why` says in one word what is missing."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class ReasonMissing(ValueError):
    """A decision about money is told with its reason."""


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """What waits of one payment: micros of a currency. Less than nothing: more left for it than had come."""

    payment_id: str
    currency: str
    open_micros: int


def waiting_of(payment_id: str) -> SetAside | None:
    """Return what waits of a payment, None where it never was set aside. One query."""
    posted = Posting.objects.filter(
        account__kind=Account.Kind.UNMATCHED, entry__reference_type="payment", entry__reference_id=payment_id
    )
    found = posted.values("currency").annotate(micros=Sum("amount_micros")).order_by("currency").first()
    if found is None:
        return None
    return SetAside(payment_id=payment_id, currency=found["currency"], open_micros=int(found["micros"]))


def credit_set_aside(
    *, payment: Payment, operator: User, reason: str, now: datetime, ip_address: str | None = None
) -> TopUp:
    """Put a payment that was set aside into the wallet of the organisation that paid it; return its top-up.

    1. The payment, asked for at the gateway just now, must have succeeded, and bear the customer of an organisation.
    2. Lock its quarantined top-up, if there is one (it must be that organisation's), and the clearing account; all of
       the payment must still wait there.
    3. Reverse the setting aside and post the top-up, as if it had fitted; its movement at the gateway moves along.
       The row has what was paid; both sides are in the record.

    A second run raises NothingWaits. Raises ReasonMissing, NotProven, NothingWaits; then nothing is written.
    """
    if not reason.strip():
        raise ReasonMissing
    organisation = _proven_payer(payment)
    with transaction.atomic():
        row = _held_row(payment, organisation)
        set_aside = _locked(payment.id)
        if set_aside.open_micros != payment.received_micros or set_aside.currency != payment.currency:
            raise NotProven("amount")
        before = {} if row is None else {"amount_micros": row.amount_micros, "currency": row.currency}
        first = JournalEntry.objects.get(key=f"unmatched:{payment.id}")
        ledger.reverse(key=f"unmatched:{payment.id}:credited", entry_id=first.pk, effective_at=now)
        top_up = _row_of(row, payment, organisation, now=now)
        post_credit(top_up, payment, now=now)
        top_up.refresh_from_db()
        GatewayTransaction.objects.filter(entry=first).update(entry_id=top_up.credit_entry_id)
        record(
            at=now,
            action="top_up.credited_by_hand",
            actor=operator,
            organisation=organisation,
            subject_type="top_up",
            subject_id=top_up.pk,
            reason=reason.strip(),
            before=before,
            after={"payment": payment.id, "amount_micros": top_up.amount_micros, "currency": top_up.currency},
            ip_address=ip_address,
        )
    return top_up


def clear_set_aside(
    *,
    payment_id: str,
    elsewhere: Elsewhere,
    operator: User,
    reason: str,
    now: datetime,
    ip_address: str | None = None,
) -> None:
    """Say where set-aside money went that no wallet gets, and clear it; its quarantined top-up waits no longer.

    Steps: lock its top-ups and the clearing account, read what waits, post it away, note the top-ups, write it down. A
    second run raises NothingWaits. Raises ReasonMissing, NothingWaits.
    """
    if not reason.strip():
        raise ReasonMissing
    with transaction.atomic():
        rows = _quarantined_for(payment_id)
        set_aside = _locked(payment_id)
        _post_away(set_aside, elsewhere, now=now)
        TopUp.objects.filter(pk__in=[row.pk for row in rows], settled_at=None).update(settled_at=now)
        record(
            at=now,
            action="payment.paid_back" if elsewhere == Elsewhere.PAID_BACK else "payment.ours",
            actor=operator,
            organisation=rows[0].organisation if rows else None,
            subject_type="payment",
            subject_id=payment_id,
            reason=reason.strip(),
            after={"payment": payment_id, "amount_micros": set_aside.open_micros, "currency": set_aside.currency},
            ip_address=ip_address,
        )


def _proven_payer(payment: Payment) -> Organisation:
    if payment.status != "succeeded" or payment.received_micros <= 0:
        raise NotProven("status")
    customers = GatewayCustomer.objects.select_related("organisation").filter(customer_id=payment.customer_id or "")
    customer = customers.first()
    if customer is None:
        raise NotProven("customer")
    return customer.organisation


def _held_row(payment: Payment, organisation: Organisation) -> TopUp | None:
    """Return the payment's quarantined top-up, locked; None where no row of ours waits for it."""
    rows = TopUp.objects.select_for_update(no_key=True).filter(named_by(payment), state=TopUp.State.QUARANTINED)
    found = sorted(rows.order_by("pk"), key=lambda row: row.payment_intent_id != payment.id)
    if found and found[0].organisation_id != organisation.pk:
        raise NotProven("organisation")
    return found[0] if found else None


def _locked(payment_id: str) -> SetAside:
    """Return what waits of a payment; nobody else settles any until the transaction ends. Raises NothingWaits."""
    set_aside = waiting_of(payment_id)
    if set_aside is None:
        raise NothingWaits
    ledger.lock_accounts([open_account(kind=Account.Kind.UNMATCHED, currency=set_aside.currency).pk])
    set_aside = waiting_of(payment_id)
    if set_aside is None or not set_aside.open_micros:
        raise NothingWaits
    return set_aside


def _row_of(row: TopUp | None, payment: Payment, organisation: Organisation, *, now: datetime) -> TopUp:
    """Return the row that the payment pays, with what was paid; a new one where none waited for it."""
    wallet = open_account(kind=Account.Kind.WALLET, currency=payment.currency, owner_id=organisation.pk)
    paid = {"wallet": wallet, "currency": payment.currency, "amount_micros": payment.received_micros}
    if row is None:
        return TopUp.objects.create(
            organisation=organisation, gateway_key=f"by_hand:{payment.id}", created_at=payment.created_at, **paid
        )
    TopUp.objects.filter(pk=row.pk).update(settled_at=None, **paid)
    row.refresh_from_db()
    return row


def _post_away(set_aside: SetAside, elsewhere: Elsewhere, *, now: datetime) -> None:
    kind = Account.Kind.BANK if elsewhere == Elsewhere.PAID_BACK else Account.Kind.LOSSES
    unmatched = open_account(kind=Account.Kind.UNMATCHED, currency=set_aside.currency)
    other = open_account(kind=kind, currency=set_aside.currency)
    earlier = JournalEntry.objects.filter(key__startswith=f"unmatched:{set_aside.payment_id}:by_hand:").count()
    ledger.post(
        key=f"unmatched:{set_aside.payment_id}:by_hand:{earlier + 1}",
        kind="unmatched",
        lines=[Line(unmatched.pk, -set_aside.open_micros), Line(other.pk, set_aside.open_micros)],
        effective_at=now,
        reference=Reference(type="payment", id=set_aside.payment_id),
        description="Settled by hand",
    )


def _quarantined_for(payment_id: str) -> list[TopUp]:
    """Return the top-ups that this payment was held for, locked: known to be paid by it, or named in the record."""
    noted = AuditRecord.objects.filter(action="top_up.quarantined", after__payment=payment_id)
    named = Q(payment_intent_id=payment_id) | Q(pk__in=list(noted.values_list("subject_id", flat=True)))
    rows = TopUp.objects.select_for_update(no_key=True, of=["self"]).select_related("organisation")
    return list(rows.filter(named, state=TopUp.State.QUARANTINED).order_by("pk"))
