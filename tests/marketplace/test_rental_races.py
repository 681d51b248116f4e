"""What two do to a rental at the same moment: one after the other, each hour and each unit of money once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction

from billing import holds
from billing.ledger import HoldExceeded
from billing.models import Account, Hold, Refund
from billing.refunds.request import MoreThanIsLeft, request_refund
from marketplace.models import HeldHours, Lease, Rental, RentalEvent, Settlement
from marketplace.orders.match import bring_to_rest
from marketplace.orders.place import place_order
from marketplace.rentals import closing
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.interrupt import interrupt_if_lost
from marketplace.rentals.provision import accept_start
from marketplace.rentals.raise_hold import raise_hold
from marketplace.rentals.ready import report_ready
from marketplace.rentals.states import RentalStateRefused, replayed
from marketplace.rentals.stop import request_stop
from marketplace.settlement import lower
from marketplace.settlement.due import settle_due
from marketplace.sweep import sweep
from tests.billing.stub_gateway import stub
from tests.billing.test_ledger_race import together
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for
from tests.marketplace.rental_clock import ACCESS, beats_all_along, kinds, pass_time, rent, run, up_all_along

__all__ = ["stub"]
pytestmark = pytest.mark.django_db(transaction=True)
READY = NOW + timedelta(minutes=2, seconds=30)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ROUNDS = 4


def at_once(*work: Callable[[], object]) -> list[object]:
    """Start all of it in the same moment, a connection each."""
    barrier = threading.Barrier(len(work))

    def one(number: int) -> object:
        barrier.wait(10)
        return work[number]()

    return together(len(work), one)


def of_kind(results: list[object], kind: type[Exception]) -> list[object]:
    return [result for result in results if isinstance(result, kind)]


@contextmanager
def book_locked(gpu_id: int) -> Iterator[None]:
    """Hold a book's lock meanwhile, as another order would."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT marketplace_lock_book(%s::bigint, '-infinity')", [gpu_id])
        yield


def waiting_for_a_book(count: int) -> None:
    """Return once so many connections wait for a book's lock."""
    waiting, poll = 0, threading.Event()
    for _ in range(400):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", None)
            waiting = cursor.fetchone()[0]
        if waiting >= count:
            return
        poll.wait(0.01)
    raise AssertionError(f"{waiting} of {count} wait")


# stop against settle


def two_hours_in(gpu, renter) -> tuple[Rental, datetime]:
    rental = run(rent(gpu, renter, hours=5), ready_at=READY)
    now = READY.replace(hour=12, minute=5, second=1)
    pass_time(since=READY, until=now, step=30 * MINUTE)
    return rental, now


def test_a_stop_and_a_settlement_bill_every_second_once(renter):
    for number in range(ROUNDS):
        rental, now = two_hours_in(make_gpu(slug=f"gpu-{number}"), renter)
        asked_at = now + timedelta(seconds=1)
        results = at_once(
            lambda rental=rental, asked_at=asked_at: request_stop(
                organisation_id=renter.pk, rental_id=rental.pk, now=asked_at
            ),
            lambda asked_at=asked_at: settle_due(until=asked_at, now=asked_at),
            lambda asked_at=asked_at: settle_due(until=asked_at, now=asked_at),
        )
        assert of_kind(results, Exception) == []
        acknowledge_stop(rental_id=rental.pk, now=asked_at + timedelta(seconds=2))
        lines = Settlement.objects.filter(rental=rental)
        assert sum(line.billed_seconds for line in lines) == (asked_at - READY).total_seconds()
        hold = Hold.objects.get(pk=rental.hold_id)
        assert (hold.remaining_micros, hold.captured_micros) == (0, sum(line.gross_micros for line in lines))


@pytest.mark.broken_books  # it is stopped by hand
def test_without_the_rental_s_lock_the_same_money_is_given_back_twice(h100, renter):
    rental, now = two_hours_in(h100, renter)
    Rental.objects.filter(pk=rental.pk).update(stop_requested_at=now, state="ending")
    unlocked = Rental.objects.select_related("hold").get(pk=rental.pk)
    surplus = unlocked.hold.remaining_micros - lower._needed_micros(unlocked)
    assert surplus > 0
    together(1, lambda _: settle_due(until=now, now=now))
    with pytest.raises(HoldExceeded), transaction.atomic():
        holds.release(key="read before it was locked", hold_id=rental.hold_id, amount_micros=surplus)


# raise against refund


