"""`/use-cases/<slug>/`: rows, order and columns of each page, its blocks, and figures that equal catalogue and engine."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from django.utils import translation

from catalog.models import Gpu, Offer
from catalog.pairs import known_pair
from sizing.engine.simple_rule import (
    decode_ceiling_tokens_per_s,
    full_training_b_params,
    lora_b_params,
    qlora_b_params,
    serving_b_params,
)
from sizing.use_cases import USE_CASES
from sizing.use_cases.rendering import RT_CORES
from tests.factories import make_best_ask, make_list_offer, make_offer

pytestmark = pytest.mark.django_db
OTHERS = ("fine-tuning", "llm-inference", "image-video", "rendering", "science")
each_page = pytest.mark.parametrize("slug", OTHERS)

ROWS = {
    "fine-tuning": ["RTX 4090", "RTX 3090", "RTX 5090", "L40S", "RTX 6000 Ada", "RTX A6000", "RTX PRO 6000 Server", "A100 SXM", "H100 SXM", "H100 NVL", "H200", "MI300X"],
    "llm-inference": ["B300", "B200", "MI355X", "MI325X", "MI300X", "H200", "H100 NVL", "H100 SXM", "A100 SXM", "RTX 5090", "RTX PRO 6000 Server", "RTX 4090", "L40S", "L4"],
    "image-video": ["RTX 4090", "RTX 5090", "L40S", "RTX 6000 Ada", "RTX PRO 6000 Server", "A100 SXM", "H100 SXM", "H200", "B200"],
    "rendering": ["RTX 5090", "RTX PRO 6000 Server", "RTX 4090", "L40S", "RTX 6000 Ada", "RTX A6000", "RTX 3090", "L4", None, "A100 SXM", "H100 SXM"],
    "science": ["MI300X", "MI325X", "MI355X", "B200", "H200", "H100 SXM", "H100 NVL", "A100 SXM", None, "B300", "L40S", "RTX PRO 6000 Server", "RTX 4090"],
}  # fmt: skip
COLUMNS = {
    "fine-tuning": ["Memory GB", "Bandwidth GB/s", "BF16, dense TFLOPS", "LoRA, 16-bit B param.", "QLoRA, 4-bit B param.", "All weights B param.", "Software", "From USD/GPU-h"],
    "llm-inference": ["Memory GB", "Bandwidth GB/s", "Computes in beside 16-bit", "Serves in FP16 B param.", "Serves in FP8 B param.", "Serves in INT4 B param.", "Ceiling, 1 stream tokens/s", "From USD/GPU-h", "Whose, which kind, how old", "1 M tokens at the ceiling USD"],
    "image-video": ["Memory GB", "BF16, dense TFLOPS", "FP8, dense TFLOPS", "SDXL", "FLUX.1-dev", "FLUX.2-dev", "Video, 720p", "From USD/GPU-h"],
    "rendering": ["Memory GB", "ECC", "RT cores", "FP32 TFLOPS", "Blender median samples/min", "Score per USD", "From USD/GPU-h"],
    "science": ["FP64, vector TFLOPS", "FP64, matrix TFLOPS", "Bandwidth GB/s", "Memory GB", "ECC", "Link GB/s one way", "MIG", "From USD/GPU-h", "Whose, which kind, how old", "FP64 TFLOPS for 1 h USD"],
}  # fmt: skip
QUESTIONS = {"fine-tuning": 7, "llm-inference": 7, "image-video": 8, "rendering": 7, "science": 7}


class Cells(HTMLParser):
    """Collects the rows of the table as lists of cell texts, headings, and the texts of the questions."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.headings: list[str] = []
        self.questions: list[str] = []
        self._inside: list[str] | None = None

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
            return
        into = {"h1": self.headings, "h2": self.headings, "summary": self.questions}.get(tag)
        if tag in ("th", "td"):
            into = self.rows[-1]
        if into is not None:
            into.append("")
            self._inside = into
        elif tag in ("br", "span") and self._inside:
            self._inside[-1] += " "

    def handle_endtag(self, tag):
        if tag in ("th", "td", "h1", "h2", "summary"):
            self._inside = None

    def handle_data(self, data):
        if self._inside:
            self._inside[-1] = re.sub(r"\s+", " ", f"{self._inside[-1]}{data}").strip()


