"""Stripe's objects as ours."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

import stripe

from billing.gateway.objects import BalanceTransaction, CheckoutSession, Event, GatewayDispute, GatewayRefund, Payment
from common.money import UnknownCurrency, from_minor_units

# The wallets' currencies. Another business on the same account may take others: those objects are not ours.
CURRENCIES = ("EUR", "USD", "GBP")


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


def checkout_of(session: stripe.checkout.Session) -> CheckoutSession:
    """Return a Checkout Session. Raises UnknownCurrency."""
    currency = _currency(session.currency)
    return CheckoutSession(
        id=session.id,
        url=session.url,
        status=session.status or "",
        payment_status=session.payment_status,
        payment_intent_id=_id(session.payment_intent) or None,
        top_up_id=_note(session.metadata, "top_up_id"),
        amount_micros=from_minor_units(session.amount_total or 0, currency=currency),
        currency=currency,
        customer_id=_id(session.customer) or None,
        expires_at=_at(session.expires_at),
        created_at=_at(session.created),
    )


def payment_of(intent: stripe.PaymentIntent) -> Payment:
    """Return a PaymentIntent. Raises UnknownCurrency."""
    currency = _currency(intent.currency)
    error = intent.last_payment_error
    return Payment(
        id=intent.id,
        status=intent.status,
        amount_micros=from_minor_units(intent.amount, currency=currency),
        received_micros=from_minor_units(intent.amount_received, currency=currency),
        currency=currency,
        customer_id=_id(intent.customer) or None,
        top_up_id=_note(intent.metadata, "top_up_id"),
        failure_reason=(error.decline_code or error.code or "") if error else "",
        created_at=_at(intent.created),
        charge_id=_id(intent.latest_charge),
    )


def refund_of(refund: stripe.Refund) -> GatewayRefund:
    """Return a Refund. Raises UnknownCurrency."""
    currency = _currency(refund.currency)
    return GatewayRefund(
        id=refund.id,
        status=refund.status or "",
        amount_micros=from_minor_units(refund.amount, currency=currency),
        currency=currency,
        payment_intent_id=_id(refund.payment_intent),
        refund_id=_note(refund.metadata, "refund_id"),
        failure_reason=refund.failure_reason or "",
        created_at=_at(refund.created),
    )


def dispute_of(dispute: stripe.Dispute) -> GatewayDispute:
    """Return a Dispute. Raises UnknownCurrency."""
    currency = _currency(dispute.currency)
    return GatewayDispute(
        id=dispute.id,
        status=dispute.status,
        amount_micros=from_minor_units(dispute.amount, currency=currency),
        currency=currency,
        payment_intent_id=_id(dispute.payment_intent),
        reason=dispute.reason,
        created_at=_at(dispute.created),
    )


def transaction_of(transaction: stripe.BalanceTransaction) -> BalanceTransaction:
    """Return a BalanceTransaction. Raises UnknownCurrency."""
    currency = _currency(transaction.currency)
    rate = transaction.exchange_rate
    return BalanceTransaction(
        id=transaction.id,
        type=transaction.type,
        amount_micros=from_minor_units(transaction.amount, currency=currency),
        fee_micros=from_minor_units(transaction.fee, currency=currency),
        currency=currency,
        source_id=_id(transaction.source),
        created_at=_at(transaction.created),
        exchange_rate=None if rate is None else Decimal(str(rate)),
    )


def event_of(payload: dict[str, Any]) -> Event:
    """Return a parsed message. Raises KeyError, TypeError or AttributeError when it is no event."""
    return Event(
        id=str(payload["id"]),
        type=str(payload["type"]),
        object_id=str(payload["data"]["object"].get("id") or ""),
        is_live=payload["livemode"] is True,
        payload=payload,
    )


def _currency(code: str | None) -> str:
    currency = (code or "").upper()
    if currency not in CURRENCIES:
        raise UnknownCurrency(f"{currency or 'no currency'} is not a wallet's currency.")
    return currency


def _id(value: str | _Identified | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else value.id


def _note(metadata: stripe.StripeObject | None, name: str) -> str:
    return str(metadata.to_dict().get(name, "")) if metadata else ""


def _at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
