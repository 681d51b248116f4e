"""Payers' banks that take a payment back. The money leaves our balance at once, with a fee, until it is decided."""

from fake_stripe.balance import move
from fake_stripe.errors import ApiError
from fake_stripe.form import Form
from fake_stripe.store import Json
from fake_stripe.world import NOBODY, Caller, World

_OPEN = ("needs_response", "under_review")


def open_dispute(world: World, charge: Json, *, amount: int | None = None, reason: str = "fraudulent") -> Json:
    """Dispute a charge; the bank may name an amount above it. Raises ApiError when it is disputed already."""
    if charge["disputed"] or charge["status"] != "succeeded":
        raise ApiError("Only a payment that succeeded can be disputed, and once.", code="charge_disputed")
    amount = charge["amount"] if amount is None else amount
    dispute = world.new(
        "dispute",
        amount=amount,
        charge=charge["id"],
        currency=charge["currency"],
        payment_intent=charge["payment_intent"],
        reason=reason,
        status="needs_response",
        balance_transactions=[],
        evidence={},
        evidence_details={"due_by": world.now() + 7 * 86_400, "has_evidence": False, "past_due": False},
        is_charge_refundable=False,
        metadata={},
    )
    world.change(charge, disputed=True)
    booked = move(
        world,
        "adjustment",
        amount=-amount,
        fee=int(world.switch("dispute_fee")),
        currency=charge["currency"],
        source=dispute["id"],
        category="dispute",
    )
    dispute = world.change(dispute, balance_transactions=[booked])
    world.tell("charge.dispute.created", dispute)
    world.tell("charge.dispute.funds_withdrawn", dispute)
    return dispute


def update_dispute(world: World, dispute_id: str) -> Json:
    """Have our answer arrive at the bank."""
    dispute = _open(world, dispute_id)
    dispute = world.change(dispute, status="under_review")
    world.tell("charge.dispute.updated", dispute)
    return dispute


def close_dispute(world: World, dispute_id: str, *, won: bool) -> Json:
    """Have the bank decide: won, and the money comes back; lost, and it stays away. The fee is kept either way."""
    dispute = _open(world, dispute_id)
    dispute = world.change(dispute, status="won" if won else "lost")
    if won:
        booked = move(
            world,
            "adjustment",
            amount=dispute["amount"],
            currency=dispute["currency"],
            source=dispute["id"],
            category="dispute_reversal",
        )
        dispute = world.change(dispute, balance_transactions=[*dispute["balance_transactions"], booked])
    world.tell("charge.dispute.closed", dispute)
    if won:
        world.tell("charge.dispute.funds_reinstated", dispute)
    return dispute


def accept_dispute(world: World, dispute_id: str, form: Form, caller: Caller = NOBODY) -> Json:
    """Give a dispute up: the API's own `close`."""
    form.end()
    return close_dispute(world, dispute_id, won=False)


def _open(world: World, dispute_id: str) -> Json:
    dispute = world.get("dispute", dispute_id)
    if dispute["status"] not in _OPEN:
        raise ApiError(f"This dispute is {dispute['status']}.", is_kept=True)
    return dispute
