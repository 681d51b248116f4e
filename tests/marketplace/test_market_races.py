"""Many at once in one book, and two books at once: every device sold once, every answer clean, nobody waits for ever."""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from billing.models import Account, Hold
from catalog.models import BestAsk
from marketplace.listings import Offered, change_terms
from marketplace.models import Device, Fill, Lease, Order, Rental
from marketplace.orders.close import cancel_order
from marketplace.orders.place import NotEnoughMoney, Placed, place_order
from marketplace.servers import beat
from marketplace.sweep import sweep
from tests.billing.test_ledger_race import together
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for

pytestmark = pytest.mark.django_db(transaction=True)
SECOND = timedelta(seconds=1)
ROUNDS = 4


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """Start all of it in the same moment, a connection each; nothing may fail but by a refusal of the exchange."""
    barrier = threading.Barrier(count)

    def one(number: int) -> object:
        barrier.wait(30)
        return work(number)

    results = together(count, one)
    assert [result for result in results if isinstance(result, DatabaseError | threading.BrokenBarrierError)] == []
    return results


def take(renter, gpu, **values) -> Placed:
    instruction = order_for(gpu, **{"time_in_force": "ioc", **values})
    return place_order(organisation_id=renter.pk, instruction=instruction, now=NOW)


@pytest.mark.parametrize("takers", [8, 24])
def test_of_many_takers_of_the_last_device_one_gets_it_and_the_others_a_clean_answer(h100, takers):
    make_listing(gpu=h100, devices=1)
    renters = [make_renter(name=f"Renter {number}", units=10) for number in range(takers)]
    results = at_once(takers, lambda number: take(renters[number], h100))
    states = Counter(result.state for result in results)
    assert states == {"filled": 1, "cancelled": takers - 1}, results
    assert Fill.objects.count() == Rental.objects.count() == Lease.objects.count() == 1
    assert Hold.objects.filter(remaining_micros__gt=0).count() == 1
    assert not BestAsk.objects.filter(gpu=h100).exists()
    assert len(set(Order.objects.values_list("sequence", flat=True))) == takers


@pytest.mark.long
def test_of_fifty_takers_of_the_last_device_one_gets_it(h100):
    make_listing(gpu=h100, devices=1)
    renters = [make_renter(name=f"Renter {number}", units=10) for number in range(50)]
    results = at_once(50, lambda number: take(renters[number], h100))
    assert Counter(result.state for result in results) == {"filled": 1, "cancelled": 49}


def test_of_many_that_rest_for_the_last_device_one_fills_and_the_others_wait(h100):
    make_listing(gpu=h100, devices=1)
    renters = [make_renter(name=f"Renter {number}", units=10) for number in range(8)]
    results = at_once(8, lambda number: take(renters[number], h100, time_in_force="gtc"))
    assert Counter(result.state for result in results) == {"filled": 1, "open": 7}


def test_one_wallet_is_never_spent_twice_by_orders_in_different_books():
    """One hour costs 3.484804; there is money for two, in eight books at once."""
    renter = make_renter(units=7)
    gpus = [make_gpu(slug=f"gpu-{number}") for number in range(8)]
    for gpu in gpus:
        make_listing(gpu=gpu, devices=1)
    results = at_once(8, lambda number: take(renter, gpus[number]))
    assert sum(isinstance(result, Placed) and result.state == "filled" for result in results) == 2, results
    assert sum(isinstance(result, NotEnoughMoney) for result in results) == 6, results
    wallet = Account.objects.get(owner=renter, kind="wallet")
    assert wallet.held_micros == 2 * (3_484_800 + 4) <= wallet.posted_micros
    assert Order.objects.count() == 2


def test_a_cancel_and_a_fill_of_the_same_order_have_one_outcome(renter):
    for number in range(ROUNDS):
        gpu = make_gpu(slug=f"gpu-{number}")
        listing = make_listing(gpu=gpu, price="2.88", devices=1)
        placed = take(renter, gpu, limit="2.50", time_in_force="gtc")
        cheaper = Offered(price=Decimal("2.40"))

        def cancel(order_id=placed.order_id):
            return cancel_order(organisation_id=renter.pk, order_id=order_id, now=NOW).state

        def lower(listing=listing, cheaper=cheaper):
            return change_terms(provider_id=listing.server.provider_id, listing_id=listing.pk, offered=cheaper, now=NOW)

        told, _ = at_once(2, lambda which, cancel=cancel, lower=lower: (cancel, lower)[which]())
        order = Order.objects.get(pk=placed.order_id)
        assert told == order.state
        assert order.state in ("cancelled", "filled")
        assert Fill.objects.filter(order=order).count() == order.filled_servers == (order.state == "filled")
        order.hold.refresh_from_db()
        assert order.hold.remaining_micros == 0


