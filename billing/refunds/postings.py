"""The entries of a refund: the money leaves the wallet, then the gateway; or it comes back, by each step it had taken.

Between the two it stands on the clearing account. Keys are made of the refund's id, and of a round for the rare
refund that was taken for failed and lives after all; each entry is written once.
"""

from collections.abc import Sequence
from datetime import datetime

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line, Reference
from billing.models import Account, JournalEntry, Refund, TopUp
from billing.receivables import claw_back, receivable_first
from billing.refunds.outflow import share_of


def post_asked(refund: Refund, *, wallet_id: int, now: datetime) -> None:
    """Take what was asked for from the wallet. Raises InsufficientFunds."""
    _post(refund, "", "refund", [Line(wallet_id, -refund.amount_micros)], clearing_micros=refund.amount_micros, now=now)


def post_clawed(refund: Refund, top_up: TopUp, *, now: datetime) -> int:
    """Take a refund that is made already, whatever the wallet has left; return the micros that are owed.

    Ask before the row counts among the payment's refunds.
    """
    share = share_of(top_up, change_micros=refund.amount_micros)
    taken = claw_back(
        organisation_id=top_up.organisation_id, currency=top_up.currency, amount_micros=share.customer_micros
    )
    lines = [*taken.lines, *_loss(top_up.currency, -share.loss_micros)]
    _post(refund, "", "refund", lines, clearing_micros=refund.amount_micros, now=now)
    return taken.owed_micros


def post_left_gateway(refund: Refund, *, now: datetime) -> int:
    """The gateway paid it out: clear it; return the entry. A second time is the same entry."""
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=refund.top_up.currency)
    lines = [Line(gateway.pk, refund.amount_micros)]
    return _post(refund, ":paid", "refund", lines, clearing_micros=-refund.amount_micros, now=now)


def post_back_at_gateway(refund: Refund, *, now: datetime) -> int:
    """What the gateway had paid out came back there: on the clearing account again; return the entry, once written."""
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=refund.top_up.currency)
    lines = [Line(gateway.pk, -refund.amount_micros)]
    return _post(refund, ":returned", "refund_failed", lines, clearing_micros=refund.amount_micros, now=now)


def post_failed(refund: Refund, top_up: TopUp, *, now: datetime) -> None:
    """Give the money back: first what we lost on this payment, then what the organisation owes, then its wallet.

    Ask before the row stops counting among the payment's refunds.
    """
    if has_left_gateway(refund):
        post_back_at_gateway(refund, now=now)
    share = share_of(top_up, change_micros=-refund.amount_micros)
    back = receivable_first(
        organisation_id=top_up.organisation_id, currency=top_up.currency, amount_micros=-share.customer_micros
    )
    lines = [*back, *_loss(top_up.currency, -share.loss_micros)]
    _post(refund, ":failed", "refund_failed", lines, clearing_micros=-refund.amount_micros, now=now)


def has_left_gateway(refund: Refund) -> bool:
    """Whether it was cleared in its present round."""
    return JournalEntry.objects.filter(key=f"{_key(refund)}:paid").exists()


def _post(refund: Refund, step: str, kind: str, lines: Sequence[Line], *, clearing_micros: int, now: datetime) -> int:
    clearing = open_account(kind=Account.Kind.REFUNDS, currency=refund.top_up.currency)
    return ledger.post(
        key=_key(refund) + step,
        kind=kind,
        lines=[*lines, Line(clearing.pk, clearing_micros)],
        effective_at=now,
        reference=Reference(type="refund", id=str(refund.pk)),
    )


def _key(refund: Refund) -> str:
    """Name the round: how often it had failed before. A failed refund is still in the round in which it failed."""
    failures = JournalEntry.objects.filter(
        reference_type="refund", reference_id=str(refund.pk), key__endswith=":failed"
    ).count()
    number = failures - 1 if refund.state == Refund.State.FAILED and failures else failures
    return f"refund:{refund.pk}:{number}" if number else f"refund:{refund.pk}"


def _loss(currency: str, amount_micros: int) -> list[Line]:
    if not amount_micros:
        return []
    return [Line(open_account(kind=Account.Kind.LOSSES, currency=currency).pk, amount_micros)]
