"""`/market/`: every market, its best offer with devices and age; and the pages that lead from a price to a ticket."""

from datetime import timedelta

import pytest

from catalog.models import Gpu
from marketplace.orders.close import cancel_order
from marketplace.rentals.fail_unstarted import fail_unstarted
from tests.factories import make_gpu, make_snapshot
from tests.marketplace.conftest import make_listing
from tests.marketplace.on_pages import just_now, on_offer, placed_by, renter_with, words

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12


def test_without_any_market_the_page_says_so_and_leads_on(client):
    page = client.get("/market/")
    assert page.status_code == 200
    assert "No market has been opened yet." in words(page)
    assert 'href="/gpus/"' in page.content.decode()


def test_a_market_shows_what_is_free_wanted_and_traded(client, h100):
    on_offer(h100, price="2.88", devices=8)
    renter = renter_with(USD=1000)
    placed_by(renter, h100, gpu_count=2, hours=3, time_in_force="ioc")
    placed_by(renter, h100, gpu_count=4, limit="2.50")
    text = words(client.get("/market/"))
    assert "H100-SXM 80 GB 6 2.50 2.88 1 min ago – no trade to compare with 6 1 min ago 2.88" in text


def test_the_change_compares_with_the_last_price_a_day_ago(client, h100):
    renter, old = renter_with(USD=1000), just_now() - timedelta(hours=30)
    make_listing(gpu=h100, price="2.00", now=old)
    placed_by(renter, h100, limit="2.00", now=old, time_in_force="ioc")
    fail_unstarted(now=old + timedelta(minutes=10))
    on_offer(h100, price="1.90")
    placed_by(renter, h100, limit="2.00", time_in_force="ioc")
    page = client.get("/market/")
    assert "1.90 1 min ago -5 1 1 min ago 1.90" in words(page)
    assert '<span class="down num">' in page.content.decode()


def test_a_market_that_is_quiet_stays_on_the_list_and_says_what_is_missing(client, h100):
    renter = renter_with(USD=1000)
    placed = placed_by(renter, h100, limit="2.50")
    cancel_order(organisation_id=renter.pk, order_id=placed.order_id, now=just_now())
    assert "H100-SXM 80 GB none none none yet" in words(client.get("/market/"))


def test_the_best_offer_of_a_month_is_a_line_once_it_was_recorded(client, h100):
    on_offer(h100)
    assert "30 days" not in words(client.get("/market/"))
    hour = just_now().replace(minute=0, second=0, microsecond=0)
    for days in (1, 2, 3):
        make_snapshot(gpu=h100, at=hour - timedelta(days=days), market="exchange", price="2.80")
    page = client.get("/market/")
    assert "30 days" in words(page)
    assert 'class="spark"' in page.content.decode()


def test_the_page_needs_few_queries_however_many_markets_there_are(client, django_assert_max_num_queries):
    renter = renter_with(USD=100_000)
    for number in range(5):
        gpu = make_gpu(slug=f"gpu-{number}")
        on_offer(gpu)
        placed_by(renter, gpu, limit="1.00")
        placed_by(renter, gpu, time_in_force="ioc")
    with django_assert_max_num_queries(MOST_QUERIES):
        client.get("/market/")


@pytest.mark.parametrize("path", ["/", "/gpus/", "/gpus/h100-sxm/", "/use-cases/llm-training/"])
def test_pages_of_prices_show_our_best_offer_with_devices_and_age_and_lead_to_a_ticket(client, site_data, path):
    on_offer(Gpu.objects.get(slug="h100-sxm"), price="2.88", devices=5)
    page = client.get(path)
    assert "best offer, 5 GPUs free, 1 minute ago" in words(page)
    assert 'href="/market/h100-sxm/?kind=best#ticket"' in page.content.decode()


def test_the_price_of_every_page_is_the_price_of_the_book(client, h100):
    on_offer(h100, price="2.88", devices=5)
    on_offer(h100, price="2.80", devices=8, min_gpus=8)
    shown = client.get("/api/v1/prices/", {"gpu": "h100-sxm"}).json()["results"][0]["exchange"]["best_ask_per_gpu_hour"]
    assert shown.startswith("2.88")
    assert "Best offer, USD per GPU-hour 2.88 5 GPUs free" in words(client.get("/market/h100-sxm/"))
    assert "1 min ago 2.88" in words(client.get("/market/"))
