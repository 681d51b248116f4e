"""The sweep notes that the platform is up, does what is due, and leaves every book at rest."""

import threading
from datetime import timedelta

import pytest
from django.db import DatabaseError

from marketplace.models import Rental, UpSpan
from marketplace.rentals import fail_unstarted as failing
from marketplace.rentals.interrupt import interrupt_lost
from marketplace.sweep import note_up, sweep
from tests.billing.test_ledger_race import together
from tests.marketplace.conftest import NOW
from tests.marketplace.rental_clock import rent

SECOND = timedelta(seconds=1)


def spans() -> list[tuple[float, float]]:
    """Return the up spans, in seconds from NOW."""
    found = UpSpan.objects.order_by("started_at")
    return [((one.started_at - NOW).total_seconds(), (one.last_seen_at - NOW).total_seconds()) for one in found]


@pytest.mark.django_db
def test_sweeps_within_a_minute_are_one_span_of_up_time():
    for seconds in (0, 10, 70, 131, 141):
        note_up(now=NOW + seconds * SECOND)
    assert spans() == [(0, 70), (131, 141)]


@pytest.mark.django_db
def test_a_sweep_that_comes_late_shortens_nothing():
    for seconds in (0, 30, 10):
        note_up(now=NOW + seconds * SECOND)
    assert spans() == [(0, 30)]


@pytest.mark.django_db(transaction=True)
def test_sweeps_at_once_after_a_downtime_begin_one_span():
    note_up(now=NOW)
    barrier = threading.Barrier(6)

    def work(number: int) -> None:
        barrier.wait(10)
        note_up(now=NOW + timedelta(hours=1, milliseconds=number))

    assert together(6, work) == [None] * 6
    assert UpSpan.objects.count() == 2


@pytest.mark.django_db
def test_a_rental_that_fails_to_fail_keeps_no_other_from_it(h100, renter, monkeypatch):
    first, second = rent(h100, renter), rent(h100, renter)

    def close(*, rental_id, **_):
        if rental_id == first.pk:
            raise DatabaseError("broken")
        return closing(rental_id=rental_id, **_)

    closing = failing.close_rental
    monkeypatch.setattr(failing, "close_rental", close)
    assert failing.fail_unstarted(now=NOW + timedelta(minutes=10)) == 1
    assert dict(Rental.objects.values_list("pk", "state")) == {first.pk: "pending", second.pk: "failed"}


@pytest.mark.django_db
def test_the_silence_of_many_servers_is_judged_by_one_query(h100, renter, django_assert_num_queries):
    for _ in range(3):
        rent(h100, renter)
    with django_assert_num_queries(1):
        interrupt_lost(now=NOW + timedelta(minutes=9))


@pytest.mark.django_db
def test_a_sweep_says_what_it_did(h100, renter):
    rent(h100, renter)
    counts = sweep(now=NOW + SECOND)
    assert set(counts) >= {
        "rentals_failed",
        "rentals_interrupted",
        "rentals_over",
        "rentals_of_frozen_stopped",
        "hours_held",
        "stops_unanswered",
        "wallets_told",
        "orders_expired",
        "books_confirmed",
    }
