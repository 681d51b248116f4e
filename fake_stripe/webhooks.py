"""Messages about what happened: signed, sent until they are answered with 2xx, in whatever order the switches ask for."""

import hashlib
import hmac
import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

from fake_stripe.paying import run_timers
from fake_stripe.store import Json
from fake_stripe.world import World

_TIMEOUT_SECONDS = 20
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 3600.0
_GIVE_UP_AFTER = 90  # tries: about three days
_LOOK_EVERY_SECONDS = 0.5
# A proxy for the outside world does not lead to our own machine.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, kw_only=True)
class Message:
    """One event, ready to be sent: `body` and the header `Stripe-Signature`."""

    delivery: int
    event_id: str
    type: str
    body: str
    signature: str


def signature_of(body: str, secrets: list[str], *, at: int) -> str:
    """Return the header for a body: its time, and one signature per secret."""
    signed = f"{at}.{body}".encode()
    marks = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
    return ",".join([f"t={at}", *(f"v1={mark}" for mark in marks)])


def waiting(world: World, *, is_forced: bool = False) -> list[Message]:
    """Return the messages to send now, each as often as the switch for copies says.

    `is_forced`: those withheld, delayed or waiting for their next try too.
    """
    if world.switch("withhold") and not is_forced:
        return []
    rows = world.store.rows(
        "SELECT seq, event_id FROM deliveries WHERE delivered_at IS NULL AND attempts < ? AND next_at <= ? ORDER BY seq",
        _GIVE_UP_AFTER,
        2**62 if is_forced else time.time(),
    )
    messages = [message(world, world.get("event", row["event_id"]), delivery=row["seq"]) for row in rows]
    if world.switch("webhook_reversed"):
        messages.reverse()
    return [each for each in messages for _ in range(int(world.switch("webhook_copies")))]


def message(world: World, event: Json, *, delivery: int = 0) -> Message:
    """Sign an event now."""
    body = json.dumps(event, indent=2)
    signature = signature_of(body, list(world.switch("webhook_secrets")), at=int(time.time()))
    return Message(delivery=delivery, event_id=event["id"], type=event["type"], body=body, signature=signature)


def note_delivered(world: World, sent: Message, status: int) -> None:
    """Note the answer to a message: 2xx and it is done, else it is tried again after twice the time."""
    if 200 <= status < 300:
        world.store.rows(
            "UPDATE deliveries SET attempts = attempts + 1, last_status = ?, delivered_at = ? WHERE seq = ?",
            status,
            time.time(),
            sent.delivery,
        )
        return
    tried = world.store.rows("SELECT attempts FROM deliveries WHERE seq = ?", sent.delivery)
    wait = min(_FIRST_WAIT_SECONDS * 2 ** (tried[0]["attempts"] if tried else 0), _LONGEST_WAIT_SECONDS)
    world.store.rows(
        "UPDATE deliveries SET attempts = attempts + 1, last_status = ?, next_at = ? WHERE seq = ?",
        status,
        time.time() + wait,
        sent.delivery,
    )


class Postman(threading.Thread):
    """Looks for due timers and messages, and sends those; one at a time, as they come."""

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True)
        self._world = world
        self._wake = threading.Event()
        self.busy = threading.Lock()  # held while messages go out
        self._is_over = False

    def wake(self) -> None:
        """Look at once instead of in half a second."""
        self._wake.set()

    def stop(self) -> None:
        """End after the message in hand."""
        self._is_over = True
        self._wake.set()

    def run(self) -> None:
        """Send until stopped."""
        while not self._is_over:
            self._wake.wait(_LOOK_EVERY_SECONDS)
            self._wake.clear()
            with self._world.store.transaction():
                run_timers(self._world)
            self.send_waiting()

    def send_waiting(self, *, is_forced: bool = False) -> int:
        """Send what is due; return how many were answered with 2xx."""
        accepted = 0
        with self.busy:
            with self._world.store.transaction():
                url = str(self._world.switch("webhook_url"))
                messages = waiting(self._world, is_forced=is_forced) if url else []
            for each in messages:
                status = _send(url, each)
                accepted += 200 <= status < 300
                with self._world.store.transaction():
                    note_delivered(self._world, each, status)
        return accepted


def _send(url: str, sent: Message) -> int:
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Stripe-Signature": sent.signature,
        "User-Agent": "Stripe/1.0 (fake)",
    }
    request = urllib.request.Request(url, data=sent.body.encode(), headers=headers, method="POST")  # noqa: S310
    try:
        with _direct.open(request, timeout=_TIMEOUT_SECONDS) as given:
            return int(given.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except (OSError, ValueError):
        return 0
