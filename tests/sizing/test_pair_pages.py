"""`/gpus/<a>-vs-<b>/`: which pairs have a page, what it says in numbers, and that these are the API's and the engine's."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.compared import Side, compare
from catalog.freshness import Freshness
from catalog.models import BestAsk, Gpu, Offer
from catalog.pairs import PAIRS, known_pair, pairs_of
from catalog.queries import GpuPrices, Headline, price_table
from sizing.comparison.figures import figure_lines
from sizing.comparison.verdict import break_even, cheapest_work
from sizing.comparison.workloads import workloads
from sizing.engine.simple_rule import decode_ceiling_tokens_per_s
from tests.factories import NOW, make_list_offer, make_offer

MOST_QUERIES = 12
PATH = "/gpus/h100-sxm-vs-a100-sxm-80gb/"
USES = {"llm-training", "fine-tuning", "llm-inference", "image-video", "rendering", "science"}


def text_of(client, path: str = PATH) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.content.decode()))).replace(" ,", ",")


def gpu(slug: str) -> Gpu:
    return Gpu.objects.get(slug=slug)


@pytest.fixture
def two_live_prices(site_data):
    """H100 SXM at 2.88, A100 SXM at 1.79, both read just now; nothing else has a price."""
    Offer.objects.all().delete()
    make_offer(gpu=gpu("h100-sxm"), price="2.88", observed_at=datetime.now(UTC))
    make_offer(gpu=gpu("a100-sxm-80gb"), price="1.79", observed_at=datetime.now(UTC))


def side(slug: str, *, price: str | None, is_live: bool = True, **figures) -> Side:
    given = {"memory_gb": Decimal(80), "bf16_dense_tflops": Decimal(989), "memory_bandwidth_gb_s": Decimal(3350)}
    headline = price and Headline(
        price_usd_per_gpu_hour=Decimal(price),
        kind="on_demand" if is_live else "list",
        cloud_slug="lambda",
        cloud_name="Lambda",
        observed_at=NOW,
        priced_on=None,
        freshness=Freshness.FRESH,
    )
    return Side(
        gpu=Gpu(slug=slug, label=slug, position=1, **{**given, **figures}), prices=GpuPrices(headline=headline or None)
    )


# --- which pairs ---------------------------------------------------------------------------------------------------


def test_there_are_twenty_four_pairs_and_each_is_there_once_with_a_use():
    assert len(PAIRS) == 24
    assert len({frozenset(pair.slugs) for pair in PAIRS}) == 24
    assert all(pair.uses and set(pair.uses) <= USES for pair in PAIRS)
    assert {use for pair in PAIRS for use in pair.uses} == USES


@pytest.mark.django_db
def test_the_catalogue_holds_both_of_every_pair_with_the_figures_their_reason_needs(site_data):
    for pair in PAIRS:
        first, second = gpu(pair.first), gpu(pair.second)
        assert first.bf16_dense_tflops, pair.first
        assert second.bf16_dense_tflops, pair.second
        assert first.memory_bandwidth_gb_s, pair.first
        assert second.memory_bandwidth_gb_s, pair.second
        if pair.reason in ("memory", "amd"):
            assert first.memory_gb > second.memory_gb, pair.address
        if pair.reason == "amd":
            assert (first.vendor, second.vendor) == ("AMD", "NVIDIA")
        if pair.reason == "memory_kind":
            assert first.memory_type[:3] != second.memory_type[:3], pair.address


@pytest.mark.django_db
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.address)
def test_every_pair_has_a_page_within_the_query_limit(client, site_data, pair, django_assert_max_num_queries):
    first, second = gpu(pair.first), gpu(pair.second)
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = client.get(f"/gpus/{pair.address}/?currency=EUR")
    assert answer.status_code == 200
    assert f"<h1>{first.label} or {second.label}?</h1>" in answer.content.decode()
    assert "Which of the two is cheaper?" in answer.content.decode()


@pytest.mark.django_db
def test_the_reverse_of_a_pair_leads_to_it_for_good(client, site_data):
    answer = client.get("/nl/gpus/a100-sxm-80gb-vs-h100-sxm/")
    assert (answer.status_code, answer["Location"]) == (301, "/nl/gpus/h100-sxm-vs-a100-sxm-80gb/")


@pytest.mark.django_db
def test_two_gpus_that_are_no_pair_lead_to_the_comparison(client, site_data):
    answer = client.get("/gpus/l4-vs-b300/")
    assert (answer.status_code, answer["Location"]) == (302, "/gpus/compare/?gpus=l4,b300")


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["h9000-vs-h100-sxm", "h100-sxm-vs-h9000", "a-vs-b"])
def test_a_gpu_that_nobody_knows_is_not_found(client, site_data, address):
    assert client.get(f"/gpus/{address}/").status_code == 404


@pytest.mark.django_db
def test_a_pair_of_an_empty_catalogue_is_not_found(client):
    assert client.get(PATH).status_code == 404


@pytest.mark.django_db
def test_the_page_of_a_gpu_leads_to_its_pairs(client, site_data):
    html = client.get("/gpus/l40s/").content.decode()
    for pair in pairs_of("l40s"):
        assert f'href="/gpus/{pair.address}/"' in html
    assert known_pair("l40s", "b300") is None


# --- what it says --------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_verdict_is_in_numbers_and_they_are_those_of_the_api(client, two_live_prices):
    of_api = {slug: client.get(f"/api/v1/gpus/{slug}/").json() for slug in ("h100-sxm", "a100-sxm-80gb")}
    first, second = of_api["h100-sxm"], of_api["a100-sxm-80gb"]
    prices = [Decimal(row["prices"]["headline"]["price_per_gpu_hour"]) for row in (first, second)]
    factor = round(prices[0] / prices[1], 2)
    text = text_of(client)
    assert f"{first['bf16_dense_tflops'] / second['bf16_dense_tflops']:.1f} × the dense BF16" in text
    assert f"{first['memory_bandwidth_gb_s'] / second['memory_bandwidth_gb_s']:.1f} × the bandwidth" in text
    assert f"and {first['memory_gb']} GB of memory against {second['memory_gb']} GB" in text
    assert (
        f"At {prices[0]} USD an hour against {prices[1]} USD, H100 SXM has to be more than {factor} times as fast"
        in (text.replace("\xa0", " "))
    )
    assert "With 3.17 × the BF16 and 1.64 × the bandwidth, that makes H100 SXM the cheaper one" in text
    for name in ("bf16_dense_tflops", "memory_bandwidth_gb_s", "memory_gb", "nvlink_gb_s", "tdp_w"):
        for row in (first, second):
            assert f" {row[name]} " in text, name


@pytest.mark.django_db
def test_a_unit_of_work_costs_what_price_and_figure_make_it(client, two_live_prices):
    text = text_of(client)
    assert "PFLOP-hour 2.91 5.74" in text  # 2.88 x 1000 / 989, 1.79 x 1000 / 312
    assert "million tokens 3.83 3.92" in text  # 2.88 x 10^6 / (209 x 3600), 1.79 x 10^6 / (127 x 3600)
    assert "100 GB for an hour 3.60 2.24" in text
    assert "no RT cores" not in text, "neither renders: the line is left out"


@pytest.mark.django_db
def test_what_fits_on_both_is_what_the_engine_says(client, two_live_prices):
    text = text_of(client)
    for line in (
        "Full training ≈ 4 ≈ 4 ≈ 30 ≈ 30",
        "LoRA, 16-bit base ≈ 25 ≈ 25",
        "QLoRA, 4-bit base ≈ 85 ≈ 85",
        "Serving in FP16 ≈ 25 ≈ 25 ≈ 220 ≈ 220",
    ):
        assert line in text, line
    limits = [
        decode_ceiling_tokens_per_s(
            bandwidth_gb_s=gpu(slug).memory_bandwidth_gb_s or Decimal(0), b_params=8, precision="fp16"
        )
        for slug in ("h100-sxm", "a100-sxm-80gb")
    ]
    assert f"8 B in FP16 one conversation, tokens/s at most {limits[0]} {limits[1]}" in text


@pytest.mark.django_db
def test_the_mark_is_on_the_live_price_that_does_the_work_for_less(client, two_live_prices):
    assert re.findall(r'<mark class="mark">([\d.]+)', client.get(PATH).content.decode()) == ["2.88"]


@pytest.mark.django_db
def test_our_own_best_ask_is_the_price_compared(client, two_live_prices):
    BestAsk.objects.create(
        gpu=gpu("h100-sxm"), price_usd_per_gpu_hour=Decimal("3.58"), devices_available=2, observed_at=datetime.now(UTC)
    )
    assert "has to be more than 2 times as fast" in text_of(client)


@pytest.mark.django_db
def test_prices_of_two_kinds_are_not_divided(client, site_data):
    Offer.objects.all().delete()
    make_offer(gpu=gpu("h100-sxm"), price="2.88", observed_at=datetime.now(UTC))
    make_list_offer(gpu=gpu("a100-sxm-80gb"), price="1.79")
    text = text_of(client)
    assert "prices cannot be divided today" in text
    assert "times as fast" not in text


@pytest.mark.django_db
def test_dated_list_prices_are_divided_but_said_to_be_dated_and_never_marked(client, site_data):
    Offer.objects.all().delete()
    for slug, price in (("h100-sxm", "3.00"), ("a100-sxm-80gb", "1.50")):
        make_list_offer(gpu=gpu(slug), price=price)
    text = text_of(client)
    assert "has to be more than 2 times as fast to cost less. Both are dated list prices." in text
    assert "<mark" not in client.get(PATH).content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["nl", "pl"])
def test_the_page_speaks_the_numbers_of_its_language(client, two_live_prices, language):
    text = text_of(client, f"/{language}{PATH}")
    assert "3,17" in text
    assert "1,61" in text
    assert "3.17" not in text


@pytest.mark.django_db
def test_switching_says_what_changes_between_makers(client, site_data):
    text = text_of(client, "/gpus/mi300x-vs-h100-sxm/")
    assert "MI300X runs ROCm, H100 SXM runs CUDA" in text
    assert "both run CUDA" in text_of(client)


@pytest.mark.django_db
def test_programs_are_told_the_two_gpus(client, site_data):
    html = client.get(PATH).content.decode()
    assert '"@type": "ItemList"' in html
    assert '"numberOfItems": 2' in html


# --- the rules -----------------------------------------------------------------------------------------------------

money = st.decimals(min_value="0.01", max_value="100", places=4)


@given(one=money, other=money)
def test_the_break_even_is_the_same_whichever_of_two_stands_first(one, other):
    first, second = side("a", price=str(one)), side("b", price=str(other))
    there, back = break_even(compare(first, second)), break_even(compare(second, first))
    assert there
    assert back
    assert there.factor >= 1
    assert abs(there.factor - back.factor) < Decimal("1e-20")
    if one != other:
        assert there.dearer.gpu.slug == back.dearer.gpu.slug == ("a" if one > other else "b")


@given(one=money, other=money, speed=st.integers(min_value=1, max_value=5000))
def test_whoever_the_break_even_names_for_arithmetic_has_the_lower_cost_of_it(one, other, speed):
    first = side("a", price=str(one), bf16_dense_tflops=Decimal(speed))
    second = side("b", price=str(other), bf16_dense_tflops=Decimal(1000))
    found = break_even(compare(first, second))
    assert found
    costs = {s.gpu.slug: s.usd_per_pflop_hour or Decimal(0) for s in (first, second)}
    if found.cheaper_for_compute and abs(costs["a"] - costs["b"]) > Decimal("1e-15"):
        assert found.cheaper_for_compute.gpu.slug == min(costs, key=lambda slug: costs[slug])


def test_without_two_prices_of_one_kind_there_is_no_break_even():
    assert break_even(compare(side("a", price="2"), side("b", price=None))) is None
    assert break_even(compare(side("a", price="2"), side("b", price="2", is_live=False))) is None
    assert cheapest_work(side("a", price="2", is_live=False)) is None


def test_a_figure_that_one_does_not_publish_makes_no_ratio_and_no_winner():
    pair = compare(side("a", price="2"), side("b", price="1", bf16_dense_tflops=None))
    assert pair.bf16_ratio is None
    training = next(work for work in workloads(pair) if work.kind == "train")
    assert (training.ahead, training.lead, training.cheaper) == (None, None, None)
    line = next(line for line in figure_lines([pair.first.gpu, pair.second.gpu]) if "BF16" in str(line.label))
    assert line.ratio is None
    assert [cell.is_best for cell in line.cells] == [False, False]


def test_less_power_is_better_and_more_of_all_else():
    first, second = (side("a", price="2", tdp_w=700).gpu, side("b", price="1", tdp_w=400, memory_gb=Decimal(141)).gpu)
    best = {str(line.label): [cell.is_best for cell in line.cells] for line in figure_lines([first, second])}
    assert best["Power"] == [False, True]
    assert best["Memory"] == [False, True]


@pytest.mark.django_db
def test_the_prices_of_a_pair_are_those_of_the_price_table(two_live_prices):
    prices = price_table(now=datetime.now(UTC), gpu_slugs=["h100-sxm", "a100-sxm-80gb"])
    pair = compare(*(Side(gpu=gpu(slug), prices=prices[slug]) for slug in ("h100-sxm", "a100-sxm-80gb")))
    assert pair.price_ratio == Decimal("2.88") / Decimal("1.79")
