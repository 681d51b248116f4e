"""The test gateway's messages: signed, sent to a real server until it accepts them, and late, doubled or mixed up on demand."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import stripe

from tests.billing.gateway_server import OTHER_SECRET, SECRET
from tests.fake_stripe.conftest import new_session

ONE_PAYMENT = ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded", "checkout.session.completed"]


@dataclass
class Receiver:
    """What arrived, and what is answered: `answers` in turn, 200 afterwards."""

    url: str = ""
    arrived: "queue.Queue[tuple[bytes, str]]" = field(default_factory=queue.Queue)
    answers: list[int] = field(default_factory=list)

    def next_event(self, *, secret: str = SECRET) -> stripe.Event:
        """Wait for a message; verify it as the library does."""
        body, signature = self.arrived.get(timeout=10)
        return stripe.Webhook.construct_event(body, signature, secret, api_key="sk_test_1")

    def next_types(self, count: int) -> list[str]:
        return [self.next_event().type for _ in range(count)]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    told = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.arrived.put((body, self.headers["Stripe-Signature"]))
            self.send_response(told.answers.pop(0) if told.answers else 200)
            self.end_headers()

        def log_message(self, *arguments) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_port}/hook/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


def test_messages_are_signed_and_sent_in_the_order_of_what_happened(gateway, api, receiver):
    gateway.switch(webhook_url=receiver.url)
    session = new_session(api)
    gateway.pay(session.id)
    events = [receiver.next_event() for _ in ONE_PAYMENT]
    assert [event.type for event in events] == ONE_PAYMENT
    assert events[-1].data.object["id"] == session.id
    assert [event.id for event in events] == [event.id for event in api.v1.events.list().data][::-1]


def test_each_secret_signs_and_no_other_does(gateway, receiver):
    gateway.switch(webhook_secrets=[SECRET, OTHER_SECRET], webhook_url=receiver.url)
    gateway.emit("balance.available", {"object": "balance"})
    body, signature = receiver.arrived.get(timeout=10)
    for secret in (SECRET, OTHER_SECRET):
        assert stripe.WebhookSignature.verify_header(body, signature, secret, 300)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(body, signature, "whsec_wrong", 300)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(body + b" ", signature, SECRET, 300)


def test_a_message_that_is_not_accepted_comes_again(gateway, receiver):
    receiver.answers = [500]
    gateway.switch(webhook_url=receiver.url)
    event_id = gateway.emit("balance.available", {"object": "balance"})
    assert [receiver.next_event().id for _ in range(2)] == [event_id, event_id]
    assert gateway.messages(every=True) == [], "the second was accepted"


def test_messages_wait_while_nobody_listens_and_are_flushed_on_demand(gateway, api, receiver):
    gateway.switch(webhook_url="http://127.0.0.1:9/")
    session = new_session(api)
    gateway.pay(session.id)
    assert gateway.control("flush") == {"accepted": 0}
    gateway.switch(webhook_url=receiver.url)
    gateway.control("flush")
    assert receiver.next_types(4) == ONE_PAYMENT


def test_withheld_messages_stay_until_they_are_flushed(gateway, api, receiver):
    gateway.switch(webhook_url=receiver.url, withhold=True)
    gateway.pay(new_session(api).id)
    assert gateway.messages() == []
    assert gateway.control("flush") == {"accepted": 4}
    assert receiver.next_types(4) == ONE_PAYMENT


def test_messages_are_doubled_mixed_up_and_delayed_on_demand(gateway, api):
    gateway.switch(webhook_copies=2, webhook_reversed=True)
    gateway.pay(new_session(api).id)
    assert [message["type"] for message in gateway.messages()] == [name for name in ONE_PAYMENT[::-1] for _ in "12"]
    gateway.switch(webhook_delay_seconds=3600)
    gateway.pay(new_session(api).id)
    assert gateway.messages() == []
    assert len(gateway.messages(every=True)) == 8


def test_a_reset_forgets_messages_payments_and_switches(gateway, api):
    gateway.switch(webhook_copies=5)
    gateway.pay(new_session(api).id)
    gateway.reset()
    assert gateway.messages(every=True) == []
    assert api.v1.payment_intents.list().data == []
    assert gateway.control("switches")["webhook_copies"] == 1
