"""What providers and servers do to a book."""

from decimal import Decimal

import pytest

from marketplace.book import live_asks
from marketplace.listings import (
    AlreadyListed,
    ListingUnknown,
    Offered,
    TermsRefused,
    end_listing,
    list_server,
    pause,
    resume,
)
from marketplace.matching import Filters
from marketplace.models import Listing, Order, Rental
from marketplace.orders.close import expire_orders
from marketplace.orders.match import bring_to_rest
from marketplace.orders.place import (
    place_order,
)
from marketplace.servers import ServerBusy, beat, unverify_server, verify_server, withdraw_server
from marketplace.sweep import sweep
from tests.marketplace.conftest import NOW, make_listing, make_renter, make_server, order_for
from tests.marketplace.rental_clock import up_all_along
from tests.marketplace.test_orders_life import MINUTE, SECOND, best_ask, held, of, offer, place, reprice

pytestmark = pytest.mark.django_db


def test_a_rental_that_did_not_start_is_failed_by_the_sweep_and_the_next_gets_its_devices(h100, renter):
    listing = make_listing(gpu=h100, devices=1)
    place(renter, h100)
    waits = place(make_renter(name="Other"), h100)
    up_all_along(since=NOW, until=NOW + 10 * MINUTE)
    beat(server_id=listing.server_id, now=NOW + 10 * MINUTE)
    counts = sweep(now=NOW + 10 * MINUTE)
    waits.refresh_from_db()
    assert (Rental.objects.filter(state="failed").count(), waits.state) == (1, "filled"), counts


def test_a_partly_filled_order_takes_another_server_never_the_same_twice(h100, renter):
    make_listing(gpu=h100, devices=8)
    order = place(renter, h100, server_count=2)
    bring_to_rest(h100.pk, now=NOW + SECOND)
    order.refresh_from_db()
    assert (order.state, order.filled_servers) == ("partly_filled", 1)
    make_listing(gpu=h100, devices=1, now=NOW + 2 * SECOND)
    order.refresh_from_db()
    assert order.state == "filled"
    assert len(set(order.rentals.values_list("server_id", flat=True))) == 2


def test_a_book_at_rest_stays_as_it_is(h100, renter):
    make_listing(gpu=h100)
    place(renter, h100, limit="2.50")
    assert [bring_to_rest(h100.pk, now=NOW + SECOND) for _ in range(2)] == [0, 0]


def test_wishes_keep_an_order_open_until_a_server_has_them(h100, renter):
    make_listing(gpu=h100, country="US")
    order = place(renter, h100, filters=Filters(countries=frozenset({"FI", "NL"}), min_ram_gb=1024))
    make_listing(gpu=h100, country="FI", ram_gb=512)
    order.refresh_from_db()
    assert order.state == "open"
    make_listing(gpu=h100, country="FI", ram_gb=1024)
    order.refresh_from_db()
    assert order.state == "filled"


# what is for rent


def test_a_paused_listing_sells_nothing_until_it_is_resumed_at_its_old_place(h100, renter):
    first, second = make_listing(gpu=h100, devices=1), make_listing(gpu=h100, devices=1)
    pause(**of(first), now=NOW)
    assert best_ask(h100) == (Decimal("2.88"), 1)
    pause(**of(first), now=NOW)
    resume(**of(first), now=NOW)
    resume(**of(first), now=NOW)
    assert [ask.listing_id for ask in live_asks(h100.pk, now=NOW)] == [first.pk, second.pk]
    pause(**of(first), now=NOW)
    pause(**of(second), now=NOW)
    order = place(renter, h100)
    assert (order.state, best_ask(h100)) == ("open", None)
    resume(**of(second), now=NOW)
    order.refresh_from_db()
    assert order.state == "filled"


def test_an_ended_listing_is_gone_for_good_and_its_server_may_be_listed_anew(h100, renter):
    listing = make_listing(gpu=h100, devices=2)
    rental = Rental.objects.get(order=place(renter, h100))
    with pytest.raises(AlreadyListed):
        list_server(server=listing.server, offered=offer(listing, "2.00"), now=NOW)
    end_listing(**of(listing), now=NOW)
    assert best_ask(h100) is None
    rental.refresh_from_db()
    assert rental.state == "pending", "what is sold goes on"
    for change in (pause, resume, end_listing):
        with pytest.raises(ListingUnknown):
            change(**of(listing), now=NOW)
    list_server(server=listing.server, offered=offer(listing, "2.00"), now=NOW)
    assert best_ask(h100) == (Decimal("2.00"), 1), "the device that is let stays let"


def test_nobody_changes_the_listing_of_another_provider(h100):
    listing = make_listing(gpu=h100)
    with pytest.raises(ListingUnknown):
        pause(provider_id=listing.server.provider_id + 1, listing_id=listing.pk, now=NOW)