def test_an_hour_and_a_refund_never_get_the_same_money(h100, stub):
    outcomes = set()
    for number in range(ROUNDS):
        name = f"Both {number} B.V."
        renter = make_renter(name=name, units=8)
        rental = run(rent(h100, renter, hours=None), ready_at=READY)
        now = rental.paid_until - 5 * MINUTE
        raised, refunded = at_once(
            lambda rental=rental, now=now: raise_hold(rental_id=rental.pk, now=now),
            lambda renter=renter, now=now: request_refund(
                organisation=renter, currency="USD", amount=Decimal("4.50"), requested_by=None, now=now
            ),
        )
        held = HeldHours.objects.filter(rental=rental).count()
        assert raised is (held == 2)
        assert raised is isinstance(refunded, MoreThanIsLeft), (raised, refunded)
        assert Refund.objects.filter(top_up__organisation=renter).count() == (0 if raised else 1)
        if not raised:
            assert RentalEvent.objects.filter(rental=rental, kind="raise_refused").count() == 1
        outcomes.add(raised)
        wallet = Account.objects.get(pk=rental.wallet_id)
        assert 0 <= wallet.available_micros < 4_500_000
    assert outcomes <= {True, False}


def test_both_see_enough_money_when_they_only_look(h100):
    renter = make_renter(name="Both B.V.", units=8)
    rental = run(rent(h100, renter, hours=None), ready_at=READY)
    seen = at_once(*[lambda: Account.objects.get(pk=rental.wallet_id).available_micros] * 2)
    assert all(isinstance(micros, int) and micros >= 4_500_000 for micros in seen), "each alone could be paid"
    assert sum([3_484_804, 4_500_000]) > seen[0], "and both together could not"


def test_many_raises_at_once_hold_one_hour(h100, renter):
    rental = run(rent(h100, renter, hours=None), ready_at=READY)
    now = rental.paid_until - 5 * MINUTE
    results = at_once(*[lambda: raise_hold(rental_id=rental.pk, now=now)] * 6)
    assert sorted(results) == [False] * 5 + [True]
    assert HeldHours.objects.filter(rental=rental).count() == 2
    assert Hold.objects.get(pk=rental.hold_id).placed_micros == 2 * 3_484_804


# match against lease end


def test_an_order_that_read_the_clock_before_the_lease_ended_gets_the_device(h100, renter):
    """Both wait for the book; the end gets it first, though the order's clock is the earlier one."""
    make_listing(gpu=h100, devices=1)
    rental = run(rent(h100, renter, new_server=False, hours=3), ready_at=READY)
    stopped_at = READY + 10 * MINUTE
    beats_all_along(rental.server, since=READY, until=stopped_at)
    request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=stopped_at)
    ended_at, ordered_at = stopped_at + timedelta(seconds=3), stopped_at + timedelta(seconds=2)
    results: list[object] = []

    def end() -> None:
        results.extend(together(1, lambda _: acknowledge_stop(rental_id=rental.pk, now=ended_at)))

    def order() -> None:
        instruction = order_for(h100, hours=1)
        results.extend(
            together(1, lambda _: place_order(organisation_id=renter.pk, instruction=instruction, now=ordered_at))
        )

    threads = [threading.Thread(target=end), threading.Thread(target=order)]
    with book_locked(h100.pk):
        for number, thread in enumerate(threads):
            thread.start()
            waiting_for_a_book(number + 1)
    for thread in threads:
        thread.join(20)
    assert of_kind(results, Exception) == []
    first, second = Lease.objects.order_by("taken_sequence")
    assert second.rental.state == "pending"
    assert first.period.upper == second.period.lower == ended_at


