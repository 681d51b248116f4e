"""Money set aside: place, raise, capture in parts, release; release what has expired; and what a running rental burns.

Each call is one statement of the door with a key of its own. placed = remaining + captured + released, always.
"""

from collections.abc import Sequence
from datetime import datetime

from billing.ledger import Line, Reference, call, columns
from billing.models import Hold


def place_hold(
    *,
    key: str,
    account_id: int,
    amount_micros: int,
    reference: Reference | None = None,
    expires_at: datetime | None = None,
) -> int:
    """Set money of a wallet aside and return the hold's id. Raises InsufficientFunds, KeyReused or UnknownAccount."""
    reference = reference or Reference()
    return call(
        "SELECT billing_place_hold(%s::text, %s::bigint, %s::bigint, %s::text, %s::text, %s::timestamptz)",
        [key, account_id, amount_micros, reference.type, reference.id, expires_at],
    )


def raise_hold(*, key: str, hold_id: int, amount_micros: int) -> int:
    """Set more money of a hold's wallet aside; return the micros added. The same key again adds nothing.

    Raises InsufficientFunds, KeyReused or UnknownAccount; then nothing is written.
    """
    return call("SELECT billing_raise_hold(%s::bigint, %s::text, %s::bigint)", [hold_id, key, amount_micros])


def capture(
    *,
    key: str,
    kind: str,
    hold_id: int,
    amount_micros: int,
    lines: Sequence[Line],
    effective_at: datetime,
    reference: Reference | None = None,
    description: str = "",
) -> int:
    """Take a part of a hold: an entry that debits its wallet by the amount and credits `lines`; return the entry's id.

    Raises HoldExceeded, KeyReused, Unbalanced or UnknownAccount; then nothing is written.
    """
    reference = reference or Reference()
    accounts, amounts = columns(lines)
    return call(
        "SELECT billing_capture(%s::bigint, %s::text, %s::text, %s::bigint, %s::bigint[], %s::bigint[],"
        " %s::text, %s::text, %s::text, %s::timestamptz)",
        [hold_id, key, kind, amount_micros, accounts, amounts, reference.type, reference.id, description, effective_at],
    )


def release(*, key: str, hold_id: int, amount_micros: int | None = None) -> int:
    """Give a part back, or all that is left; return the micros released (0 when nothing was left).

    Raises HoldExceeded, KeyReused or UnknownAccount.
    """
    return call("SELECT billing_release(%s::bigint, %s::text, %s::bigint)", [hold_id, key, amount_micros])


def set_burn(*, hold_id: int, burn_micros_per_hour: int) -> int:
    """Say what the hold's rental takes from its wallet an hour, tax included; return what it took before, in micros.

    Zero unless it runs: set in the transaction that starts or stops the rental. Moves no money; a second time changes
    nothing. Raises UnknownAccount where there is no such hold, ValueError below zero.
    """
    if burn_micros_per_hour < 0:
        raise ValueError(f"A burn of {burn_micros_per_hour} micros an hour: a rental earns its renter nothing.")
    return call("SELECT billing_set_burn(%s::bigint, %s::bigint)", [hold_id, burn_micros_per_hour])


def release_expired(*, now: datetime, limit: int = 1000) -> int:
    """Release what is left of holds whose time has passed; return how many. A second run finds none of them."""
    due = Hold.objects.filter(expires_at__lte=now, remaining_micros__gt=0).order_by("expires_at")
    ids = list(due.values_list("pk", flat=True)[:limit])
    return sum(release(key=f"expired:{hold_id}", hold_id=hold_id) > 0 for hold_id in ids)