def read(client, slug: str, language: str = "", **query: str) -> tuple[Cells, str]:
    html = client.get(f"{language}/use-cases/{slug}/", query).content.decode()
    cells = Cells()
    cells.feed(html)
    return cells, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def prices_of_the_api(client, slugs: list[str]) -> list[dict]:
    """Return the API's prices of the GPUs."""
    return client.get("/api/v1/prices/", {"gpu": ",".join(slugs)}).json()["results"]


def gpu(label: str) -> Gpu:
    return Gpu.objects.get(label=label)


def table(cells: Cells) -> dict[str, dict[str, str]]:
    """Return the rows by the card's label, each by the column's heading; the architecture under a name falls off."""
    head = cells.rows[0]
    labels = {f"{card.label} {card.architecture}": card.label for card in Gpu.objects.all()}
    return {labels[row[0]]: dict(zip(head, row, strict=True)) for row in cells.rows[1:] if row[0] in labels}


@each_page
def test_rows_stand_in_their_order_with_a_divider_where_there_is_one(client, site_data, slug):
    cells, _ = read(client, slug)
    labels = {f"{card.label} {card.architecture}": card.label for card in Gpu.objects.all()}
    assert [labels.get(row[0]) for row in cells.rows[1:]] == ROWS[slug]


def test_rows_can_be_ordered_by_price_and_by_memory_within_their_group(client, site_data):
    now = datetime.now(UTC)
    make_offer(gpu=gpu("L4"), price="0.05", observed_at=now)
    labels = {f"{card.label} {card.architecture}": card.label for card in Gpu.objects.all()}
    by_price, _ = read(client, "rendering", sort="price")
    assert labels[by_price.rows[1][0]] == "L4"
    by_memory, text = read(client, "rendering", sort="memory")
    assert labels[by_memory.rows[1][0]] == "RTX PRO 6000 Server"
    assert by_memory.rows[9] == ["Works, poor value no ray-tracing cores"]
    assert "By memory, the largest first." in text
    unknown, text = read(client, "rendering", sort="luck")
    assert [labels.get(row[0]) for row in unknown.rows[1:]] == ROWS["rendering"]


@each_page
def test_columns_stand_in_their_order_and_the_price_after_them(client, site_data, slug):
    cells, _ = read(client, slug)
    assert cells.rows[0][1 : len(COLUMNS[slug]) + 1] == COLUMNS[slug]


def test_the_facts_that_sentences_call_equal_are_equal(site_data):
    assert gpu("RTX 4090").memory_gb == gpu("L4").memory_gb
    assert gpu("L40S").memory_gb == gpu("RTX 6000 Ada").memory_gb
    assert gpu("B300").bf16_dense_tflops == gpu("B200").bf16_dense_tflops
    assert gpu("H200").bf16_dense_tflops == gpu("H100 SXM").bf16_dense_tflops
    assert gpu("L40S").fp8_dense_tflops is not None
    assert gpu("A100 SXM").fp8_dense_tflops is None


@each_page
def test_every_block_is_there_in_order(client, site_data, slug):
    cells, text = read(client, slug)
    blocks = ["GPUs that fit", "What matters", "Compared in pairs", "Questions", "Do you have GPU servers?", "Other things to run", "On this page"]  # fmt: skip
    assert [heading for heading in cells.headings if heading in blocks] == blocks
    assert len(cells.questions) == QUESTIONS[slug]
    assert cells.questions[-1].startswith("How do I rent a GPU for")
    assert "Read on 30 Nov 2026." in text
    assert "of the rule." in text
    assert "fixed term" not in text.lower()


@each_page
def test_the_three_points_have_a_figure_each(client, site_data, slug):
    html = client.get(f"/use-cases/{slug}/").content.decode()
    assert html.count('<p class="fig">') == 3
    assert not re.search(r'<p class="fig">\s*(None|<)', html)


