"""`/gpus/`: filter and order by the address; a bad value is named at its field."""

import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from catalog.forms import SORTABLE
from tests.factories import make_gpu, make_list_offer, make_offer

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpus():
    return {
        gpu.slug: gpu
        for gpu in (
            make_gpu(slug="b300", memory_gb=Decimal(288), architecture="Blackwell Ultra", tdp_w=1100),
            make_gpu(slug="h100-sxm", memory_gb=Decimal(80), tdp_w=700),
            make_gpu(slug="mi300x", memory_gb=Decimal(192), vendor="AMD", architecture="CDNA 3", software_stack="ROCm"),
            make_gpu(slug="l4", memory_gb=Decimal(24), architecture="Ada Lovelace", fp8_dense_tflops=None, tdp_w=72),
        )
    }


def listed(client, **query) -> list[str]:
    answer = client.get("/gpus/", query)
    assert answer.status_code == 200
    return re.findall(r"<th scope=\"row\"><a href=\"/gpus/([\w-]+)/\">", answer.content.decode())


def test_without_a_filter_all_gpus_stand_in_the_catalogues_order(client, gpus):
    assert listed(client) == ["b300", "h100-sxm", "mi300x", "l4"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"vendor": "AMD"}, ["mi300x"]),
        ({"architecture": "Ada Lovelace"}, ["l4"]),
        ({"memory_gb_min": "100"}, ["b300", "mi300x"]),
        ({"software_stack": "ROCm"}, ["mi300x"]),
        ({"search": "h100 nvidia"}, ["h100-sxm"]),
        ({"vendor": "NVIDIA", "memory_gb_min": "100"}, ["b300"]),
        ({"search": "nothing like it"}, []),
    ],
)
def test_a_filter_narrows_the_list(client, gpus, query, found):
    assert listed(client, **query) == found


def test_only_gpus_with_a_price_can_be_asked_for(client, gpus):
    make_list_offer(gpu=gpus["l4"], price="0.70")
    assert listed(client, has_price="1") == ["l4"]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("memory_gb", ["l4", "h100-sxm", "mi300x", "b300"]),
        ("-memory_gb", ["b300", "mi300x", "h100-sxm", "l4"]),
        ("tdp_w", ["l4", "h100-sxm", "b300", "mi300x"]),
        ("-tdp_w", ["b300", "h100-sxm", "l4", "mi300x"]),
    ],
)
def test_the_list_is_ordered_by_a_column_with_missing_figures_last_either_way(client, gpus, sort, order):
    assert listed(client, sort=sort) == order


def test_the_list_is_ordered_by_price(client, gpus):
    make_offer(gpu=gpus["b300"], price="8.99", observed_at=datetime.now(UTC))
    make_list_offer(gpu=gpus["l4"], price="0.70")
    assert listed(client, sort="price")[:2] == ["l4", "b300"]
    assert listed(client, sort="-price")[:2] == ["b300", "l4"]


@pytest.mark.parametrize("name", SORTABLE)
def test_every_number_column_sorts_and_says_so(client, gpus, name):
    html = client.get("/gpus/", {"sort": name}).content.decode()
    assert html.count('aria-sort="ascending"') == 1
    assert client.get("/gpus/", {"sort": f"-{name}"}).content.decode().count('aria-sort="descending"') == 1


def test_a_second_click_on_a_column_turns_the_order_round_and_keeps_the_filter(client, gpus):
    html = client.get("/gpus/", {"vendor": "NVIDIA", "sort": "-memory_gb"}).content.decode()
    assert 'href="?vendor=NVIDIA&amp;sort=memory_gb"' in html


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"memory_gb_min": "many"}, "Enter a number."),
        ({"memory_gb_min": "-1"}, "greater than or equal to 0"),
        ({"memory_gb_min": "NaN"}, "Enter a number."),
        ({"vendor": "Foo"}, "“Foo” is not in the catalogue."),
        ({"search": "x" * 61}, "at most 60 characters"),
        ({"sort": "colour"}, "cannot be ordered that way"),
        ({"search": "\x00"}, "Null characters are not allowed."),
    ],
)
def test_a_bad_value_is_named_and_the_rest_of_the_page_stands(client, gpus, query, message):
    answer = client.get("/gpus/", query)
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert len(listed(client, **query)) == 4


def test_a_bad_value_is_tied_to_its_field(client, gpus):
    html = client.get("/gpus/", {"memory_gb_min": "many"}).content.decode()
    field = re.search(r"<input[^>]*name=\"memory_gb_min\"[^>]*>", html)
    assert field is not None
    assert 'aria-invalid="true"' in field.group()
    assert 'aria-describedby="id_memory_gb_min_error"' in field.group()
    assert 'id="id_memory_gb_min_error"' in html


def test_an_applied_filter_can_be_taken_away_alone(client, gpus):
    html = client.get("/gpus/", {"vendor": "NVIDIA", "memory_gb_min": "100"}).content.decode()
    assert 'href="?memory_gb_min=100"' in html
    assert 'href="?vendor=NVIDIA"' in html


def test_nothing_found_says_what_to_do(client, gpus):
    html = client.get("/gpus/", {"search": "zzz"}).content.decode()
    assert "No GPU matches all of that." in html
    assert "Show all GPU models" in html


def test_the_canonical_address_has_no_filter(client, gpus):
    html = client.get("/gpus/", {"vendor": "AMD"}).content.decode()
    assert '<link rel="canonical" href="http://testserver/gpus/">' in html
