"""What a payer does on the hosted page, what their bank does later, and what follows: intents, charges, messages.

Card numbers are Stripe's own test numbers. A bank debit completes the session unpaid and settles, or fails, later.
"""

from typing import Literal

from fake_stripe.balance import fee_of, move
from fake_stripe.checkout import expire_session
from fake_stripe.errors import ApiError
from fake_stripe.store import Json
from fake_stripe.world import NOBODY, World

# number: what it does
DECLINES = {"4000000000000002": "generic_decline", "4000000000009995": "insufficient_funds"}
CHALLENGED = ("4000002760003184", "4000002500003155")
GOOD_CARD = "4242424242424242"
DEBIT_GOOD = "AT611904300234573201"
DEBIT_BAD = "AT861904300235473202"
DEBITS = (DEBIT_GOOD, DEBIT_BAD)

Outcome = Literal["paid", "declined", "challenge", "processing"]


def pay(world: World, session_id: str, number: str) -> Outcome:
    """Pay an open session with a card or a bank account. Raises ApiError when it is not open or the number unknown.

    A session that is already paid stays as it is: paying twice pays once.
    """
    session = world.get("checkout.session", session_id)
    if session["status"] == "complete":
        return "paid"
    if session["status"] != "open":
        raise ApiError("This Checkout Session has expired.", code="checkout_session_expired", is_kept=True)
    number = number.replace(" ", "").upper()
    if number in DEBITS:
        if "sepa_debit" not in session["payment_method_types"]:
            raise ApiError("This session takes no bank debit.", code="payment_method_invalid", param="method")
        return _debit(world, session, number)
    if not (number.isdigit() and 13 <= len(number) <= 19):
        raise ApiError("Your card number is incorrect.", status=402, kind="card_error", code="incorrect_number")
    forced = world.switch("card")
    if forced == "declined" or (not forced and number in DECLINES):
        return _decline(world, session, "card_declined", DECLINES.get(number, "generic_decline"), number=number)
    if forced == "challenge" or (not forced and number in CHALLENGED):
        return _challenge(world, session, number)
    return _succeed(world, session, number)


def answer_challenge(world: World, session_id: str, *, passed: bool) -> Outcome:
    """Answer the bank's question (3-D Secure). Raises ApiError when none is open."""
    session = world.get("checkout.session", session_id)
    if session["status"] == "complete":
        return "paid"
    intent = world.get("payment_intent", session["payment_intent"] or "")
    if session["status"] != "open" or intent["status"] != "requires_action":
        raise ApiError("There is no challenge to answer.", code="payment_intent_unexpected_state", is_kept=True)
    if not passed:
        return _decline(
            world, session, "payment_intent_authentication_failure", "authentication_required", number=intent["_number"]
        )
    return _succeed(world, session, intent["_number"])


def settle_debit(world: World, intent_id: str, *, succeeded: bool) -> Json:
    """Let a bank debit arrive, or come back. Raises ApiError when it is not on its way."""
    intent = world.get("payment_intent", intent_id)
    if intent["status"] != "processing":
        raise ApiError(f"This PaymentIntent is {intent['status']}.", code="payment_intent_unexpected_state")
    session = next(s for s in world.store.newest("checkout.session") if s["payment_intent"] == intent_id)
    charge = world.get("charge", intent["latest_charge"])
    if succeeded:
        _receive(world, intent, charge)
        session = world.change(session, payment_status="paid")
        world.tell("checkout.session.async_payment_succeeded", session)
    else:
        words = {"failure_code": "insufficient_funds", "failure_message": "The account has insufficient funds."}
        charge = world.change(charge, status="failed", paid=False, **words)
        world.tell("charge.failed", charge)
        failed = world.change(
            intent, status="requires_payment_method", last_payment_error=_error("payment_intent_payment_attempt_failed")
        )
        world.tell("payment_intent.payment_failed", failed)
        world.tell("checkout.session.async_payment_failed", session)
    return world.get("payment_intent", intent_id)


def receive_stray(world: World, *, amount: int, currency: str, customer: str | None, notes: dict[str, str]) -> Json:
    """Receive money that no session asked for."""
    session = {
        "payment_intent": None,
        "amount_total": amount,
        "currency": currency,
        "customer": customer,
        "payment_method_types": ["card"],
        "_intent": {"metadata": notes, "description": None},
    }
    intent = _intent(world, session, GOOD_CARD)
    _receive(world, intent, _charge(world, intent, GOOD_CARD))
    return world.get("payment_intent", intent["id"])


def run_timers(world: World) -> None:
    """Do what has become due: expire sessions, settle debits and refunds."""
    for action, object_id in world.due_timers():
        if action == "expire_session":
            if world.get("checkout.session", object_id)["status"] == "open":
                expire_session(world, object_id, NOBODY)
        elif action == "settle_debit":
            intent = world.get("payment_intent", object_id)
            if intent["status"] == "processing":
                settle_debit(world, object_id, succeeded=intent["_number"] != DEBIT_BAD)
        elif action == "settle_refund":
            refund = world.get("refund", object_id)
            if refund["status"] == "pending":
                world.tell("refund.updated", world.change(refund, status="succeeded", pending_reason=None))