@pytest.mark.broken_books  # its leases are closed by hand
def test_two_leases_of_a_device_that_overlap_are_refused_by_the_database(h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    lease = Lease.objects.filter(rental=rental).get()
    with connection.cursor() as cursor:
        cursor.execute("SELECT marketplace_close_leases(%s::uuid, %s::timestamptz)", [rental.pk, READY])
    with pytest.raises(IntegrityError), transaction.atomic():
        Lease.objects.create(
            device=lease.device,
            rental=rental,
            period=(READY - timedelta(seconds=1), READY + HOUR),
            taken_sequence=lease.taken_sequence + 999,
        )


def test_an_order_and_an_end_at_once_leave_no_device_and_no_order_behind(h100, renter):
    make_listing(gpu=h100, devices=1)
    for number in range(ROUNDS):
        now = NOW + number * HOUR
        pass_time(since=now - MINUTE, until=now)
        rental = rent(h100, renter, new_server=False, now=now)
        at_once(
            lambda rental=rental, now=now: request_stop(
                organisation_id=renter.pk, rental_id=rental.pk, now=now + timedelta(seconds=1)
            ),
            lambda now=now: place_order(
                organisation_id=renter.pk, instruction=order_for(h100), now=now + timedelta(seconds=1)
            ),
        )
        filled = Rental.objects.exclude(pk=rental.pk).get(state="pending")
        request_stop(organisation_id=renter.pk, rental_id=filled.pk, now=now + timedelta(seconds=2))


# ends in two books at once


def test_two_ends_whose_devices_go_to_each_other_s_renters_do_not_wait_in_a_circle(monkeypatch):
    ends_at_once(monkeypatch)
    assert set(Rental.objects.filter(filled_at=NOW).values_list("state", flat=True)) == {"ended"}
    assert Rental.objects.filter(state="pending").count() == 2


def test_accounts_that_are_locked_one_after_the_other_do(monkeypatch):
    def one_by_one(gpu_id, *, now, also_locked=()):
        return bring_to_rest(gpu_id, now=now)

    monkeypatch.setattr(closing, "bring_to_rest", one_by_one)
    results = ends_at_once(monkeypatch)
    assert len(of_kind(results, OperationalError)) == 1, results
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1", None)


def ends_at_once(monkeypatch) -> list[object]:
    """End a rental in each of two books; an order of the other's renter waits for its device. Pause before the money."""
    renters = [make_renter(name="Ana B.V."), make_renter(name="Bo B.V.")]
    rentals = []
    for renter, slug in zip(renters, ("h100-sxm", "h200-sxm"), strict=True):
        gpu = make_gpu(slug=slug)
        make_listing(gpu=gpu, devices=1)
        rentals.append(rent(gpu, renter, new_server=False))
    for renter, rental in zip(reversed(renters), rentals, strict=True):
        place_order(organisation_id=renter.pk, instruction=order_for(rental.gpu), now=NOW)
    both_matched = threading.Barrier(2)
    give_back = closing.stop_burning

    def pause(rental, *, now):
        with suppress(threading.BrokenBarrierError):  # the other waits for our accounts, as it should
            both_matched.wait(1)
        give_back(rental, now=now)

    monkeypatch.setattr(closing, "stop_burning", pause)
    later = NOW + timedelta(seconds=5)
    return at_once(
        *(
            lambda rental=rental: request_stop(organisation_id=rental.organisation_id, rental_id=rental.pk, now=later)
            for rental in rentals
        )
    )


# the same thing twice


def test_two_sweeps_and_two_settlements_at_once_do_everything_once(h100, renter):
    running = [run(rent(h100, renter, hours=hours, gpu_count=8), ready_at=READY) for hours in (1, 3, None)]
    starting = rent(h100, renter, gpu_count=8, now=READY)
    lost = running[1]
    until = READY + HOUR - 8 * MINUTE
    pass_time(since=READY, until=until, silent=(starting.server,), step=20 * MINUTE)
    end = READY + HOUR
    up_all_along(since=until, until=end)
    for rental in (running[0], running[2]):
        beats_all_along(rental.server, since=until, until=end)
    results = at_once(*[lambda: sweep(now=end)] * 3, *[lambda: settle_due(until=end, now=end)] * 2)
    assert of_kind(results, Exception) == []
    states = dict(Rental.objects.values_list("pk", "state"))
    assert [states[one.pk] for one in (*running, starting)] == ["ending", "interrupted", "running", "failed"]
    for rental in Rental.objects.all():
        assert replayed(kinds(rental)) == rental.state
        assert len(kinds(rental)) == len(set(kinds(rental)))
    assert states[lost.pk] == "interrupted"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_stop_and_the_probe_at_once(h100, renter, number):
    rental = rent(h100, renter, hours=3)
    accept_start(rental_id=rental.pk, now=NOW)
    stopped, ready = at_once(
        lambda: request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=READY),
        lambda: report_ready(rental_id=rental.pk, access=ACCESS, now=READY),
    )
    assert isinstance(stopped, Rental)
    assert ready is True or isinstance(ready, RentalStateRefused)
    rental.refresh_from_db()
    assert rental.state == "ending"
    assert replayed(kinds(rental)) == "ending"
    assert Hold.objects.get(pk=rental.hold_id).burn_micros_per_hour == 0
    sweep(now=READY + 2 * MINUTE)
    assert not Settlement.objects.filter(billed_seconds__gt=0).exists()


def test_a_stop_and_an_interruption_at_once_are_one_of_the_two(renter):
    for number in range(ROUNDS):
        rental = run(rent(make_gpu(slug=f"gpu-{number}"), renter, hours=3), ready_at=READY)
        now = READY + 6 * MINUTE
        up_all_along(since=READY, until=now)
        results = at_once(
            lambda rental=rental, now=now: request_stop(
                organisation_id=renter.pk, rental_id=rental.pk, now=now - timedelta(minutes=2)
            ),
            lambda rental=rental, now=now: interrupt_if_lost(rental_id=rental.pk, now=now),
            lambda rental=rental, now=now: interrupt_if_lost(rental_id=rental.pk, now=now),
        )
        assert of_kind(results, DatabaseError) == []
        rental.refresh_from_db()
        assert rental.state in ("interrupted", "ending")
        assert replayed(kinds(rental)) == rental.state