@pytest.mark.parametrize("slug", USE_CASES)
def test_a_page_asks_the_database_little(client, site_data, slug, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        assert client.get(f"/use-cases/{slug}/").status_code == 200


@pytest.mark.parametrize("slug", USE_CASES)
@pytest.mark.parametrize("language", ["", "/nl", "/pl"])
def test_each_language_prints_the_same_table(client, site_data, slug, language):
    cells, _ = read(client, slug, language)
    names = [row[0] for row in read(client, slug)[0].rows[1:] if len(row) > 1]
    assert [row[0] for row in cells.rows[1:] if len(row) > 1] == names
    assert f'lang="{language.strip("/") or "en"}"' in client.get(f"{language}/use-cases/{slug}/").content.decode()


@pytest.mark.parametrize("slug", USE_CASES)
def test_an_empty_catalogue_is_a_page_too(client, slug):
    _, text = read(client, slug)
    assert "The catalogue is empty." in text


@pytest.mark.parametrize("slug", USE_CASES)
def test_prices_are_those_of_the_api_with_their_kind(client, site_data, slug):
    now = datetime.now(UTC)
    sample = USE_CASES[slug].listed[0]
    make_offer(gpu=Gpu.objects.get(slug=sample), price="2.5", cloud="new-cloud", observed_at=now)
    answered = {row["gpu"]: row["headline"] for row in prices_of_the_api(client, USE_CASES[slug].listed)}
    printed = table(read(client, slug)[0])
    for name in USE_CASES[slug].listed:
        card = Gpu.objects.get(slug=name)
        shown, headline = printed[card.label]["From USD/GPU-h"], answered[name]
        expected = (
            f"{Decimal(headline['price_per_gpu_hour']).normalize():.4f}".rstrip("0") if headline else "no price yet"
        )
        assert shown.replace(" ", "").startswith(expected.replace(" ", "")), name
    assert printed[Gpu.objects.get(slug=sample).label]["Whose, which kind, how old"].startswith("New-Cloud on-demand")


@pytest.mark.parametrize("slug", USE_CASES)
def test_a_price_of_ours_leads_to_the_ticket_filled_in(client, site_data, slug):
    first = USE_CASES[slug].listed[0]
    make_best_ask(gpu=Gpu.objects.get(slug=first), price="0.5", observed_at=datetime.now(UTC))
    html = client.get(f"/use-cases/{slug}/").content.decode()
    assert f'href="/market/{first}/?kind=best#ticket"' in html


@pytest.mark.parametrize("slug", USE_CASES)
def test_prices_follow_the_chosen_currency(client, site_data, slug):
    html = client.get(f"/use-cases/{slug}/").content.decode()
    assert re.search(r'href="\?currency=EUR"', html)


@pytest.mark.parametrize("slug", USE_CASES)
def test_each_pair_has_a_page_and_a_reason(client, site_data, slug):
    html = client.get(f"/use-cases/{slug}/").content.decode()
    reasons = re.findall(r"<li><b>[^\n]*?</b>\s*<span>(.*?)</span></li>", html, re.DOTALL)
    assert len(reasons) == len(USE_CASES[slug].pairs)
    assert all(len(reason) > 20 and "None" not in reason for reason in reasons)
    for pair in USE_CASES[slug].pairs.values():
        assert known_pair(*pair) is not None, pair


@pytest.mark.parametrize("slug", USE_CASES)
def test_the_other_five_are_linked_and_itself_is_not(client, site_data, slug):
    html = client.get(f"/use-cases/{slug}/").content.decode()
    (block,) = re.findall(r'<ul class="questions">(.*?)</ul>', html, re.DOTALL)
    assert re.findall(r'href="/use-cases/([a-z-]+)/"', block) == [other for other in USE_CASES if other != slug]


def test_tuning_sizes_are_those_of_the_rules(client, site_data):
    for label, row in table(read(client, "fine-tuning")[0]).items():
        memory_gb = gpu(label).memory_gb
        assert row["Memory GB"] == f"{memory_gb.normalize():f}"
        assert row["LoRA, 16-bit B param."] == f"≈ {lora_b_params(memory_gb=memory_gb)}"
        assert row["QLoRA, 4-bit B param."] == f"≈ {qlora_b_params(memory_gb=memory_gb)}"
        assert row["All weights B param."] == f"≈ {full_training_b_params(memory_gb=memory_gb, gpu_count=1)}"


def test_the_tuning_sentences_carry_computed_numbers(client, site_data):
    _, text = read(client, "fine-tuning")
    for words in (
        "one 24 GB card is enough for 7 B parameters in 16-bit or about 25 B in 4-bit",
        "needs at least 6 GB with QLoRA and 22 GB with LoRA, but 128 to 144 GB",
        "for a usable context take 80 GB, such as A100 SXM",
        "LoRA in 16-bit needs at least 164 GB: one MI325X (256 GB), or 2 × H200",
        "about 84 MB for 8 B at rank 16",
        "80% of memory, divided by 2.5 bytes per parameter with LoRA, 0.75 with QLoRA and 16 with all weights",
    ):
        assert words in text, words


def test_serving_sizes_and_ceilings_are_those_of_the_rules(client, site_data):
    for label, row in table(read(client, "llm-inference")[0]).items():
        card = gpu(label)
        for precision in ("fp16", "fp8", "int4"):
            size = serving_b_params(memory_gb=card.memory_gb, gpu_count=1, precision=precision)
            assert row[f"Serves in {precision.upper()} B param."] == f"≈ {size}"
        assert card.memory_bandwidth_gb_s
        ceiling = decode_ceiling_tokens_per_s(bandwidth_gb_s=card.memory_bandwidth_gb_s, b_params=8, precision="fp16")
        assert row["Ceiling, 1 stream tokens/s"] == str(ceiling)


def test_inference_rows_stand_by_bandwidth_where_a_twentieth_counts_as_equal(site_data):
    bandwidths = [Gpu.objects.get(slug=slug).memory_bandwidth_gb_s or 0 for slug in USE_CASES["llm-inference"].listed]
    assert all(after <= before * Decimal("1.05") for before, after in pairwise(bandwidths))


def test_a_million_tokens_cost_the_hour_divided_by_what_a_stream_gives(client, site_data):
    Offer.objects.all().delete()
    make_offer(gpu=gpu("H100 SXM"), price="2.88", observed_at=datetime.now(UTC))
    cells, text = read(client, "llm-inference")
    assert table(cells)["H100 SXM"]["1 M tokens at the ceiling USD"] == "3.83"
    assert table(cells)["H200"]["1 M tokens at the ceiling USD"] == "no price"
    assert "One stream of H100 SXM at its ceiling gives a million tokens for 3.83" in text
    assert "so one stream on H100 SXM cannot pass 209 tokens per second" in text
    assert "32768 tokens of a 70 B model take 10.7 GB" in text.replace(",", "")


def test_formats_without_a_published_figure_are_not_claimed(client, site_data):
    rows = table(read(client, "llm-inference")[0])
    assert rows["B300"]["Computes in beside 16-bit"] == "FP8, FP4"
    assert rows["H100 SXM"]["Computes in beside 16-bit"] == "FP8"
    assert rows["A100 SXM"]["Computes in beside 16-bit"] == "16-bit only"


def test_models_load_as_was_measured_or_stated(client, site_data):
    rows = table(read(client, "image-video")[0])
    ways = {label: [row[name] for name in ("SDXL", "FLUX.1-dev", "FLUX.2-dev", "Video, 720p")] for label, row in rows.items()}  # fmt: skip
    assert ways["RTX 4090"] == ["fits", "fits quantised", "fits quantised", "with offload"]
    assert ways["L40S"] == ["fits", "fits", "fits quantised", "with offload"]
    assert ways["H100 SXM"] == ["fits", "fits", "fits quantised", "fits"]
    assert ways["H200"] == ["fits", "fits", "fits", "fits"]


def test_rendering_shows_no_score_that_nobody_has_read(client, site_data):
    cells, text = read(client, "rendering")
    for row in table(cells).values():
        assert row["Blender median samples/min"] == "no data"
        assert row["Score per USD"] == "no data"
    assert "None has been read yet" in text


def test_cards_without_ray_tracing_cores_stand_below_the_divider(client, site_data):
    cells, _ = read(client, "rendering")
    assert cells.rows[9] == ["Works, poor value no ray-tracing cores"]
    rows = table(cells)
    assert all(rows[label]["RT cores"] == "none" and gpu(label).rt_cores is False for label in ("A100 SXM", "H100 SXM"))
    assert all(Gpu.objects.get(slug=slug).rt_cores for slug in RT_CORES)
    assert rows["RTX 4090"]["RT cores"] == str(RT_CORES["rtx-4090"])


def test_the_mark_of_rendering_never_falls_on_a_card_without_ray_tracing_cores(client, site_data):
    now = datetime.now(UTC)
    make_offer(gpu=gpu("A100 SXM"), price="0.10", observed_at=now)
    make_offer(gpu=gpu("RTX 4090"), price="0.40", observed_at=now)
    html = client.get("/use-cases/rendering/").content.decode()
    assert re.findall(r"<mark class=\"mark\">([\d.]+)", html) == ["0.40"]


def test_science_warns_about_double_precision_above_the_table(client, site_data):
    html = client.get("/use-cases/science/").content.decode()
    assert html.index('id="fp64"') < html.index("<table>")
    _, text = read(client, "science")
    assert "B300 is newer than B200 and computes double precision 30 times slower." in text
    assert "a server of 8 has 10 TFLOPS of it" in text
    assert "H200 has 43% more than H100 SXM" in text


def test_double_precision_is_the_catalogue_s_or_marked_as_an_estimate(client, site_data):
    rows = table(read(client, "science")[0])
    for label, row in rows.items():
        published = gpu(label).fp64_tflops
        shown = row["FP64, vector TFLOPS"]
        assert shown == f"{published.normalize():f}" if published else shown.startswith("≈ 1."), label
    assert rows["B300"]["FP64, vector TFLOPS"] == "1.25"


def test_the_price_of_double_precision_is_computed_from_the_row(client, site_data):
    Offer.objects.all().delete()
    make_offer(gpu=gpu("H200"), price="3.40", observed_at=datetime.now(UTC))
    make_list_offer(gpu=gpu("B300"), price="5")
    rows = table(read(client, "science")[0])
    assert rows["H200"]["FP64 TFLOPS for 1 h USD"] == "0.10"
    assert rows["B300"]["FP64 TFLOPS for 1 h USD"] == "4.00"


def test_a_page_of_another_language_is_written_in_its_numbers(client, site_data):
    Offer.objects.all().delete()
    make_offer(gpu=gpu("H100 SXM"), price="2.88", observed_at=datetime.now(UTC))
    html = client.get("/pl/use-cases/llm-inference/").content.decode()
    translation.deactivate()
    assert ">2,88<" in html
    assert ">3,83<" in html


@pytest.mark.parametrize("slug", USE_CASES)
def test_the_masthead_shows_that_the_page_is_a_use_case(client, site_data, slug):
    html = client.get(f"/use-cases/{slug}/").content.decode()
    assert re.search(r'<a href="/use-cases/llm-training/" aria-current="(page|true)">Use cases</a>', html)


def test_the_training_page_leads_to_the_guide_and_the_calculator(client, site_data):
    html = client.get("/use-cases/llm-training/").content.decode()
    assert 'href="/guides/choosing-a-training-gpu/"' in html
    assert 'href="/sizing/?model=llama-3.1-8b&amp;task=full"' in html


@pytest.mark.parametrize("slug", OTHERS)
def test_a_gpu_page_leads_to_the_use_cases_that_list_it(client, site_data, slug):
    listed = client.get(f"/gpus/{USE_CASES[slug].listed[0]}/").content.decode()
    assert f'href="/use-cases/{slug}/"' in listed
