"""Which seconds are billed: by UTC hour, without gaps, each instant rounded in the renter's favour; the same in SQL."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.accounts import open_settlement_accounts
from marketplace.models import BeatSpan, Rental, Settlement, UpSpan
from marketplace.settlement.seconds import (
    Billable,
    Span,
    billable,
    gaps_between,
    held_seconds,
    hours_of,
    touched_hours,
)
from marketplace.settlement.settle import settle_next_hours
from tests.marketplace.conftest import NOW, hold_one_more_hour, make_renter, make_running_rental

SECOND = timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}Z")


def spans(*texts: tuple[str, str]) -> list[Span]:
    return [Span(first=at(first), last=at(last)) for first, last in texts]


def lines(rental: Billable, *, gaps: list[Span] | None = None) -> list[tuple[int, int, int]]:
    return [(line.hour.hour, line.billed_seconds, line.gap_seconds) for line in hours_of(rental, gaps=gaps or [])]


def test_thirty_seven_minutes_end_in_two_hours():
    assert lines(Billable(ready_at=at("09:35:00"), ends_at=at("10:12:00"))) == [(9, 1500, 0), (10, 720, 0)]


def test_a_gap_of_three_minutes_is_not_billed():
    gaps = gaps_between(
        spans(("09:00:00", "09:40:00"), ("09:43:00", "11:00:00")),
        ups=spans(("08:00:00", "12:00:00")),
        known_until=at("10:12:00"),
    )
    rental = Billable(ready_at=at("09:35:00"), ends_at=at("10:12:00"))
    assert lines(rental, gaps=gaps) == [(9, 1320, 180), (10, 720, 0)]


def test_the_hours_of_the_lot_in_the_design():
    gaps = gaps_between(
        spans(("10:02:00", "11:20:10"), ("11:22:10", "12:30:00")),
        ups=spans(("09:00:00", "13:00:00")),
        known_until=at("12:30:00"),
    )
    rental = billable(ready_at=at("10:04:30"), paid_until=at("13:04:30"), stop_requested_at=at("12:30:00"))
    assert lines(rental, gaps=gaps) == [(10, 3330, 0), (11, 3480, 120), (12, 1800, 0)]


def test_a_stop_asked_for_after_what_was_paid_ends_with_what_was_paid():
    rental = billable(ready_at=at("09:00:00"), paid_until=at("10:00:00"), stop_requested_at=at("10:04:00"))
    assert lines(rental) == [(9, 3600, 0)]


def test_an_interruption_ends_with_the_hour_before_the_last_beat():
    rental = billable(ready_at=at("09:30:00"), paid_until=at("12:30:00"), unbilled_from=at("11:00:00"))
    assert lines(rental) == [(9, 1800, 0), (10, 3600, 0)]


def test_it_begins_a_second_later_and_ends_a_second_sooner():
    rental = billable(
        ready_at=at("09:00:00.000001"), paid_until=at("11:00:00"), stop_requested_at=at("09:59:59.999999")
    )
    assert lines(rental) == [(9, 3598, 0)]


def test_a_gap_is_rounded_outwards_at_both_ends():
    gaps = gaps_between(
        spans(("09:00:00", "09:10:00.9"), ("09:12:00.1", "10:00:00")),
        ups=spans(("08:00:00", "12:00:00")),
        known_until=at("10:00:00"),
    )
    assert gaps == spans(("09:10:00", "09:12:01"))


def test_a_minute_without_a_beat_is_no_gap_and_a_second_more_is():
    beats = spans(("09:00:00", "09:10:00"), ("09:11:00", "10:00:00"))
    assert gaps_between(beats, ups=spans(("08:00:00", "12:00:00")), known_until=at("10:00:00")) == []
    beats = spans(("09:00:00", "09:10:00"), ("09:11:01", "10:00:00"))
    assert gaps_between(beats, ups=spans(("08:00:00", "12:00:00")), known_until=at("10:00:00")) == spans(
        ("09:10:00", "09:11:01")
    )


def test_while_the_platform_is_down_nothing_is_a_gap():
    beats = spans(("09:00:00", "09:50:00"), ("15:01:00", "16:00:00"))
    ups = spans(("08:00:00", "09:50:20"), ("15:00:30", "16:00:00"))
    gaps = gaps_between(beats, ups=ups, known_until=at("16:00:00"))
    assert gaps == spans(("09:50:00", "09:50:20"), ("15:00:30", "15:01:00"))
    assert gaps_between(beats, ups=[], known_until=at("16:00:00")) == []


def test_silence_up_to_now_is_a_gap_once_it_is_longer_than_a_minute():
    ups = spans(("08:00:00", "12:00:00"))
    assert gaps_between(spans(("09:00:00", "09:50:00")), ups=ups, known_until=at("09:51:00")) == []
    assert gaps_between(spans(("09:00:00", "09:50:00")), ups=ups, known_until=at("09:51:01")) == spans(
        ("09:50:00", "09:51:01")
    )


def test_what_was_never_heard_of_has_no_gap():
    assert gaps_between([], ups=spans(("08:00:00", "12:00:00")), known_until=at("10:00:00")) == []


@pytest.mark.parametrize(("day", "hours"), [("2026-10-25", 25), ("2026-03-29", 23), ("2026-11-30", 24)])
def test_a_local_day_has_as_many_hours_as_pass(day, hours):
    zone = ZoneInfo("Europe/Amsterdam")
    start = datetime.fromisoformat(day).replace(tzinfo=zone)
    end = (start.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
    rental = Billable(ready_at=start.astimezone(UTC), ends_at=end.astimezone(UTC))
    assert [line.billed_seconds for line in hours_of(rental, gaps=[])] == [3600] * hours


@given(st.integers(0, 90_000), st.integers(0, 90_000))
def test_touched_hours_are_those_that_have_a_line(start, length):
    rental = Billable(ready_at=NOW + start * SECOND, ends_at=NOW + (start + length) * SECOND)
    assert touched_hours(rental.ready_at, rental.ends_at) == len(list(hours_of(rental, gaps=[])))


@given(st.integers(0, 7200), st.integers(0, 20_000), st.integers(0, 20_000))
def test_held_hours_share_all_seconds_among_them(start, length, since):
    rental = Billable(ready_at=NOW + start * SECOND, ends_at=NOW + (start + length) * SECOND)
    count = length // 3600 + 1
    parts = [held_seconds(rental, since=NOW + since * SECOND, first_hour=hour, hours=1) for hour in range(count)]
    assert sum(parts) == max(0, start + length - max(since, start))
    assert sum(parts) == held_seconds(rental, since=NOW + since * SECOND, first_hour=0, hours=count)


instants = st.integers(0, 5 * 3600 * 10).map(lambda tenths: NOW + tenths * SECOND / 10)


@st.composite
def some_spans(draw: st.DrawFn) -> list[Span]:
    """Spans in order that do not touch, some less than a minute apart."""
    ends = sorted(set(draw(st.lists(instants, min_size=2, max_size=12))))
    pairs = list(pairwise(ends))[::2]
    return [Span(first=first, last=last) for first, last in pairs]


@dataclass(frozen=True, kw_only=True)
class Case:
    ready_at: datetime
    stop_requested_at: datetime | None
    ended_after: timedelta
    beats: list[Span]
    ups: list[Span]
    held_hours: int


cases = st.builds(
    Case,
    ready_at=st.integers(0, 3600).map(lambda seconds: NOW + seconds * SECOND),
    stop_requested_at=st.none() | instants,
    ended_after=st.integers(0, 300).map(lambda seconds: seconds * SECOND),
    beats=some_spans(),
    ups=some_spans(),
    held_hours=st.integers(1, 4),
)


@pytest.mark.django_db
@pytest.mark.parametrize("is_lot", [True, False])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases)
def test_sql_and_python_count_the_same_seconds(h100, is_lot, case):
    with transaction.atomic():
        rental = make_running_rental(
            renter=make_renter(units=10_000),
            gpu=h100,
            ready_at=case.ready_at,
            hours=case.held_hours if is_lot else None,
        )
        for _ in range(0 if is_lot else case.held_hours - 1):
            hold_one_more_hour(rental, now=NOW)
        period = billable(
            ready_at=case.ready_at, paid_until=rental.paid_until, stop_requested_at=case.stop_requested_at
        )
        ended_at = max(period.ends_at, case.ready_at) + case.ended_after
        stop_in_rows(rental, case, ended_at)
        counted = in_sql(rental)
        gaps = gaps_between(case.beats, ups=case.ups, known_until=ended_at)
        assert counted == [
            (
                line.hour,
                line.billed_seconds,
                line.gap_seconds,
                0 if is_lot else sum(list(line.by_held_hour.values())[1:]),
            )
            for line in hours_of(period, gaps=gaps)
        ]
        transaction.set_rollback(True)


def stop_in_rows(rental: Rental, case: Case, ended_at: datetime) -> None:
    """Write the case as rows; that it came about by events is not what is looked at here."""
    BeatSpan.objects.filter(server_id=rental.server_id).delete()
    for span in case.beats:
        BeatSpan.objects.create(server_id=rental.server_id, first_beat_at=span.first, last_beat_at=span.last)
    UpSpan.objects.all().delete()
    for span in case.ups:
        UpSpan.objects.create(started_at=span.first, last_seen_at=span.last)
    Rental.objects.filter(pk=rental.pk).update(
        state="ended", ended_at=ended_at, stop_requested_at=case.stop_requested_at
    )


def in_sql(rental: Rental) -> list[tuple[datetime, int, int, int]]:
    open_settlement_accounts(owner_ids=[rental.server.provider_id])
    later = NOW + timedelta(days=2)
    while settle_next_hours(until=later, now=later, rental_id=rental.pk).has_progress:
        continue
    assert Rental.objects.get(pk=rental.pk).fully_settled_at == later
    return list(
        Settlement.objects.filter(rental=rental)
        .order_by("hour")
        .values_list("hour", "billed_seconds", "gap_seconds", "next_seconds")
    )
