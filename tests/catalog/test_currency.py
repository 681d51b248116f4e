"""Prices in another currency: the rate, its day and its origin stand beside every conversion."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fx.models import Rate
from fx.refresh_rates import load_sample_rates
from tests.factories import make_gpu, make_offer

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)
PAGES = ["/", "/gpus/", "/gpus/h100-sxm/", "/use-cases/llm-training/"]


@pytest.fixture
def priced():
    """One GPU at 2.88 USD per GPU-hour, read now."""
    gpu = make_gpu(slug="h100-sxm", label="H100 SXM")
    make_offer(gpu=gpu, price="2.88", observed_at=NOW - timedelta(minutes=5))
    return gpu


def store_rate(usd: str, day=None) -> None:
    Rate.objects.create(currency="USD", day=day or NOW.date(), units_per_eur=Decimal(usd), origin="ecb", stored_at=NOW)


def test_the_price_list_is_converted_whole_with_its_rate(client, priced):
    store_rate("1.25")
    row = client.get("/api/v1/prices/?gpu=h100-sxm&currency=EUR").json()["results"][0]
    assert row["currency"] == "EUR"
    assert row["fx"] == {"rate": "0.8000000000", "date": NOW.date().isoformat(), "source": "ecb"}
    assert Decimal(row["headline"]["price_per_gpu_hour"]) == Decimal("2.304")
    assert Decimal(row["elsewhere"]["on_demand"]["median"]) == Decimal("2.304")
    assert row["elsewhere"]["on_demand"]["offers"] == 1


def test_in_usd_there_is_no_rate(client, priced):
    assert client.get("/api/v1/prices/?currency=USD").json()["results"][0]["fx"] is None


def test_a_new_rate_is_a_new_answer(client, priced):
    store_rate("1.25", NOW.date() - timedelta(days=1))
    first = client.get("/api/v1/prices/?currency=EUR")
    store_rate("1.20")
    second = client.get("/api/v1/prices/?currency=EUR", HTTP_IF_NONE_MATCH=first["ETag"])
    assert second.status_code == 200
    assert second.json()["results"][0]["fx"]["rate"] == "0.8333333333"


def test_without_a_rate_the_parameter_is_named(client, priced):
    answer = client.get("/api/v1/prices/?currency=GBP")
    assert answer.status_code == 400
    assert answer.json()["errors"][0] == {
        "field": "currency",
        "code": "no_rate",
        "message": "No rate is known for GBP.",
    }


@pytest.mark.parametrize("path", PAGES)
def test_a_page_converts_its_prices_and_says_by_which_rate(client, site_data, path):
    store_rate("1.25")
    page = client.get(path, {"currency": "EUR"}).content.decode()
    assert "1 USD = 0.8 EUR," in page
    assert "ECB reference rate of" in page
    assert "EUR" in page
    plain = client.get(path).content.decode()
    assert "ECB reference rate of" not in plain


def test_the_figures_of_a_page_are_the_stored_ones_times_the_rate(client, priced):
    store_rate("1.25")
    assert "2.30" in client.get("/gpus/h100-sxm/?currency=EUR").content.decode()
    assert "2.88" in client.get("/gpus/h100-sxm/").content.decode()


def test_a_sample_rate_says_that_it_is_one(client, priced):
    load_sample_rates(now=NOW)
    page = client.get("/gpus/h100-sxm/?currency=GBP").content.decode()
    assert "sample rate of 13 Mar 2026" in page


@pytest.mark.parametrize("asked", ["CHF", "eur", "<b>"])
def test_a_currency_that_is_not_shown_is_said_and_usd_stays(client, priced, asked):
    store_rate("1.25")
    page = client.get("/", {"currency": asked})
    assert page.status_code == 200
    assert "They are in USD." in page.content.decode()
    assert "<b>”" not in page.content.decode()


def test_the_order_of_a_list_keeps_its_currency(client, site_data):
    store_rate("1.25")
    assert "sort=-memory_gb&amp;currency=EUR" in client.get("/gpus/?currency=EUR&sort=price").content.decode()
    assert "currency=EUR&amp;sort=price" in client.get("/?currency=EUR").content.decode()
