"""The exchange's calls beyond placing an order."""

import json
from datetime import datetime, timedelta

import pytest
from django.test import Client
from uuid6 import uuid7

from billing.models import Account, Hold
from marketplace.models import Listing, Order, Quote
from tests.factories import make_gpu
from tests.marketplace.on_pages import just_now, on_offer, placed_by, renter_with
from tests.marketplace.test_orders_api import (
    ASKED,
    BAD_WHOLES,
    BAD_WORDS,
    BODY,
    LIMIT,
    MARKET,
    ORDERS,
    QUOTES,
    bearer,
    code,
    fields,
    get,
    nothing_was_written,
    post,
    problem,
    renter,
    told,
)

__all__ = ["bearer", "renter"]
pytestmark = pytest.mark.django_db


def test_the_order_of_another_is_not_there(h100, renter, bearer):
    theirs = placed_by(renter_with(name="Theirs"), h100)
    for path in (f"{ORDERS}{theirs.order_id}/", f"{ORDERS}{uuid7()}/", f"{ORDERS}nonsense/"):
        problem(get(path, bearer=bearer), 404)
        problem(post({}, bearer=bearer, path=f"{path}cancel/"), 404)
    assert get(ORDERS, bearer=bearer).json()["results"] == []
    assert Order.objects.get().state == "open"


# cancelling and looking


def test_a_cancel_is_the_same_answer_twice_and_needs_no_key(h100, renter, bearer):
    order = post(bearer=bearer).json()
    path = f"{ORDERS}{order['id']}/cancel/"
    first, again = (Client().post(path, headers={"Authorization": f"Bearer {bearer}"}) for _ in range(2))
    assert (first.status_code, again.content) == (200, first.content)
    assert (first.json()["state"], first.json()["hold"]["amount"]) == ("cancelled", "0.000000")
    assert Account.objects.get(owner=renter, kind="wallet").held_micros == 0
    problem(post({}, bearer=bearer, path=f"{path}?now=1"), 400)


def test_the_list_is_newest_first_paged_and_filtered(h100, bearer):
    ids = [post({**BODY, LIMIT: f"2.{number}"}, bearer=bearer).json()["id"] for number in range(10, 15)]
    post({}, bearer=bearer, path=f"{ORDERS}{ids[0]}/cancel/")
    seen, url = [], f"{ORDERS}?limit=2"
    while url:
        page = get(url, bearer=bearer).json()
        seen += [row["id"] for row in page["results"]]
        url = page["next"]
    assert seen == ids[::-1]
    assert [row["id"] for row in get(f"{ORDERS}?state=cancelled", bearer=bearer).json()["results"]] == ids[:1]
    assert len(get(f"{ORDERS}?state=open,cancelled", bearer=bearer).json()["results"]) == 5
    for query in ("?limit=0", "?limit=501", "?state=nope", "?cursor=x", "?page=2"):
        problem(get(ORDERS + query, bearer=bearer), 400)


# quotes


def test_a_quote_tells_the_most_it_costs_and_its_order_can_be_posted_as_it_is(h100, renter, bearer):
    on_offer(h100, price="2.88")
    on_offer(h100, price="3.00")
    answer = post({**ASKED, "gpu_count": 2, "server_count": 2, "hours": 3}, bearer=bearer, path=QUOTES, key="")
    assert answer.status_code == 201, answer.content
    body, quote = answer.json(), Quote.objects.get()
    assert body == {
        "id": str(quote.pk),
        "price_usd_per_gpu_hour": "3.0000",
        "fills": [
            {"country": "NL", "gpu_count": 2, "price_usd_per_gpu_hour": price, "until": body["fills"][0]["until"]}
            for price in ("2.8800", "3.0000")
        ],
        "net_per_hour": "11.760000",
        "tax_per_hour": "2.469600",
        "gross_per_hour": "14.229600",
        "tax_rate_percent": "21.00",
        "hold": "43.560016",
        "currency": "USD",
        "fx": None,
        "runs_until": body["fills"][0]["until"],
        "why_not": None,
        "expires_at": told(quote.expires_at),
        "order": {
            "gpu": "h100-sxm",
            "gpu_count": 2,
            "server_count": 2,
            "hours": 3,
            "wallet": "USD",
            "filters": {
                "countries": [],
                "interconnect": "",
                "min_ram_gb": 0,
                "min_vcpus": 0,
                "min_disk_gb": 0,
            },
            "limit_price_usd_per_gpu_hour": "3.0000",
            "time_in_force": "ioc",
            "quote": str(quote.pk),
        },
    }
    assert quote.expires_at - quote.quoted_at == timedelta(seconds=60)
    assert not Hold.objects.exists()
    order = post(body["order"], bearer=bearer).json()
    assert (order["state"], len(order["fills"])) == ("filled", 2)
    held = Account.objects.get(owner=renter, kind="wallet").held_micros
    assert held <= 43_560_016


def test_a_quote_that_cannot_be_kept_says_why_not(h100, renter, bearer):
    on_offer(h100, devices=2)
    nothing = post({**ASKED, "gpu_count": 4}, bearer=bearer, path=QUOTES).json()
    assert (nothing["id"], nothing["order"], nothing["expires_at"], nothing["fills"]) == (None, None, None, [])
    assert nothing["why_not"]["reason"] == "nothing_fits"
    assert nothing["why_not"]["book"]["removed_devices"] == {"free_devices": 2}
    dear = post({**ASKED, "gpu_count": 2, "hours": 720}, bearer=bearer, path=QUOTES).json()
    assert dear["why_not"] == {
        "reason": "not_enough_money",
        "book": None,
        "needed": "5018.113442",
        "available": "1000.000000",
    }


