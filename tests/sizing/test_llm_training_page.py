"""`/use-cases/llm-training/`: the reference table cell by cell, every block in order, every number computed."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from catalog.compared import price_ratio
from catalog.models import Gpu, Offer
from sizing.engine.measured_bf16 import MEASURED_BF16_TFLOPS
from sizing.use_cases.llm_training import ADDED_SLUGS, REFERENCE_SLUGS, all_reduce_ms, training_hours
from tests.factories import make_list_offer, make_offer

pytestmark = pytest.mark.django_db
PATH = "/use-cases/llm-training/"

# GPU with its architecture, memory, type, bandwidth, dense BF16, training on 1, training on 8.
REFERENCE_TABLE = [
    ("B300 Blackwell Ultra", "288", "HBM3e", "8000", "2250", "≈ 10", "≈ 110"),
    ("B200 Blackwell", "180", "HBM3e", "7700", "2250", "≈ 9", "≈ 70"),
    ("MI325X CDNA 3", "256", "HBM3e", "6000", "1307", "≈ 10", "≈ 100"),
    ("MI300X CDNA 3", "192", "HBM3", "5300", "1307", "≈ 9", "≈ 75"),
    ("H200 Hopper", "141", "HBM3e", "4800", "989", "≈ 7", "≈ 55"),
    ("H100 NVL Hopper", "94", "HBM3", "3900", "835", "≈ 4", "≈ 35"),
    ("H100 SXM Hopper", "80", "HBM3", "3350", "989", "≈ 4", "≈ 30"),
    ("A100 SXM Ampere", "80", "HBM2e", "2039", "312", "≈ 4", "≈ 30"),
    ("A100 PCIe Ampere", "80", "HBM2e", "1935", "312", "≈ 4", "≈ 30"),
]
COLUMNS = ["GPU", "Memory GB", "Memory type", "Bandwidth GB/s", "BF16, dense TFLOPS", "Trains on 1 B param.", "Trains on 8 B param.", "From USD/GPU-h"]  # fmt: skip
BLOCKS = [
    "GPUs for LLM training",
    "GPUs that fit",
    "What matters",
    "Compared in pairs",
    "Questions",
    "8 × H100 SXM for 24 hours",
    "Do you have GPU servers?",
    "Other things to run",
    "On this page",
]


class Cells(HTMLParser):
    """Collects the rows of the first table as lists of cell texts, and the page's headings."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.headings: list[str] = []
        self._inside: list[str] | None = None

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
            self._inside = self.rows[-1]
        elif tag in ("h1", "h2"):
            self.headings.append("")
            self._inside = self.headings
        elif tag == "br" and self._inside:
            self._inside[-1] += " "

    def handle_endtag(self, tag):
        if tag in ("th", "td", "h1", "h2"):
            self._inside = None

    def handle_data(self, data):
        if self._inside:
            self._inside[-1] = re.sub(r"\s+", " ", f"{self._inside[-1]} {data.strip()}").strip()


def read(client) -> tuple[Cells, str]:
    html = client.get(PATH).content.decode()
    cells = Cells()
    cells.feed(html)
    return cells, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def gpu(slug: str) -> Gpu:
    return Gpu.objects.get(slug=slug)


def test_the_reference_table_is_printed_cell_by_cell_in_its_order(client, site_data):
    cells, _ = read(client)
    assert cells.rows[0][: len(COLUMNS)] == COLUMNS
    assert [tuple(row[:7]) for row in cells.rows[1:10]] == REFERENCE_TABLE


def test_rows_and_columns_of_ours_come_after_the_reference_ones_and_are_marked(client, site_data):
    cells, text = read(client)
    assert cells.rows[10] == ["Added by us same rules, not in the usual nine"]
    labels = [gpu(slug).label for slug in ADDED_SLUGS]
    assert [row[0].startswith(label) for row, label in zip(cells.rows[11:], labels, strict=False)] == [True] * 4
    assert cells.rows[0][8:] == ["Whose, which kind, how old", "FP8, dense TFLOPS", "BF16 measured TFLOPS", "Link GB/s one way", "Compared clouds", "30 days change in 7", "Source"]  # fmt: skip
    assert "below the rule, GPUs we add. Right of the double line, columns we add." in text


def test_the_price_is_the_ninth_fact_and_carries_its_kind_and_age(client, site_data):
    Offer.objects.all().delete()
    make_offer(
        gpu=gpu("h100-sxm"), price="2.8800", cloud="new-cloud", observed_at=datetime.now(UTC) - timedelta(minutes=12)
    )
    make_list_offer(gpu=gpu("h200-sxm"), price="3.5", cloud="new-cloud")
    cells, _ = read(client)
    rows = {row[0]: row for row in cells.rows[1:]}
    assert rows["H100 SXM Hopper"][7].startswith("2.88")
    assert rows["H100 SXM Hopper"][8] == "New-Cloud on-demand, 12 minutes ago"
    assert rows["H200 Hopper"][7].startswith("3.50")
    assert rows["H200 Hopper"][8] == "New-Cloud list price, 7 May 2026"
    assert rows["B300 Blackwell Ultra"][7] == "no price yet"


