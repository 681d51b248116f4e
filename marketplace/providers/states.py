"""Where a provider may go from where it is. Knows no Django.

>>> after(Step.APPROVED, state="submitted")
'approved'
>>> after(Step.APPROVED, state="draft")
Traceback (most recent call last):
    ...
marketplace.providers.states.StepRefused: approved is not open to a provider that is draft
"""

from collections.abc import Mapping
from enum import StrEnum


class Step(StrEnum):
    """What can happen to a provider."""

    SUBMITTED = "submitted"
    TAKEN_BACK = "taken_back"
    APPROVED = "approved"
    REJECTED = "rejected"
    SUSPENDED = "suspended"
    REOPENED = "reopened"
    CLOSED = "closed"


_WAYS: Mapping[tuple[str, Step], str] = {
    ("draft", Step.SUBMITTED): "submitted",
    ("draft", Step.CLOSED): "closed",
    ("submitted", Step.TAKEN_BACK): "draft",
    ("submitted", Step.APPROVED): "approved",
    ("submitted", Step.REJECTED): "draft",
    ("submitted", Step.CLOSED): "closed",
    ("approved", Step.SUSPENDED): "suspended",
    ("approved", Step.CLOSED): "closed",
    ("suspended", Step.REOPENED): "approved",
    ("suspended", Step.CLOSED): "closed",
    ("closed", Step.REOPENED): "draft",
}
BY_THE_PROVIDER = (Step.SUBMITTED, Step.TAKEN_BACK)
NEEDS_A_REASON = (Step.REJECTED, Step.SUSPENDED, Step.REOPENED, Step.CLOSED)


class StepRefused(Exception):
    """This step is not open to a provider in this state."""

    def __init__(self, step: Step, state: str) -> None:
        super().__init__(f"{step} is not open to a provider that is {state}")
        self.step = step
        self.state = state


def after(step: Step, *, state: str) -> str:
    """Return the state that a step leads to. Raises StepRefused."""
    try:
        return _WAYS[state, step]
    except KeyError:
        raise StepRefused(step, state) from None


def steps_open_to_operators(state: str) -> tuple[Step, ...]:
    """Return what an operator can decide about a provider in this state."""
    return tuple(step for (start, step) in _WAYS if start == state and step not in BY_THE_PROVIDER)
