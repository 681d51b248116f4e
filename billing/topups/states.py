"""What a top-up becomes when the gateway was asked: pure, and only ever forward.

Events come late, twice and in any order. Each only makes us ask; what the answer means is ranked, and a lower rank
never replaces a higher one. So every order ends in the same state, and `paid` is where everything ends: a late failure
does not undo a payment, and a payment that arrives after a failure or the page's end still counts.

>>> "expired" in before("paid"), "paid" in before("failed"), before("processing")
(True, False, ('created', 'open'))
"""

from dataclasses import dataclass
from typing import Literal

State = Literal["created", "open", "processing", "failed", "expired", "quarantined", "paid"]
_RANKS: dict[str, int] = {
    "created": 0,
    "open": 1,
    "processing": 2,
    "failed": 3,
    "expired": 4,
    "quarantined": 5,
    "paid": 6,
}
STATES = tuple(_RANKS)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the gateway said of a payment page and its payment, in its own words. `payment` is "" before the first try."""

    checkout: str
    payment: str


def state_of(seen: Seen) -> State:
    """Return the state that what was seen stands for. That money came is not said here: `credit` proves it.

    A declined card leaves the page open for another try; a page that was completed without money (a bank debit)
    waits for it, until the payment is given back for another method or cancelled.
    """
    if seen.checkout == "expired":
        return "expired"
    if seen.payment == "canceled" or (seen.checkout == "complete" and seen.payment == "requires_payment_method"):
        return "failed"
    if seen.checkout == "complete" or seen.payment in ("processing", "succeeded"):
        return "processing"
    return "open"


def before(state: str) -> tuple[str, ...]:
    """Return the states that may still become `state`."""
    return tuple(name for name, rank in _RANKS.items() if rank < _RANKS[state])
