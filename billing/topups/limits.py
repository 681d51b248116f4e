"""How much an organisation may pay in: pure.

A new organisation may pay in little, and more with age and with payments that nobody took back: stolen cards are
tried on new accounts. The sums count every wallet together, one unit of each currency as one, whatever was paid,
is being paid or waits; what failed or expired does not count. A tier counts from the day and the number of clean
payments on; the last that is reached holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

Breach = Literal["below_minimum", "above_limit", "too_many"]


@dataclass(frozen=True, kw_only=True)
class Tier:
    """From `age` and `clean_payments` on: the most in any 24 hours and in any 7 days."""

    age: timedelta
    clean_payments: int
    per_day_micros: int
    per_week_micros: int


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The rules: the smallest top-up, the tiers, and how many top-ups may be started in an hour."""

    minimum_micros: int
    per_hour: int
    tiers: Sequence[Tier]


@dataclass(frozen=True, kw_only=True)
class History:
    """What an organisation did so far. A clean payment is one of a week ago or more that nobody disputed."""

    age: timedelta
    clean_payments: int
    day_micros: int
    week_micros: int
    started_in_hour: int


def breach_of(amount_micros: int, *, history: History, limits: Limits) -> Breach | None:
    """Return why this amount may not be paid in now; None when it may."""
    if amount_micros < limits.minimum_micros:
        return "below_minimum"
    if amount_micros > left_micros(history=history, limits=limits):
        return "above_limit"
    return "too_many" if history.started_in_hour >= limits.per_hour else None


def left_micros(*, history: History, limits: Limits) -> int:
    """Return the most that may be paid in now, 0 or more."""
    tier = tier_of(history, limits.tiers)
    return max(0, min(tier.per_day_micros - history.day_micros, tier.per_week_micros - history.week_micros))


def tier_of(history: History, tiers: Sequence[Tier]) -> Tier:
    """Return the last tier whose age and clean payments are reached. Raises IndexError when none begins at nothing."""
    return [tier for tier in tiers if tier.age <= history.age and tier.clean_payments <= history.clean_payments][-1]
