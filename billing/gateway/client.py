"""Calls to the payment gateway, one function each. Every one may raise GatewayOff, GatewayUnavailable or GatewayRefused.

With STRIPE_SECRET_KEY that is Stripe; without it, in the demo and in tests, the repository's own `fake_stripe`, over
the same library and the same HTTP. A call that makes something takes an idempotency `key`, stored by the caller
before: the same key and values give the same object back for a day, other values KeyConflict.
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

import requests
import stripe
from django.conf import settings

from billing.gateway.errors import (
    BadSignature,
    GatewayOff,
    GatewayRefused,
    GatewayUnavailable,
    KeyConflict,
    NoSuchObject,
    WrongMode,
)
from billing.gateway.keys import mode_of
from billing.gateway.objects import BalanceTransaction, CheckoutSession, Event, GatewayDispute, GatewayRefund, Payment
from billing.gateway.reading import (
    CURRENCIES,
    checkout_of,
    dispute_of,
    event_of,
    payment_of,
    refund_of,
    transaction_of,
)
from common.money import UnknownCurrency, from_minor_units, to_minor_units

# The version our reading was written for; a newer library must not change it silently (a test compares them).
API_VERSION = "2026-10-28.endive"
SIGNATURE_TOLERANCE_SECONDS = 300
_PRODUCT = "GPU Bourse"
_PAGE = 100
_log = logging.getLogger(__name__)
stripe.enable_telemetry = False  # it would tell the gateway about our machine, and write a file into the home

Theirs = TypeVar("Theirs")
Ours = TypeVar("Ours")


def is_on() -> bool:
    """Whether payments can be taken at all."""
    return bool(settings.STRIPE_SECRET_KEY or settings.FAKE_STRIPE_URL)


def is_test() -> bool:
    """Whether payments go to the repository's own test gateway: pages then say that no real money moves."""
    return is_on() and not settings.STRIPE_SECRET_KEY


def create_customer(*, organisation_id: int, email: str, name: str, key: str) -> str:
    """Make the gateway's customer for an organisation; return its id."""
    with _errors_in_our_words():
        customer = _client().v1.customers.create(
            params={"email": email, "name": name, "metadata": {"organisation_id": str(organisation_id)}},
            options={"idempotency_key": key},
        )
    return customer.id


def create_checkout(
    *,
    top_up_id: str,
    amount_micros: int,
    currency: str,
    customer_id: str,
    success_url: str,
    cancel_url: str,
    expires_at: datetime,
    locale: str,
    key: str,
) -> CheckoutSession:
    """Make a hosted payment page for a top-up. `expires_at` lies 30 minutes to 24 hours ahead.

    Which ways to pay it offers is set at the gateway, not here. Prices are never shown in the payer's own currency.
    """
    notes = {"top_up_id": top_up_id}
    with _errors_in_our_words():
        session = _client().v1.checkout.sessions.create(
            params={
                "mode": "payment",
                "client_reference_id": top_up_id,
                "customer": customer_id,
                "line_items": [
                    {
                        "quantity": 1,
                        "price_data": {
                            "currency": _lower(currency),
                            "unit_amount": to_minor_units(amount_micros, currency=currency),
                            "product_data": {"name": _PRODUCT},
                        },
                    }
                ],
                "adaptive_pricing": {"enabled": False},
                "metadata": notes,
                "payment_intent_data": {"metadata": notes},
                "success_url": success_url,
                "cancel_url": cancel_url,
                "expires_at": int(expires_at.timestamp()),
                "locale": locale,
            },
            options={"idempotency_key": key},
        )
        return checkout_of(session)


def get_checkout(session_id: str) -> CheckoutSession:
    """Return a session as it is now."""
    with _errors_in_our_words():
        return checkout_of(_client().v1.checkout.sessions.retrieve(session_id))


def expire_checkout(session_id: str) -> CheckoutSession:
    """Close an open session so that it can no longer be paid. Raises GatewayRefused when it is not open."""
    with _errors_in_our_words():
        return checkout_of(_client().v1.checkout.sessions.expire(session_id))


def get_payment(payment_intent_id: str) -> Payment:
    """Return a payment as it is now."""
    with _errors_in_our_words():
        return payment_of(_client().v1.payment_intents.retrieve(payment_intent_id))


def create_refund(
    *, payment_intent_id: str, amount_micros: int, currency: str, refund_id: str, key: str
) -> GatewayRefund:
    """Send money of a payment back to where it came from. Raises GatewayRefused for more than is left of it."""
    with _errors_in_our_words():
        refund = _client().v1.refunds.create(
            params={
                "payment_intent": payment_intent_id,
                "amount": to_minor_units(amount_micros, currency=currency),
                "metadata": {"refund_id": refund_id},
            },
            options={"idempotency_key": key},
        )
        return refund_of(refund)


def get_refund(gateway_refund_id: str) -> GatewayRefund:
    """Return a refund as it is now."""
    with _errors_in_our_words():
        return refund_of(_client().v1.refunds.retrieve(gateway_refund_id))


def get_dispute(gateway_dispute_id: str) -> GatewayDispute:
    """Return a dispute as it is now."""
    with _errors_in_our_words():
        return dispute_of(_client().v1.disputes.retrieve(gateway_dispute_id))


