"""The gateway as a handful of dictionaries: what our client answers, and what payers and banks do there.

Idempotency keys work as the real ones do. `breaks` makes the next calls fail, before or after they took effect.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from billing.gateway import client
from billing.gateway.errors import GatewayRefused, GatewayUnavailable, KeyConflict, NoSuchObject
from billing.gateway.objects import CheckoutSession, Event, GatewayDispute, GatewayRefund, Payment
from tests.billing.conftest import NOW

REPLACED = [
    "is_on",
    "create_customer",
    "create_checkout",
    "get_checkout",
    "expire_checkout",
    "get_payment",
    "create_refund",
    "get_refund",
    "get_dispute",
    "checkouts_since",
    "payments_since",
    "refunds_since",
    "disputes_since",
    "balance_transactions_since",
]


@dataclass
class GatewayDouble:
    """Sessions, payments, refunds and disputes by id."""

    sessions: dict[str, CheckoutSession] = field(default_factory=dict)
    payments: dict[str, Payment] = field(default_factory=dict)
    refunds: dict[str, GatewayRefund] = field(default_factory=dict)
    disputes: dict[str, GatewayDispute] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    on: bool = True
    at: datetime = NOW
    breaks: list[Exception] = field(default_factory=list)  # one for each of the next calls, before it takes effect
    answers_lost: int = 0  # the next calls that take effect, and whose answer is lost
    _by_key: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    # --- what our client asks ---------------------------------------------------------------------------------

    def is_on(self) -> bool:
        return self.on

    def create_customer(self, *, key: str, **asked: Any) -> str:
        return self._once(key, asked, lambda: f"cus_{next(self._numbers)}", name="create_customer")

    def create_checkout(self, *, key: str, **asked: Any) -> CheckoutSession:
        return self._once(key, asked, lambda: self._new_session(**asked), name="create_checkout")

    def get_checkout(self, session_id: str) -> CheckoutSession:
        return self._got("get_checkout", self.sessions, session_id)

    def expire_checkout(self, session_id: str) -> CheckoutSession:
        self._called("expire_checkout")
        if self.sessions[session_id].status != "open":
            raise GatewayRefused(code="", message="Only open sessions can be expired.")
        return self.expire(session_id)

    def get_payment(self, payment_intent_id: str) -> Payment:
        return self._got("get_payment", self.payments, payment_intent_id)

    def get_refund(self, gateway_refund_id: str) -> GatewayRefund:
        return self._got("get_refund", self.refunds, gateway_refund_id)

    def get_dispute(self, gateway_dispute_id: str) -> GatewayDispute:
        return self._got("get_dispute", self.disputes, gateway_dispute_id)

    def create_refund(self, *, key: str, **asked: Any) -> GatewayRefund:
        return self._once(key, asked, lambda: self._new_refund(**asked), name="create_refund")

    def checkouts_since(self, at: datetime) -> list[CheckoutSession]:
        return self._listed("checkouts_since", self.sessions, at)

    def payments_since(self, at: datetime) -> list[Payment]:
        return self._listed("payments_since", self.payments, at)

    def refunds_since(self, at: datetime) -> list[GatewayRefund]:
        return self._listed("refunds_since", self.refunds, at)

    def disputes_since(self, at: datetime) -> list[GatewayDispute]:
        return self._listed("disputes_since", self.disputes, at)

    def balance_transactions_since(self, at: datetime) -> list[Any]:
        return []

    # --- what payers, banks and time do -----------------------------------------------------------------------

    def session_of(self, top_up_id: UUID) -> CheckoutSession:
        [session] = [session for session in self.sessions.values() if session.top_up_id == str(top_up_id)]
        return session

    def pay(self, top_up_id: UUID, /, **tampered: Any) -> Payment:
        """The payer pays; `tampered` is what then differs from what was asked."""
        session = self.session_of(top_up_id)
        payment = self._payment(session, status="succeeded", received_micros=session.amount_micros, **tampered)
        self._change(session, status="complete", payment_status="paid", payment_intent_id=payment.id, url=None)
        return payment

    def decline(self, top_up_id: UUID) -> Payment:
        """The payer's card is declined; the page stays open."""
        session = self.session_of(top_up_id)
        payment = self._payment(session, status="requires_payment_method", failure_reason="card_declined")
        self._change(session, payment_intent_id=payment.id)
        return payment

    def debit(self, top_up_id: UUID) -> Payment:
        """The payer chose a bank debit: the page is complete, the money is on its way."""
        session = self.session_of(top_up_id)
        payment = self._payment(session, status="processing")
        self._change(session, status="complete", payment_intent_id=payment.id, url=None)
        return payment

    def debit_succeeds(self, top_up_id: UUID) -> Payment:
        session = self.session_of(top_up_id)
        self._change(session, payment_status="paid")
        return self._payment(session, status="succeeded", received_micros=session.amount_micros)

    def debit_fails(self, top_up_id: UUID) -> Payment:
        return self._payment(
            self.session_of(top_up_id), status="requires_payment_method", failure_reason="debit_failed"
        )

    def arrange(self, top_up_id: UUID, *, page: str, payment: str) -> None:
        """Set a page and its payment to any state, by the gateway's words; "" is no payment."""
        session = self.session_of(top_up_id)
        made = None
        if payment:
            received_micros = session.amount_micros if payment == "succeeded" else 0
            made = self._payment(session, status=payment, received_micros=received_micros).id
        self._change(session, status=page, payment_intent_id=made)

    def expire(self, session_id: str) -> CheckoutSession:
        session = self.sessions[session_id]
        if session.payment_intent_id:
            payment = self.payments[session.payment_intent_id]
            self.payments[payment.id] = replace(payment, status="canceled")
        return self._change(session, status="expired", url=None)

    def stray_payment(self, **values: Any) -> Payment:
        """Money that no top-up of ours asked for."""
        whole: dict[str, Any] = {
            "id": f"pi_{next(self._numbers)}",
            "status": "succeeded",
            "amount_micros": 12_000_000,
            "received_micros": 12_000_000,
            "currency": "EUR",
            "customer_id": None,
            "top_up_id": "",
            "failure_reason": "",
            "created_at": self.at,
        }
        payment = Payment(**{**whole, **values})
        self.payments[payment.id] = payment
        return payment

    def refund(self, payment: Payment, *, amount_micros: int, **values: Any) -> GatewayRefund:
        """Somebody refunds a payment at the gateway."""
        return self._new_refund(payment.id, amount_micros, payment.currency, "", **values)

    def dispute(self, payment: Payment, *, amount_micros: int, status: str = "needs_response") -> GatewayDispute:
        """The payer's bank takes a payment back."""
        dispute = GatewayDispute(
            id=f"dp_{next(self._numbers)}",
            status=status,
            amount_micros=amount_micros,
            currency=payment.currency,
            payment_intent_id=payment.id,
            reason="fraudulent",
            created_at=self.at,
        )
        self.disputes[dispute.id] = dispute
        return dispute

    def forget_keys(self) -> None:
        """A day passes: idempotency keys are no longer known."""
        self._by_key.clear()

    # --- inside -----------------------------------------------------------------------------------------------

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.breaks:
            raise self.breaks.pop(0)

    def _answered(self, answer: Any) -> Any:
        if self.answers_lost:
            self.answers_lost -= 1
            raise GatewayUnavailable("the answer was lost")
        return answer

    def _once(self, key: str, asked: Any, make: Callable[[], Any], *, name: str) -> Any:
        self._called(name)
        if key not in self._by_key:
            self._by_key[key] = (asked, make())
        before, answer = self._by_key[key]
        if before != asked:
            raise KeyConflict(key)
        return self._answered(answer)

    def _got(self, name: str, objects: dict[str, Any], object_id: str) -> Any:
        self._called(name)
        if object_id not in objects:
            raise NoSuchObject(code="resource_missing", message=f"No such object: {object_id}")
        return self._answered(objects[object_id])

    def _listed(self, name: str, objects: dict[str, Any], at: datetime) -> list[Any]:
        self._called(name)
        return [each for each in reversed(objects.values()) if each.created_at >= at]

    def _new_session(
        self, *, top_up_id: str, amount_micros: int, currency: str, customer_id: str, expires_at: datetime, **_: Any
    ) -> CheckoutSession:
        session = CheckoutSession(
            id=f"cs_{next(self._numbers)}",
            url="https://pay.example/c",
            status="open",
            payment_status="unpaid",
            payment_intent_id=None,
            top_up_id=top_up_id,
            amount_micros=amount_micros,
            currency=currency,
            customer_id=customer_id,
            expires_at=expires_at,
            created_at=self.at,
        )
        self.sessions[session.id] = session
        return session

    def _new_refund(
        self, payment_intent_id: str, amount_micros: int, currency: str, refund_id: str, **values: Any
    ) -> GatewayRefund:
        whole: dict[str, Any] = {"status": "succeeded", "failure_reason": "", "created_at": self.at, **values}
        refund = GatewayRefund(
            id=f"re_{next(self._numbers)}",
            payment_intent_id=payment_intent_id,
            amount_micros=amount_micros,
            currency=currency,
            refund_id=refund_id,
            **whole,
        )
        self.refunds[refund.id] = refund
        return refund

    def _change(self, session: CheckoutSession, **values: Any) -> CheckoutSession:
        changed = replace(self.sessions[session.id], **values)
        self.sessions[session.id] = changed
        return changed

    def _payment(self, session: CheckoutSession, **values: Any) -> Payment:
        """The session's one payment, new or changed."""
        now = self.sessions[session.id]
        known = self.payments.get(now.payment_intent_id or "")
        payment = known or Payment(
            id=f"pi_{next(self._numbers)}",
            status="requires_payment_method",
            amount_micros=session.amount_micros,
            received_micros=0,
            currency=session.currency,
            customer_id=session.customer_id,
            top_up_id=session.top_up_id,
            failure_reason="",
            created_at=self.at,
        )
        payment = replace(payment, **values)
        self.payments[payment.id] = payment
        return payment


def event(kind: str, object_id: str, *, event_id: str = "", payment_intent_id: str = "") -> Event:
    """A message of the gateway, as the webhook hands it on."""
    number = event_id or f"evt_{kind}_{object_id}"
    body: dict[str, Any] = {"id": object_id}
    if payment_intent_id:
        body["payment_intent"] = payment_intent_id
    payload = {"id": number, "type": kind, "livemode": False, "data": {"object": body}}
    return Event(id=number, type=kind, object_id=object_id, is_live=False, payload=payload)


def install(monkeypatch: Any, double: GatewayDouble) -> None:
    """Put the double in the place of our client."""
    for name in REPLACED:
        monkeypatch.setattr(client, name, getattr(double, name))


SOON = NOW + timedelta(minutes=1)
