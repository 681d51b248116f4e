"""The gateway double, for tests of what becomes of a refund: it can be slow to pay out, refuse, or lose its answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from billing.gateway.errors import GatewayRefused, GatewayUnavailable
from billing.gateway.objects import GatewayDispute, GatewayRefund
from billing.models import TopUp
from tests.billing.conftest import NOW
from tests.billing.gateway_double import GatewayDouble, install

Answer = Literal["succeeded", "pending", "refused", "no answer", "answer lost"]


@dataclass
class StubGateway(GatewayDouble):
    """`answer` says how it takes the next calls for a refund; `before_answer` is done before one gets its answer."""

    answer: Answer = "succeeded"
    before_answer: Callable[[GatewayRefund], None] = lambda refund: None

    def create_refund(self, *, key: str, **asked: Any) -> GatewayRefund:
        if self.answer == "no answer":
            self.breaks = [GatewayUnavailable("timed out")]
        elif self.answer == "refused":
            self.breaks = [GatewayRefused(code="charge_disputed", message="no")]
        refund = super().create_refund(key=key, **asked)
        if self.answer == "pending" and refund.status == "succeeded":
            refund = self.change(refund, "pending")
        self.before_answer(refund)
        if self.answer == "answer lost":
            raise GatewayUnavailable("the connection dropped")
        return refund

    @property
    def asked(self) -> int:
        """How often it was asked for a refund."""
        return self.calls.count("create_refund")

    @property
    def last(self) -> GatewayRefund:
        """The refund made last."""
        return list(self.refunds.values())[-1]

    def make_refund(
        self, payment_intent_id: str | None, amount_micros: int, currency: str = "EUR", **values: Any
    ) -> GatewayRefund:
        """Make a refund, as the gateway's own page does without a `refund_id`."""
        refund_id = str(values.pop("refund_id", ""))
        return self._new_refund(payment_intent_id or "", amount_micros, currency, refund_id, **values)

    def change(self, refund: GatewayRefund, status: str) -> GatewayRefund:
        """Have a refund settle or fail."""
        reason = "expired_or_canceled_card" if status == "failed" else ""
        self.refunds[refund.id] = replace(refund, status=status, failure_reason=reason)
        return self.refunds[refund.id]


def dispute_of(top_up: TopUp, *, status: str = "needs_response", micros: int = 0, number: int = 1) -> GatewayDispute:
    """A dispute of a payment, by default of all of it."""
    return GatewayDispute(
        id=f"dp_{number}_{top_up.pk.hex}",
        status=status,
        amount_micros=micros or top_up.amount_micros,
        currency=top_up.currency,
        payment_intent_id=top_up.payment_intent_id or "",
        reason="fraudulent",
        created_at=NOW,
    )


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> StubGateway:
    """The stub in the place of our client."""
    gateway = StubGateway()
    install(monkeypatch, gateway)
    return gateway
