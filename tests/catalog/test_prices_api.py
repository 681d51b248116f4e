"""`prices/`: one answer per GPU, money as text, and 304 for those who have it already."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import Client

from catalog.models import BestAsk, Offer
from tests.factories import make_best_ask, make_gpu, make_list_offer, make_offer

PRICES = "/api/v1/prices/"

pytestmark = pytest.mark.django_db


def get(query: str = ""):
    response = Client().get(PRICES + query)
    assert response.status_code == 200, response.content
    return json.loads(response.content)["results"]


def minutes_ago(minutes: int) -> datetime:
    return datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=minutes)


def as_text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def test_a_gpu_without_any_price_says_null():
    make_gpu()
    assert get() == [
        {
            "gpu": "h100-sxm",
            "headline": None,
            "exchange": None,
            "elsewhere": {"on_demand": None, "spot": None, "reserved": None, "list": None},
            "currency": "USD",
            "fx": None,
        }
    ]


def test_live_prices_come_with_their_spread_and_the_cheapest_as_headline():
    gpu, read_at = make_gpu(), minutes_ago(12)
    for cloud, price in (("lambda", "2.10"), ("vast", "2.88"), ("nebius", "4.00"), ("aws", "6.98")):
        make_offer(gpu=gpu, price=price, cloud=cloud, observed_at=read_at)
    (row,) = get()
    assert row["headline"] == {
        "price_per_gpu_hour": "2.10",
        "kind": "on_demand",
        "cloud": "lambda",
        "observed_at": as_text(read_at),
        "priced_on": None,
    }
    assert row["elsewhere"]["on_demand"] == {
        "min": "2.10",
        "p25": "2.685",
        "median": "3.44",
        "p75": "4.745",
        "offers": 4,
        "observed_at": as_text(read_at),
        "priced_on": None,
    }


def test_the_exchange_comes_first_with_its_devices():
    gpu, at = make_gpu(), minutes_ago(0)
    make_offer(gpu=gpu, price="1.00", observed_at=at)
    make_best_ask(gpu=gpu, price="2.8800", devices=12, observed_at=at)
    (row,) = get()
    assert row["exchange"] == {"best_ask_per_gpu_hour": "2.88", "devices_available": 12, "observed_at": as_text(at)}
    assert (row["headline"]["kind"], row["headline"]["cloud"]) == ("exchange", None)


def test_a_dated_list_price_is_a_headline_only_without_a_live_one_and_carries_its_date():
    gpu = make_gpu()
    make_list_offer(gpu=gpu, price="3.2500", priced_on=date(2026, 5, 7), observed_at=minutes_ago(5))
    (row,) = get()
    assert row["headline"]["kind"] == "list"
    assert row["headline"]["priced_on"] == row["elsewhere"]["list"]["priced_on"] == "2026-05-07"
    assert row["elsewhere"]["on_demand"] is None


def test_money_is_text_with_two_decimals_at_least_and_no_needless_ones():
    gpu = make_gpu()
    make_offer(gpu=gpu, price="2", observed_at=minutes_ago(1))
    make_offer(gpu=gpu, price="0.123456", cloud="vast", market=Offer.MarketKind.SPOT, observed_at=minutes_ago(1))
    (row,) = get()
    assert row["headline"]["price_per_gpu_hour"] == "2.00"
    assert row["elsewhere"]["spot"]["min"] == "0.123456"


def test_gpus_can_be_picked():
    for slug in ("h100-sxm", "a100-sxm", "l4"):
        make_gpu(slug=slug)
    assert [row["gpu"] for row in get("?gpu=l4,h100-sxm")] == ["h100-sxm", "l4"]


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("?currency=CHF", "currency", "Prices are available in: USD, EUR, GBP."),
        ("?gpu=h900", "gpu", "Not known here: h900."),
        ("?gpus=l4", "gpus", "There is no parameter of this name."),
    ],
)
def test_bad_parameters_are_refused_by_name_with_what_there_is(query, field, message):
    response = Client().get(PRICES + query)
    assert response.status_code == 400
    (error,) = json.loads(response.content)["errors"]
    assert (error["field"], error["message"]) == (field, message)


@pytest.mark.usefixtures("standing_clock")
@pytest.mark.parametrize(
    "path",
    ["prices/", "gpus/", "gpus/l4/", "offers/", "offers/?format=csv", "sources/", "schema/", "gpus/resolve/?name=L4"],
)
def test_whoever_has_the_answer_already_gets_304_without_a_body(path):
    make_gpu(slug="l4")
    first = Client().get(f"/api/v1/{path}")
    assert first.status_code == 200
    assert first["Cache-Control"] == "public, max-age=15"
    for headers in ({"if-none-match": first["ETag"]}, {"if-modified-since": first["Last-Modified"]}):
        again = Client().get(f"/api/v1/{path}", headers=headers)
        assert (again.status_code, again.content) == (304, b"")
        assert (again["ETag"], again["Cache-Control"]) == (first["ETag"], first["Cache-Control"])


@pytest.mark.usefixtures("standing_clock")
def test_a_304_is_settled_before_any_price_is_read(django_assert_num_queries):
    make_gpu()
    etag = Client().get(PRICES)["ETag"]
    with django_assert_num_queries(1):
        assert Client().get(PRICES, headers={"if-none-match": etag}).status_code == 304


def test_another_address_or_format_has_another_validator():
    make_gpu(slug="l4")
    paths = ("prices/", "prices/?gpu=l4", "prices/?limit=5", "offers/", "offers/?format=csv")
    assert len({Client().get(f"/api/v1/{path}")["ETag"] for path in paths}) == len(paths)
    accepted = (Client().get("/api/v1/offers/", headers={"accept": kind})["ETag"] for kind in ("text/csv", "*/*"))
    assert len(set(accepted)) == 2


@pytest.mark.parametrize("change", ["new offer", "new best ask", "best ask moved", "best ask gone", "gpu corrected"])
def test_a_change_of_any_kind_makes_a_new_validator(change):
    gpu = make_gpu()
    ask = make_best_ask(gpu=gpu, price="2.00")
    etag = Client().get(PRICES)["ETag"]
    if change == "new offer":
        make_offer(gpu=gpu, price="1.00", observed_at=minutes_ago(0))
    elif change == "new best ask":
        make_best_ask(gpu=make_gpu(slug="l4"), price="1.00")
    elif change == "best ask moved":
        BestAsk.objects.filter(pk=ask.pk).update(price_usd_per_gpu_hour="1.99")
    elif change == "best ask gone":
        ask.delete()
    else:
        gpu.tdp_w = 350
        gpu.save()
    assert Client().get(PRICES, headers={"if-none-match": etag}).status_code == 200


def test_a_refused_request_is_not_304_whatever_the_caller_holds():
    make_gpu()
    held = Client().get(PRICES)["Last-Modified"]
    assert Client().get(f"{PRICES}?bogus=1", headers={"if-modified-since": held}).status_code == 400


def test_a_precondition_that_does_not_hold_is_a_412_document():
    response = Client().get(PRICES, headers={"if-match": '"another"'})
    assert (response.status_code, response["Content-Type"]) == (412, "application/problem+json")
