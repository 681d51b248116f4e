"""The waits of a failing source."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from catalog.refresh.due import LONGEST_WAIT, due_after_failure

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)


def test_the_first_failure_costs_no_more_than_the_interval():
    assert due_after_failure(now=NOW, interval=HALF_AN_HOUR, failed_before_at=None) == NOW + HALF_AN_HOUR


def test_each_further_failure_doubles_the_wait_up_to_six_hours():
    waits, at, before = [], NOW, None
    for _ in range(7):
        due_at = due_after_failure(now=at, interval=HALF_AN_HOUR, failed_before_at=before)
        waits.append((due_at - at) / timedelta(hours=1))
        before, at = at, due_at
    assert waits == [0.5, 1, 2, 4, 6, 6, 6]


def test_a_source_with_a_longer_interval_of_its_own_keeps_it():
    day = timedelta(days=1)
    assert due_after_failure(now=NOW, interval=day, failed_before_at=NOW - day) == NOW + day


@given(st.integers(1, 10**6), st.integers(0, 10**7))
def test_a_wait_is_never_shorter_than_the_interval_nor_longer_than_six_hours_or_it(interval_s: int, since_s: int):
    interval, since = timedelta(seconds=interval_s), timedelta(seconds=since_s)
    wait = due_after_failure(now=NOW, interval=interval, failed_before_at=NOW - since) - NOW
    assert interval <= wait <= max(interval, LONGEST_WAIT)
