"""Rates are stored once, dated by the file, and a jump waits for a person."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError

from fx.ecb import FileRejected
from fx.models import Rate
from fx.queries import NoRate, usd_rate
from fx.refresh_rates import FetchFailed, is_due, load_sample_rates, newest_ecb_day, refresh_rates
from fx.tasks import refresh_due_rates
from tests.fx.test_ecb import body

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 16, 17, 0, tzinfo=UTC)


def daily(usd: str, day: str = "2026-03-13", gbp: str = "0.86503") -> bytes:
    return body(f'<Cube currency="USD" rate="{usd}"/><Cube currency="GBP" rate="{gbp}"/>', day=day)


def test_a_file_is_stored_once_under_its_own_date():
    assert refresh_rates(now=NOW, fetch=lambda: daily("1.1476")).stored == 2
    again = refresh_rates(now=NOW + timedelta(hours=1), fetch=lambda: daily("1.2000"))
    assert (again.stored, again.held_back) == (0, 0)
    assert Rate.objects.get(currency="USD").units_per_eur == Decimal("1.1476")
    assert newest_ecb_day() == date(2026, 3, 13)


def test_the_last_rate_on_or_before_a_day_holds_over_the_weekend():
    refresh_rates(now=NOW, fetch=lambda: daily("1.1476"))
    rate = usd_rate("EUR", day=date(2026, 3, 15))
    assert (rate.units_per_usd, rate.day, rate.origin) == (Decimal("0.8713837574"), date(2026, 3, 13), "ecb")
    assert usd_rate("GBP", day=date(2026, 3, 13)).units_per_usd == Decimal("0.7537730917")
    with pytest.raises(NoRate, match="EUR"):
        usd_rate("EUR", day=date(2026, 3, 12))


def test_both_legs_of_a_rate_are_of_one_day():
    refresh_rates(now=NOW, fetch=lambda: daily("1.1476"))
    refresh_rates(now=NOW, fetch=lambda: body('<Cube currency="USD" rate="1.15"/>', day="2026-03-16"))
    assert usd_rate("GBP", day=date(2026, 3, 16)).day == date(2026, 3, 13)


@pytest.mark.parametrize(("rate", "held"), [("1.10", False), ("1.1001", True), ("0.90", False), ("0.8999", True)])
def test_a_jump_over_ten_percent_is_held_back_and_the_old_rate_stays(rate, held):
    refresh_rates(now=NOW, fetch=lambda: daily("1.0000"))
    report = refresh_rates(now=NOW, fetch=lambda: daily(rate, day="2026-03-16"))
    assert report.held_back == int(held)
    expected = date(2026, 3, 13) if held else date(2026, 3, 16)
    assert usd_rate("EUR", day=date(2026, 3, 16)).day == expected


def test_a_file_from_the_future_is_refused_whole():
    with pytest.raises(FileRejected, match="future"):
        refresh_rates(now=NOW, fetch=lambda: daily("1.1476", day="2026-03-17"))
    assert not Rate.objects.exists()


def test_sample_rates_fill_in_and_real_ones_replace_them():
    assert load_sample_rates(now=NOW).stored > 5
    assert load_sample_rates(now=NOW).stored == 0
    assert usd_rate("EUR", day=NOW.date()).origin == "sample"
    assert newest_ecb_day() is None
    refresh_rates(now=NOW, fetch=lambda: daily("1.1400"))
    assert usd_rate("EUR", day=NOW.date()).origin == "ecb"
    load_sample_rates(now=NOW)
    assert usd_rate("EUR", day=NOW.date()).origin == "ecb", "a sample never replaces a real rate"


def test_a_real_rate_far_from_the_sample_is_no_jump():
    load_sample_rates(now=NOW)
    assert refresh_rates(now=NOW, fetch=lambda: daily("2.0", day="2026-03-16")).held_back == 0


@pytest.mark.parametrize(
    ("now", "newest", "due"),
    [
        (datetime(2026, 3, 16, 14, 59, tzinfo=UTC), date(2026, 3, 13), False),  # Monday, before 16:00 CET
        (datetime(2026, 3, 16, 15, 0, tzinfo=UTC), date(2026, 3, 13), True),
        (datetime(2026, 3, 16, 15, 0, tzinfo=UTC), date(2026, 3, 16), False),
        (datetime(2026, 3, 15, 20, 0, tzinfo=UTC), date(2026, 3, 13), False),  # Sunday: Friday's stands
        (datetime(2026, 3, 15, 20, 0, tzinfo=UTC), date(2026, 3, 12), True),
        (datetime(2026, 7, 1, 14, 0, tzinfo=UTC), date(2026, 6, 30), True),  # summer time
        (datetime(2026, 3, 16, 1, 0, tzinfo=UTC), None, True),
    ],
)
def test_a_newer_file_is_expected_from_four_in_the_afternoon_of_working_days(now, newest, due):
    assert is_due(now=now, newest_day=newest) is due


def test_a_dead_ecb_is_logged_and_nothing_is_lost(monkeypatch, caplog):
    def dead() -> bytes:
        raise FetchFailed("the ECB could not be reached")

    monkeypatch.setattr("fx.refresh_rates.fetch_daily_file", dead)
    refresh_due_rates()
    assert "could not be reached" in caplog.text


def test_the_database_itself_refuses_a_rate_that_cannot_be():
    with pytest.raises(IntegrityError):
        Rate.objects.create(currency="USD", day=NOW.date(), units_per_eur=0, origin="ecb", stored_at=NOW)
