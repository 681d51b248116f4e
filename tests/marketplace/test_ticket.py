"""A ticket and its review: it says everything before anything is held; what is wrong is said where it is wrong."""

import re
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from billing.models import BooksStop
from fx.models import Rate
from marketplace.models import Order, Quote
from marketplace.tax import OrderTax
from tests.factories import make_member, make_organisation
from tests.marketplace.on_pages import (
    PLACE,
    TICKET,
    USUAL,
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
from users.models import Organisation, Role

pytestmark = pytest.mark.django_db
URL = "/market/h100-sxm/"
MOST_QUERIES = 12


@pytest.fixture
def renter(h100) -> Organisation:
    return renter_with(USD=1000, EUR=1000)


@pytest.fixture
def trader(renter) -> Client:
    return somebody_of(renter)


# What the review says.


def test_the_review_of_a_best_offer_says_everything_before_anything_is_held(h100, trader):
    on_offer(h100, price="2.88")
    reviewed = review(trader)
    text = words(reviewed)
    assert "Rent 8 × H100-SXM for 24 hours at 2.88 USD or less per GPU-hour. It fills now." in text
    assert "8 × 24 h × 2.88 552.96 VAT 21%, Netherlands 116.12 Most you can pay, USD 669.08" in text
    assert "Available after the hold 330.91" in text
    assert "Netherlands 8 2.88" in text
    assert "Place order, hold 669.08 USD" in text
    assert re.search(r"This price is promised until \d\d:\d\d:\d\d UTC; nothing is reserved.", text)
    assert "stop it earlier and pay only to the second" in text
    assert "nothing to cancel: it fills at once or is gone" in text
    assert "one that has not answered after 10 minutes has failed, costs nothing, and its hold is released" in text
    assert nothing_happened()


def test_the_review_of_an_own_price_says_what_it_waits_for(h100, trader):
    on_offer(h100, price="2.95")
    text = words(review(trader, kind="limit", price="2.90", valid="72"))
    assert "at 2.90 USD or less per GPU-hour. Nothing fits at that price now. It waits until" in text
    assert "The next server that would do costs 2.95 USD, 0.05 above your price." in text
    assert "what is open at any time, and its hold is released at once" in text
    assert "Place order, hold 673.73 USD" in text


def test_an_open_ended_order_says_what_an_hour_costs_and_what_happens_at_zero(h100, trader):
    on_offer(h100, price="2.88")
    text = words(review(trader, term="open", hours="", gpu_count="1"))
    assert "Rent 1 × H100-SXM until you stop it" in text
    assert "Each hour at most, USD 3.48 Held at first: one hour 3.48" in text
    assert "with the money available now, and as far as the server is offered, until" in text
    assert "the machine stops at the end of what is paid" in text
    assert "A wallet never goes below zero." in text


def test_a_wallet_in_euros_names_the_rate_its_day_and_whose_it_is(h100, trader):
    rate_of_yesterday()
    on_offer(h100, price="2.88")
    text = words(review(trader, wallet="EUR"))
    assert "8 × 24 h × 2.88 × 0.8714 481.84" in text
    assert "0.8714 EUR per USD, European Central Bank," in text
    assert "The rate stays with the order." in text


def test_a_sample_rate_is_called_one(h100, trader):
    rate_of_yesterday()
    Rate.objects.update(origin="sample")
    on_offer(h100, price="2.88")
    assert "EUR per USD, sample rate of" in words(review(trader, wallet="EUR"))


def test_several_servers_are_told_apart_and_the_rest_that_waits_is_named(h100, trader):
    on_offer(h100, price="2.88", country="NL")
    on_offer(h100, price="2.95", country="DE")
    text = words(review(trader, kind="limit", price="2.90", server_count="2", hours="4"))
    assert "Rent 2 servers with 8 × H100-SXM each for 4 hours" in text
    assert "1 of 2 servers fill now, the rest waits until" in text
    assert "2 × 8 × 4 h × 2.90 185.60" in text


def test_reverse_charge_is_called_by_its_name(h100, trader, renter, monkeypatch):
    told = OrderTax(rate_percent=Decimal(0), treatment="reverse_charge", country="DE")
    monkeypatch.setattr("marketplace.tax.stored_order_tax", lambda organisation_id, now: told)
    on_offer(h100, price="2.88")
    text = words(review(trader))
    assert "No VAT: reverse charge, you account for it yourself 0.00 Most you can pay, USD 552.96" in text


# What is refused.


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"gpu_count": "0"}, "gpu_count", "greater than or equal to 1"),
        ({"gpu_count": "65"}, "gpu_count", "less than or equal to 64"),
        ({"server_count": "17"}, "server_count", "less than or equal to 16"),
        ({"hours": "721"}, "hours", "less than or equal to 720"),
        ({"hours": ""}, "hours", "Say for how many hours"),
        ({"kind": "limit", "price": ""}, "price", "Name your price."),
        ({"kind": "limit", "price": "0"}, "price", "Write a price above 0."),
        ({"kind": "limit", "price": "2.88888"}, "price", "at most four decimals"),
        ({"kind": "limit", "price": "1e3"}, "price", "Write the price with digits"),
        ({"wallet": "JPY"}, "wallet", "is not one of the list"),
        ({"valid": "9"}, "valid", "is not one of the list"),
        ({"countries": ["Narnia"]}, "countries", "is not one of the list"),
        ({"min_ram_gb": "-1"}, "min_ram_gb", "greater than or equal to 0"),
    ],
)
def test_what_is_wrong_with_a_ticket_stands_at_its_field_and_on_top(h100, trader, changes, field, said):
    on_offer(h100)
    shown = review(trader, **changes)
    assert said in error_at(shown, field)
    assert "One thing to correct" in words(shown)
    assert "Nothing was placed and nothing was held." in words(shown)
    assert not Quote.objects.exists()


