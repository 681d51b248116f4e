"""The button of a review: it places what was shown, once; what came between is shown before anything is held."""

from datetime import timedelta
from decimal import Decimal
from threading import Barrier, Thread

import pytest
from django.db import connection
from django.test import Client

from fx.models import Rate
from marketplace.listings import Offered, change_terms
from marketplace.models import Order, Quote
from tests.marketplace.on_pages import (
    PLACE,
    Form,
    confirm,
    just_now,
    nothing_happened,
    on_offer,
    placed_by,
    rate_of_yesterday,
    renter_with,
    review,
    somebody_of,
    words,
)
from tests.users.signing_in import error_at
from users.models import Organisation

pytestmark = pytest.mark.django_db
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqfYbVzuqAUvVlhEBpDjWTEHEmS2YbUFHBdNbD1CWrX ana"


@pytest.fixture
def renter(h100) -> Organisation:
    return renter_with(USD=1000, EUR=1000)


@pytest.fixture
def trader(renter) -> Client:
    return somebody_of(renter)


# What the button does.


def test_taking_the_best_offer_rents_it_at_the_quoted_price(h100, trader, renter):
    on_offer(h100, price="2.88")
    placed = confirm(trader, review(trader), ssh_public_key=KEY)
    order = Order.objects.get()
    assert (placed.status_code, placed["Location"]) == (303, f"/orders/{order.pk}/")
    assert (order.time_in_force, order.state, order.limit_price_usd_per_gpu_hour) == ("ioc", "filled", Decimal("2.88"))
    assert (order.organisation, order.ssh_public_key) == (renter, KEY)
    assert order.quote == Quote.objects.get()
    assert order.placed_by is not None
    assert order.rentals.get().hold.remaining_micros == 669_081_600 + 2 * 25


def test_an_own_price_rests_until_its_time_and_holds_what_was_shown(h100, trader):
    on_offer(h100, price="2.95")
    reviewed = review(trader, kind="limit", price="2,90", valid="6", countries=["NL"])
    confirm(trader, reviewed)
    order = Order.objects.get()
    assert (order.time_in_force, order.state, order.countries) == ("gtc", "open", ["NL"])
    assert order.limit_price_usd_per_gpu_hour == Decimal("2.90")
    assert order.expires_at is not None
    assert order.hold is not None
    assert timedelta(hours=5.9) < order.expires_at - just_now() <= timedelta(hours=6)
    assert order.quote is None
    agreed = int(Form(reviewed, action=PLACE).fields["agreed_micros"][0])
    assert order.hold.remaining_micros == agreed


@pytest.mark.parametrize(("valid", "state"), [("ioc", "cancelled"), ("fok", "cancelled")])
def test_now_or_never_is_offered_only_where_it_does_something(h100, trader, valid, state):
    on_offer(h100, price="2.95")
    text = words(review(trader, kind="limit", price="2.90", valid=valid))
    assert "It does not fill now, and would be dropped at once." in text
    assert "Place order" not in text
    on_offer(h100, price="2.85")
    confirm(trader, review(trader, kind="limit", price="2.90", valid=valid))
    assert (Order.objects.get().state, Order.objects.get().time_in_force) == ("filled", valid)


def test_a_form_sent_twice_places_one_order_and_shows_the_same_page(h100, trader):
    on_offer(h100, price="2.88")
    reviewed = review(trader, gpu_count="2", hours="1")
    first, second = confirm(trader, reviewed), confirm(trader, reviewed)
    assert first["Location"] == second["Location"]
    assert Order.objects.count() == 1


def test_a_form_of_another_organisation_places_nothing(h100, trader):
    on_offer(h100, price="2.88")
    other = somebody_of(renter_with(name="Other Labs", USD=1000))
    shown = confirm(other, review(trader))
    assert shown.status_code == 200
    assert "This form came from somewhere else, or was opened before." in words(shown)
    assert nothing_happened()


