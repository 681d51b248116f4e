"""What the gateway tells us, in our own words: amounts in micros, currencies in capitals, times aware and in UTC.

States are the gateway's own and may grow: they are text, and an unknown one is for the reader to ignore.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CheckoutSession:
    """A hosted payment page for one top-up."""

    id: str
    url: str | None  # none once it can no longer be paid
    status: str  # open, complete, expired
    payment_status: str  # paid, unpaid, no_payment_required
    payment_intent_id: str | None  # none before the first attempt to pay
    top_up_id: str  # "" for a session that is not ours
    amount_micros: int
    currency: str
    customer_id: str | None
    expires_at: datetime
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Payment:
    """Money on its way to us, or with us."""

    id: str
    status: str  # requires_payment_method, requires_action, processing, succeeded, canceled, ...
    amount_micros: int
    received_micros: int
    currency: str
    customer_id: str | None
    top_up_id: str  # "" for a payment that is not ours
    failure_reason: str  # of the last attempt; "" when there was none
    created_at: datetime
    charge_id: str = ""  # of the last attempt: the source of its balance transaction; "" before the first


@dataclass(frozen=True, kw_only=True)
class GatewayRefund:
    """Money on its way back to the payment it came from."""

    id: str
    status: str  # pending, requires_action, succeeded, failed, canceled
    amount_micros: int
    currency: str
    payment_intent_id: str  # "" for a charge without one
    refund_id: str  # our row; "" for a refund made at the gateway
    failure_reason: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class GatewayDispute:
    """A payment that its payer's bank takes back. The amount may exceed the payment's."""

    id: str
    status: str  # needs_response, under_review, won, lost; warning_... for an inquiry that has moved no money
    amount_micros: int
    currency: str
    payment_intent_id: str  # "" for a charge without one
    reason: str
    created_at: datetime

    @property
    def is_won(self) -> bool:
        """Whether the money came back to us."""
        return self.status == "won"

    @property
    def is_lost(self) -> bool:
        """Whether the money is gone for good."""
        return self.status == "lost"

    @property
    def is_inquiry(self) -> bool:
        """Whether the bank only asks: no money has moved."""
        return self.status.startswith("warning_")


@dataclass(frozen=True, kw_only=True)
class BalanceTransaction:
    """One movement of our balance at the gateway: `amount_micros` less `fee_micros` is what the balance changed by."""

    id: str
    type: str  # charge, payment, refund, refund_failure, adjustment, stripe_fee, payout, ... and it grows
    amount_micros: int
    fee_micros: int
    currency: str
    source_id: str  # the charge, refund, dispute or payout behind it; "" for none
    created_at: datetime
    exchange_rate: Decimal | None  # set when the gateway converted, which must not happen


@dataclass(frozen=True, kw_only=True)
class Event:
    """A signed message. It is a hint: the object it names is asked for again before anything is decided."""

    id: str
    type: str
    object_id: str  # "" when it names none
    is_live: bool
    payload: dict[str, Any]