@pytest.mark.parametrize("body", [{}, {"kind": "\x00", "gpu_count": "1" * 5000}, {"agreed_micros": "-1", "quote": "x"}])
def test_bodies_that_make_no_sense_are_answered_with_the_form(trader, h100, body):
    for path in (TICKET, PLACE):
        assert trader.post(path, body).status_code == 200
    assert nothing_happened()


def test_without_enough_money_the_missing_sum_leads_to_a_top_up(h100):
    poor = renter_with(name="Poor Ltd", USD=10)
    on_offer(h100, price="2.88")
    page = somebody_of(poor, role=Role.OWNER)
    shown = review(page)
    text = words(shown)
    assert (
        "659.09 USD are missing The wallet has 10.00 USD available, the order holds 669.09 USD. Nothing was held."
        in text
    )
    assert 'href="/wallet/top-up/?currency=USD&amp;amount=659.09"' in shown.content.decode()
    assert "Place order" not in text
    assert "An owner or billing member of your organisation tops up." in words(review(somebody_of(poor)))


def test_money_spent_meanwhile_is_said_and_nothing_is_held(h100, trader, renter):
    on_offer(h100, price="2.88")
    reviewed = review(trader)
    placed_by(renter, h100, limit="1.00", gpu_count=8, hours=48)
    shown = confirm(trader, reviewed)
    assert "The wallet has too little available for this order. Nothing was held." in words(shown)
    assert Order.objects.count() == 1


def test_where_nothing_fits_the_page_says_what_keeps_the_offers_out(h100, trader):
    on_offer(h100, devices=4)
    on_offer(h100, devices=8, country="DE", max_hours=12)
    text = words(review(trader, countries=["NL"]))
    assert "No offer fits this now." in text
    assert "12 GPUs are for rent here; what keeps them out:" in text
    assert "4 GPUs are on servers with too few of them free" in text
    assert "8 GPUs are not offered for that long" in text
    assert "your countries hide 8 GPUs" in text
    assert "Name your price" in text


