"""Asking for unspent money back: it goes to the payments it came from, the oldest first, and never what is held."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from uuid6 import uuid7

from billing.accounts import WALLET_CURRENCIES, UnknownCurrency
from billing.books import refuse_when_stopped
from billing.models import Account, Dispute, Refund, TopUp
from billing.receivables import locked_wallet, owes_anything
from billing.refunds.allocation import MoreThanRefundable, Part, Payment, allocate, most_refundable_micros
from billing.refunds.outflow import note_refunded
from billing.refunds.postings import post_asked
from billing.refunds.submit import submit_refund
from common.money import TooFine, from_minor_units, to_micros
from users.models import Organisation, User


class RefundRefused(Exception):
    """Nothing was moved; `code` names the reason."""

    code = ""


class NotAnAmount(RefundRefused):
    """The amount is not above zero, or is finer than a cent."""

    code = "not_an_amount"


class MoreThanIsLeft(RefundRefused):
    """Less than that can go back: it is spent, held, refunded or disputed."""

    code = "more_than_refundable"

    def __init__(self, refundable_micros: int) -> None:
        super().__init__(f"At most {refundable_micros} micros can go back.")
        self.refundable_micros = refundable_micros


class OrganisationFrozen(RefundRefused):
    """The organisation is frozen until an operator lifts it."""

    code = "organisation_frozen"


class ReceivableOpen(RefundRefused):
    """The organisation owes us money."""

    code = "receivable_open"


class DisputeOpen(RefundRefused):
    """A payment of the organisation is disputed and not decided yet."""

    code = "dispute_open"


@dataclass(frozen=True, kw_only=True)
class _Asking:
    """Who asks, why, and in which request."""

    requested_by: User | None
    origin: Refund.Origin
    request_id: UUID | None
    now: datetime


def request_refund(
    *,
    organisation: Organisation,
    currency: str,
    amount: Decimal,
    requested_by: User | None,
    now: datetime,
    origin: Refund.Origin = Refund.Origin.CUSTOMER,
    request_id: UUID | None = None,
) -> list[Refund]:
    """Send unspent money of a wallet back, oldest payment first; return a row per payment, as it stands after the call.

    1. Refuse while the books are stopped, for an amount that is none, and for what `RefundRefused` names.
    2. Lock the wallet's paid top-ups by id, then the wallet; share the amount out; write the rows with the gateway's
       keys, and take the money from the wallet. Commit.
    3. Ask the gateway, outside any transaction. One that gives no answer leaves its row `requested`, for beat to try
       again with the same key; one that refuses gives the money back (`failed`).

    With a `request_id` a second run is the same refund, however far the first one came; without one it is another, as
    far as money is left. Raises RefundRefused, BooksStopped, or UnknownCurrency for
    one that has no wallets; nothing moved then.
    """
    refuse_when_stopped()
    if currency not in WALLET_CURRENCIES:
        raise UnknownCurrency(f"There are no wallets in {currency}.")
    wanted_micros = _whole_cents(amount, currency=currency)
    with transaction.atomic():
        payments = _lock_payments(organisation, currency)
        asking = _Asking(requested_by=requested_by, origin=origin, request_id=request_id, now=now)
        refunds = _asked_before(organisation, request_id) or _reserve(
            organisation, currency, payments, wanted_micros, asking
        )
    return [submit_refund(refund, now=now) for refund in refunds]


def refund_top_up(
    *,
    top_up: TopUp,
    amount: Decimal | None,
    requested_by: User | None,
    now: datetime,
    origin: Refund.Origin = Refund.Origin.CUSTOMER,
    request_id: UUID | None = None,
) -> Refund:
    """Send unspent money back to one payment, all that can go back without an `amount`; return the row.

    Steps, locks, repeats (one `request_id`, one refund) and refusals as for `request_refund`.
    """
    refuse_when_stopped()
    wanted_micros = None if amount is None else _whole_cents(amount, currency=top_up.currency)
    organisation, currency = top_up.organisation, top_up.currency
    with transaction.atomic():
        payments = [payment for payment in _lock_payments(organisation, currency) if payment.top_up_id == top_up.pk]
        asking = _Asking(requested_by=requested_by, origin=origin, request_id=request_id, now=now)
        [refund] = _asked_before(organisation, request_id) or _reserve(
            organisation, currency, payments, wanted_micros, asking
        )
    return submit_refund(refund, now=now)


def _asked_before(organisation: Organisation, request_id: UUID | None) -> list[Refund]:
    """Return what an earlier run of the same request wrote, with the payments locked."""
    if request_id is None:
        return []
    return list(Refund.objects.filter(request_id=request_id, top_up__organisation=organisation).order_by("pk"))


def _whole_cents(amount: Decimal, *, currency: str) -> int:
    try:
        micros = to_micros(amount, currency=currency)
    except TooFine as why:
        raise NotAnAmount(str(why)) from why
    if micros <= 0:
        raise NotAnAmount("A refund is more than nothing.")
    return micros


def _lock_payments(organisation: Organisation, currency: str) -> list[Payment]:
    """Lock the wallet's paid top-ups in the order of their ids, which is that of time, and return what is left of each."""
    locked = _paid(organisation, currency).select_for_update(no_key=True).order_by("pk")
    return _payments(TopUp.objects.filter(pk__in=[top_up.pk for top_up in locked]))


