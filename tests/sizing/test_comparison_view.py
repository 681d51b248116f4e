"""`/gpus/compare/`: up to four GPUs of anybody's choice; what is no GPU is named at its field."""

import re
from datetime import UTC, datetime
from html import unescape

import pytest

from catalog.models import Gpu, Offer
from sizing.comparison.choice import MOST, read_choice
from tests.factories import make_offer

pytestmark = pytest.mark.django_db
PATH = "/gpus/compare/"


def html_of(client, query: str = "") -> str:
    answer = client.get(PATH + query)
    assert answer.status_code == 200
    return answer.content.decode()


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def columns(html: str) -> list[str]:
    head = re.search(r'side-by-side">.*?<thead>(.*?)</thead>', html, re.DOTALL)
    return re.findall(r'href="/gpus/([\w-]+)/"', head.group(1)) if head else []


def test_it_shows_what_the_address_asks_for_in_that_order(client, site_data):
    assert columns(html_of(client, "?gpus=mi300x,h100-sxm,l4")) == ["mi300x", "h100-sxm", "l4"]


def test_the_form_asks_once_per_field_and_gets_the_same(client, site_data):
    assert columns(html_of(client, "?gpus=mi300x&gpus=h100-sxm&gpus=&gpus=")) == ["mi300x", "h100-sxm"]


def test_nothing_chosen_yet_is_said_and_leads_to_pairs(client, site_data):
    html = html_of(client)
    assert "Nothing chosen yet." in html
    assert 'href="/gpus/h100-sxm-vs-a100-sxm-80gb/"' in html
    assert html.count('<select name="gpus"') == MOST


def test_a_gpu_that_is_not_in_the_catalogue_is_named_at_its_field_and_on_top(client, site_data):
    html = html_of(client, "?gpus=h100-sxm,%3Cb%3Eh9000")
    assert columns(html) == ["h100-sxm"], "what is known is shown all the same"
    assert 'href="#gpu-2"' in html
    assert 'id="gpu-2" aria-invalid="true" aria-describedby="gpu-2-error"' in html
    assert text_of(html).count("“<b>h9000” is not in the catalogue.") == 2
    assert "<b>h9000" not in html


def test_the_fifth_is_left_out_and_said_so(client, site_data):
    html = html_of(client, "?gpus=b300,b200,h200-sxm,h100-sxm,l4")
    assert len(columns(html)) == MOST
    assert "There is room for four; 1 GPU was left out." in html


def test_its_figures_are_those_of_the_api(client, site_data):
    text = text_of(html_of(client, "?gpus=h200-sxm,mi300x"))
    rows = [client.get(f"/api/v1/gpus/{slug}/").json() for slug in ("h200-sxm", "mi300x")]
    for label, name in (
        ("Memory GB", "memory_gb"),
        ("Bandwidth GB/s", "memory_bandwidth_gb_s"),
        ("BF16, dense TFLOPS", "bf16_dense_tflops"),
        ("FP64 TFLOPS", "fp64_tflops"),
    ):
        assert f"{label} {rows[0][name]:g} {rows[1][name]:g}" in text, label
    assert "Full training ≈ 7 ≈ 9" in text


def test_its_prices_can_be_read_in_another_currency_and_the_choice_stays(client, site_data):
    Offer.objects.all().delete()
    make_offer(gpu=Gpu.objects.get(slug="l4"), price="0.50", observed_at=datetime.now(UTC))
    html = html_of(client, "?gpus=l4,t4")
    assert '<mark class="mark">0.50</mark>' in html
    assert "?gpus=l4%2Ct4&amp;currency=EUR" in html


def test_two_that_are_a_pair_lead_to_its_page(client, site_data):
    assert 'href="/gpus/h200-sxm-vs-h100-sxm/"' in html_of(client, "?gpus=h100-sxm,h200-sxm")
    assert "a page of their own" not in html_of(client, "?gpus=l4,b300")


def test_search_engines_leave_it_alone(client, site_data):
    html = html_of(client, "?gpus=l4,b300")
    assert '<meta name="robots" content="noindex">' in html
    assert 'rel="canonical"' not in html


@pytest.mark.parametrize("query", ["", "?gpus=b300,b200,h200-sxm,h100-sxm&currency=EUR", "?gpus=nothing"])
def test_it_needs_few_queries(client, site_data, query, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        client.get(PATH + query)


def test_an_empty_catalogue_is_a_page_too(client):
    assert client.get(PATH).status_code == 200


@pytest.mark.parametrize("values", [[""], [",,,"], ["a" * 5000], ["\x00"], ["l4", "l4", "l4"]])
def test_whatever_is_asked_for_is_read(values):
    choice = read_choice(values, known={"l4"})
    assert len(choice.slots) == MOST
    assert all(len(slot.slug) <= 60 for slot in choice.slots)
    assert choice.slugs in ([], ["l4"])