def test_a_best_offer_for_more_servers_than_fit_asks_for_fewer(h100, trader):
    on_offer(h100, price="2.88")
    shown = review(trader, server_count="3", hours="1")
    assert "Ask for 1 server" in words(shown)
    assert "only 1 server fits, and you ask for 3" in words(shown)
    assert "server_count=1" in shown.content.decode()
    assert "Place order" not in words(shown)


def test_an_old_rate_stops_orders_from_that_wallet_only(h100, trader, settings):
    settings.FX_MAX_AGE_DAYS = 5
    on_offer(h100, price="2.88")
    assert "The last exchange rate is too old to order in this currency." in words(review(trader, wallet="EUR"))
    assert "Place order" in words(review(trader))


def test_while_the_books_are_checked_orders_wait(h100, trader):
    on_offer(h100, price="2.88")
    reviewed = review(trader)
    BooksStop.objects.create(breach="test", stopped_at=just_now())
    assert "New orders wait while the books are being checked." in words(confirm(trader, reviewed))
    assert nothing_happened()


def test_a_frozen_organisation_reads_why_it_cannot_order(h100, trader, renter):
    on_offer(h100, price="2.88")
    Organisation.objects.filter(pk=renter.pk).update(frozen_at=just_now())
    text = words(review(trader))
    assert "Your organisation is frozen and places no orders until we release it. Nothing was held." in text
    assert "Place order" not in text


# Who.


def test_a_visitor_is_led_to_sign_in_or_up_and_back_to_the_same_ticket(client, h100, renter):
    on_offer(h100, price="2.88")
    sent = client.get(TICKET, {**USUAL, "gpu_count": "4"})
    way = urlsplit(sent["Location"])
    assert way.path == "/account/login/"
    back = parse_qs(way.query)["next"][0]
    assert back.startswith(URL)
    assert back.endswith("#ticket")
    person = make_member(organisation=renter)
    landed = client.post("/account/login/", {"login": person.email, "password": "long-enough-1", "next": back})
    assert landed["Location"] == back
    form = Form(client.get(back.split("#")[0]), action=TICKET)
    assert form.method == "post"
    assert {name: form.fields[name] for name in ("kind", "gpu_count", "hours")} == {
        "kind": ["best"],
        "gpu_count": ["4"],
        "hours": ["24"],
    }
    joined = urlsplit(client.__class__().get(TICKET, {**USUAL, "way": "sign-up"})["Location"])
    assert joined.path == "/account/sign-up/"
    assert "way" not in parse_qs(joined.query)["next"][0]


def test_a_ticket_opened_by_its_address_leads_back_to_the_market(trader, h100):
    assert trader.get(TICKET, {"gpu_count": "4"})["Location"] == f"{URL}?gpu_count=4#ticket"


@pytest.mark.parametrize("role", [Role.BILLING, Role.VIEWER])
def test_members_who_do_not_trade_are_refused(h100, renter, role):
    on_offer(h100)
    member = somebody_of(renter, role=role)
    assert (review(member).status_code, member.post(PLACE, USUAL).status_code) == (403, 403)


def test_a_provider_reads_that_it_cannot_rent(h100):
    on_offer(h100)
    provider = somebody_of(make_organisation(name="Noord", kind="provider"), role=Role.OWNER)
    for path in (TICKET, PLACE):
        assert "Providers do not rent." in words(provider.post(path, USUAL))
    assert nothing_happened()


def test_the_review_needs_few_queries(h100, trader, django_assert_max_num_queries):
    rate_of_yesterday()
    on_offer(h100)
    on_offer(h100, price="2.95")
    for changes in ({}, {"wallet": "EUR"}, {"kind": "limit", "wallet": "EUR", "price": "2.90"}):
        with django_assert_max_num_queries(MOST_QUERIES):
            review(trader, **changes)


def test_where_nothing_is_offered_the_review_needs_few_queries_too(h100, trader, django_assert_max_num_queries):
    with django_assert_max_num_queries(MOST_QUERIES):
        review(trader, kind="limit")
