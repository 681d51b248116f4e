"""Money back to the payment it came from: at once, after a while, or not at all, even days after it was said to be."""

from fake_stripe.balance import move
from fake_stripe.errors import ApiError
from fake_stripe.form import Form
from fake_stripe.store import Json
from fake_stripe.world import NOBODY, Caller, World


def create_refund(world: World, form: Form, caller: Caller) -> Json:
    """Refund a payment, or part of it, as the API's call does."""
    intent_id, charge_id = form.maybe("payment_intent"), form.maybe("charge")
    amount = form.whole("amount") if form.has("amount") else None
    reason, notes = form.maybe("reason"), form.notes()
    form.end()
    if not intent_id and not charge_id:
        raise ApiError("One of the params charge or payment_intent is required.", code="parameter_missing")
    charge = _charge_of(world, intent_id, charge_id)
    return refund_charge(world, charge, amount=amount, reason=reason, notes=notes, caller=caller)


def refund_charge(
    world: World,
    charge: Json,
    *,
    amount: int | None = None,
    reason: str | None = None,
    notes: dict[str, str] | None = None,
    caller: Caller = NOBODY,
) -> Json:
    """Refund a charge, all that is left without an amount. Raises ApiError for more than that, or a disputed charge."""
    left = charge["amount"] - charge["amount_refunded"]
    amount = left if amount is None else amount
    _check(charge, amount, left)
    outcome = str(world.switch("refund_outcome"))
    if charge["payment_method_details"]["type"] == "sepa_debit" and outcome == "succeeded":
        outcome = "pending"
    refund = world.new(
        "refund",
        amount=amount,
        charge=charge["id"],
        currency=charge["currency"],
        customer=charge["customer"],
        payment_intent=charge["payment_intent"],
        reason=reason,
        metadata=notes or {},
        status="succeeded" if outcome == "succeeded" else "pending",
        pending_reason=None if outcome == "succeeded" else "processing",
        balance_transaction=None,
        failure_balance_transaction=None,
        failure_reason=None,
        destination_details={"type": charge["payment_method_details"]["type"]},
    )
    booked = move(world, "refund", amount=-amount, currency=charge["currency"], source=refund["id"], category="refund")
    refund = world.change(refund, balance_transaction=booked["id"])
    refunded = charge["amount_refunded"] + amount
    charge = world.change(charge, amount_refunded=refunded, refunded=refunded == charge["amount"])
    world.tell("refund.created", refund, caller=caller)
    world.tell("charge.refunded", charge, caller=caller)
    if outcome == "failed":
        return fail_refund(world, refund["id"])
    seconds = int(world.switch("settle_seconds"))
    if outcome == "pending" and seconds:
        world.set_timer("settle_refund", refund["id"], at=world.now() + seconds)
    return refund


def settle_refund(world: World, refund_id: str) -> Json:
    """Let a pending refund arrive."""
    refund = world.get("refund", refund_id)
    if refund["status"] != "pending":
        raise ApiError(f"This refund is {refund['status']}.")
    refund = world.change(refund, status="succeeded", pending_reason=None)
    world.tell("refund.updated", refund)
    return refund


def fail_refund(world: World, refund_id: str, *, reason: str = "expired_or_canceled_card") -> Json:
    """Have the payer's bank send a refund back, a settled one too: the money is on our balance again."""
    refund = world.get("refund", refund_id)
    if refund["status"] not in ("pending", "succeeded"):
        raise ApiError(f"This refund is {refund['status']}.")
    booked = move(
        world,
        "refund_failure",
        amount=refund["amount"],
        currency=refund["currency"],
        source=refund["id"],
        category="refund_failure",
    )
    refund = world.change(
        refund,
        status="failed",
        pending_reason=None,
        failure_reason=reason,
        failure_balance_transaction=booked["id"],
    )
    charge = world.get("charge", refund["charge"])
    world.change(charge, amount_refunded=charge["amount_refunded"] - refund["amount"], refunded=False)
    world.tell("refund.updated", refund)
    world.tell("refund.failed", refund)
    return refund


def _charge_of(world: World, intent_id: str | None, charge_id: str | None) -> Json:
    if intent_id:
        intent = world.get("payment_intent", intent_id, param="payment_intent")
        if intent["status"] != "succeeded":
            raise ApiError(
                "This PaymentIntent does not have a successful charge to refund.",
                code="payment_intent_unexpected_state",
                param="payment_intent",
                is_kept=True,
            )
        charge_id = intent["latest_charge"]
    return world.get("charge", charge_id or "", param="charge")


def _check(charge: Json, amount: int, left: int) -> None:
    if charge["disputed"]:
        raise ApiError("This charge has been charged back.", code="charge_disputed", is_kept=True)
    if left == 0:
        raise ApiError("This charge has already been refunded.", code="charge_already_refunded", is_kept=True)
    if amount < 1:
        raise ApiError("Invalid positive integer", code="parameter_invalid_integer", param="amount")
    if amount > left:
        raise ApiError(
            f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left}).",
            param="amount",
            is_kept=True,
        )
