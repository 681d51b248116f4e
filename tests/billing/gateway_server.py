"""The test gateway as a fixture: one process for the whole session, forgotten between tests, driven over HTTP.

    def test_x(fake_stripe): fake_stripe.pay(session_id); fake_stripe.switch(refund_outcome="pending"); ...

Made known by `tests/conftest.py`; settings point at it for as long as a test uses it.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from config.runtime.processes import _die_with_parent

PROJECT = Path(__file__).resolve().parent.parent.parent
KEY = "sk_test_of_the_suite"
SECRET = "whsec_of_the_suite"
OTHER_SECRET = "whsec_the_next_one"
GOOD_CARD, DECLINED_CARD, CHALLENGED_CARD = "4242424242424242", "4000000000000002", "4000002760003184"
GOOD_DEBIT, BAD_DEBIT = "AT611904300234573201", "AT861904300235473202"
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Refused(Exception):
    """The gateway would not do it; the text is its answer."""


@dataclass(frozen=True, kw_only=True)
class FakeStripe:
    """A running test gateway and what people and banks may do to it."""

    url: str

    def control(self, path: str, /, **wishes: Any) -> dict[str, Any]:
        """Call a control of `fake_stripe.control`; return what it answers."""
        request = urllib.request.Request(
            f"{self.url}/_control/{path}",
            data=json.dumps(wishes).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        try:
            with _direct.open(request, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise Refused(refusal.read().decode()) from refusal

    def reset(self) -> None:
        """Forget all payments, messages and switches."""
        self.control("reset")

    def switch(self, **values: Any) -> None:
        """Set switches: card, refund_outcome, withhold, webhook_copies, webhook_reversed, settle_seconds, ..."""
        self.control("switches", **values)

    def fault(self, kind: str, *, times: int = 1, method: str = "", path: str = "", seconds: float = 0.0) -> None:
        """Strike the next calls: fail_before, fail_after, fail_kept, drop_before, drop_after, rate_limit, slow."""
        self.control("faults", kind=kind, times=times, method=method, path=path, seconds=seconds)

    def pay(self, session_id: str, method: str = GOOD_CARD, **more: Any) -> str:
        """Pay a session on its page; return paid, declined, challenge or processing (`answer="yes"` passes a challenge)."""
        return str(self.control(f"sessions/{session_id}/pay", method=method, **more)["outcome"])

    def expire(self, session_id: str) -> None:
        """Let a session's time run out."""
        self.control(f"sessions/{session_id}/expire")

    def settle(self, payment_intent_id: str, *, succeeded: bool = True) -> None:
        """Let a bank debit arrive, or come back."""
        self.control(f"payments/{payment_intent_id}/settle", outcome="succeeded" if succeeded else "failed")

    def refund(self, payment_intent_id: str, amount: int | None = None) -> str:
        """Refund in the gateway's own dashboard (minor units, all without an amount); return the refund's id."""
        return str(self.control(f"payments/{payment_intent_id}/refund", amount=amount)["id"])

    def settle_refund(self, refund_id: str) -> None:
        """Let a pending refund arrive."""
        self.control(f"refunds/{refund_id}/settle")

    def fail_refund(self, refund_id: str, reason: str = "expired_or_canceled_card") -> None:
        """Have the bank send a refund back, one that had succeeded too."""
        self.control(f"refunds/{refund_id}/fail", reason=reason)

    def dispute(self, payment_intent_id: str, amount: int | None = None, reason: str = "fraudulent") -> str:
        """Have the payer's bank take a payment back (minor units, may exceed it); return the dispute's id."""
        return str(self.control(f"payments/{payment_intent_id}/dispute", amount=amount, reason=reason)["id"])

    def close_dispute(self, dispute_id: str, *, won: bool) -> None:
        """Have the bank decide."""
        self.control(f"disputes/{dispute_id}/close", won=won)

    def advance(self, seconds: int) -> None:
        """Set the gateway's clock ahead; what became due happens."""
        self.control("advance", seconds=seconds)

    def set_clock(self, at: datetime) -> None:
        """Set the gateway's clock to a time; it goes on from there. Signatures keep the real time."""
        self.control("clock", now=int(at.timestamp()))

    def stray_payment(self, *, amount: int, currency: str = "eur", **more: Any) -> str:
        """Receive money (minor units) that no session asked for; `customer`, `metadata`. Return the payment's id."""
        return str(self.control("payments", amount=amount, currency=currency, **more)["id"])

    def change(self, object_id: str, **fields: Any) -> None:
        """Set fields of any object, as nobody could."""
        self.control(f"objects/{object_id}", **fields)

    def emit(self, name: str, thing: str | dict[str, Any], *, livemode: bool = False) -> str:
        """Make a message of any type about an object (its id, or the object itself); return the event's id."""
        return str(self.control("emit", type=name, object=thing, livemode=livemode)["id"])

    def messages(self, *, every: bool = False) -> list[dict[str, Any]]:
        """Take the waiting messages (event_id, type, body, signature) in the order of the switches, as if delivered.

        `every`: those withheld or delayed too.
        """
        return list(self.control("take", all=every)["messages"])

    def signed(self, event_id: str) -> dict[str, Any]:
        """Return an event signed now, as often as you like."""
        return self.control(f"events/{event_id}")

    def deliver(self, client: Client, *, every: bool = False, path: str = "/webhooks/stripe/") -> list[HttpResponse]:
        """Post the waiting messages to our webhook; return its answers."""
        return [post_message(client, message, path=path) for message in self.messages(every=every)]


def post_message(client: Client, message: dict[str, Any], *, path: str = "/webhooks/stripe/") -> HttpResponse:
    """Post one message as the gateway does."""
    return client.post(  # type: ignore[return-value]  # django-stubs' own class for tests
        path, message["body"], content_type="application/json", headers={"Stripe-Signature": message["signature"]}
    )


def start_gateway(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start the program on a free port; return the process and its address once it listens."""
    command = [sys.executable, "-m", "fake_stripe", "--port", "0", "--key", KEY, "--secret", SECRET, *arguments]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
        env=env,
        preexec_fn=_die_with_parent(signal.SIGTERM),  # a run that is killed leaves nothing behind
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("Test payments on "), line
    return process, line.removeprefix("Test payments on ").strip()


def stop_gateway(process: subprocess.Popen[str]) -> None:
    """Stop it and wait."""
    process.terminate()
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()


@pytest.fixture(scope="session")
def gateway_process() -> Iterator[FakeStripe]:
    """The one process of this run."""
    process, url = start_gateway()
    yield FakeStripe(url=url)
    stop_gateway(process)


@pytest.fixture
def fake_stripe(gateway_process: FakeStripe, settings: Any) -> Iterator[FakeStripe]:
    """A gateway without any payments yet; the site uses it, and pages may lead to it."""
    gateway_process.reset()
    settings.STRIPE_SECRET_KEY = ""
    settings.FAKE_STRIPE_URL = gateway_process.url
    settings.FAKE_STRIPE_KEY = KEY
    settings.STRIPE_WEBHOOK_SECRETS = [SECRET]
    policy = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": {**policy, "form-action": ["'self'", gateway_process.url]}}
    yield gateway_process
    gateway_process.reset()  # no message of this test arrives in the next one