def _succeed(world: World, session: Json, number: str) -> Outcome:
    intent = _intent(world, session, number)
    charge = _charge(world, intent, number)
    _receive(world, intent, charge)
    session = world.change(session, status="complete", payment_status="paid", payment_intent=intent["id"], url=None)
    world.tell("checkout.session.completed", session)
    return "paid"


def _debit(world: World, session: Json, number: str) -> Outcome:
    intent = _intent(world, session, number)
    charge = world.change(_charge(world, intent, number), status="pending", paid=False, captured=True)
    world.tell("charge.pending", charge)
    intent = world.change(intent, status="processing", latest_charge=charge["id"], next_action=None)
    world.tell("payment_intent.processing", intent)
    session = world.change(session, status="complete", payment_status="unpaid", payment_intent=intent["id"], url=None)
    world.tell("checkout.session.completed", session)
    if seconds := int(world.switch("settle_seconds")):
        world.set_timer("settle_debit", intent["id"], at=world.now() + seconds)
    return "processing"


def _decline(world: World, session: Json, code: str, reason: str, *, number: str) -> Outcome:
    intent = _intent(world, session, number)
    charge = world.change(
        _charge(world, intent, number),
        status="failed",
        paid=False,
        captured=False,
        failure_code=code,
        failure_message="Your card was declined.",
    )
    world.tell("charge.failed", charge)
    intent = world.change(
        intent,
        status="requires_payment_method",
        latest_charge=charge["id"],
        last_payment_error=_error(code, reason),
        next_action=None,
    )
    world.change(session, payment_intent=intent["id"])
    world.tell("payment_intent.payment_failed", intent)
    return "declined"


def _challenge(world: World, session: Json, number: str) -> Outcome:
    intent = _intent(world, session, number)
    intent = world.change(
        intent,
        status="requires_action",
        next_action={"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}},
    )
    world.change(session, payment_intent=intent["id"])
    world.tell("payment_intent.requires_action", intent)
    return "challenge"


def _intent(world: World, session: Json, number: str) -> Json:
    """Return the session's intent, made at its first attempt, ready for another one."""
    if session["payment_intent"]:
        return world.change(world.get("payment_intent", session["payment_intent"]), _number=number, next_action=None)
    intent = world.new(
        "payment_intent",
        amount=session["amount_total"],
        amount_capturable=0,
        amount_received=0,
        currency=session["currency"],
        customer=session["customer"],
        description=session["_intent"]["description"],
        metadata=session["_intent"]["metadata"],
        status="requires_payment_method",
        latest_charge=None,
        last_payment_error=None,
        next_action=None,
        canceled_at=None,
        cancellation_reason=None,
        capture_method="automatic_async",
        confirmation_method="automatic",
        payment_method=None,
        payment_method_types=session["payment_method_types"],
        _number=number,
    )
    world.tell("payment_intent.created", intent)
    return intent


def _charge(world: World, intent: Json, number: str) -> Json:
    kind = "sepa_debit" if number in DEBITS else "card"
    return world.new(
        "charge",
        amount=intent["amount"],
        amount_captured=0,
        amount_refunded=0,
        balance_transaction=None,
        billing_details={"address": None, "email": None, "name": None, "phone": None},
        captured=True,
        currency=intent["currency"],
        customer=intent["customer"],
        description=intent["description"],
        disputed=False,
        failure_code=None,
        failure_message=None,
        metadata=intent["metadata"],
        paid=True,
        payment_intent=intent["id"],
        payment_method_details={"type": kind, kind: {"last4": number[-4:]}},
        refunded=False,
        status="succeeded",
    )


def _receive(world: World, intent: Json, charge: Json) -> None:
    kind = "payment" if charge["payment_method_details"]["type"] == "sepa_debit" else "charge"
    booked = move(
        world,
        kind,
        amount=charge["amount"],
        currency=charge["currency"],
        source=charge["id"],
        fee=fee_of(world, charge["amount"]),
        category="charge",
    )
    charge = world.change(
        charge, status="succeeded", paid=True, amount_captured=charge["amount"], balance_transaction=booked["id"]
    )
    world.tell("charge.succeeded", charge)
    intent = world.change(
        intent,
        status="succeeded",
        amount_received=intent["amount"],
        latest_charge=charge["id"],
        last_payment_error=None,
        next_action=None,
    )
    world.tell("payment_intent.succeeded", intent)


def _error(code: str, reason: str | None = None) -> Json:
    return {
        "type": "card_error",
        "code": code,
        "decline_code": reason,
        "message": "The payment attempt failed.",
        "payment_method": None,
    }