def test_a_cancel_and_a_cancel_give_the_money_back_once(h100, renter):
    placed = take(renter, h100, time_in_force="gtc")
    results = at_once(
        6, lambda _: cancel_order(organisation_id=renter.pk, order_id=placed.order_id, now=NOW).closed_sequence
    )
    assert len(set(results)) == 1
    assert Account.objects.get(owner=renter, kind="wallet").held_micros == 0


def test_two_books_serve_the_same_two_renters_in_parallel_without_a_deadlock():
    """Each reprice fills an order of both renters: the wallets are locked in one order, whatever book comes first."""
    renters = [make_renter(name=f"Renter {number}", units=500) for number in range(2)]
    for number in range(ROUNDS):
        books = [make_gpu(slug=f"gpu-{number}-{side}") for side in range(2)]
        listings = [make_listing(gpu=gpu, price="9.00", devices=2) for gpu in books]
        for side, gpu in enumerate(books):
            for renter in renters if side == 0 else reversed(renters):
                assert take(renter, gpu, time_in_force="gtc").state == "open"

        def lower(side, listings=listings):
            listing = listings[side]
            return change_terms(
                provider_id=listing.server.provider_id,
                listing_id=listing.pk,
                offered=Offered(price=Decimal("2.50")),
                now=NOW,
            )

        at_once(2, lower)
        assert Order.objects.filter(gpu__in=books, state="filled").count() == 4


def test_orders_cancels_beats_and_sweeps_at_once_leave_every_book_at_rest(h100):
    """The checks after the test prove every fill again; here all that matters is that everybody is answered."""
    renters = [make_renter(name=f"Renter {number}", units=100) for number in range(4)]
    listings = [make_listing(gpu=h100, price=price, devices=2) for price in ("2.50", "2.70", "2.88")]

    def work(number: int) -> object:
        renter = renters[number % 4]
        placed = take(renter, h100, time_in_force="gtc", limit=("2.50", "2.88")[number % 2])
        if number % 3 == 0:
            cancel_order(organisation_id=renter.pk, order_id=placed.order_id, now=NOW + SECOND)
        if number % 3 == 1:
            beat(server_id=listings[number % 3].server_id, now=NOW + number * SECOND)
        if number % 4 == 3:
            sweep(now=NOW + SECOND)
        return placed.state

    results = at_once(12, work)
    assert all(isinstance(result, str) for result in results), results
    assert Lease.objects.filter(closed_sequence=None).count() == Fill.objects.count() == 6


def test_without_the_book_s_lock_two_readers_choose_the_same_device(h100, renter):
    """The race is real: what both read before either wrote, both would sell."""
    make_listing(gpu=h100, devices=1)
    device, barrier = Device.objects.get(), threading.Barrier(2)

    def careless(_number: int) -> bool:
        with transaction.atomic():
            is_free = not Lease.objects.filter(device=device, closed_sequence=None).exists()
            barrier.wait(10)
            return is_free

    assert together(2, careless) == [True, True]


def test_a_second_open_lease_of_a_device_is_refused_by_the_database(h100, renter):
    make_listing(gpu=h100, devices=2)
    for _ in range(2):
        take(renter, h100)
    first, second = Lease.objects.order_by("pk")
    moments = {"overlapping": NOW, "after it": NOW + timedelta(days=2)}
    for since in moments.values():
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO marketplace_lease (device_id, rental_id, period, taken_sequence)"
                " VALUES (%s::bigint, %s::uuid, tstzrange(%s::timestamptz, NULL), 999999)",
                [first.device_id, second.rental_id, since],
            )
    with pytest.raises(IntegrityError, match="device_never_leased_twice"), transaction.atomic():
        Lease.objects.create(
            device_id=first.device_id,
            rental_id=second.rental_id,
            period=(NOW, NOW + SECOND),
            taken_sequence=999_999,
            closed_sequence=1_000_000,
        )
    assert Lease.objects.count() == 2
