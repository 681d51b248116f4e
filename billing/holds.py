"""Money set aside: place, capture in parts, release; and release what has expired.

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


def release_expired(*, now: datetime, limit: int = 1000) -> int:
    """Release what is left of holds whose time has passed; return how many. A second run finds none of them."""
    due = Hold.objects.filter(expires_at__lte=now, remaining_micros__gt=0).order_by("expires_at")
    ids = list(due.values_list("pk", flat=True)[:limit])
    return sum(release(key=f"expired:{hold_id}", hold_id=hold_id) > 0 for hold_id in ids)
