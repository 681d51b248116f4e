"""The last thirty days of a source: one row per day, counted up by each refresh, read as a strip of days."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import F

from catalog.models import Source, SourceDay

DAYS = 30


@dataclass(frozen=True, kw_only=True)
class DayState:
    """One day: `state` is whole, partly, failed or none (not read); `refreshes` counts all of them."""

    day: date
    state: str
    refreshes: int


def count_refresh(*, source: Source, state: str, now: datetime) -> None:
    """Count one refresh (whole, partly or failed) on its UTC day. Two statements; a lost race costs nothing."""
    SourceDay.objects.bulk_create([SourceDay(source=source, day=now.date())], ignore_conflicts=True)
    SourceDay.objects.filter(source=source, day=now.date()).update(**{state: F(state) + 1})


def last_days(*, now: datetime) -> dict[int, Sequence[DayState]]:
    """Return the last 30 days of every source by its id, oldest first, days without a refresh included. One query."""
    first = now.date() - timedelta(days=DAYS - 1)
    rows: dict[int, dict[date, SourceDay]] = defaultdict(dict)
    for row in SourceDay.objects.filter(day__gte=first, day__lte=now.date()):
        rows[row.source_id][row.day] = row
    days = [first + timedelta(days=number) for number in range(DAYS)]
    return {source_id: [_state_of(day, known.get(day)) for day in days] for source_id, known in rows.items()}


def _state_of(day: date, row: SourceDay | None) -> DayState:
    """The worst that happened colours the day, unless something better happened too: then it was partly read."""
    if row is None:
        return DayState(day=day, state="none", refreshes=0)
    refreshes = row.whole + row.partly + row.failed
    if row.failed == refreshes:
        state = "failed"
    elif row.whole == refreshes:
        state = "whole"
    else:
        state = "partly"
    return DayState(day=day, state=state, refreshes=refreshes)