def test_a_new_price_goes_to_the_end_of_its_line_and_other_terms_keep_their_place(h100):
    first, second = make_listing(gpu=h100), make_listing(gpu=h100)
    reprice(first, "2.88", max_hours=10)
    assert [ask.listing_id for ask in live_asks(h100.pk, now=NOW)] == [first.pk, second.pk]
    reprice(first, "2.99", max_hours=10)
    reprice(first, "2.88", max_hours=10)
    assert [ask.listing_id for ask in live_asks(h100.pk, now=NOW)] == [second.pk, first.pk]


def test_what_is_sold_keeps_its_price_whatever_is_asked_later(h100, renter):
    listing = make_listing(gpu=h100)
    order = place(renter, h100)
    before = held(renter)
    reprice(listing, "2.00")
    reprice(listing, "9.00", now=NOW + 2 * SECOND)
    rental = Rental.objects.get(order=order)
    assert rental.price_usd_per_gpu_hour == rental.fill.price_usd_per_gpu_hour == Decimal("2.88")
    assert held(renter) == before


@pytest.mark.parametrize(
    ("terms", "field", "code"),
    [
        ({"price": Decimal(0)}, "price_usd_per_gpu_hour", "out_of_range"),
        ({"price": Decimal("NaN")}, "price_usd_per_gpu_hour", "out_of_range"),
        ({"price": Decimal("100000.0001")}, "price_usd_per_gpu_hour", "out_of_range"),
        ({"price": Decimal("2.88001")}, "price_usd_per_gpu_hour", "too_fine"),
        ({"min_gpus": 0}, "min_gpus", "out_of_range"),
        ({"min_gpus": 9}, "min_gpus", "out_of_range"),
        ({"max_hours": 0}, "max_hours", "out_of_range"),
        ({"max_hours": 8761}, "max_hours", "out_of_range"),
        ({"available_until": NOW}, "available_until", "in_the_past"),
    ],
)
def test_terms_out_of_place_are_named(h100, terms, field, code):
    server = make_server(gpu=h100)
    with pytest.raises(TermsRefused) as refused:
        list_server(server=server, offered=Offered(**{"price": Decimal("2.88"), **terms}), now=NOW)
    assert (refused.value.field, refused.value.code) == (field, code)
    assert not Listing.objects.exists()


# servers


def test_only_a_verified_server_sells(h100, renter):
    listing = make_listing(gpu=h100)
    unverify_server(server_id=listing.server_id, now=NOW)
    assert best_ask(h100) is None
    order = place(renter, h100)
    assert order.state == "open"
    verify_server(server_id=listing.server_id, now=NOW)
    order.refresh_from_db()
    assert order.state == "filled"


def test_a_withdrawn_server_is_gone_and_one_with_a_rental_stays(h100, renter):
    busy, idle = make_listing(gpu=h100, price="2.50"), make_listing(gpu=h100)
    place(renter, h100)
    with pytest.raises(ServerBusy):
        withdraw_server(server_id=busy.server_id, now=NOW)
    withdraw_server(server_id=idle.server_id, now=NOW)
    assert best_ask(h100) == (Decimal("2.50"), 7)
    beat(server_id=idle.server_id, now=NOW + SECOND)
    assert [ask.listing_id for ask in live_asks(h100.pk, now=NOW + SECOND)] == [busy.pk]


def test_a_silent_server_leaves_the_best_ask_with_the_sweep(h100):
    make_listing(gpu=h100, price="2.50")
    heard = make_listing(gpu=h100, price="2.88")
    beat(server_id=heard.server_id, now=NOW + MINUTE)
    sweep(now=NOW + MINUTE)
    assert best_ask(h100) == (Decimal("2.50"), 16), "sixty seconds are not silence"
    sweep(now=NOW + MINUTE + SECOND)
    assert best_ask(h100) == (Decimal("2.88"), 8)
    sweep(now=NOW + 3 * MINUTE)
    assert best_ask(h100) is None


def test_a_silent_server_sells_nothing_even_before_the_sweep(h100, renter):
    make_listing(gpu=h100)
    assert place(renter, h100, now=NOW + MINUTE + SECOND).state == "open"


def test_a_beat_after_silence_brings_the_ask_back_and_fills_who_waits(h100, renter):
    listing = make_listing(gpu=h100)
    later = NOW + 2 * MINUTE
    order = place(renter, h100, now=later)
    assert order.state == "open"
    beat(server_id=listing.server_id, now=later + SECOND)
    order.refresh_from_db()
    assert (order.state, best_ask(h100)) == ("filled", (Decimal("2.88"), 7))


def test_an_order_that_comes_again_with_its_id_is_the_same_order(h100, renter):
    make_listing(gpu=h100)
    first = place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    again = place_order(
        organisation_id=renter.pk, instruction=order_for(h100), now=NOW + SECOND, order_id=first.order_id
    )
    assert again == first
    assert (Order.objects.count(), Rental.objects.count()) == (1, 1)


def test_expiring_twice_is_expiring_once(h100, renter):
    place(renter, h100, expires_at=NOW + MINUTE)
    assert [expire_orders(now=NOW + MINUTE) for _ in range(2)] == [1, 0]