def _reserve(
    organisation: Organisation,
    currency: str,
    payments: Sequence[Payment],
    wanted_micros: int | None,
    asking: _Asking,
) -> list[Refund]:
    """Take the money out of the wallet, in the caller's transaction and with its payments locked."""
    wallet = locked_wallet(organisation.pk, currency)
    if _is_frozen(organisation):
        raise OrganisationFrozen
    if owes_anything(organisation.pk):
        raise ReceivableOpen
    if _has_open_dispute(organisation):
        raise DisputeOpen
    limits = {"available_micros": wallet.available_micros, "step_micros": _step(currency)}
    wanted = most_refundable_micros(payments, **limits) if wanted_micros is None else wanted_micros
    if not wanted:
        raise MoreThanIsLeft(0)
    try:
        parts = allocate(payments, wanted_micros=wanted, **limits)
    except MoreThanRefundable as why:
        raise MoreThanIsLeft(why.refundable_micros) from why
    return [_write(part, wallet, asking) for part in parts]


def _write(part: Part, wallet: Account, asking: _Asking) -> Refund:
    refund_id = uuid7()
    refund = Refund.objects.create(
        id=refund_id,
        top_up_id=part.top_up_id,
        amount_micros=part.amount_micros,
        origin=asking.origin,
        gateway_key=f"refund:{refund_id}:1",
        request_id=asking.request_id,
        requested_by=asking.requested_by,
        requested_at=asking.now,
    )
    post_asked(refund, wallet_id=wallet.pk, now=asking.now)
    note_refunded(refund.top_up)
    return refund


def _paid(organisation: Organisation, currency: str) -> QuerySet[TopUp]:
    return TopUp.objects.filter(
        organisation=organisation, currency=currency, state=TopUp.State.PAID, payment_intent_id__isnull=False
    )


def _payments(top_ups: QuerySet[TopUp]) -> list[Payment]:
    standing = ~Q(disputes__state=Dispute.State.WON)
    rows = top_ups.annotate(disputed_micros=Sum("disputes__amount_micros", filter=standing))
    return [
        Payment(
            top_up_id=row.pk,
            paid_at=row.paid_at,
            amount_micros=row.amount_micros,
            refunded_micros=row.refunded_micros,
            disputed_micros=int(row.disputed_micros or 0),
        )
        for row in rows
        if row.paid_at is not None
    ]


def _has_open_dispute(organisation: Organisation) -> bool:
    return Dispute.objects.filter(top_up__organisation=organisation, state=Dispute.State.OPEN).exists()


def _is_frozen(organisation: Organisation) -> bool:
    """Read it now: the caller's object may be from before a freeze."""
    return Organisation.objects.filter(pk=organisation.pk, frozen_at__isnull=False).exists()


def _step(currency: str) -> int:
    return from_minor_units(1, currency=currency)
