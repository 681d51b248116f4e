"""`/operator/rentals/`: rentals by state, what is late, silent or lost, what was settled, and what is due and is not."""

from http import HTTPStatus

import pytest
from django.test import Client

from marketplace.models import Rental, Server, Settlement
from marketplace.queries import operations
from marketplace.rentals.interrupt import interrupt
from marketplace.rentals.provision import report_failed
from marketplace.settlement.due import settle_due
from tests.factories import make_operator
from tests.marketplace.conftest import make_renter
from tests.marketplace.on_pages import just_now, renter_with, somebody_of, words
from tests.marketplace.proven_rentals import READY, finnish_renter, stopped_lot
from tests.marketplace.rental_clock import pass_time, rent, run
from tests.marketplace.rentals_now import HOUR, MINUTE, SECOND, rented, running
from users.models import Organisation

pytestmark = pytest.mark.django_db
URL = "/operator/rentals/"


@pytest.fixture
def orla(db) -> Organisation:
    return renter_with(USD=1000)


@pytest.fixture
def operator(db) -> Client:
    client = Client()
    client.force_login(make_operator())
    return client


def section(text: str, title: str) -> str:
    """Return what stands under a heading."""
    return text[text.index(title) :]


def test_members_are_refused(orla):
    assert somebody_of(orla).get(URL).status_code == HTTPStatus.FORBIDDEN


def test_an_empty_house_says_so_everywhere(operator):
    text = words(operator.get(URL))
    for said in (
        "There are none.",
        "None: every start is in time, every machine is heard.",
        "Nothing was settled of the last 24 hours.",
        "None: every due hour is settled.",
    ):
        assert said in text


def test_rentals_are_listed_with_renter_machine_and_money_and_counted_by_state(h100, orla, operator):
    running(orla, h100, ago=10 * MINUTE, gpu_count=2, hours=3)
    report_failed(rental_id=rented(orla, h100).pk, reason="image_pull_failed", now=just_now())
    text = words(operator.get(URL))
    assert "running 1" in text
    assert "failed to start 1" in text
    assert "Orla Labs B.V." in text
    assert "2 × H100-SXM 2.88 USD · 3 h" in text
    assert "Noord Compute B.V." in text
    assert "20.91" in text  # held
    only = words(operator.get(f"{URL}?state=failed"))
    assert "image_pull_failed" in only
    assert "2 × H100-SXM" not in only
    assert operator.get(f"{URL}?state=lost").status_code == HTTPStatus.NOT_FOUND
    assert operator.get(f"{URL}?page=2").status_code == HTTPStatus.NOT_FOUND


def test_a_start_that_the_sweep_missed_and_a_silent_machine_stand_out(h100, orla, operator):
    late = rented(orla, h100, at=just_now() - 11 * MINUTE)
    silent = running(orla, h100, ago=10 * MINUTE)
    Server.objects.filter(pk=silent.server_id).update(last_beat_at=just_now() - 90 * SECOND)
    text = words(operator.get(URL))
    assert "Starting 1 1 overdue" in text
    assert "Silent now 1" in text
    late_section = section(text, "Overdue starts and silent machines")
    assert f"{late.pk}" in late_section
    assert "start overdue" in late_section
    assert "silent" in section(late_section, str(silent.pk))


def test_what_failed_or_was_lost_says_why_and_what_was_given_back(h100, operator):
    renter = make_renter(name="Orla Labs B.V.")
    rental = run(rent(h100, renter, hours=5), ready_at=READY)
    pass_time(since=READY, until=READY + 2 * HOUR)
    settle_due(until=READY + 2 * HOUR, now=READY + 2 * HOUR)
    interrupt(rental_id=rental.pk, reason="server_lost", now=READY + 2 * HOUR)
    Rental.objects.filter(pk=rental.pk).update(ended_at=just_now() - HOUR)
    text = section(words(operator.get(URL)), "Failed and lost in the last 7 days")
    assert "interrupted The machine was silent for more than 5 minutes." in text
    assert "3.48 USD" in text


def test_settled_hours_are_summed_by_hour_and_currency(h100):
    stopped_lot(h100, finnish_renter())
    run(rent(h100, make_renter(name="Orla Labs B.V."), hours=1, now=READY - 2 * MINUTE), ready_at=READY)
    pass_time(since=READY, until=READY + HOUR + 5 * MINUTE)
    settle_due(until=READY + 70 * MINUTE, now=READY + 70 * MINUTE)
    found = operations.settled_by_hour(now=READY + 3 * HOUR)
    assert [(row.hour.hour, row.currency, row.lines) for row in found][-2:] == [(10, "EUR", 1), (10, "USD", 1)]
    for row in found:
        lines = Settlement.objects.filter(hour=row.hour, rental__currency=row.currency)
        assert row.gross_micros == sum(line.gross_micros for line in lines) == row.net_micros + row.tax_micros
        assert row.payable_micros == sum(line.payable_micros for line in lines)
        assert row.billed_seconds == sum(line.billed_seconds for line in lines)
    eur, usd = operations.totals_of(found)
    assert (eur.currency, eur.lines, eur.gross_micros) == ("EUR", 3, 30_130_498)
    assert (usd.currency, usd.gross_micros) == ("USD", sum(row.gross_micros for row in found if row.currency == "USD"))


@pytest.mark.parametrize("minutes", [30, 59, 60, 64, 66, 130, 200])
def test_what_is_due_is_what_the_settlement_would_take(minutes, h100, renter):
    rental = run(rent(h100, renter, hours=5), ready_at=READY)
    now = READY + minutes * MINUTE
    pass_time(since=READY, until=now)
    found = operations.due(now=now)
    settled = settle_due(until=now, now=now)["hours"]
    lines = Settlement.objects.filter(rental=rental).order_by("hour")
    assert found.rentals == (1 if settled else 0)
    assert found.oldest_hour == (lines[0].hour if settled else None)
    assert operations.due(now=now).rentals == 0


def test_what_is_due_is_listed_with_the_longest_wait_first(h100, orla, operator):
    rental = running(orla, h100, ago=3 * HOUR, hours=5)
    text = words(operator.get(URL))
    assert "With a due hour 1" in text
    assert str(rental.pk) in section(text, "Due and not settled")
    settle_due(until=just_now(), now=just_now())
    assert "None: every due hour is settled." in words(operator.get(URL))
    assert "All, USD" in words(operator.get(URL))


def test_the_page_takes_few_queries(h100, orla, operator, django_assert_max_num_queries):
    for number in range(3):
        running(orla, h100, ago=(3 + number) * HOUR, hours=5)
    for _ in range(3):
        report_failed(rental_id=rented(orla, h100).pk, reason="broken", now=just_now())
    with django_assert_max_num_queries(12):
        operator.get(URL)
