"""What people, banks and bad luck do to the gateway, under `/_control/`: POST a JSON object or a form, get JSON back.

reset                                   forget everything
switches {name: value, ...}             set switches; answers with all of them
faults {kind, times, method, path}      strike the next calls of the API
advance {seconds}                       set the clock ahead, or back; what became due happens
clock {now}                             set the clock to a Unix time
sessions/ID/pay {method, answer}        pay on the hosted page: a test number; answer yes or no to a challenge
sessions/ID/expire                      let a session's time run out
payments {amount, currency, customer, metadata}
                                        receive money that no session asked for
payments/ID/settle {outcome}            let a bank debit succeed or fail
payments/ID/refund {amount}             refund as in the gateway's own dashboard
payments/ID/dispute {amount, reason}    have the payer's bank take it back
refunds/ID/settle                       let a pending refund arrive
refunds/ID/fail {reason}                have it sent back, one that had arrived too
disputes/ID/update                      have our answer arrive at the bank
disputes/ID/close {won}                 have the bank decide, true or false
payouts {currency, amount}              pay out to the bank what is available, or so much of it
payouts/ID/fail                         have the bank send it back
fees {currency, amount}                 charge a fee that belongs to no payment
objects/ID {name: value, ...}           set fields of any object, as nobody could
emit {type, object, livemode}           make a message about an object (an id, or the object itself)
events/ID                               return a message, signed now
take {all}                              return the waiting messages, signed, and count them as delivered
flush                                   send every waiting message now, those withheld or delayed too
"""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fake_stripe.balance import charge_fee, fail_payout, pay_out
from fake_stripe.checkout import expire_session
from fake_stripe.disputes import close_dispute, open_dispute, update_dispute
from fake_stripe.errors import ApiError, missing_object
from fake_stripe.faults import KINDS, add_fault
from fake_stripe.paying import answer_challenge, pay, receive_stray, run_timers, settle_debit
from fake_stripe.refunds import fail_refund, refund_charge, settle_refund
from fake_stripe.store import Json
from fake_stripe.webhooks import Postman, message, note_delivered, waiting
from fake_stripe.world import NOBODY, SWITCHES, World, public

_HOW = __doc__
_SECRET = ("webhook_secrets",)
_ACCEPTED = 200


def control(world: World, postman: Postman, path: str, wishes: Json) -> Json:
    """Do one thing; return what became of it. Raises ApiError for what cannot be done."""
    if path == "flush":  # sends over the network, so outside the transaction
        return {"accepted": postman.send_waiting(is_forced=True)}
    if path == "reset":
        with postman.busy:  # afterwards no message is on its way
            return _reset(world)
    for pattern, action in _ACTIONS.items():
        if found := re.fullmatch(pattern, path):
            with world.store.transaction():
                run_timers(world)
                result = action(world, *found.groups(), wishes)
            postman.wake()
            return public(result)
    raise ApiError(f"No such control: {path}", status=404)


def how_to(world: World) -> str:
    """Return all that can be controlled, and how it stands."""
    states = [f"{name} = {json.dumps(world.switch(name))}" for name in SWITCHES if name not in _SECRET]
    faults = [f"{kind}: {what}" for kind, what in KINDS.items()]
    return "\n".join([_HOW or "", "Switches", "", *states, "", "Faults", "", *faults])


def switches(world: World, wishes: Json) -> Json:
    """Set what is named; return how everything stands."""
    for name, value in wishes.items():
        if name not in SWITCHES:
            raise ApiError(f"No such switch: {name}. There are: {', '.join(SWITCHES)}.", param=name)
        world.store.set_switch(name, value)
    return {name: world.switch(name) for name in SWITCHES}


def _reset(world: World) -> Json:
    with world.store.transaction():
        world.store.clear()
        world.generation += 1
    return {"reset": True}


def _faults(world: World, wishes: Json) -> Json:
    add_fault(world, **wishes)
    return {"faults": world.switch("faults")}