def test_the_key_of_the_last_order_is_offered_again_and_a_bad_one_is_refused_at_its_field(h100, trader):
    on_offer(h100, price="2.88")
    bad = confirm(trader, review(trader, gpu_count="1", hours="1"), ssh_public_key="ssh-dss AAAA")
    assert "Start with the kind of key" in error_at(bad, "ssh_public_key")
    assert "ssh-dss AAAA" in bad.content.decode()
    assert "Nothing was placed and nothing was held." in words(bad)
    assert nothing_happened()
    confirm(trader, bad, ssh_public_key=KEY)
    assert Order.objects.get().ssh_public_key == KEY
    assert KEY in review(trader, gpu_count="1").content.decode()


# What may come between.


def test_an_expired_quote_is_asked_again_with_the_old_and_the_new_price(h100, trader):
    listing = on_offer(h100, price="2.88")
    reviewed = review(trader, gpu_count="2", hours="1")
    Quote.objects.update(expires_at=just_now() - timedelta(seconds=1))
    change_terms(
        provider_id=listing.server.provider_id,
        listing_id=listing.pk,
        offered=Offered(price=Decimal("2.91")),
        now=just_now(),
    )
    again = confirm(trader, reviewed)
    text = words(again)
    assert "The price moved before 2.88 → now 2.91 USD per GPU-hour" in text
    assert "Nothing was placed and nothing was held." in text
    assert nothing_happened()
    confirm(trader, again)
    assert Order.objects.get().limit_price_usd_per_gpu_hour == Decimal("2.91")


def test_an_expired_quote_at_the_same_price_says_so(h100, trader):
    on_offer(h100, price="2.88")
    reviewed = review(trader, gpu_count="2", hours="1")
    Quote.objects.update(expires_at=just_now() - timedelta(seconds=1))
    assert "The quote’s minute was over; the price is the same" in words(confirm(trader, reviewed))
    assert nothing_happened()


def test_a_best_offer_without_its_quote_is_quoted_first(h100, trader):
    on_offer(h100, price="2.88")
    shown = confirm(trader, review(trader), quote="", shown_price="90")
    assert shown.status_code == 200
    assert nothing_happened()


def test_an_offer_taken_by_somebody_else_meanwhile_leaves_an_order_that_did_nothing(h100, trader):
    on_offer(h100, price="2.88", devices=2)
    reviewed = review(trader, gpu_count="2", hours="1")
    placed_by(renter_with(name="Other Labs", USD=1000), h100, gpu_count=2, time_in_force="ioc")
    page = trader.get(confirm(trader, reviewed)["Location"])
    assert "Nothing fitted at that moment, so nothing was rented and nothing was held." in words(page)


def test_a_rate_that_moved_against_the_renter_is_shown_before_anything_is_held(h100, trader):
    rate_of_yesterday()
    on_offer(h100, price="9.00")
    reviewed = review(trader, kind="limit", wallet="EUR", price="2.00", gpu_count="1")
    Rate.objects.update(units_per_eur=Decimal("1.1000"))
    again = confirm(trader, reviewed)
    assert "The rate or the tax changed before 50.61 → now 52.80 EUR" in words(again)
    assert nothing_happened()
    confirm(trader, again)
    assert Order.objects.get().state == "open"


def test_a_limit_far_above_the_market_needs_a_second_word(h100, trader):
    on_offer(h100, price="2.88")
    reviewed = review(trader, kind="limit", price="9.00", gpu_count="1", hours="1")
    assert "Your limit is 9.00 USD; the market’s own figure is 2.88 USD." in words(reviewed)
    refused = confirm(trader, reviewed)
    assert error_at(refused, "confirm_price") == "Say that you mean this price."
    assert nothing_happened()
    confirm(trader, refused, confirm_price="on")
    assert Order.objects.get().state == "filled"


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_place_one_order(h100):
    on_offer(h100, price="2.88")
    renter = renter_with(USD=1000)
    reviewed = review(somebody_of(renter), gpu_count="2", hours="1")
    form = Form(reviewed, action=PLACE).filled()
    clients, start, answers = [somebody_of(renter) for _ in range(2)], Barrier(2), []

    def click(client):
        start.wait()
        answers.append(client.post(PLACE, form))
        connection.close()

    threads = [Thread(target=click, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    order = Order.objects.get()
    assert {(answer.status_code, answer["Location"]) for answer in answers} == {(303, f"/orders/{order.pk}/")}
    assert order.rentals.count() == 1
