"""The table of rates: what it holds, from when, and which instant a day begins."""

import csv
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.tax.rates import FILE, NoRate, TableRejected, known_rates, read_rates
from billing.tax.territories import MEMBER_STATES, day_starts_at, local_date

HEADER = "country,standard_rate,valid_from,source_url"


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["country"], row["valid_from"]): row for row in csv.DictReader(file)}


def test_the_table_carries_every_row_of_the_reference_with_its_source(shared_data):
    ours, reference = rows_of(FILE), rows_of(shared_data / "vat_rates.csv")
    assert len(reference) == 30
    assert {key: ours[key] for key in reference} == reference


def test_rows_that_the_reference_lacks_are_older_and_have_a_source(shared_data):
    ours, reference = rows_of(FILE), rows_of(shared_data / "vat_rates.csv")
    current = dict(reference.keys())
    for country, valid_from in ours.keys() - reference.keys():
        assert valid_from < current[country]
    assert all(row["source_url"].startswith("https://") for row in ours.values())


def test_every_member_state_has_a_rate_today_and_some_have_a_past():
    today = date(2026, 11, 30)
    assert all(known_rates().rate_on(country, today) >= 15 for country in MEMBER_STATES)
    assert known_rates().rate_on("EE", date(2025, 6, 30)) == 22
    assert known_rates().rate_on("RO", date(2025, 7, 31)) == 19
    assert known_rates().rate_on("FI", date(2024, 8, 31)) == 24
    assert known_rates().rate_on("SK", date(2024, 12, 31)) == 20
    assert known_rates().rate_on("DE", date(2020, 12, 31)) == 16
    assert known_rates().rate_on("LU", date(2023, 12, 31)) == 16


def test_before_the_first_row_and_for_an_unknown_country_there_is_no_rate():
    for country, on in (("EE", date(2009, 6, 30)), ("US", date(2026, 1, 1)), ("", date(2026, 1, 1))):
        with pytest.raises(NoRate):
            known_rates().rate_on(country, on)


@pytest.mark.parametrize(
    ("country", "on", "instant"),
    [
        ("EE", date(2025, 7, 1), datetime(2025, 6, 30, 21, tzinfo=UTC)),
        ("NL", date(2026, 1, 1), datetime(2025, 12, 31, 23, tzinfo=UTC)),
        ("PT", date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),
        ("PT", date(2026, 7, 1), datetime(2026, 6, 30, 23, tzinfo=UTC)),
    ],
)
def test_a_day_begins_at_midnight_on_the_wall_there(country, on, instant):
    assert day_starts_at(country, on) == instant
    assert local_date(country, instant) == on
    assert local_date(country, instant - timedelta(microseconds=1)) == on - timedelta(days=1)


def test_the_next_change_is_the_next_rows_first_midnight():
    table = read_rates([HEADER, "EE,22,2024-01-01,x", "EE,24,2025-07-01,x", "LV,21,2012-07-01,x"])
    change = datetime(2025, 6, 30, 21, tzinfo=UTC)
    assert table.next_change_at("EE", after=change - timedelta(seconds=1)) == change
    assert table.next_change_at("EE", after=change) is None
    assert table.next_change_at("LV", after=change) is None


@given(country=st.sampled_from(sorted(MEMBER_STATES)), minutes=st.integers(0, 10_000_000))
def test_the_rate_of_an_instant_is_the_last_row_that_has_begun_there(country, minutes):
    instant = datetime(2012, 11, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    by_country = defaultdict(list)
    for row in known_rates().rows:
        by_country[row.country].append(row)
    begun = [row for row in by_country[country] if day_starts_at(country, row.valid_from) <= instant]
    if begun:
        latest = max(begun, key=lambda row: row.valid_from)
        assert known_rates().rate_at(country, instant) == latest.percent


@pytest.mark.parametrize(
    "line",
    [
        "EE,-22,2024-01-01,x", "EE,0,2024-01-01,x", "EE,2e1,2024-01-01,x", "EE,twenty,2024-01-01,x", "EE,22,1 July,x",
        "EE,22.125,2024-01-01,x", "EE,22,2024-01-01,", "EE,NaN,2024-01-01,x", "EE,,2024-01-01,x",
    ],
)  # fmt: skip
def test_a_line_that_is_no_rate_rejects_the_table(line):
    with pytest.raises(TableRejected):
        read_rates([HEADER, "LV,21,2012-07-01,x", line])


def test_two_rows_of_one_day_reject_the_table():
    with pytest.raises(TableRejected):
        read_rates([HEADER, "EE,22,2024-01-01,x", "EE,24,2024-01-01,x"])


def test_rates_are_exact():
    assert all(isinstance(row.percent, Decimal) for row in known_rates().rows)
