"""The reconciler: what the gateway lists is followed as if each message had come, then its movements are matched."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from django.db.models import Max
from django.utils.translation import gettext_noop

from billing.disputes import follow_dispute
from billing.gateway import client
from billing.gateway.errors import GatewayOff, GatewayUnavailable, NoSuchObject
from billing.gateway.objects import CheckoutSession, GatewayDispute, GatewayRefund, Payment
from billing.models import Dispute, GatewayTransaction, Refund, TopUp
from billing.reconcile.transactions import entries_without_movement, match_transactions, take_transactions
from billing.refunds.follow import follow_refund
from billing.topups.credit import credit_top_up
from billing.topups.look import follow_checkout
from users.freezing import freeze

log = logging.getLogger("reconcile")
WINDOW = timedelta(hours=72)
_DEBITS_TAKE = timedelta(days=14)  # a bank debit arrives so long after its payment was made
_BOOKS_LEAD_BY = timedelta(hours=1)  # the gateway may list a movement a little later than it tells the payment
NOT_SUCCEEDED_REASON = gettext_noop("A payment that is in the wallet has not succeeded at the payment provider.")


class _Named(Protocol):
    @property
    def id(self) -> str: ...


Told = TypeVar("Told", bound=_Named)


@dataclass(kw_only=True)
class Report:
    """What a run looked at and what it found. `failures`: what a person must look at, in words."""

    payments: int = 0
    checkouts: int = 0
    refunds: int = 0
    disputes: int = 0
    new_transactions: int = 0
    matched: int = 0
    unmatched: int = 0
    failures: list[str] = field(default_factory=list)


def reconcile(*, now: datetime) -> Report:
    """Bring our books in line with the gateway's lists; return what was found.

    1. Payments, payment pages, refunds, disputes of the last 72 hours, further back where we have not run since: each
       is followed by the function that follows its messages, oldest first. Open ones that are older are asked for.
    2. A payment in a wallet that the gateway does not call succeeded freezes its organisation.
    3. Movements of our balance: stored, fees posted, each matched with its entry.

    Holds no lock and no transaction between the steps; each follower has its own. One that fails is logged and the
    others go on. A second run finds nothing to do. Raises GatewayOff or GatewayUnavailable: the next run goes on.
    """
    report, since = Report(), _since(now)
    payments = _oldest_first(client.payments_since(since))
    report.payments = _follow_each(payments, credit_payment, report, now=now)
    report.checkouts = _follow_each(_checkouts(since, report), follow_checkout, report, now=now)
    report.refunds = _follow_each(_refunds(since, report), follow_refund, report, now=now)
    report.disputes = _follow_each(_disputes(since, report), follow_dispute, report, now=now)
    _check_credited(payments, report, since=since, now=now)
    report.new_transactions = take_transactions(_oldest_first(client.balance_transactions_since(since)), now=now)
    _follow_late_changes(report, now=now)
    report.matched, report.unmatched = match_transactions(_payments_by_charge(payments, since), now=now)
    for key in entries_without_movement(since=since, until=now - _BOOKS_LEAD_BY):
        _note_failure(report, f"entry {key} moved money at the gateway, which knows of no such movement")
    return report


def credit_payment(payment: Payment, *, now: datetime) -> None:
    """Credit a payment that has succeeded, once."""
    credit_top_up(payment=payment, now=now)


def _since(now: datetime) -> datetime:
    """Return where to begin: 72 hours ago, or where the last run ended, whichever is earlier."""
    newest = GatewayTransaction.objects.aggregate(at=Max("happened_at"))["at"]
    return now - WINDOW if newest is None else min(now - WINDOW, newest)


def _oldest_first(told: Iterable[Told]) -> list[Told]:
    return list(told)[::-1]


def _follow_each(told: Iterable[Told], follow: Callable[..., object], report: Report, *, now: datetime) -> int:
    count = 0
    for one in told:
        count += 1
        try:
            follow(one, now=now)
        except (GatewayOff, GatewayUnavailable):
            raise
        except Exception as problem:  # whatever it is, the others go on
            log.exception("Could not follow %s", one.id)
            report.failures.append(f"{one.id}: {problem!r}")
    return count


def _checkouts(since: datetime, report: Report) -> list[CheckoutSession]:
    """Return payment pages made since then whose top-up is not paid, and older ones that wait for their money."""
    told = [session for session in _oldest_first(client.checkouts_since(since)) if session.top_up_id]
    listed = [session.id for session in told]
    paid = TopUp.objects.filter(checkout_session_id__in=listed, state=TopUp.State.PAID)
    settled = set(paid.values_list("checkout_session_id", flat=True))
    waiting = TopUp.objects.filter(state=TopUp.State.PROCESSING).exclude(checkout_session_id__in=listed)
    older = _asked_for(client.get_checkout, waiting.values_list("checkout_session_id", flat=True), report)
    return [*older, *(session for session in told if session.id not in settled)]


def _refunds(since: datetime, report: Report) -> list[GatewayRefund]:
    """Return the refunds made since then, and those of ours that are still on their way, however old."""
    told = _oldest_first(client.refunds_since(since))
    waiting = Refund.objects.filter(state=Refund.State.SUBMITTED).exclude(
        gateway_refund_id__in=[refund.id for refund in told]
    )
    ids = waiting.values_list("gateway_refund_id", flat=True)
    return [*_asked_for(client.get_refund, ids, report), *told]


def _disputes(since: datetime, report: Report) -> list[GatewayDispute]:
    """Return the disputes opened since then, and those that were open when we last looked, however old."""
    told = _oldest_first(client.disputes_since(since))
    waiting = Dispute.objects.filter(state=Dispute.State.OPEN).exclude(
        gateway_dispute_id__in=[dispute.id for dispute in told]
    )
    ids = waiting.values_list("gateway_dispute_id", flat=True)
    return [*_asked_for(client.get_dispute, ids, report), *told]


def _asked_for(ask: Callable[[str], Told], ids: Iterable[str | None], report: Report) -> list[Told]:
    found = []
    for gateway_id in [gateway_id for gateway_id in ids if gateway_id]:
        try:
            found.append(ask(gateway_id))
        except NoSuchObject:
            _note_failure(report, f"{gateway_id} is unknown at the gateway")
    return found


def _check_credited(payments: list[Payment], report: Report, *, since: datetime, now: datetime) -> None:
    """Freeze whoever has money in a wallet that never arrived."""
    listed = {payment.id: payment for payment in payments}
    for top_up in TopUp.objects.filter(state=TopUp.State.PAID, paid_at__gte=since):
        payment = listed.get(top_up.payment_intent_id or "") or _payment(top_up.payment_intent_id)
        if payment is None or payment.status != "succeeded" or payment.received_micros != top_up.amount_micros:
            said = payment.status if payment else "unknown"
            _note_failure(report, f"top-up {top_up.pk} is in a wallet, and its payment is {said} at the gateway")
            freeze(organisation_id=top_up.organisation_id, reason=NOT_SUCCEEDED_REASON, now=now)


def _payment(payment_intent_id: str | None) -> Payment | None:
    try:
        return client.get_payment(payment_intent_id) if payment_intent_id else None
    except NoSuchObject:
        return None


def _follow_late_changes(report: Report, *, now: datetime) -> None:
    """A movement may tell of an old refund or dispute what no list of the last days does: it failed, or was won."""
    sources = list(GatewayTransaction.objects.filter(entry=None).values_list("source_id", flat=True))
    refunds = Refund.objects.filter(gateway_refund_id__in=sources).values_list("gateway_refund_id", flat=True)
    disputes = Dispute.objects.filter(gateway_dispute_id__in=sources).values_list("gateway_dispute_id", flat=True)
    _follow_each(_asked_for(client.get_refund, refunds, report), follow_refund, report, now=now)
    _follow_each(_asked_for(client.get_dispute, disputes, report), follow_dispute, report, now=now)


def _payments_by_charge(payments: list[Payment], since: datetime) -> dict[str, str]:
    """Return the payment of each charge; further back when a movement's charge is not among them."""
    known = {payment.charge_id: payment.id for payment in payments}
    waiting = GatewayTransaction.objects.filter(entry=None, type__in=["charge", "payment"])
    if set(waiting.values_list("source_id", flat=True)) <= set(known):
        return known
    return {payment.charge_id: payment.id for payment in client.payments_since(since - _DEBITS_TAKE)}


def _note_failure(report: Report, words: str) -> None:
    log.error("Reconciliation: %s.", words)
    report.failures.append(words)
