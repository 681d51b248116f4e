"""A payment that fits no top-up waits on the clearing account `unmatched`; refunded or taken back there, it leaves it."""

from dataclasses import dataclass
from datetime import datetime

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line, Reference
from billing.models import Account, JournalEntry


@dataclass(frozen=True, kw_only=True)
class Departure:
    """What the gateway sent away of such a payment: by `source_id`, its refund or its dispute."""

    payment_intent_id: str
    source_id: str
    amount_micros: int
    currency: str

    @property
    def key(self) -> str:
        """The key of its entry."""
        return f"unmatched:{self.payment_intent_id}:{self.source_id}"


def is_set_aside(payment_intent_id: str) -> bool:
    """Whether this payment's money waits on the clearing account, or did."""
    return bool(payment_intent_id) and JournalEntry.objects.filter(key=f"unmatched:{payment_intent_id}").exists()


def post_gone(departure: Departure, *, now: datetime) -> int:
    """Clear what has gone; return the entry, once written."""
    return _post(departure, departure.key, departure.amount_micros, now=now)


def post_back(departure: Departure, *, now: datetime) -> int:
    """What had gone came back to the gateway: it waits again; return the entry, once written."""
    return _post(departure, f"{departure.key}:back", -departure.amount_micros, now=now)


def has_gone(departure: Departure) -> bool:
    """Whether `post_gone` was called for it."""
    return JournalEntry.objects.filter(key=departure.key).exists()


def _post(departure: Departure, key: str, micros: int, *, now: datetime) -> int:
    gateway = open_account(kind=Account.Kind.GATEWAY, currency=departure.currency)
    unmatched = open_account(kind=Account.Kind.UNMATCHED, currency=departure.currency)
    return ledger.post(
        key=key,
        kind="unmatched",
        lines=[Line(gateway.pk, micros), Line(unmatched.pk, -micros)],
        effective_at=now,
        reference=Reference(type="payment", id=departure.payment_intent_id),
    )
