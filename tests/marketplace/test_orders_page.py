"""`/orders/` and one order: its steps with their money, why it is open, taking it back, and asking at another price."""

from datetime import timedelta
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.test import Client

from marketplace.listings import Offered, change_terms
from marketplace.matching import Filters
from marketplace.models import Order, Rental
from marketplace.orders.close import cancel_order, expire_orders
from marketplace.rentals.fail_unstarted import fail_unstarted
from marketplace.views.orders import PER_PAGE
from tests.factories import make_gpu, make_organisation
from tests.marketplace.on_pages import (
    just_now,
    on_offer,
    placed_by,
    rate_of_yesterday,
    renter_with,
    somebody_of,
    words,
)
from users.models import Organisation, Role

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12


@pytest.fixture
def renter(h100) -> Organisation:
    return renter_with(USD=10_000, EUR=1000)


@pytest.fixture
def trader(renter) -> Client:
    return somebody_of(renter)


def page_of(placed) -> str:
    return f"/orders/{placed.order_id}/"


def test_without_orders_the_page_leads_to_the_market(trader):
    page = trader.get("/orders/")
    assert "Nothing ordered yet." in words(page)
    assert 'href="/market/"' in page.content.decode()


def test_open_orders_come_first_and_can_be_cancelled_right_there(h100, renter, trader):
    on_offer(h100, price="2.88")
    placed_by(renter, h100, gpu_count=2, time_in_force="ioc", hours=None)
    waiting = placed_by(renter, h100, gpu_count=4, limit="2.50", hours=10)
    page = trader.get("/orders/")
    text = words(page)
    assert text.index("Open") < text.index("4 × H100-SXM 10 hours 2.50 open 0 of 1 filled 121.00 USD")
    assert text.index("4 × H100-SXM") < text.index("Closed") < text.index("2 × H100-SXM until stopped 2.88 filled")
    assert page.content.decode().count(f'action="/orders/{waiting.order_id}/cancel/"') == 1
    assert page.content.decode().count("/cancel/") == 1


def test_closed_orders_are_told_fifty_at_a_time(h100, renter, trader):
    on_offer(h100, price="2.88")
    for _ in range(PER_PAGE + 1):
        placed_by(renter, h100, limit="1.00", time_in_force="ioc")
    assert words(trader.get("/orders/")).count("cancelled") == PER_PAGE
    second = trader.get("/orders/", {"page": 2})
    assert words(second).count("cancelled") == 1
    assert trader.get("/orders/", {"page": 9}).status_code == 404
    assert trader.get("/orders/", {"page": "x"}).status_code == 404


def test_an_order_that_filled_at_once_tells_its_steps_with_their_money(h100, renter, trader):
    on_offer(h100, price="2.88", country="FI")
    text = words(trader.get(page_of(placed_by(renter, h100, gpu_count=2, hours=10, time_in_force="ioc"))))
    assert "2 × H100-SXM For 10 hours at 2.88 USD or less per GPU-hour." in text
    assert "filled · 1 of 1 server filled" in text
    assert "nothing waited in the book" in text
    assert "Filled at 2.88 USD" in text
    assert "2 GPUs in Finland, 69.70 USD held for them" in text
    assert "Filled whole" in text
    assert "2 GPUs, Finland Noord Compute B.V. waiting for the machine 2.88 69.70 USD" in text
    assert "Why it is open" not in text


def test_a_rental_without_a_machine_is_foretold_and_then_told(h100, renter, trader):
    on_offer(h100)
    placed = placed_by(renter, h100, time_in_force="ioc")
    assert "one that has not answered after 10 minutes has failed" in words(trader.get(page_of(placed)))
    fail_unstarted(now=just_now() + timedelta(minutes=10))
    text = words(trader.get(page_of(placed)))
    assert "failed to start 2.88 0.00 USD" in text
    assert "has not answered after 10 minutes" not in text


def test_an_order_filled_in_part_says_what_came_what_waits_and_what_the_better_price_freed(h100, renter, trader):
    rate_of_yesterday()
    listing = on_offer(h100, price="2.95", country="DE")
    placed = placed_by(renter, h100, gpu_count=8, server_count=2, hours=2, limit="2.90", currency="EUR")
    change_terms(
        provider_id=listing.server.provider_id,
        listing_id=listing.pk,
        offered=Offered(price=Decimal("2.80")),
        now=just_now(),
    )
    text = words(trader.get(page_of(placed)))
    assert "partly filled · 1 of 2 servers filled" in text
    assert "97.85 EUR held for what waits in the book · 0.8714 EUR per USD of" in text
    assert "Server 1 of 2 filled at 2.90 USD" in text, "the bid was there first: its price holds"
    assert "8 GPUs in Germany, 48.92 EUR held for them" in text
    assert "1 server still open until" in text
    assert "48.92 EUR stay held" in text


def test_an_open_order_says_why_with_the_gap_the_wishes_and_the_trades(h100, renter, trader):
    on_offer(h100, price="2.95", country="NL")
    on_offer(h100, price="2.80", country="US")
    other = renter_with(name="Other Labs", USD=1000)
    wishes = Filters(countries=frozenset({"NL"}), min_ram_gb=100)
    placed = placed_by(renter, h100, gpu_count=2, limit="2.85", filters=wishes)
    placed_by(other, h100, gpu_count=3, time_in_force="ioc")
    page = trader.get(page_of(placed))
    text = words(page)
    assert "The best offer that would do is 2.95 USD, 0.10 above your limit." in text
    assert "your countries hide 5 GPUs" in text
    assert "In the last 7 days 3 GPUs traded at 2.85 or less." in text
    assert "Asked of the server Netherlands RAM from 100 GB" in text
    assert "Cancel it and ask at 2.95" in text


