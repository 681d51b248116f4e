"""Answers given again from memory: the same, only while nothing has changed, and never what a transaction hides."""

import gzip

import pytest
from django.db import transaction
from django.test import RequestFactory

from catalog import version
from catalog.api import view
from catalog.api.offers import OfferList
from catalog.api.prices import PriceList
from catalog.models import BestAsk
from common.conditional import Answers
from tests.factories import make_best_ask, make_gpu

PRICES = "/api/v1/prices/"


class Recalling:
    """The middleware around one call; counts how often the call itself was needed."""

    def __init__(self, call):
        self.calls = 0
        self._view = call.as_view()
        self._respond = view.recall_answers(self._ask)

    def _ask(self, request):
        self.calls += 1
        return self._view(request)

    def get(self, path: str = PRICES, **headers: str):
        return self._respond(RequestFactory().get(path, headers=headers))


@pytest.fixture
def prices(transactional_db, standing_clock, monkeypatch):
    """The price list with one best ask; the version is read for every request, as it is between two writes."""
    monkeypatch.setattr(version, "_READ_EVERY_SECONDS", 0)
    monkeypatch.setattr(version, "_last_reading", None)
    make_best_ask(gpu=make_gpu(), price="2.00")
    return Recalling(PriceList)


def test_an_answer_is_given_again_as_it_was(prices):
    first, again = prices.get(), prices.get()
    assert prices.calls == 1
    assert (again.status_code, again.content) == (200, first.content)
    for name in ("ETag", "Last-Modified", "Cache-Control", "Content-Type"):
        assert again[name] == first[name]
    assert "Accept" in again["Vary"]


def test_who_holds_it_gets_304_without_the_call(prices):
    first = prices.get()
    for headers in ({"if-none-match": first["ETag"]}, {"if-modified-since": first["Last-Modified"]}):
        again = prices.get(**headers)
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
        assert "Content-Type" not in again
    assert prices.calls == 1


def test_the_next_request_after_a_change_sees_it(prices):
    assert b'"2.00"' in prices.get().content
    BestAsk.objects.update(price_usd_per_gpu_hour="1.50")
    assert b'"1.50"' in prices.get().content
    assert prices.calls == 2


def test_nothing_is_kept_or_recalled_inside_a_transaction(prices):
    assert b'"2.00"' in prices.get().content
    with transaction.atomic():
        BestAsk.objects.update(price_usd_per_gpu_hour="1.50")
        assert b'"1.50"' in prices.get().content
        transaction.set_rollback(True)
    assert b'"2.00"' in prices.get().content


def test_an_answer_comes_packed_to_those_who_take_it_so(prices):
    plain = prices.get()
    packed = prices.get(**{"accept-encoding": "br, gzip"})
    assert gzip.decompress(packed.content) == plain.content
    assert packed["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed["Vary"]
    assert prices.get(**{"accept-encoding": "gzip;q=0, br"}).content == plain.content


@pytest.mark.parametrize(
    "headers", [{"if-match": '"another"'}, {"if-unmodified-since": "Mon, 01 Jan 2001 00:00:00 GMT"}]
)
def test_a_precondition_that_fails_is_left_to_the_call(prices, headers):
    prices.get()
    assert prices.get(**headers).status_code == 412
    assert prices.calls == 2


def test_refusals_are_not_remembered(prices):
    for _ in range(2):
        assert prices.get(f"{PRICES}?bogus=1").status_code == 400
    assert prices.calls == 2


def test_another_host_format_or_query_is_another_answer(prices):
    offers = Recalling(OfferList)
    offers.get("/api/v1/offers/").close()
    assert offers.get("/api/v1/offers/", accept="text/csv")["Content-Type"].startswith("text/csv")
    offers.get("/api/v1/offers/", host="localhost")
    offers.get("/api/v1/offers/?limit=1")
    assert offers.calls == 4


def test_memory_is_bounded(prices, monkeypatch):
    monkeypatch.setattr(view, "_ANSWERS", Answers(at_most=2, at_most_bytes=10**6))
    for limit in range(1, 6):
        prices.get(f"{PRICES}?limit={limit}")
    assert len(view._ANSWERS._answers) <= 2