def test_past_its_minute_a_quote_is_over(h100, bearer):
    on_offer(h100)
    order = post(ASKED, bearer=bearer, path=QUOTES).json()["order"]
    Quote.objects.update(expires_at=just_now() - timedelta(seconds=1))
    assert code(post(order, bearer=bearer), 409) == "quote_expired"
    assert nothing_was_written()


@pytest.mark.parametrize("name", ["gpu", "gpu_count", "server_count", "hours", "wallet", "filters"])
def test_a_quote_names_bad_values_as_an_order_does(h100, bearer, name):
    for value in (BAD_WHOLES | BAD_WORDS)[name]:
        found = fields(post({**ASKED, name: value}, bearer=bearer, path=QUOTES))
        assert {str(field).split(".")[0] for field in found} == {name}, (value, found)
    assert not Quote.objects.exists()


# the market, for everybody


def test_every_market_is_told_with_its_figures(h100, renter):
    on_offer(h100, price="2.88", devices=4)
    on_offer(make_gpu(slug="b200"), price="4.19")
    make_gpu(slug="never-traded")
    placed_by(renter, h100, gpu_count=2, hours=3)
    placed_by(renter, h100, limit="2.50")
    found = {market["gpu"]: market for market in get(MARKET).json()}
    assert found.keys() == {"h100-sxm", "b200"}
    as_of = found["h100-sxm"].pop("as_of")
    assert abs(datetime.fromisoformat(as_of) - just_now()) < timedelta(minutes=5)
    assert as_of.endswith("Z")
    assert found["h100-sxm"] == {
        "gpu": "h100-sxm",
        "best_bid_usd_per_gpu_hour": "2.5000",
        "best_ask_usd_per_gpu_hour": "2.8800",
        "devices_available": 2,
        "last_price_usd_per_gpu_hour": "2.8800",
        "change_24h": None,
        "volume_24h_gpu_hours": 6,
    }


def test_a_book_is_added_up_by_price_best_first(h100, renter):
    for price, devices, min_gpus in (("2.95", 4, 1), ("2.88", 8, 4), ("2.88", 8, 2), ("3.10", 2, 1)):
        on_offer(h100, price=price, devices=devices, min_gpus=min_gpus)
    other = renter_with(name="Other")
    for who, limit, servers in ((renter, "2.40", 1), (renter, "2.50", 2), (other, "2.50", 1)):
        placed_by(who, h100, limit=limit, server_count=servers, gpu_count=2)
    body = get(f"{MARKET}h100-sxm/book/").json()
    assert body.keys() == {"gpu", "as_of", "bids", "asks"}
    assert body["bids"] == [
        {"price_usd_per_gpu_hour": "2.5000", "gpu_count": 6, "orders": 2},
        {"price_usd_per_gpu_hour": "2.4000", "gpu_count": 2, "orders": 1},
    ]
    assert body["asks"] == [
        {"price_usd_per_gpu_hour": "2.8800", "gpu_count": 16, "orders": 2, "min_gpus": 2},
        {"price_usd_per_gpu_hour": "2.9500", "gpu_count": 4, "orders": 1, "min_gpus": 1},
        {"price_usd_per_gpu_hour": "3.1000", "gpu_count": 2, "orders": 1, "min_gpus": 1},
    ]
    one = get(f"{MARKET}h100-sxm/book/?depth=1").json()
    assert (len(one["bids"]), len(one["asks"])) == (1, 1)


def test_trades_are_told_newest_first_and_without_identities(h100, renter):
    on_offer(h100)
    for gpu_count in (1, 2, 3):
        placed_by(renter, h100, gpu_count=gpu_count)
    seen, url = [], f"{MARKET}h100-sxm/trades/?limit=2"
    while url:
        page = get(url).json()
        seen += page["results"]
        url = page["next"]
    assert [trade["gpu_count"] for trade in seen] == [3, 2, 1]
    assert all(trade.keys() == {"id", "price_usd_per_gpu_hour", "gpu_count", "traded_at"} for trade in seen)
    told_of = json.dumps(seen)
    assert not [row for row in (*Order.objects.all(), *Listing.objects.all()) if str(row.pk) in told_of]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("?depth=1", 400),
        ("?gpu=h100-sxm", 400),
        ("h100-sxm/book/?depth=0", 400),
        ("h100-sxm/book/?depth=501", 400),
        ("h100-sxm/book/?depth=1.0", 400),
        ("h100-sxm/book/?depth=1&depth=2", 400),
        ("h100-sxm/book/?side=asks", 400),
        ("h100-sxm/trades/?limit=0", 400),
        ("h100-sxm/trades/?cursor=nonsense", 400),
        ("h100-sxm/trades/?since=2026", 400),
        ("nope/book/", 404),
        ("nope/trades/", 404),
    ],
)
def test_what_the_market_is_not_asked_that_way_is_refused(h100, path, status):
    problem(get(f"{MARKET}{path}"), status)


@pytest.mark.parametrize("path", ["", "h100-sxm/book/", "h100-sxm/trades/"])
def test_who_holds_an_answer_is_told_that_it_stands_until_something_trades(h100, renter, path):
    on_offer(h100)
    placed_by(renter, h100)
    first = get(MARKET + path)
    held = {"If-None-Match": first["ETag"]}
    again = get(MARKET + path, **held)
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again["ETag"] == first["ETag"]
    placed_by(renter, h100)
    changed = get(MARKET + path, **held)
    assert (changed.status_code, changed["ETag"] != first["ETag"]) == (200, True)
