"""Placing an order: what fits now is taken, the rest rests or leaves; never a cent held too little or too much."""

from datetime import timedelta
from decimal import Decimal

import pytest

from billing.models import Hold
from catalog.models import BestAsk
from marketplace.models import Lease, Order, Rental
from marketplace.orders.instruction import InstructionRefused
from marketplace.orders.place import NotEnoughMoney, place_order
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, order_for

pytestmark = pytest.mark.django_db


def place(renter, instruction, *, now=NOW):
    return place_order(organisation_id=renter.pk, instruction=instruction, now=now)


def test_the_best_offer_is_taken_and_its_devices_are_leased(h100, renter):
    make_listing(gpu=h100, price="2.95")
    best = make_listing(gpu=h100, price="2.88")
    placed = place(renter, order_for(h100, gpu_count=4, hours=3, time_in_force="ioc", limit="2.95"))
    assert placed.state == "filled"
    rental = Rental.objects.get()
    assert (rental.listing_id, rental.price_usd_per_gpu_hour, rental.state) == (best.pk, Decimal("2.8800"), "pending")
    assert rental.lease_until == NOW + timedelta(hours=3, minutes=10)
    leased = Lease.objects.filter(rental=rental).order_by("device_id")
    assert [lease.device.index for lease in leased] == [0, 1, 2, 3]


def test_a_lot_holds_its_gross_and_two_micros_an_hour(h100, renter):
    make_listing(gpu=h100, price="2.88")
    place(renter, order_for(h100, gpu_count=4, hours=3))
    # 4 x 2.88 x 3 h x 1.21, and 2 micros for each of the four UTC hours it may touch
    assert Hold.objects.get().remaining_micros == 41_817_600 + 8


def test_an_order_at_its_own_price_rests_and_holds_the_limit(h100, renter):
    make_listing(gpu=h100, price="2.88")
    placed = place(renter, order_for(h100, limit="2.50", hours=10))
    order = Order.objects.get(pk=placed.order_id)
    assert (order.state, order.open_servers) == ("open", 1)
    assert order.hold.remaining_micros == 30_250_000 + 22 == placed.held_micros


def test_the_best_ask_follows_the_book(h100, renter):
    make_listing(gpu=h100, price="2.88", devices=2)
    make_listing(gpu=h100, price="2.95", devices=8)
    best = BestAsk.objects.get(gpu=h100)
    assert (best.price_usd_per_gpu_hour, best.devices_available) == (Decimal("2.88"), 10)
    place(renter, order_for(h100, gpu_count=2))
    best.refresh_from_db()
    assert (best.price_usd_per_gpu_hour, best.devices_available) == (Decimal("2.95"), 8)


def test_without_the_money_nothing_is_written(h100, renter):
    make_listing(gpu=h100, price="2.88")
    with pytest.raises(NotEnoughMoney) as refused:
        place(renter, order_for(h100, gpu_count=8, hours=720))
    assert refused.value.available_micros == 1_000_000_000
    assert refused.value.needed_micros > 20_000_000_000
    assert not Order.objects.exists()
    assert not Hold.objects.exists()


def test_a_limit_far_above_the_market_is_asked_about(h100, renter):
    make_listing(gpu=h100, price="2.00")
    with pytest.raises(InstructionRefused) as refused:
        place(renter, order_for(h100, limit="3.01"))
    assert (refused.value.field, refused.value.code) == ("limit_price_usd_per_gpu_hour", "price_far_above_reference")
    assert place(renter, order_for(h100, limit="3.01", confirm_price=True)).state == "filled"


def test_all_or_nothing_takes_nothing_when_one_server_is_missing(h100, renter):
    make_listing(gpu=h100)
    assert place(renter, order_for(h100, server_count=2, time_in_force="fok")).state == "cancelled"
    assert not Rental.objects.exists()


def test_now_as_far_as_it_goes_leaves_with_a_part(h100, renter):
    make_listing(gpu=h100)
    placed = place(renter, order_for(h100, server_count=2, time_in_force="ioc"))
    assert (placed.state, placed.filled_servers) == ("cancelled", 1)


def test_another_gpu_has_another_book(h100, renter):
    make_listing(gpu=make_gpu(slug="h200-sxm"), price="1.00")
    assert place(renter, order_for(h100)).state == "open"
