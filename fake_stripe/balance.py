"""Our balance at the gateway: every movement a balance transaction, fees kept by the gateway, payouts to the bank."""

from typing import Any

from fake_stripe.errors import ApiError
from fake_stripe.store import Json
from fake_stripe.world import World

DAY = 86_400
_RELEASED_AFTER = 2 * DAY
_CURRENCIES = ("eur", "gbp", "usd")


def move(
    world: World, kind: str, *, amount: int, currency: str, source: str | None, fee: int = 0, category: str = ""
) -> Json:
    """Book one movement, in minor units; the balance changes by amount less fee."""
    released_at = world.now() + (_RELEASED_AFTER if kind in ("charge", "payment") else 0)
    details = [{"type": "stripe_fee", "amount": fee, "currency": currency, "application": None, "description": "Fees"}]
    return world.new(
        "balance_transaction",
        type=kind,
        amount=amount,
        fee=fee,
        net=amount - fee,
        currency=currency,
        source=source,
        fee_details=details if fee else [],
        available_on=released_at,
        status="available" if released_at <= world.now() else "pending",
        reporting_category=category or kind,
        balance_type="payments",
        exchange_rate=world.switch("exchange_rate") if kind in ("charge", "payment") else None,
        description=None,
    )


def fee_of(world: World, amount: int) -> int:
    """Return what the gateway keeps of a payment, rounded half up."""
    return (amount * int(world.switch("fee_permille")) + 500) // 1000 + int(world.switch("fee_fixed"))


def balance(world: World) -> Json:
    """Return the balance per currency: what may be paid out, and what is not released yet."""
    now = world.now()
    parts = {name: dict.fromkeys(_CURRENCIES, 0) for name in ("available", "pending")}
    for transaction in world.store.newest("balance_transaction"):
        name = "available" if transaction["available_on"] <= now else "pending"
        parts[name][transaction["currency"]] += transaction["net"]
    lists: dict[str, Any] = {
        name: [
            {"amount": amount, "currency": currency, "source_types": {"card": amount}} for currency, amount in totals
        ]
        for name, totals in ((name, totals.items()) for name, totals in parts.items())
    }
    return {"object": "balance", "livemode": bool(world.switch("livemode")), **lists}


def pay_out(world: World, *, currency: str, amount: int | None) -> Json:
    """Send money to the bank: all that is available, or so much of it."""
    free = next(part["amount"] for part in balance(world)["available"] if part["currency"] == currency)
    if amount is None:
        amount = free
    if not 0 < amount <= free:
        raise ApiError(f"There is {free} to pay out, not {amount}.", code="balance_insufficient", param="amount")
    payout = world.new(
        "payout",
        amount=amount,
        currency=currency,
        status="paid",
        arrival_date=world.now(),
        automatic=True,
        method="standard",
        type="bank_account",
        source_type="card",
        reconciliation_status="completed",
        balance_transaction=None,
        failure_balance_transaction=None,
        failure_code=None,
        failure_message=None,
        metadata={},
    )
    booked = move(world, "payout", amount=-amount, currency=currency, source=payout["id"])
    payout = world.change(payout, balance_transaction=booked["id"])
    world.tell("payout.created", payout)
    world.tell("payout.paid", payout)
    return payout


def fail_payout(world: World, payout_id: str) -> Json:
    """Have the bank send a payout back."""
    payout = world.get("payout", payout_id)
    if payout["status"] != "paid":
        raise ApiError("This payout did not arrive.", code="payout_failed")
    booked = move(world, "payout_failure", amount=payout["amount"], currency=payout["currency"], source=payout["id"])
    payout = world.change(
        payout,
        status="failed",
        failure_code="account_closed",
        failure_message="The bank account has been closed.",
        failure_balance_transaction=booked["id"],
    )
    world.tell("payout.failed", payout)
    return payout


def charge_fee(world: World, *, currency: str, amount: int) -> Json:
    """Book a fee of the gateway that belongs to no payment."""
    return move(world, "stripe_fee", amount=-amount, currency=currency, source=None, category="fee")
