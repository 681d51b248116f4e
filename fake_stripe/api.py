"""The API: which call does what, whose key is good, and answers kept for their idempotency keys.

A call runs in one transaction of the store, so it is done whole or not at all, and two at once wait for each other.
Its answer is kept with it, in the same transaction: what was done once is answered the same for 24 hours.
"""

import hmac
import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl

from fake_stripe.balance import balance
from fake_stripe.checkout import create_session, expire_session
from fake_stripe.customers import create_customer, update_customer
from fake_stripe.disputes import accept_dispute
from fake_stripe.errors import ApiError, server_error
from fake_stripe.faults import Fault, next_fault
from fake_stripe.form import Form, nest
from fake_stripe.listing import expanded, list_of
from fake_stripe.paying import run_timers
from fake_stripe.refunds import create_refund
from fake_stripe.store import Json
from fake_stripe.world import Caller, World

KEPT_SECONDS = 86_400
COLLECTIONS = {
    "/v1/checkout/sessions": "checkout.session",
    "/v1/payment_intents": "payment_intent",
    "/v1/charges": "charge",
    "/v1/refunds": "refund",
    "/v1/disputes": "dispute",
    "/v1/customers": "customer",
    "/v1/events": "event",
    "/v1/balance_transactions": "balance_transaction",
    "/v1/payouts": "payout",
}
Action = Callable[[World, str, Form, Caller], Json]


def _expire(world: World, object_id: str, form: Form, caller: Caller) -> Json:
    form.end()
    return expire_session(world, object_id, caller)


# What can be done by POST, beside the lists and objects above that can be read.
ACTIONS: dict[str, Action] = {
    r"/v1/checkout/sessions()": lambda world, _, form, caller: create_session(world, form, caller),
    r"/v1/checkout/sessions/(\w+)/expire": _expire,
    r"/v1/customers()": lambda world, _, form, caller: create_customer(world, form, caller),
    r"/v1/customers/(\w+)": update_customer,
    r"/v1/refunds()": lambda world, _, form, caller: create_refund(world, form, caller),
    r"/v1/disputes/(\w+)/close": accept_dispute,
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call as it came."""

    method: str
    path: str
    query: str
    headers: "Message[str, str]"
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What goes back; `is_dropped`: nothing does, the connection closes."""

    status: int
    body: Json
    headers: dict[str, str] = field(default_factory=dict)
    is_dropped: bool = False


def answer(world: World, request: Request) -> Answer:
    """Do one call and return its answer, or what a fault makes of it."""
    request_id = f"req_{secrets.token_hex(7)}"
    headers = {"Request-Id": request_id}
    try:
        _authenticate(world, request)
        with world.store.transaction():
            fault = next_fault(world, request.method, request.path)
        _strike_before(world, fault)
        given = _once(world, request, fault, Caller(request_id=request_id))
    except ApiError as refusal:
        return Answer(status=refusal.status, body=refusal.body(), headers=headers)
    except _Dropped:
        return Answer(status=0, body={}, is_dropped=True)
    if fault is not None and fault.kind == "fail_after":
        return Answer(status=500, body=server_error().body(), headers=headers)
    is_dropped = fault is not None and fault.kind == "drop_after"
    return Answer(status=given.status, body=given.body, headers={**headers, **given.headers}, is_dropped=is_dropped)


class _Dropped(Exception):
    """The connection closes before the call is looked at."""


def _authenticate(world: World, request: Request) -> None:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if scheme != "Bearer" or not hmac.compare_digest(key.encode(), world.api_key.encode()):
        raise ApiError("Invalid API Key provided.", status=401)


def _strike_before(world: World, fault: Fault | None) -> None:
    if fault is None:
        return
    if fault.kind == "slow":
        generation = world.generation
        time.sleep(fault.seconds)
        if world.generation != generation:  # what it was about is forgotten
            raise _Dropped
    if fault.kind == "fail_before":
        raise server_error()
    if fault.kind == "drop_before":
        raise _Dropped
    if fault.kind == "rate_limit":
        raise ApiError("Request rate limit exceeded.", status=429, code="rate_limit")


def _once(world: World, request: Request, fault: Fault | None, caller: Caller) -> Answer:
    """Answer from what was kept for the key, or do the call and keep its answer."""
    key = request.headers.get("Idempotency-Key", "") if request.method == "POST" else ""
    if len(key) > 255:
        raise ApiError("Idempotency keys are at most 255 characters.", param="Idempotency-Key")
    caller = Caller(request_id=caller.request_id, idempotency_key=key or None)
    with world.store.transaction():
        run_timers(world)
        kept = _kept(world, key, request)
        if kept is not None:
            return kept
        try:
            given = Answer(status=200, body=_do(world, request, caller))
        except ApiError as refusal:
            if not refusal.is_kept:
                raise
            given = Answer(status=refusal.status, body=refusal.body())
        if fault is not None and fault.kind == "fail_kept":
            given = Answer(status=500, body=server_error().body(), headers={"Stripe-Should-Retry": "false"})
        if key:
            _keep(world, key, request, given)
    return given


def _kept(world: World, key: str, request: Request) -> Answer | None:
    world.store.rows("DELETE FROM answers WHERE created < ?", world.now() - KEPT_SECONDS)
    rows = world.store.rows("SELECT request, status, body FROM answers WHERE key = ?", key) if key else []
    if not rows:
        return None
    if rows[0]["request"] != _fingerprint(request):
        raise ApiError(
            "Keys for idempotent requests can only be used with the same parameters they were first used with.",
            kind="idempotency_error",
        )
    return Answer(status=rows[0]["status"], body=json.loads(rows[0]["body"]), headers={"Idempotent-Replayed": "true"})


def _keep(world: World, key: str, request: Request, given: Answer) -> None:
    world.store.rows(
        "INSERT INTO answers (key, request, status, body, created) VALUES (?, ?, ?, ?, ?)",
        key,
        _fingerprint(request),
        given.status,
        json.dumps(given.body),
        world.now(),
    )


def _fingerprint(request: Request) -> str:
    return json.dumps([request.method, request.path, sorted(_pairs(request))])


def _do(world: World, request: Request, caller: Caller) -> Json:
    form = Form(nest(_pairs(request)))
    if request.method == "POST":
        for pattern, action in ACTIONS.items():
            if found := re.fullmatch(pattern, request.path):
                expand = form.texts("expand")
                return expanded(world, action(world, found[1], form, caller), expand)
    if request.method == "GET":
        return _read(world, request.path, form)
    raise _unknown_address(request.method, request.path)


def _read(world: World, path: str, form: Form) -> Json:
    if path == "/v1/balance":
        form.end()
        return balance(world)
    if path in COLLECTIONS:
        return list_of(world, COLLECTIONS[path], form, url=path)
    collection, _, object_id = path.rpartition("/")
    if collection not in COLLECTIONS:
        raise _unknown_address("GET", path)
    thing = world.get(COLLECTIONS[collection], object_id)
    expand = form.texts("expand")
    form.end()
    return expanded(world, thing, expand)


def _pairs(request: Request) -> list[tuple[str, str]]:
    text: Any = request.body.decode("utf-8", "replace") if request.method == "POST" else request.query
    return parse_qsl(text, keep_blank_values=True)


def _unknown_address(method: str, path: str) -> ApiError:
    return ApiError(f"Unrecognized request URL ({method}: {path}).", status=404)
