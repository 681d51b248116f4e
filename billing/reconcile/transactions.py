"""Each movement of our balance at the gateway belongs to exactly one entry, of its amount; its fee is an entry more."""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Sum

from billing import ledger
from billing.accounts import open_account
from billing.gateway.objects import BalanceTransaction
from billing.ledger import Line, Reference
from billing.models import Account, Dispute, GatewayTransaction, JournalEntry, Posting, Refund, TopUp
from billing.reconcile.movements import meaning_of
from billing.refunds.outflow import lock_top_up
from billing.refunds.postings import post_back_at_gateway, post_left_gateway

log = logging.getLogger("reconcile")
_LISTED = 100
_LOOKED_BACK = 5000  # postings of an account, in the hourly search for entries without a movement
_CONVERTED = "converted at "


def take_transactions(told: Iterable[BalanceTransaction], *, now: datetime) -> int:
    """Store movements that are new, each with its fee posted; return how many.

    One transaction each: row and fee together. A second run finds the row. No lock: of two at once one writes it.
    """
    movements = {movement.id: movement for movement in told}
    known = GatewayTransaction.objects.filter(transaction_id__in=movements).values_list("transaction_id", flat=True)
    for transaction_id in list(known):
        del movements[transaction_id]
    return sum(_is_new(movement, now=now) for movement in movements.values())


def match_transactions(payments_by_charge: Mapping[str, str], *, now: datetime) -> tuple[int, int]:
    """Find the entry of every movement that has none yet; return how many were found, and how many wait for a person.

    `payments_by_charge` names the payment of each charge, both by their ids at the gateway. What is not found says why
    in its note, and is tried again by the next run. Posting what a movement proves (a refund that has left, a payout)
    locks its top-up, then accounts by id.
    """
    waiting = GatewayTransaction.objects.filter(entry=None).order_by("happened_at", "pk")
    found = [_match(row, payments_by_charge, now=now) for row in list(waiting)]
    return sum(found), len(found) - sum(found)


def unmatched_transactions() -> list[GatewayTransaction]:
    """Return the movements that wait for a person, newest first."""
    return list(GatewayTransaction.objects.filter(entry=None).order_by("-seen_at", "-pk")[:_LISTED])


def entries_without_movement(*, since: datetime, until: datetime) -> list[str]:
    """Return the keys of entries that moved money at the gateway, by our books alone."""
    newest = [
        Posting.objects.filter(account=account).order_by("-pk").values_list("entry_id", flat=True)[:_LOOKED_BACK]
        for account in Account.objects.filter(kind=Account.Kind.GATEWAY)
    ]
    ids = {entry_id for part in newest for entry_id in part}
    entries = JournalEntry.objects.filter(pk__in=ids, effective_at__gte=since, effective_at__lt=until)
    told = Exists(GatewayTransaction.objects.filter(entry=OuterRef("pk")))
    told_as_fee = Exists(GatewayTransaction.objects.filter(fee_entry=OuterRef("pk")))
    undone = Q(reverses__isnull=False) | Q(reversals__isnull=False)  # a setting aside that became a top-up
    alone = entries.exclude(told).exclude(told_as_fee).exclude(undone).order_by("pk")
    return list(alone.values_list("key", flat=True)[:_LISTED])


def _is_new(told: BalanceTransaction, *, now: datetime) -> bool:
    with transaction.atomic():
        row, created = GatewayTransaction.objects.get_or_create(
            transaction_id=told.id,
            defaults={
                "type": told.type[:40],
                "currency": told.currency,
                "amount_micros": told.amount_micros,
                "fee_micros": told.fee_micros,
                "source_id": told.source_id,
                "happened_at": told.created_at,
                "seen_at": now,
                "note": "" if told.exchange_rate is None else f"{_CONVERTED}{told.exchange_rate}",
            },
        )
        if created and told.fee_micros:
            entry_id = _post_fee(row, told.fee_micros, at=told.created_at)
            GatewayTransaction.objects.filter(pk=row.pk).update(fee_entry_id=entry_id)
    if created and told.exchange_rate is not None:
        log.error("The gateway converted movement %s at %s: wallets are kept apart.", told.id, told.exchange_rate)
    return created


def _post_fee(row: GatewayTransaction, micros: int, *, at: datetime) -> int:
    """Post what the gateway kept (negative: gave back); return the entry, once written."""
    fees = open_account(kind=Account.Kind.GATEWAY_FEES, currency=row.currency)
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=row.currency)
    return ledger.post(
        key=f"gateway_fee:{row.transaction_id}",
        kind="gateway_fee",
        lines=[Line(fees.pk, -micros), Line(gateway.pk, micros)],
        effective_at=at,
        reference=Reference(type="gateway_transaction", id=row.transaction_id),
    )


