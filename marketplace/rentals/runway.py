"""How long a wallet's money lasts for its open-ended rentals, and which alerts follow. Pure.

The first rental to stop is the first whose next hour cannot be held: hours are held one by one, in the order in which
they are due. Lots are paid already and count for nothing here.

>>> at = datetime.fromisoformat("2026-11-30T10:00:00+00:00")
>>> hourly = Hourly(paid_until=at + timedelta(minutes=30), hour_micros=4_000_000)
>>> money_lasts_until(10_000_000, [hourly], within=at + timedelta(hours=30)) - at
datetime.timedelta(seconds=9000)
>>> sorted(changes(timedelta(minutes=20), frozenset({10800})).raised)
[1800, 86400]
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from marketplace.limits import ALERT_CLEARED_AT, ALERT_LEVELS

HOUR = timedelta(hours=1)
LEVELS_SECONDS = tuple(int(level.total_seconds()) for level in ALERT_LEVELS)
LOOKS_AHEAD = timedelta(seconds=int(LEVELS_SECONDS[0] * ALERT_CLEARED_AT))


@dataclass(frozen=True, kw_only=True)
class Hourly:
    """An open-ended rental that runs: `hour_micros` is what one more hour sets aside. `lease_until`: it ends then anyway."""

    paid_until: datetime
    hour_micros: int
    lease_until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Levels, in seconds, whose alerts are to be raised and cleared."""

    raised: frozenset[int]
    cleared: frozenset[int]


def money_lasts_until(available_micros: int, rentals: Sequence[Hourly], *, within: datetime) -> datetime | None:
    """Return when the first rental stops for lack of money; None when none does before `within`."""
    due = [(rental.paid_until, number, rental) for number, rental in enumerate(rentals)]
    heapq.heapify(due)
    left = available_micros
    while due and due[0][0] < within:
        paid_until, number, rental = heapq.heappop(due)
        if rental.lease_until is not None and paid_until >= rental.lease_until.replace(microsecond=0):
            continue
        if rental.hour_micros > left:
            return paid_until
        left -= rental.hour_micros
        heapq.heappush(due, (paid_until + HOUR, number, rental))
    return None


def changes(runway: timedelta | None, open_levels: frozenset[int]) -> Changes:
    """Return what changes with a runway (None: longer than any level), where these alerts are open.

    An alert is raised under its level and cleared only well above it: a runway that hovers is told once.
    """
    if runway is None:
        return Changes(raised=frozenset(), cleared=open_levels)
    seconds = runway.total_seconds()
    return Changes(
        raised=frozenset(level for level in LEVELS_SECONDS if seconds < level) - open_levels,
        cleared=frozenset(level for level in open_levels if seconds >= level * ALERT_CLEARED_AT),
    )
