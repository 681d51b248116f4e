"""What every call works on: the store, the clock that may be set ahead, the switches, and the messages that go out."""

import secrets
import time
from dataclasses import dataclass
from typing import Any

from fake_stripe import API_VERSION
from fake_stripe.errors import missing_object
from fake_stripe.store import Json, Store

# What may be switched, and how it stands at the start.
SWITCHES: dict[str, Any] = {
    "webhook_url": "",  # where messages go; "" = they wait to be taken by /_control/take
    "webhook_secrets": [],  # each signs every message, as while a secret is replaced
    "webhook_delay_seconds": 0,
    "webhook_copies": 1,
    "webhook_reversed": False,  # the newest of those waiting goes first
    "withhold": False,  # messages wait until this is off, or for one /_control/flush
    "card": "",  # "declined" or "challenge": what every card does next; "" = what its number says
    "settle_seconds": 0,  # after so long a bank debit or a pending refund settles by itself; 0 = never
    "refund_outcome": "succeeded",  # or "pending", "failed": what a refund of a card is at first
    "fee_permille": 15,
    "fee_fixed": 25,
    "dispute_fee": 2000,
    "exchange_rate": None,  # set: the next charges are converted, as no account of ours should be
    "livemode": False,
    "clock_offset": 0,
    "faults": [],
}
_ID_PREFIXES = {
    "checkout.session": "cs_test_",
    "payment_intent": "pi_",
    "charge": "ch_",
    "refund": "re_",
    "dispute": "du_",
    "customer": "cus_",
    "event": "evt_",
    "balance_transaction": "txn_",
    "payout": "po_",
}


def public(thing: Json) -> Json:
    """Return an object without what only the gateway itself knows about it."""
    return {name: value for name, value in thing.items() if not name.startswith("_")}


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Which call of the API caused a message; nobody for what people or banks did."""

    request_id: str | None = None
    idempotency_key: str | None = None


NOBODY = Caller()


class World:
    """One gateway with its state."""

    def __init__(self, *, store: Store, api_key: str, public_url: str, defaults: Json | None = None) -> None:
        self.store = store
        self.api_key = api_key
        self.public_url = public_url.rstrip("/")
        self.generation = 0  # how often all was forgotten
        self._defaults = {**SWITCHES, **(defaults or {})}

    def now(self) -> int:
        """Return the gateway's time in seconds."""
        return int(time.time()) + int(self.switch("clock_offset"))

    def switch(self, name: str) -> Any:
        """Return how a switch stands."""
        return self.store.switch(name, self._defaults[name])

    def new(self, kind: str, **fields: Any) -> Json:
        """Make an object with its id and time, and keep it."""
        head = {"id": f"{_ID_PREFIXES[kind]}{secrets.token_hex(12)}", "object": kind, "created": self.now()}
        live = {} if kind == "balance_transaction" else {"livemode": bool(self.switch("livemode"))}
        return self.store.put({**head, **live, **fields})

    def get(self, kind: str, object_id: str, *, param: str = "id", status: int = 404) -> Json:
        """Return an object. Raises ApiError (resource_missing)."""
        found = self.store.find(kind, object_id)
        if found is None:
            raise missing_object(kind.replace(".", " "), object_id, param=param, status=status)
        return found

    def change(self, thing: Json, **fields: Any) -> Json:
        """Keep an object with new values; return it."""
        return self.store.put({**thing, **fields})

    def tell(self, name: str, thing: Json, *, caller: Caller = NOBODY) -> Json:
        """Make an event about an object as it is now, and line it up for delivery."""
        event = self.new(
            "event",
            type=name,
            api_version=API_VERSION,
            data={"object": public(thing)},
            pending_webhooks=1,
            request={"id": caller.request_id, "idempotency_key": caller.idempotency_key},
        )
        self.store.rows(
            "INSERT INTO deliveries (event_id, next_at) VALUES (?, ?)",
            event["id"],
            time.time() + float(self.switch("webhook_delay_seconds")),
        )
        return event

    def set_timer(self, action: str, object_id: str, *, at: int) -> None:
        """Have something happen at a time of the gateway's clock."""
        self.store.rows("INSERT INTO timers (at, action, object_id) VALUES (?, ?, ?)", at, action, object_id)

    def due_timers(self) -> list[tuple[str, str]]:
        """Take what is due off the list: pairs of action and object, in the order of their times."""
        now = self.now()
        found = self.store.rows("SELECT action, object_id FROM timers WHERE at <= ? ORDER BY at, seq", now)
        self.store.rows("DELETE FROM timers WHERE at <= ?", now)
        return [(row["action"], row["object_id"]) for row in found]