def _match(row: GatewayTransaction, payments_by_charge: Mapping[str, str], *, now: datetime) -> bool:
    if row.note.startswith(_CONVERTED):
        return False
    waiting = GatewayTransaction.objects.filter(pk=row.pk, entry=None)
    with transaction.atomic():
        entry_id = _entry_of(row, payments_by_charge, now=now)
        note = _why_not(row, entry_id)
        if not note:
            return waiting.update(entry_id=entry_id, note="") == 1
        waiting.update(note=note)
    if note != row.note:
        log.error("Movement %s (%s) of the gateway: %s.", row.transaction_id, row.type, note)
    return False


def _why_not(row: GatewayTransaction, entry_id: int | None) -> str:
    """Return why this entry is not the movement's, "" when it is."""
    if entry_id is None:
        is_known = meaning_of(row.type, row.amount_micros) != "unknown"
        return "nothing in the books fits it" if is_known else "a type we do not know"
    lines = Posting.objects.filter(entry_id=entry_id, account__kind=Account.Kind.GATEWAY, currency=row.currency)
    if lines.aggregate(micros=Sum("amount_micros"))["micros"] != -row.amount_micros:
        return f"entry {entry_id} has another amount or currency"
    other = GatewayTransaction.objects.filter(Q(entry_id=entry_id) | Q(fee_entry_id=entry_id)).exclude(pk=row.pk)
    return f"entry {entry_id} has its movement already" if other.exists() else ""


def _entry_of(row: GatewayTransaction, payments_by_charge: Mapping[str, str], *, now: datetime) -> int | None:
    match meaning_of(row.type, row.amount_micros):
        case "payment":
            return _payment_entry(payments_by_charge.get(row.source_id, ""))
        case "refund" | "refund returned" as meaning:
            return _refund_entry(row, is_returned=meaning == "refund returned", now=now)
        case "dispute":
            return _dispute_entry(row, "withdrawn", "")
        case "dispute returned":
            return _dispute_entry(row, "reinstated", ":back")
        case "payout" | "payout returned":
            return _payout_entry(row)
        case "fee":
            return _post_fee(row, -row.amount_micros, at=row.happened_at)
        case "unknown":
            return None


def _payment_entry(payment_intent_id: str) -> int | None:
    if not payment_intent_id:
        return None
    paid = TopUp.objects.filter(payment_intent_id=payment_intent_id, state=TopUp.State.PAID)
    return paid.values_list("credit_entry_id", flat=True).first() or _entry(f"unmatched:{payment_intent_id}")


def _refund_entry(row: GatewayTransaction, *, is_returned: bool, now: datetime) -> int | None:
    """Return the entry of a refund's movement, which proves that the money left the gateway, or is back there.

    A refund that is still pending, or that failed before it ever succeeded, has moved there all the same.
    """
    refund = Refund.objects.filter(gateway_refund_id=row.source_id).first()
    if refund is None:
        return _set_aside_entry(row, ":back" if is_returned else "")
    lock_top_up(refund.top_up_id)
    refund = Refund.objects.select_related("top_up").get(pk=refund.pk)
    left = post_left_gateway(refund, now=now)
    if not is_returned:
        return left
    return post_back_at_gateway(refund, now=now) if refund.state == Refund.State.FAILED else None


def _dispute_entry(row: GatewayTransaction, step: str, set_aside_step: str) -> int | None:
    dispute = Dispute.objects.filter(gateway_dispute_id=row.source_id).first()
    if dispute is None:
        return _set_aside_entry(row, set_aside_step)
    return _entry(f"dispute:{dispute.pk}:{step}")


def _set_aside_entry(row: GatewayTransaction, step: str) -> int | None:
    if not row.source_id:
        return None
    set_aside = JournalEntry.objects.filter(reference_type="payment").exclude(reference_id="")
    left = set_aside.filter(key__endswith=f":{row.source_id}{step}")
    return left.values_list("pk", flat=True).first()


def _payout_entry(row: GatewayTransaction) -> int:
    bank = open_account(kind=Account.Kind.BANK, currency=row.currency)
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=row.currency)
    return ledger.post(
        key=f"gateway_payout:{row.transaction_id}",
        kind="gateway_payout",
        lines=[Line(bank.pk, row.amount_micros), Line(gateway.pk, -row.amount_micros)],
        effective_at=row.happened_at,
        reference=Reference(type="gateway_transaction", id=row.transaction_id),
    )


def _entry(key: str) -> int | None:
    return JournalEntry.objects.filter(key=key).values_list("pk", flat=True).first()
