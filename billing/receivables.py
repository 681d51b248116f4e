"""What an organisation owes us after a clawback, and the rule that money coming back to it pays that first.

A receivable changes only while its organisation's wallet in the same currency is locked, so that two payments never
pay the same debt. Each function here locks the wallet until the caller's transaction ends; lock order: a top-up, its
refunds and disputes, then accounts by id.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from uuid6 import uuid7

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line, Reference
from billing.models import Account


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Lines that take an amount from an organisation: from its wallet what was available, the rest is owed."""

    lines: tuple[Line, ...]
    clawed_micros: int
    owed_micros: int


def open_receivable_micros(organisation_id: int, currency: str) -> int:
    """Return what the organisation owes us in this currency."""
    receivable = _receivable(organisation_id, currency)
    return 0 if receivable is None else max(0, -receivable.posted_micros)


def owes_anything(organisation_id: int) -> bool:
    """Whether a receivable of the organisation is open in any currency: while one is, no order and no refund."""
    return Account.objects.filter(kind=Account.Kind.RECEIVABLE, owner_id=organisation_id, posted_micros__lt=0).exists()


def owing_among(organisation_ids: Collection[int]) -> set[int]:
    """Return which of these organisations owe us anything, in whatever currency."""
    owing = Account.objects.filter(
        kind=Account.Kind.RECEIVABLE, owner_id__in=organisation_ids, posted_micros__lt=0
    ).values_list("owner_id", flat=True)
    return set(owing)


def receivable_first(*, organisation_id: int, currency: str, amount_micros: int) -> list[Line]:
    """Return lines that credit an organisation: its open receivable first, its wallet with the rest; [] for nothing.

    Call it in the transaction that posts the lines.
    """
    wallet = locked_wallet(organisation_id, currency)
    receivable = _receivable(organisation_id, currency)
    owed_micros = 0 if receivable is None else max(0, -receivable.posted_micros)
    paid_micros = min(owed_micros, amount_micros)
    lines = [Line(receivable.pk, paid_micros)] if receivable and paid_micros else []
    rest_micros = amount_micros - paid_micros
    return [*lines, Line(wallet.pk, rest_micros)] if rest_micros else lines


def claw_back(*, organisation_id: int, currency: str, amount_micros: int) -> Taken:
    """Return lines that take an amount from an organisation, whatever it has left: what is held is not available.

    Call it in the transaction that posts the lines.
    """
    wallet = locked_wallet(organisation_id, currency)
    clawed_micros = min(max(0, wallet.available_micros), amount_micros)
    owed_micros = amount_micros - clawed_micros
    lines = [Line(wallet.pk, -clawed_micros)] if clawed_micros else []
    if owed_micros:
        receivable = open_account(kind=Account.Kind.RECEIVABLE, currency=currency, owner_id=organisation_id)
        lines.append(Line(receivable.pk, -owed_micros))
    return Taken(lines=tuple(lines), clawed_micros=clawed_micros, owed_micros=owed_micros)


def pay_receivable(*, organisation_id: int, currency: str, now: datetime) -> int:
    """Pay what is owed from what the wallet has available; return the micros paid.

    Called by whoever gave money of a hold back, in that transaction; holds are locked before. A second run finds
    nothing left to pay, or nothing to pay it with.
    """
    if not open_receivable_micros(organisation_id, currency):
        return 0
    with transaction.atomic():
        wallet = locked_wallet(organisation_id, currency)
        owed_micros = open_receivable_micros(organisation_id, currency)
        paid_micros = min(owed_micros, wallet.available_micros)
        if paid_micros <= 0:
            return 0
        receivable = open_account(kind=Account.Kind.RECEIVABLE, currency=currency, owner_id=organisation_id)
        ledger.post(
            key=f"receivable_paid:{uuid7()}",
            kind="receivable_paid",
            lines=[Line(wallet.pk, -paid_micros), Line(receivable.pk, paid_micros)],
            effective_at=now,
            reference=Reference(type="organisation", id=str(organisation_id)),
        )
    return paid_micros


def pay_open_receivables(*, now: datetime) -> int:
    """Pay every open receivable that has money in its wallet; return how many were paid, wholly or in part."""
    owing = Account.objects.filter(kind=Account.Kind.RECEIVABLE, posted_micros__lt=0).order_by("pk")
    owners = list(owing.values_list("owner__pk", "currency"))
    return sum(
        pay_receivable(organisation_id=owner_id, currency=currency, now=now) > 0 for owner_id, currency in owners
    )


def locked_wallet(organisation_id: int, currency: str) -> Account:
    """Return an organisation's wallet, opened if need be, locked until the transaction ends and read after that."""
    wallet = open_account(kind=Account.Kind.WALLET, currency=currency, owner_id=organisation_id)
    ledger.lock_accounts([wallet.pk])
    wallet.refresh_from_db()
    return wallet


def _receivable(organisation_id: int, currency: str) -> Account | None:
    return Account.objects.filter(kind=Account.Kind.RECEIVABLE, owner_id=organisation_id, currency=currency).first()
