"""`/`: eight GPUs, their price with its kind and age, one mark at most."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from catalog.views.board import BOARD_SLUGS
from tests.factories import make_best_ask, make_gpu, make_list_offer, make_offer

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpus():
    memory = dict(zip(BOARD_SLUGS, (288, 180, 256, 141, 192, 94, 80, 80), strict=True))
    return {slug: make_gpu(slug=slug, memory_gb=Decimal(gb)) for slug, gb in memory.items()}


def just_now() -> datetime:
    return datetime.now(UTC) - timedelta(minutes=5)


def rows_of(html: str) -> list[str]:
    return re.findall(r"<th scope=\"row\"><a href=\"/gpus/([\w-]+)/\">", html)


def test_the_board_shows_its_eight_gpus_in_its_own_order(client, gpus):
    assert rows_of(client.get("/").content.decode()) == list(BOARD_SLUGS)


@pytest.mark.parametrize(("sort", "first"), [("memory", "b300"), ("price", "h100-nvl"), ("nonsense", "b300")])
def test_the_board_is_sorted_by_its_address(client, gpus, sort, first):
    make_offer(gpu=gpus["h100-nvl"], price="1.00", observed_at=just_now())
    make_offer(gpu=gpus["b300"], price="8.99", observed_at=just_now())
    assert rows_of(client.get("/", {"sort": sort}).content.decode())[0] == first


def test_the_mark_is_on_the_most_memory_for_the_money_among_live_prices(client, gpus):
    make_offer(gpu=gpus["mi325x"], price="4.82", observed_at=just_now())
    make_offer(gpu=gpus["h100-sxm"], price="2.88", observed_at=just_now())
    make_list_offer(gpu=gpus["b300"], price="0.10")
    html = client.get("/").content.decode()
    assert re.findall(r"<mark class=\"mark\">([\d.]+)</mark>", html) == ["4.82"]
    assert "256 GB for 4.82 USD is 53 GB for each USD an hour" in html.replace("\N{NO-BREAK SPACE}", " ")


def test_a_dated_list_price_is_never_marked_and_the_page_says_why(client, gpus):
    make_list_offer(gpu=gpus["b300"], price="0.10")
    html = client.get("/").content.decode()
    assert "<mark" not in html
    assert "Nothing is marked" in html
    assert "None of these prices was read live in the last 12 hours" in html


def test_a_price_says_its_kind_its_cloud_and_its_age(client, gpus):
    make_offer(gpu=gpus["b300"], price="8.99", cloud="nebius", observed_at=just_now())
    make_list_offer(gpu=gpus["b200"], price="5.50", cloud="azure")
    make_best_ask(gpu=gpus["h200-sxm"], price="4.19", observed_at=just_now())
    text = re.sub(r"<[^>]+>", "", client.get("/").content.decode())
    assert "Nebiuson-demand, 5 minutes ago" in text
    assert "Azurelist price, 7 May 2026" in text
    assert "herebest offer, 8 GPUs free, 5 minutes ago" in text


def test_a_gpu_without_a_price_says_so(client, gpus):
    html = client.get("/").content.decode()
    assert html.count("no price yet") == len(BOARD_SLUGS)
    assert "No source has given a price yet." in html


def test_an_empty_catalogue_is_a_page_too(client):
    assert "The catalogue is empty." in client.get("/").content.decode()


def test_only_pages_that_exist_are_links(client, gpus):
    html = client.get("/").content.decode()
    for use in ("llm-training", "fine-tuning", "llm-inference", "image-video", "rendering", "science"):
        assert f'href="/use-cases/{use}/"' in html
    assert "page to come" not in html
