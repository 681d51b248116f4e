"""`/gpus/<slug>/`: price, what fits, offers in tiers, every figure with "not published", variants."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from catalog.models import Gpu
from catalog.views.gpu import BLOCK_GB, BLOCK_HEIGHT, BLOCKS, family, memory_blocks
from tests.factories import make_gpu, make_list_offer, make_live_offer, make_offer

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu():
    return make_gpu(label="H100 SXM")


def text_of(client, slug: str = "h100-sxm") -> str:
    answer = client.get(f"/gpus/{slug}/")
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_an_unknown_gpu_is_not_found(client):
    assert client.get("/gpus/h9000/").status_code == 404


def test_what_fits_follows_the_published_rules_task_by_task(client, gpu):
    text = text_of(client)
    for line in (
        "Task 1 GPU 2 GPUs 4 GPUs 8 GPUs",
        "Full training ≈ 4 ≈ 8 ≈ 15 ≈ 30",
        "LoRA, 16-bit base ≈ 25",
        "QLoRA, 4-bit base ≈ 85",
        "Serving in FP16 ≈ 25 ≈ 55 ≈ 110 ≈ 220",
        "Serving in INT4 ≈ 100 ≈ 200 ≈ 400 ≈ 810",
        "8 B in FP16 209 tokens/s",
        "70 B in FP8 does not fit",
        "70 B in INT4 87 tokens/s",
    ):
        assert line in text, line


def test_a_gpu_without_a_published_fp8_figure_says_what_eight_bits_bring(client, gpu):
    assert "8-bit weights; no FP8 speed published" in text_of(client)
    Gpu.objects.update(fp8_dense_tflops=Decimal(1979))
    assert "8-bit weights; no FP8 speed published" not in text_of(client)


def test_without_a_published_bandwidth_there_is_no_speed_limit(client):
    make_gpu(memory_bandwidth_gb_s=None)
    assert "8 B in FP16 n/p not published" in text_of(client)


def test_measured_bf16_stands_beside_the_dense_figure_where_somebody_published_it(client, gpu):
    make_gpu(slug="l4", label="L4", bf16_dense_tflops=Decimal(121))
    assert "BF16, measured 795 TFLOPS 80% of the dense figure" in text_of(client)
    assert "BF16, measured" not in text_of(client, "l4")


def test_pairs_stand_with_their_reason_in_numbers_where_the_catalogue_has_both(client, gpu):
    assert "Compared in pairs" not in text_of(client)
    make_gpu(slug="h200-sxm", label="H200", memory_gb=Decimal(141))
    text = text_of(client)
    assert "H200 or H100 SXM Memory: 61 GB more; one GPU trains 7 B instead of 4 B." in text


@pytest.mark.parametrize("slug", ["h100-sxm", "rtx-pro-6000-blackwell-server", "max-1550"])
def test_the_page_needs_few_queries_with_all_its_relatives_and_pairs(
    client, site_data, slug, django_assert_max_num_queries
):
    with django_assert_max_num_queries(12):
        client.get(f"/gpus/{slug}/?currency=EUR")


def test_the_mark_is_on_a_live_price_only(client, gpu):
    make_list_offer(gpu=gpu, price="1.80")
    assert "<mark" not in client.get("/gpus/h100-sxm/").content.decode()
    make_offer(gpu=gpu, price="2.88", observed_at=datetime.now(UTC))
    assert '<mark class="mark">2.88</mark>' in client.get("/gpus/h100-sxm/").content.decode()


def test_live_offers_stand_above_dated_list_prices(client, gpu):
    now = datetime.now(UTC)
    make_list_offer(gpu=gpu, price="1.80", cloud="vast")
    make_offer(gpu=gpu, price="2.88", cloud="verda", observed_at=now - timedelta(minutes=5))
    make_offer(gpu=gpu, price="2.10", cloud="nebius", observed_at=now - timedelta(hours=13))
    text = text_of(client)
    assert text.index("Live counted") < text.index("Getting old") < text.index("List prices dated")
    assert "list price of 7 May 2026" in text


def test_an_offer_says_what_sets_it_apart(client, gpu):
    now = datetime.now(UTC)
    make_offer(gpu=gpu, price="1.00", observed_at=now, verified=False)
    make_offer(gpu=gpu, price="1.00", observed_at=now, is_whole=False, gpu_count="0.5")
    make_offer(gpu=gpu, price="1.00", observed_at=now, market="reserved", term_months=12)
    make_offer(gpu=gpu, price="1.00", observed_at=now, availability="no")
    text = text_of(client)
    for words in ("unverified host", "part of a card", "reserved, 12 months", "sold out"):
        assert words in text


@pytest.mark.parametrize(("origin", "words"), [("ecb", "ECB reference rate of"), ("sample", "sample rate of")])
def test_an_offer_in_another_currency_names_the_rate_and_its_day(client, gpu, origin, words):
    make_live_offer(gpu=gpu, price="3.21", currency="EUR", rate_on=date(2026, 11, 27), rate_origin=origin)
    make_live_offer(gpu=gpu, price="3.50")
    text = text_of(client)
    assert text.count(f"EUR, {words} 27 Nov") == 1


def test_a_figure_that_is_not_published_is_said_so(client, gpu):
    text = text_of(client)
    assert "FP4, dense n/p not published" in text
    assert "ECC memory n/p not published" in text
    assert "BF16, dense 989 TFLOPS" in text


def test_a_gpu_without_offers_says_so_and_leads_on(client, gpu):
    text = text_of(client)
    assert "No source offers H100 SXM today." in text
    assert "GPUs that have a price" in text


def test_variants_are_named_as_other_products(client, gpu):
    make_gpu(slug="h100-nvl", label="H100 NVL", memory_gb=Decimal(94), bf16_dense_tflops=Decimal(835))
    make_gpu(slug="b300", label="B300", memory_gb=Decimal(288))
    text = text_of(client)
    assert "Not the same product as H100 NVL" in text
    assert "H100 NVL 14 GB more memory, 0.8 times the BF16" in text
    assert "B300 208 GB more memory, same BF16" in text


def test_the_sources_of_the_figures_are_linked(client, gpu):
    assert 'href="https://example.com/sheet"' in client.get("/gpus/h100-sxm/").content.decode()


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("h100-sxm", "h100-nvl", True),
        ("a100-sxm-80gb", "a100-pcie-40gb", True),
        ("rtx-4000-ada", "rtx-4000-sff-ada", True),
        ("rtx-4090", "rtx-4080", False),
        ("mi250", "mi250x", False),
        ("h100-sxm", "h200-sxm", False),
    ],
)
def test_variants_share_their_family_and_others_do_not(first, second, is_same):
    assert (family(first) == family(second)) is is_same


@pytest.mark.parametrize("memory_gb", [Decimal(8), Decimal(12), Decimal(80), Decimal(141), Decimal(288)])
def test_the_drawing_fills_as_many_blocks_as_there_is_memory(memory_gb):
    filled = sum(block.fill for block in memory_blocks(memory_gb))
    assert abs(filled - memory_gb / BLOCK_GB * BLOCK_HEIGHT) <= 1
    assert len(memory_blocks(memory_gb)) == BLOCKS
