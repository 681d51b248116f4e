"""How old a price is, as one of five tiers: a function of what the row says and of `now`, nothing else.

>>> from datetime import UTC, datetime
>>> now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
>>> freshness(observed_at=datetime(2026, 11, 30, 11, 0, tzinfo=UTC), priced_on=None, is_list=False, now=now).value
'fresh'
>>> freshness(observed_at=now, priced_on=datetime(2026, 7, 20).date(), is_list=False, now=now).value
'list'
"""

from datetime import date, datetime, timedelta
from enum import StrEnum

FRESH_FOR = timedelta(hours=2)
LIVE_FOR = timedelta(hours=12)
SHOWN_FOR = timedelta(hours=24)
DATED_FOR = timedelta(days=14)


class Freshness(StrEnum):
    """Fresh and warned prices are live: they may be a best price. Old ones are shown, stale ones are hidden."""

    FRESH = "fresh"
    WARNED = "warned"
    OLD = "old"
    STALE = "stale"
    LIST = "list"


def freshness(*, observed_at: datetime, priced_on: date | None, is_list: bool, now: datetime) -> Freshness:
    """Return the tier of a price read at `observed_at`, which the source itself dates `priced_on` (if it does).

    A list price, and a price its source dates more than 14 days back, is `list` however lately it was read. A tier
    ends at its limit: exactly 2 hours old is warned. A reading from the future (clocks differ) counts as fresh.
    """
    if is_list or (priced_on is not None and priced_on < oldest_live_day(now)):
        return Freshness.LIST
    age = now - observed_at
    if age < FRESH_FOR:
        return Freshness.FRESH
    if age < LIVE_FOR:
        return Freshness.WARNED
    if age < SHOWN_FOR:
        return Freshness.OLD
    return Freshness.STALE


def oldest_live_day(now: datetime) -> date:
    """Return the earliest `priced_on` that is not yet a list price: exactly 14 days back still counts as live."""
    return (now - DATED_FOR).date()
