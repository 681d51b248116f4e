"""What happens in a book is seen at once by whoever asks, and by nobody who holds an older answer for long."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils.http import http_date, parse_http_date

from catalog.models import BestAsk
from marketplace.orders.close import cancel_order
from tests.billing.test_ledger_race import together
from tests.factories import make_gpu
from tests.marketplace.on_pages import just_now, on_offer, placed_by, renter_with

BOOK = "/api/v1/market/h100-sxm/book/"


def bids(client: Client, **headers: str) -> list[dict]:
    return client.get(BOOK, headers=headers).json()["bids"]


@pytest.mark.django_db(transaction=True)
def test_an_order_is_in_the_book_that_others_read_within_a_second_of_being_placed():
    h100, renter = make_gpu(), renter_with()
    on_offer(h100)
    assert bids(Client()) == []
    placed_at = time.monotonic()
    placed_by(renter, h100, limit="2.50", gpu_count=2)
    seen = {"price_usd_per_gpu_hour": "2.5000", "gpu_count": 2, "orders": 1}

    def another_process_reads(_number: int) -> tuple[list[dict], float]:
        return bids(Client()), time.monotonic()

    for read, at in together(4, another_process_reads):
        assert (read, at - placed_at < 1) == ([seen], True)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/market/", BOOK, "/api/v1/market/h100-sxm/trades/"])
def test_caches_keep_an_answer_for_a_second_and_no_date_vouches_for_it(h100, path):
    on_offer(h100)
    client, renter = Client(), renter_with()
    order = placed_by(renter, h100, limit="2.50")
    placed_by(renter, h100)
    first = client.get(path)
    assert first["Cache-Control"] == "public, max-age=1"
    assert client.get(path, headers={"If-None-Match": first["ETag"]}).status_code == 304
    # Taking an order back has no time of its own in a book: whoever asks by the date of a second ago gets it anew.
    cancel_order(organisation_id=renter.pk, order_id=order.order_id, now=just_now())
    a_second_ago = http_date(parse_http_date(first["Last-Modified"]) - 1)
    assert client.get(path, headers={"If-Modified-Since": a_second_ago}).status_code == 200


@pytest.mark.django_db
def test_the_best_ask_of_prices_pages_and_market_is_one_row_written_with_the_order(h100):
    on_offer(h100, price="2.88", devices=1)
    on_offer(h100, price="2.95", devices=2)
    placed_by(renter_with(), h100)
    row = BestAsk.objects.get(gpu=h100)
    client = Client()
    market = client.get("/api/v1/market/").json()[0]
    book = client.get(BOOK).json()["asks"]
    assert {market["best_ask_usd_per_gpu_hour"], book[0]["price_usd_per_gpu_hour"]} == {"2.9500"}
    assert market["devices_available"] == book[0]["gpu_count"] == row.devices_available == 2
    exchange = client.get("/api/v1/prices/?gpu=h100-sxm").json()["results"][0]["exchange"]
    assert (exchange["best_ask_per_gpu_hour"], exchange["devices_available"]) == ("2.95", 2)


@pytest.mark.django_db
def test_a_row_that_says_the_same_is_confirmed_every_twenty_seconds_and_not_at_every_order(h100):
    on_offer(h100)
    renter, began_at = renter_with(), BestAsk.objects.get().observed_at
    for seconds, is_confirmed in ((5, False), (20, False), (21, True)):
        with connection.cursor() as cursor:
            at = began_at + timedelta(seconds=seconds)
            cursor.execute("SELECT marketplace_refresh_best_ask(%s::bigint, %s::timestamptz)", [h100.pk, at])
        assert (BestAsk.objects.get().observed_at == at) == is_confirmed
    placed_by(renter, h100, now=began_at + timedelta(seconds=22))
    assert BestAsk.objects.get().observed_at == began_at + timedelta(seconds=22), "another number is told at once"
    assert BestAsk.objects.get().devices_available == 7
