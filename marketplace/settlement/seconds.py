"""Which seconds of a rental are billed, by UTC hour. Pure; the same rules stand in `marketplace/sql/40_settlement.sql`.

Billing begins with `ready_at`, rounded up to the whole second, and ends with the first of: the request to stop, rounded
down; the end of what is paid; for an interrupted rental the start of the UTC hour of the last beat. A gap is the time
from the last beat of one span to the first of the next, where that is more than a minute, as far as the platform was up
itself; both its ends go to the whole second outside. What is between two beats that far apart is not billed.

>>> at = datetime.fromisoformat
>>> rental = Billable(ready_at=at("2026-11-30T10:04:30Z"), ends_at=at("2026-11-30T12:30:00Z"))
>>> [(line.hour.hour, line.billed_seconds) for line in hours_of(rental, gaps=[])]
[(10, 3330), (11, 3600), (12, 1800)]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from marketplace.limits import LIVE_FOR

HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Span:
    """A time from one instant to another: of beats, or of the platform being up."""

    first: datetime
    last: datetime


@dataclass(frozen=True, kw_only=True)
class Billable:
    """What may be billed, in whole seconds, the end left out. `ends_at` before `ready_at`: nothing."""

    ready_at: datetime
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class HourSeconds:
    """The seconds of one UTC hour. `by_held_hour`: billed seconds of each held hour it touches, by its number."""

    hour: datetime
    billed_seconds: int
    gap_seconds: int
    by_held_hour: dict[int, int]


def billable(
    *,
    ready_at: datetime,
    paid_until: datetime,
    stop_requested_at: datetime | None = None,
    unbilled_from: datetime | None = None,
) -> Billable:
    """Return from when to when a rental is billed."""
    ends = [end for end in (stop_requested_at, paid_until, unbilled_from) if end is not None]
    return Billable(ready_at=second_up(ready_at), ends_at=second_down(min(ends)))


def gaps_between(beats: Sequence[Span], *, ups: Sequence[Span], known_until: datetime) -> list[Span]:
    """Return the gaps between spans of beats (oldest first), and after the last one to where we know; they never overlap.

    `known_until`: the end of the rental, or now. `ups`: when the platform was up.
    """
    pieces: list[Span] = []
    ends = [span.first for span in beats[1:]]
    for span, next_first in zip(beats, [*ends, known_until], strict=True) if beats else ():
        until = min(next_first, known_until)
        if until - span.last > LIVE_FOR:
            pieces += [
                Span(first=second_down(max(span.last, up.first)), last=second_up(min(until, up.last)))
                for up in ups
                if up.first < until and up.last > span.last
            ]
    return _merged(pieces)


def hours_of(rental: Billable, *, gaps: Sequence[Span]) -> Iterator[HourSeconds]:
    """Yield every UTC hour of a rental, in order, hours that come to nothing too."""
    hour = hour_of(rental.ready_at)
    while hour < rental.ends_at and rental.ready_at < rental.ends_at:
        yield _hour(rental, hour, gaps)
        hour += HOUR


def held_seconds(rental: Billable, *, since: datetime, first_hour: int, hours: int) -> int:
    """Return how many of a rental's seconds from `since` on lie in held hours, counted from `ready_at`; gaps included."""
    start = max(since, rental.ready_at + first_hour * HOUR)
    return max(0, _length(start, min(rental.ends_at, rental.ready_at + (first_hour + hours) * HOUR)))


def hour_of(at: datetime) -> datetime:
    """Return the start of the UTC hour an instant lies in."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def touched_hours(start: datetime, end: datetime) -> int:
    """Return how many UTC hours a time touches; 0 when it is empty."""
    if end <= start:
        return 0
    return (hour_of(end - timedelta(microseconds=1)) - hour_of(start)) // HOUR + 1


def second_up(at: datetime) -> datetime:
    """Return the whole second at or after an instant."""
    return at if not at.microsecond else at.replace(microsecond=0) + _SECOND


def second_down(at: datetime) -> datetime:
    """Return the whole second at or before an instant."""
    return at.replace(microsecond=0)


def _hour(rental: Billable, hour: datetime, gaps: Sequence[Span]) -> HourSeconds:
    start, end = max(hour, rental.ready_at), min(hour + HOUR, rental.ends_at)
    first = (start - rental.ready_at) // HOUR
    split = min(end, rental.ready_at + (first + 1) * HOUR)
    by_held_hour = {first: _length(start, split) - _silent(gaps, start, split)}
    if split < end:
        by_held_hour[first + 1] = _length(split, end) - _silent(gaps, split, end)
    gap_seconds = _silent(gaps, start, end)
    return HourSeconds(
        hour=hour,
        billed_seconds=_length(start, end) - gap_seconds,
        gap_seconds=gap_seconds,
        by_held_hour=by_held_hour,
    )


def _silent(gaps: Sequence[Span], start: datetime, end: datetime) -> int:
    return sum(max(0, _length(max(gap.first, start), min(gap.last, end))) for gap in gaps)


def _length(start: datetime, end: datetime) -> int:
    return (end - start) // _SECOND


def _merged(pieces: Sequence[Span]) -> list[Span]:
    """Return pieces in order, those that touch or overlap as one."""
    merged: list[Span] = []
    for piece in sorted(pieces, key=lambda each: each.first):
        if merged and piece.first <= merged[-1].last:
            merged[-1] = Span(first=merged[-1].first, last=max(merged[-1].last, piece.last))
        else:
            merged.append(piece)
    return merged
