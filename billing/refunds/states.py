"""How a refund's state moves: pure, and only ever forward, so a late or repeated answer of the gateway changes nothing.

A failed refund is final, with one exception: a refund is taken for failed when the gateway refuses it, and should
one of ours turn up alive there after all, it counts again, once it was asked for anew (`is_fresh`).

>>> next_state("submitted", told="succeeded"), next_state("succeeded", told="submitted")
('succeeded', None)
>>> next_state("succeeded", told="failed"), next_state("failed", told="succeeded")
('failed', None)
>>> next_state("failed", told="succeeded", is_fresh=True)
'succeeded'
"""

from typing import Literal

State = Literal["requested", "submitted", "succeeded", "failed"]
_RANKS: dict[str, int] = {"requested": 0, "submitted": 1, "succeeded": 2, "failed": 3}
_TOLD: dict[str, State] = {
    "pending": "submitted",
    "requires_action": "submitted",
    "succeeded": "succeeded",
    "failed": "failed",
    "canceled": "failed",
}


def state_of(status: str) -> State | None:
    """Return our word for a refund's status at the gateway; None for one we do not know."""
    return _TOLD.get(status)


def next_state(current: str, *, told: State, is_fresh: bool = False) -> State | None:
    """Return the state to move to, None to stay. `is_fresh`: it was told after the current state was known."""
    if current == "failed":
        return told if is_fresh and told != "failed" else None
    return told if _RANKS[told] > _RANKS[current] else None
