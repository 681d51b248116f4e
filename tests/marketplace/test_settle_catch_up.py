"""Late, twice, or by several at once: every hour is settled once, in order, and comes to the same."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import OperationalError, connection, transaction

from billing.models import JournalEntry
from catalog.models import Gpu
from marketplace.models import Rental, Settlement
from marketplace.settlement import due
from marketplace.settlement.due import settle_due
from marketplace.settlement.settle import Chunk, settle_next_hours, settle_rental_now
from tests.factories import make_gpu
from tests.marketplace.conftest import end_rental, make_listing, make_renter, make_running_rental
from users.models import Organisation

RENTALS = 7


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}Z")


def make_rentals(renter: Organisation, gpu: Gpu) -> list[Rental]:
    """Seven rentals of one server, each ready a little later, for six hours."""
    listing = make_listing(gpu=gpu, devices=RENTALS)
    return [
        make_running_rental(
            renter=renter, gpu=gpu, ready_at=at("10:04:30") + number * timedelta(seconds=7), hours=6, listing=listing
        )
        for number in range(RENTALS)
    ]


def lines() -> list[tuple[object, ...]]:
    rows = Settlement.objects.order_by("rental__ready_at", "hour")
    return list(rows.values_list("rental__ready_at", "hour", "billed_seconds", "gross_micros", "payable_micros"))


def held() -> list[int]:
    return list(Rental.objects.order_by("ready_at").values_list("hold__remaining_micros", flat=True))


@pytest.mark.django_db
def test_five_hours_of_downtime_are_caught_up_in_order_and_come_to_the_same(h100, renter):
    make_rentals(renter, h100)
    with transaction.atomic():
        for hour in range(11, 16):
            assert settle_due(until=at(f"{hour}:05:00"), now=at(f"{hour}:05:00"))["hours"] == RENTALS
        hour_by_hour, held_hour_by_hour = lines(), held()
        transaction.set_rollback(True)
    assert settle_due(until=at("15:07:00"), now=at("15:07:00"), rentals_per_chunk=3)["hours"] == 5 * RENTALS
    assert lines() == hour_by_hour
    assert held() == held_hour_by_hour
    for rental in Rental.objects.all():
        by_entry = Settlement.objects.filter(rental=rental).order_by("entry_id").values_list("hour", flat=True)
        assert list(by_entry) == [at(f"{hour}:00:00") for hour in range(10, 15)]
        assert rental.settled_until == at("15:00:00")


@pytest.mark.django_db
def test_a_second_beat_finds_nothing(h100, renter):
    make_rentals(renter, h100)
    assert settle_due(until=at("12:05:00"), now=at("12:05:00"))["hours"] == 2 * RENTALS
    for _ in range(3):
        assert settle_due(until=at("12:05:30"), now=at("12:05:30")) == {"hours": 0, "chunks": 0, "above_hold": 0}
    assert JournalEntry.objects.filter(kind="rental_hour").count() == 2 * RENTALS


@pytest.mark.django_db
def test_an_older_until_settles_no_more_than_was_due_then(h100, renter):
    make_rentals(renter, h100)
    assert settle_due(until=at("11:05:00"), now=at("15:00:00"))["hours"] == RENTALS
    assert settle_due(until=at("11:04:59"), now=at("15:00:00"))["hours"] == 0


def together(count: int, work) -> list[object]:
    """Run `work` in threads with a connection each, at the same moment."""
    barrier = threading.Barrier(count)

    def run(number: int) -> object:
        try:
            barrier.wait(20)
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.django_db(transaction=True)
def test_doubled_tasks_at_the_same_moment_settle_each_hour_once():
    make_rentals(make_renter(), make_gpu(slug="h100-sxm"))
    now = at("15:05:00")
    counts = together(4, lambda number: settle_due(until=now, now=now, rentals_per_chunk=1 + number)["hours"])
    assert sum(counts) == Settlement.objects.count() == 5 * RENTALS
    assert JournalEntry.objects.filter(kind="rental_hour").count() == 5 * RENTALS


@pytest.mark.django_db(transaction=True)
def test_the_task_and_the_end_of_a_rental_share_its_hours():
    rentals = make_rentals(make_renter(), make_gpu(slug="h100-sxm"))
    now = at("12:30:00")
    for rental in rentals:
        end_rental(rental, stop_at=now)
    counts = together(
        3,
        lambda number: (
            sum(settle_rental_now(rental_id=rental.pk, now=now) for rental in rentals[:: (-1) ** number])
            if number < 2
            else settle_due(until=now, now=now, rentals_per_chunk=2)["hours"]
        ),
    )
    assert sum(counts) == Settlement.objects.count() == 3 * RENTALS
    assert set(Rental.objects.values_list("fully_settled_at", flat=True)) == {now}
    assert held() == [0] * RENTALS


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sqlstate", ["40P01", "40001"])
def test_who_gives_way_to_another_settles_after_all(monkeypatch, sqlstate):
    make_rentals(make_renter(), make_gpu(slug="h100-sxm"))
    refusals = iter([sqlstate, sqlstate])

    def settle(**asked: object) -> Chunk:
        if refused := next(refusals, None):
            refuse(refused)
        return settle_next_hours(**asked)

    monkeypatch.setattr(due, "settle_next_hours", settle)
    assert settle_due(until=at("11:05:00"), now=at("11:05:00"))["hours"] == RENTALS


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("sqlstate", "times"), [("40P01", 4), ("55P03", 1)])
def test_it_does_not_try_for_ever_nor_what_will_not_help(monkeypatch, sqlstate, times):
    tries: list[object] = []

    def settle(**asked: object) -> None:
        tries.append(asked)
        refuse(sqlstate)

    monkeypatch.setattr(due, "settle_next_hours", settle)
    with pytest.raises(OperationalError):
        settle_due(until=at("11:05:00"), now=at("11:05:00"))
    assert len(tries) == times


def refuse(sqlstate: str) -> None:
    """Let the database refuse with that code."""
    with connection.cursor() as cursor:
        cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$")