def _advance(world: World, wishes: Json) -> Json:
    world.store.set_switch("clock_offset", int(world.switch("clock_offset")) + int(wishes["seconds"]))
    run_timers(world)
    return {"now": world.now()}


def _clock(world: World, wishes: Json) -> Json:
    return _advance(world, {"seconds": int(wishes["now"]) - world.now()})


def _stray(world: World, wishes: Json) -> Json:
    return receive_stray(
        world,
        amount=wishes["amount"],
        currency=wishes["currency"],
        customer=wishes.get("customer"),
        notes=wishes.get("metadata", {}),
    )


def _set(world: World, object_id: str, wishes: Json) -> Json:
    thing = world.store.find_any(object_id)
    if thing is None:
        raise missing_object("object", object_id)
    return world.change(thing, **wishes)


def _pay(world: World, session_id: str, wishes: Json) -> Json:
    outcome = pay(world, session_id, str(wishes.get("method", "4242424242424242")))
    if outcome == "challenge" and "answer" in wishes:
        outcome = answer_challenge(world, session_id, passed=wishes["answer"] == "yes")
    return {**world.get("checkout.session", session_id), "outcome": outcome}


def _settle(world: World, intent_id: str, wishes: Json) -> Json:
    return settle_debit(world, intent_id, succeeded=wishes.get("outcome", "succeeded") == "succeeded")


def _refund(world: World, intent_id: str, wishes: Json) -> Json:
    return refund_charge(world, _charge(world, intent_id), amount=wishes.get("amount"))


def _dispute(world: World, intent_id: str, wishes: Json) -> Json:
    reason = str(wishes.get("reason", "fraudulent"))
    return open_dispute(world, _charge(world, intent_id), amount=wishes.get("amount"), reason=reason)


def _charge(world: World, intent_id: str) -> Json:
    return world.get("charge", world.get("payment_intent", intent_id)["latest_charge"] or "")


def _emit(world: World, wishes: Json) -> Json:
    wanted = wishes["object"]
    thing = world.store.find_any(wanted) if isinstance(wanted, str) else wanted
    if thing is None:
        raise missing_object("object", wanted)
    event = world.tell(str(wishes["type"]), thing)
    return world.change(event, livemode=bool(wishes.get("livemode", event["livemode"])))


def _take(world: World, wishes: Json) -> Json:
    messages = waiting(world, is_forced=bool(wishes.get("all")))
    for each in messages:
        note_delivered(world, each, _ACCEPTED)
    return {"messages": [asdict(each) for each in messages]}


def _sign(world: World, event_id: str, wishes: Json) -> Json:
    return asdict(message(world, world.get("event", event_id)))


_ID = r"(\w+)"
_ACTIONS: dict[str, Callable[..., Any]] = {
    "switches": switches,
    "faults": _faults,
    "advance": _advance,
    "clock": _clock,
    "payments": _stray,
    f"objects/{_ID}": _set,
    "emit": _emit,
    "take": _take,
    f"events/{_ID}": _sign,
    f"sessions/{_ID}/pay": _pay,
    f"sessions/{_ID}/expire": lambda world, object_id, wishes: expire_session(world, object_id, NOBODY),
    f"payments/{_ID}/settle": _settle,
    f"payments/{_ID}/refund": _refund,
    f"payments/{_ID}/dispute": _dispute,
    f"refunds/{_ID}/settle": lambda world, object_id, wishes: settle_refund(world, object_id),
    f"refunds/{_ID}/fail": lambda world, object_id, wishes: fail_refund(world, object_id, **wishes),
    f"disputes/{_ID}/update": lambda world, object_id, wishes: update_dispute(world, object_id),
    f"disputes/{_ID}/close": lambda world, object_id, wishes: close_dispute(world, object_id, won=wishes["won"]),
    "payouts": lambda world, wishes: pay_out(world, currency=wishes["currency"], amount=wishes.get("amount")),
    f"payouts/{_ID}/fail": lambda world, object_id, wishes: fail_payout(world, object_id),
    "fees": lambda world, wishes: charge_fee(world, currency=wishes["currency"], amount=wishes["amount"]),
}
