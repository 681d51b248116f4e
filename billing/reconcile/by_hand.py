"""A movement of our balance at the gateway that fits no entry gets one by a person's decision, with its reason."""

from datetime import datetime
from enum import StrEnum

from django.db import transaction

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line, Reference
from billing.models import Account, GatewayTransaction
from billing.topups.settle_by_hand import ReasonMissing
from users.audit import record
from users.models import User


class Meant(StrEnum):
    """What a movement is, as an operator says."""

    FEE = "fee"  # a charge of the gateway, or one it gave back
    TRANSFER = "transfer"  # to our bank account, or from it
    OURS = "ours"  # our loss, or our gain


_KINDS = {Meant.FEE: "gateway_fee", Meant.TRANSFER: "gateway_payout", Meant.OURS: "unmatched"}
_ACCOUNTS = {
    Meant.FEE: Account.Kind.GATEWAY_FEES,
    Meant.TRANSFER: Account.Kind.BANK,
    Meant.OURS: Account.Kind.LOSSES,
}


class AlreadyExplained(Exception):
    """The movement has its entry, or there is no such movement."""


def explain_movement(
    *, movement_pk: int, meant: Meant, operator: User, reason: str, now: datetime, ip_address: str | None = None
) -> int:
    """Post the entry of a movement that the reconciler could not match; return it.

    Steps: lock the movement, post between the gateway and what it is meant to be, note the entry on it, write it
    down. Lock order: the movement, accounts by id. A second run raises AlreadyExplained. Raises ReasonMissing,
    AlreadyExplained, UnknownCurrency (no account of ours can hold it).
    """
    if not reason.strip():
        raise ReasonMissing
    with transaction.atomic():
        movement = GatewayTransaction.objects.select_for_update(no_key=True).filter(pk=movement_pk, entry=None).first()
        if movement is None:
            raise AlreadyExplained
        entry_id = _post(movement, meant)
        GatewayTransaction.objects.filter(pk=movement.pk).update(entry_id=entry_id, note="")
        record(
            at=now,
            action="movement.explained",
            actor=operator,
            subject_type="gateway_transaction",
            subject_id=movement.transaction_id,
            reason=reason.strip(),
            before={"last_error": movement.note},
            after={"kind": meant.value, "amount_micros": movement.amount_micros, "currency": movement.currency},
            ip_address=ip_address,
        )
    return entry_id


def _post(movement: GatewayTransaction, meant: Meant) -> int:
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=movement.currency)
    other = open_account(kind=_ACCOUNTS[meant], currency=movement.currency)
    return ledger.post(
        key=f"movement:{movement.transaction_id}",
        kind=_KINDS[meant],
        lines=[Line(gateway.pk, -movement.amount_micros), Line(other.pk, movement.amount_micros)],
        effective_at=movement.happened_at,
        reference=Reference(type="gateway_transaction", id=movement.transaction_id),
        description="Explained by hand",
    )
