"""The test gateway, and Stripe's own library pointed at it."""

from collections.abc import Iterator
from typing import Any

import pytest
import stripe

from tests.billing.gateway_server import KEY, FakeStripe


@pytest.fixture
def gateway(gateway_process: FakeStripe) -> Iterator[FakeStripe]:
    """A gateway that has forgotten everything."""
    gateway_process.reset()
    yield gateway_process
    gateway_process.reset()


@pytest.fixture
def api(gateway: FakeStripe) -> stripe.StripeClient:
    return client_of(gateway.url)


def client_of(url: str, key: str = KEY) -> stripe.StripeClient:
    """Return Stripe's own client for a gateway."""
    return stripe.StripeClient(key, base_addresses={"api": url}, max_network_retries=0)


def new_session(api: stripe.StripeClient, *, amount: int = 10_000, currency: str = "eur", key: str = "", **params):
    """Make a Checkout Session as the site does."""
    wanted: Any = {
        "mode": "payment",
        "line_items": [
            {
                "quantity": 1,
                "price_data": {"currency": currency, "unit_amount": amount, "product_data": {"name": "GPU <Bourse>"}},
            }
        ],
        "success_url": "http://localhost:1/back?session={CHECKOUT_SESSION_ID}",
        "cancel_url": "http://localhost:1/cancelled",
        **params,
    }
    return api.v1.checkout.sessions.create(wanted, {"idempotency_key": key} if key else None)
