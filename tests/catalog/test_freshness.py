"""The five tiers of a price's age, with every edge to the second."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.freshness import Freshness, freshness, oldest_live_day

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def tier_at_age(age: timedelta, *, priced_on: date | None = None, is_list: bool = False) -> Freshness:
    return freshness(observed_at=NOW - age, priced_on=priced_on, is_list=is_list, now=NOW)


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (timedelta(0), Freshness.FRESH),
        (2 * HOUR - SECOND, Freshness.FRESH),
        (2 * HOUR, Freshness.WARNED),
        (12 * HOUR - SECOND, Freshness.WARNED),
        (12 * HOUR, Freshness.OLD),
        (24 * HOUR - SECOND, Freshness.OLD),
        (24 * HOUR, Freshness.STALE),
        (400 * 24 * HOUR, Freshness.STALE),
    ],
)
def test_a_tier_ends_exactly_at_its_limit(age: timedelta, expected: Freshness):
    assert tier_at_age(age) is expected


def test_a_reading_from_the_future_counts_as_fresh():
    assert tier_at_age(-HOUR) is Freshness.FRESH


def test_a_list_price_is_never_live_however_lately_it_was_read():
    assert tier_at_age(timedelta(0), is_list=True) is Freshness.LIST
    assert tier_at_age(timedelta(0), priced_on=NOW.date(), is_list=True) is Freshness.LIST


@pytest.mark.parametrize(
    ("priced_on", "expected"),
    [
        (date(2026, 11, 16), Freshness.FRESH),
        (date(2026, 11, 15), Freshness.LIST),
        (date(2024, 11, 3), Freshness.LIST),
        (date(2026, 12, 1), Freshness.FRESH),
    ],
)
def test_a_price_its_source_dates_more_than_fourteen_days_back_is_a_list_price(priced_on: date, expected: Freshness):
    assert tier_at_age(timedelta(0), priced_on=priced_on) is expected


def test_an_old_date_wins_over_a_stale_reading():
    assert tier_at_age(48 * HOUR, priced_on=date(2026, 1, 1)) is Freshness.LIST


def test_the_oldest_live_day_moves_at_midnight():
    assert oldest_live_day(datetime(2026, 11, 30, 0, 0, 0, tzinfo=UTC)) == date(2026, 11, 16)
    assert oldest_live_day(datetime(2026, 11, 29, 23, 59, 59, tzinfo=UTC)) == date(2026, 11, 15)


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_price_never_gets_fresher_with_age(younger_s: int, older_s: int):
    order = [Freshness.FRESH, Freshness.WARNED, Freshness.OLD, Freshness.STALE]
    younger, older = sorted((younger_s, older_s))
    assert order.index(tier_at_age(younger * SECOND)) <= order.index(tier_at_age(older * SECOND))