def test_the_mark_is_on_the_cheapest_work_not_on_the_cheapest_hour(client, site_data):
    now = datetime.now(UTC)
    make_offer(gpu=gpu("h100-sxm"), price="2.88", observed_at=now)
    make_offer(gpu=gpu("a100-sxm-80gb"), price="1.79", observed_at=now)
    html = client.get(PATH).content.decode()
    assert re.findall(r"<mark class=\"mark\">([\d.]+)", html) == ["2.88"]
    _, text = read(client)
    assert "At 989 dense TFLOPS the H100 SXM costs 2.91 USD per PFLOP-hour." in text
    assert "The A100 SXM is the cheapest hour, but costs 5.74 USD for the same work." in text


def test_dated_list_prices_alone_leave_the_page_without_a_mark(client, site_data):
    html = client.get(PATH).content.decode()
    assert "<mark" not in html
    assert "Nothing is marked" in html


def test_every_block_stands_in_order(client, site_data):
    cells, _ = read(client)
    found = [heading for heading in cells.headings if heading.startswith(tuple(BLOCKS))]
    assert [next(block for block in BLOCKS if heading.startswith(block)) for heading in found] == BLOCKS


def test_the_first_button_compares_prices_and_the_second_jumps_to_the_table(client, site_data):
    html = client.get(PATH).content.decode()
    buttons = re.search(r'<div class="actions">(.*?)</div>', html, re.DOTALL)
    assert buttons is not None
    assert re.findall(r'href="([^"]+)"', buttons.group(1)) == ["/compare/?use_case=llm-training", "#matching"]
    assert "Compare prices" in buttons.group(1)


def test_the_sentences_carry_computed_numbers(client, site_data):
    _, text = read(client)
    for words in (
        "stops at 51% of the printed figure on MI300X and at 87% on A100 SXM",
        "at least 54 ms against 390 ms",
        "NVLink 4 carries 450 GB/s each way, a PCIe 5 slot 63",
        "both have 80 GB, the first has 3.2 times the BF16",
        "the same chip with 61 GB more, 7 B instead of 4 B on one GPU",
        "60% more at the same BF16",
        "51 GB more, if your stack runs on ROCm",
        "7 × 16 = 112 GB",
        "2 GPUs of 80 GB with sharded states, or a single GPU from H200 (141 GB) up",
        "about 370 hours on 8 H100 SXM at 40%",
    ):
        assert words in text, words


def test_the_facts_that_sentences_call_equal_are_equal(site_data):
    assert gpu("h100-sxm").memory_gb == gpu("a100-sxm-80gb").memory_gb
    assert gpu("h200-sxm").bf16_dense_tflops == gpu("h100-sxm").bf16_dense_tflops
    assert gpu("b300").bf16_dense_tflops == gpu("b200").bf16_dense_tflops
    assert set(MEASURED_BF16_TFLOPS) <= {*REFERENCE_SLUGS, *ADDED_SLUGS}


def test_the_page_says_how_to_rent_and_promises_no_fixed_term(client, site_data):
    _, text = read(client)
    assert "take the best offer of a market or place an order at your own price" in text
    assert "fixed term" not in text.lower()


def test_an_empty_catalogue_is_a_page_too(client):
    answer = client.get(PATH)
    assert answer.status_code == 200
    assert "The catalogue is empty." in answer.content.decode()


def test_prices_of_two_kinds_are_never_divided(client, site_data):
    Offer.objects.all().delete()
    make_offer(gpu=gpu("h100-sxm"), price="2.88", observed_at=datetime.now(UTC))
    make_list_offer(gpu=gpu("a100-sxm-80gb"), price="1.79")
    _, text = read(client)
    assert "times the price" not in text
    assert "has to be more than" not in text


def test_a_ratio_needs_two_prices():
    assert price_ratio(None, None) is None


@pytest.mark.parametrize(("link_gb_s", "milliseconds"), [(450, 54), (63, 390), (900, 27)])
def test_a_ring_sums_gradients_no_faster_than_its_link(link_gb_s, milliseconds):
    assert all_reduce_ms(14, gpu_count=8, link_gb_s=Decimal(link_gb_s)) == milliseconds


def test_twice_the_gpus_take_half_the_time():
    assert training_hours(Decimal(989), gpu_count=8) == 370
    assert training_hours(Decimal(989), gpu_count=16) == 180