def test_where_no_server_would_do_the_page_says_so(h100, renter, trader):
    on_offer(h100, devices=2)
    text = words(trader.get(page_of(placed_by(renter, h100, gpu_count=8, limit="3.00"))))
    assert "No server would do now, at whatever price." in text
    assert "2 GPUs are on servers with too few of them free" in text
    assert "Nothing traded at 3.00 or less in the last 7 days." in text
    assert "ask at" not in text


def test_cancelling_releases_the_hold_and_says_how_much(h100, renter, trader):
    placed = placed_by(renter, h100, limit="2.50", hours=10)
    answer = trader.post(f"{page_of(placed)}cancel/", follow=True)
    text = words(answer)
    assert "Cancelled. 30.25 USD are available again." in text
    assert "cancelled · 0 of 1 server filled · Cancelled by you." in text
    assert "30.25 USD released" in text
    order = Order.objects.get()
    assert order.hold is not None
    assert (order.state, order.hold.remaining_micros) == ("cancelled", 0)
    again = trader.post(f"{page_of(placed)}cancel/", follow=True)
    assert "are available again" not in words(again)


def test_a_cancel_that_comes_after_the_fill_changes_nothing_and_says_so(h100, renter, trader):
    placed = placed_by(renter, h100, limit="2.88")
    on_offer(h100, price="2.88")
    text = words(trader.post(f"{page_of(placed)}cancel/", follow=True))
    assert "It had been filled before the cancel arrived." in text
    assert Rental.objects.count() == 1


def test_asking_for_more_cancels_first_and_opens_a_ticket_with_the_same_wishes(h100, renter, trader):
    on_offer(h100, price="2.95")
    placed = placed_by(
        renter, h100, gpu_count=2, server_count=3, limit="2.50", hours=7, filters=Filters(countries=frozenset({"NL"}))
    )
    answer = trader.post(f"{page_of(placed)}cancel/", {"raise_to": "2.9500"})
    way = urlsplit(answer["Location"])
    assert (way.path, way.fragment) == ("/market/h100-sxm/", "ticket")
    asked = {name: values[0] for name, values in parse_qs(way.query).items()}
    assert asked == {
        "kind": "limit",
        "gpu_count": "2",
        "server_count": "3",
        "term": "lot",
        "hours": "7",
        "price": "2.9500",
        "wallet": "USD",
        "countries": "NL",
    }
    assert [order.state for order in Order.objects.all()] == ["cancelled"], "nothing is placed by it"
    assert trader.post(f"{page_of(placed)}cancel/", {"raise_to": "9"})["Location"] == page_of(placed)


@pytest.mark.parametrize("raise_to", ["abc", "-1", "1e9", "2.123456"])
def test_a_price_that_is_none_leads_back_to_the_order(h100, renter, trader, raise_to):
    placed = placed_by(renter, h100, limit="2.50")
    assert trader.post(f"{page_of(placed)}cancel/", {"raise_to": raise_to})["Location"] == page_of(placed)


def test_an_expired_order_tells_what_came_back(h100, renter, trader):
    placed = placed_by(renter, h100, limit="2.50", hours=10)
    expire_orders(now=just_now() + timedelta(days=7, seconds=1))
    text = words(trader.get(page_of(placed)))
    assert "expired · 0 of 1 server filled · Its time was over." in text
    assert "30.25 USD released" in text
    assert "Ask again" in text


def test_an_order_of_another_organisation_is_not_found(h100, renter):
    placed = placed_by(renter, h100, limit="2.50")
    stranger = somebody_of(make_organisation(name="Third"))
    assert stranger.get(page_of(placed)).status_code == 404
    assert stranger.post(f"{page_of(placed)}cancel/").status_code == 404
    assert Order.objects.get().state == "open"
    assert stranger.post(f"/orders/{uuid4()}/cancel/").status_code == 404


def test_members_who_do_not_trade_look_on(h100, renter):
    placed = placed_by(renter, h100, limit="2.50")
    viewer = somebody_of(renter, role=Role.VIEWER)
    for path in ("/orders/", page_of(placed), "/market/h100-sxm/"):
        page = viewer.get(path)
        assert page.status_code == 200
        assert "/cancel/" not in page.content.decode()
    assert viewer.post(f"{page_of(placed)}cancel/").status_code == 403


def test_a_visitor_signs_in_first(client, h100, renter):
    placed = placed_by(renter, h100, limit="2.50")
    for path in ("/orders/", page_of(placed)):
        assert client.get(path)["Location"].startswith("/account/login/?next=")


def test_a_provider_reads_that_it_places_no_orders():
    provider = somebody_of(make_organisation(name="Noord", kind="provider"), role=Role.OWNER)
    assert "Providers place no orders." in words(provider.get("/orders/"))


def test_the_pages_need_few_queries(renter, trader, django_assert_max_num_queries):
    gpu = make_gpu(slug="l4")
    for each in (gpu, make_gpu(slug="l40"), make_gpu(slug="l40s")):
        on_offer(each)
        on_offer(each, price="2.95")
        placed_by(renter, each, server_count=2, limit="2.95", time_in_force="ioc")
        placed_by(renter, each, limit="1.00")
    waiting = placed_by(renter, gpu, server_count=3, gpu_count=7, limit="2.95")
    with django_assert_max_num_queries(MOST_QUERIES):
        trader.get("/orders/")
    with django_assert_max_num_queries(MOST_QUERIES):
        trader.get(page_of(waiting))
    cancel_order(organisation_id=renter.pk, order_id=waiting.order_id, now=just_now())
    with django_assert_max_num_queries(MOST_QUERIES):
        trader.get(page_of(waiting))
