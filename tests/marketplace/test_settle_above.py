"""Settled hours at the edges of what is held."""

import logging
from datetime import datetime
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from billing import holds
from billing.models import JournalEntry, TaxDecision
from billing.roles import grant_to_application, has_two_roles
from billing.tax.record import decide_for
from marketplace.models import Settlement
from marketplace.settlement.due import settle_due
from marketplace.settlement.lower import lower_hold
from marketplace.settlement.settle import settle_next_hours, settle_rental_now
from tests.billing.conftest import wallet_of
from tests.factories import make_organisation
from tests.marketplace.conftest import (
    NOW,
    end_rental,
    make_running_rental,
)
from tests.marketplace.test_settle import HOUR, MINUTE, at, lines, remaining, settled

pytestmark = pytest.mark.django_db


def test_where_nothing_was_decided_the_held_rate_is_taken_and_said_so(h100, renter):
    make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=3)
    TaxDecision.objects.filter(organisation=renter).update(valid_to=at("10:00:00"))
    settled("11:05:00")
    line = Settlement.objects.get()
    assert (line.tax_rate_percent, line.tax_decision_id, line.held_tax_rate_percent) == (None, None, Decimal(21))
    assert line.tax_micros * 100 == line.net_micros * 21


def test_a_decision_that_waits_for_a_person_taxes_as_it_was_held(h100, renter):
    make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=3)
    decision = TaxDecision.objects.get(organisation=renter)
    TaxDecision.objects.filter(pk=decision.pk).update(valid_to=at("10:00:00"))
    waiting = TaxDecision.objects.create(
        organisation=renter, valid_from=at("10:00:00"), treatment="review", reasons=[], seller_country="NL",
        buyer_type="business", buyer_country="NL", decided_at=NOW,
    )  # fmt: skip
    settled("11:05:00")
    line = Settlement.objects.get()
    assert (line.tax_decision_id, line.tax_rate_percent) == (waiting.pk, None)
    assert line.tax_micros * 100 == line.net_micros * 21


def test_what_comes_to_more_than_its_hold_is_left_and_told_and_the_others_go_on(h100, renter, caplog):
    short = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=1)
    holds.release(key="by mistake", hold_id=short.hold_id, amount_micros=remaining(short) - 100)
    other = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=1)
    with caplog.at_level(logging.ERROR):
        assert settle_due(until=at("13:05:00"), now=at("13:05:00")) == {"hours": 2, "chunks": 3, "above_hold": 1}
    assert "more than their hold" in caplog.text
    assert not Settlement.objects.filter(rental=short).exists()
    assert Settlement.objects.filter(rental=other).count() == 2


def test_seconds_that_have_not_passed_are_not_settled(h100, renter):
    make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=1)
    with pytest.raises(ValueError, match="still to come"):
        settle_due(until=at("12:05:00"), now=at("11:00:00"))


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "Europe/Amsterdam"])
def test_hours_are_utc_hours_whatever_the_session_s_time_zone(h100, renter, zone):
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"), hours=3)
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL TIME ZONE '{zone}'")
    assert settled("12:05:00") == 2
    assert [line[:2] for line in lines(rental)] == [(10, 3330), (11, 3600)]
    keys = JournalEntry.objects.filter(kind="rental_hour").order_by("pk").values_list("key", flat=True)
    assert [key[-20:] for key in keys] == ["2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'UTC'")


@pytest.mark.parametrize(
    ("begins", "hours"), [("2026-10-24T22:00:00Z", 25), ("2026-03-28T23:00:00Z", 23), ("2026-11-29T23:00:00Z", 24)]
)
def test_a_day_of_23_or_25_local_hours_has_as_many_lines(h100, begins, hours):
    start = datetime.fromisoformat(begins)
    renter = make_organisation(name="orla")
    wallet_of("orla", currency="USD", units=1000)
    decide_for(organisation=renter, now=start - HOUR)
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=start, hours=hours, filled_at=start - MINUTE)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'Europe/Amsterdam'")
    end = start + hours * HOUR + 5 * MINUTE
    assert settle_due(until=end, now=end)["hours"] == hours
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'UTC'")
    assert set(Settlement.objects.filter(rental=rental).values_list("billed_seconds", flat=True)) == {3600}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE marketplace_settlement SET gross_micros = 1, net_micros = 1, tax_micros = 0",
        "DELETE FROM marketplace_settlement",
    ],
)
def test_a_settled_hour_stays_as_it_is(h100, renter, change):
    make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"))
    settled("11:05:00")
    with pytest.raises(DatabaseError, match=r"stays|only grows"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change)


def test_the_application_s_own_role_may_settle(h100, renter):
    """Where production gives it one: it may call the door, and cannot write the ledger's tables itself."""
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"))
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE bourse_settles")
        grant_to_application("bourse_settles")
        cursor.execute("SET ROLE bourse_settles")
    assert has_two_roles()
    assert settled("11:05:00") == 1
    end_rental(rental, stop_at=at("11:10:00"))
    assert settle_rental_now(rental_id=rental.pk, now=at("11:10:00")) == 1
    with connection.cursor() as cursor:
        cursor.execute("RESET ROLE")
    assert remaining(rental) == 0


def test_a_chunk_is_one_statement(h100, renter):
    for _ in range(3):
        make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"))
    settle_due(until=at("11:00:00"), now=at("11:00:00"))  # opens the accounts
    with CaptureQueriesContext(connection) as captured:
        assert settle_next_hours(until=at("11:05:00"), now=at("11:05:00"), limit=100).hours == 3
    assert len(captured) == 1


def test_nothing_is_due_of_an_interrupted_rental_whose_end_is_not_known_yet(h100, renter):
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=at("10:04:30"))
    end_rental(rental, stop_at=at("10:40:00"), state="interrupted")
    held = remaining(rental)
    assert settled("12:05:00") == 0
    assert lower_hold(rental_id=rental.pk, now=at("12:05:00")) == 0
    assert remaining(rental) == held