def get_balances() -> dict[str, int]:
    """Return what the gateway holds for us in micros per wallet currency, what it has not yet released included."""
    with _errors_in_our_words():
        balance = _client().v1.balance.retrieve()
    totals = dict.fromkeys(CURRENCIES, 0)
    parts: list[stripe.Balance.Available | stripe.Balance.Pending] = [*balance.available, *balance.pending]
    for part in parts:
        currency = part.currency.upper()
        if currency in totals:
            totals[currency] += from_minor_units(part.amount, currency=currency)
    return totals


def checkouts_since(at: datetime) -> Iterator[CheckoutSession]:
    """Yield the sessions made since then, newest first, in the wallets' currencies; pages are fetched as needed."""
    return _read_each(
        lambda: _client().v1.checkout.sessions.list(_since(at)).auto_paging_iter(),
        checkout_of,
    )


def payments_since(at: datetime) -> Iterator[Payment]:
    """Yield the payments made since then, newest first."""
    return _read_each(
        lambda: _client().v1.payment_intents.list(_since(at)).auto_paging_iter(),
        payment_of,
    )


def refunds_since(at: datetime) -> Iterator[GatewayRefund]:
    """Yield the refunds made since then, newest first, whoever made them."""
    return _read_each(
        lambda: _client().v1.refunds.list(_since(at)).auto_paging_iter(),
        refund_of,
    )


def disputes_since(at: datetime) -> Iterator[GatewayDispute]:
    """Yield the disputes opened since then, newest first."""
    return _read_each(
        lambda: _client().v1.disputes.list(_since(at)).auto_paging_iter(),
        dispute_of,
    )


def balance_transactions_since(at: datetime) -> Iterator[BalanceTransaction]:
    """Yield the movements of our balance since then, newest first."""
    return _read_each(
        lambda: _client().v1.balance_transactions.list(_since(at)).auto_paging_iter(),
        transaction_of,
    )


def verify_event(raw: bytes, signature: str) -> Event:
    """Return the message of a webhook, signed with one of our secrets within five minutes.

    `raw` is the body as it came. Several secrets hold while one is replaced. Raises BadSignature, WrongMode.
    """
    if not any(_is_signed(raw, signature, secret) for secret in settings.STRIPE_WEBHOOK_SECRETS):
        raise BadSignature("No secret of ours made this signature within the last five minutes.")
    try:
        event = event_of(json.loads(raw))
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise BadSignature(f"Signed, but no event: {wrong!r}") from wrong
    if event.is_live != (mode_of(settings.STRIPE_SECRET_KEY) == "live"):
        raise WrongMode(f"{event.id} is {'live' if event.is_live else 'a test'}, and we are not.")
    return event


def _since(at: datetime) -> Any:  # each list of the library has its own type for the same two filters
    return {"created": {"gte": int(at.timestamp())}, "limit": _PAGE}


def _is_signed(raw: bytes, signature: str, secret: str) -> bool:
    try:
        stripe.WebhookSignature.verify_header(raw, signature, secret, SIGNATURE_TOLERANCE_SECONDS)
    except (stripe.SignatureVerificationError, UnicodeDecodeError):
        return False
    return True


def _read_each(ask: Callable[[], Iterator[Theirs]], read: Callable[[Theirs], Ours]) -> Iterator[Ours]:
    with _errors_in_our_words():
        for theirs in ask():
            try:
                ours = read(theirs)
            except UnknownCurrency as foreign:
                _log.error("Left out an object of the gateway: %s", foreign)
                continue
            yield ours


def _lower(currency: str) -> str:
    if currency not in CURRENCIES:
        raise UnknownCurrency(f"{currency} is not a wallet's currency.")
    return currency.lower()


@contextmanager
def _errors_in_our_words() -> Iterator[None]:
    try:
        yield
    except stripe.IdempotencyError as conflict:
        raise KeyConflict(str(conflict)) from conflict
    except (stripe.InvalidRequestError, stripe.CardError) as refusal:
        kind = NoSuchObject if refusal.code == "resource_missing" else GatewayRefused
        raise kind(code=refusal.code or "", message=refusal.user_message or "") from refusal
    except stripe.StripeError as failure:
        what = f"{type(failure).__name__} {failure.http_status or 'without an answer'} {failure.code or ''}".strip()
        _log.warning("The gateway gave no usable answer: %s", what)
        raise GatewayUnavailable(what) from failure
    except UnknownCurrency as foreign:
        raise GatewayRefused(code="currency_not_held", message=str(foreign)) from foreign


def _client() -> stripe.StripeClient:
    if not is_on():
        raise GatewayOff("No key of the payment gateway is set.")
    return _made_client(
        settings.STRIPE_SECRET_KEY or settings.FAKE_STRIPE_KEY,
        "" if settings.STRIPE_SECRET_KEY else settings.FAKE_STRIPE_URL,
        settings.STRIPE_TIMEOUT_SECONDS,
        settings.STRIPE_RETRIES,
    )


@lru_cache(maxsize=8)
def _made_client(api_key: str, base_url: str, timeout_seconds: float, retries: int) -> stripe.StripeClient:
    session = requests.Session()
    session.trust_env = not base_url  # a proxy for the outside world does not lead to our own machine
    return stripe.StripeClient(
        api_key,
        stripe_version=API_VERSION,
        base_addresses={"api": base_url} if base_url else None,
        max_network_retries=retries,
        http_client=stripe.RequestsClient(timeout=timeout_seconds, session=session),
    )
