"""Which way a rental may go, and when it does. Pure.

>>> may_move("pending", "provisioning"), may_move("ended", "running")
(True, False)
>>> replayed(["pending", "provisioning", "running", "raised", "ending", "ended"])
'ended'
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import pairwise

TRANSITIONS: Mapping[str, frozenset[str]] = {
    "pending": frozenset({"provisioning", "failed", "ended"}),
    "provisioning": frozenset({"running", "failed", "ending", "ended"}),
    "running": frozenset({"ending", "interrupted"}),
    "ending": frozenset({"ended"}),
    "ended": frozenset(),
    "failed": frozenset(),
    "interrupted": frozenset(),
}
_SECOND = timedelta(seconds=1)


class RentalUnknown(LookupError):
    """There is no such rental, or not for whoever asks."""


class RentalStateRefused(Exception):
    """What was reported does not fit the state the rental is in."""

    def __init__(self, state: str) -> None:
        super().__init__(f"The rental is {state}.")
        self.state = state


class HistoryBroken(ValueError):
    """A rental's events do not lead from one state to the next."""


def may_move(from_state: str, to_state: str) -> bool:
    """Whether a rental may go from one state to another."""
    return to_state in TRANSITIONS[from_state]


def replayed(kinds: Iterable[str]) -> str:
    """Return the state that a rental's events lead to, in their order; those that are no state are passed over.

    Raises HistoryBroken.
    """
    states = [kind for kind in kinds if kind in TRANSITIONS]
    if not states or states[0] != "pending":
        raise HistoryBroken("A rental begins as pending.")
    for before, after in pairwise(states):
        if not may_move(before, after):
            raise HistoryBroken(f"No way leads from {before} to {after}.")
    return states[-1]


def whole_second_before(at: datetime) -> datetime:
    """Return the instant rounded down to the second: what is billed ends there."""
    return at.replace(microsecond=0)


def whole_second_after(at: datetime) -> datetime:
    """Return the instant rounded up to the second: what is billed begins there."""
    down = whole_second_before(at)
    return down if down == at else down + _SECOND
