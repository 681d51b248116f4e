"""`/guides/<slug>/`: whole in every language, each figure drawn from catalogue, prices or engine, none typed twice."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.conf import settings

from catalog.models import Gpu, Offer
from sizing.engine.cost import spot_waste
from sizing.engine.simple_rule import full_training_b_params
from sizing.guides.document import DocumentError, read_document
from sizing.guides.figures import KINDS, UnknownToken, value_of
from sizing.guides.library import SLUGS, TEXTS, guide_text
from sizing.guides.markdown import to_html
from sizing.guides.tokens import Token, fill, tokens_in
from sizing.views.guides import facts_for
from tests.factories import make_list_offer, make_offer, make_snapshot

LANGUAGES = [code for code, _ in settings.LANGUAGES]
EVERY_TEXT = [(slug, language) for slug in SLUGS for language in LANGUAGES]
PATH = "/guides/choosing-a-training-gpu/"
TOPICS = [
    "short", "memory", "bandwidth", "precision", "links", "scale", "storage", "spot", "checkpoints", "billing",
    "availability", "price", "sources",
]  # fmt: skip
# Figures that a text may hold by itself: what an example begins with, and names that contain one.
NAMES = re.compile(
    r"arXiv:[\d.]+|doi:[\d./a-z]+|Daly 2006|PCIe 5|BF16|FP8|FP64|DGX H100|A100|H100|400 Gb/s|(?<!\d)[148] ?(?:×|GB/s|GPU)"
)

each_text = pytest.mark.parametrize(("slug", "language"), EVERY_TEXT)


def page_of(client, language: str = "en") -> str:
    answer = client.get(PATH if language == "en" else f"/{language}{PATH}")
    assert answer.status_code == 200
    return answer.content.decode()


def text_of(html: str) -> str:
    html = re.sub(r"<script.*?</script>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html))).replace("\xa0", " ")


@pytest.fixture
def live_prices(site_data):
    """Every GPU that the guide prices has a live on-demand and a spot price; nothing else has one."""
    Offer.objects.all().delete()
    now = datetime.now(UTC) - timedelta(minutes=12)
    for slug, price in (("h100-sxm", "2.88"), ("a100-sxm-80gb", "1.79"), ("rtx-4090", "0.40")):
        gpu = Gpu.objects.get(slug=slug)
        make_offer(gpu=gpu, price=price, observed_at=now)
        make_offer(gpu=gpu, price=Decimal(price) / 2, observed_at=now, market="spot")


# --- every language ------------------------------------------------------------------------------------------------


def test_each_guide_has_one_file_per_language_and_no_other():
    assert sorted(path.relative_to(TEXTS).as_posix() for path in TEXTS.rglob("*.md")) == sorted(
        f"{slug}/{language}.md" for slug, language in EVERY_TEXT
    )


@each_text
def test_a_guide_says_the_same_in_every_language(slug, language):
    english, other = guide_text(slug, "en"), guide_text(slug, language)
    assert english
    assert other
    assert [part.id for part in other.sections] == [part.id for part in english.sections] == TOPICS
    assert [part.id for part in other.questions] == [part.id for part in english.questions]
    assert set(other.head) == {"title", "description", "lead", "published", "updated"}
    assert (other.head["published"], other.head["updated"]) == (english.head["published"], english.head["updated"])
    for one, same in zip((*english.sections, *english.questions), (*other.sections, *other.questions), strict=True):
        assert sorted(map(str, tokens_in(same.body))) == sorted(map(str, tokens_in(one.body))), one.id
        assert sorted(map(str, tokens_in(same.notes))) == sorted(map(str, tokens_in(one.notes))), one.id
        links = re.compile(r"\]\(([^)]+)\)")
        assert sorted(links.findall(same.body + same.notes)) == sorted(links.findall(one.body + one.notes)), one.id
        if language != "en":
            assert same.title not in (one.title, "") or one.id == "short", one.id


@pytest.mark.django_db
@each_text
def test_every_figure_of_a_guide_is_known_and_there_once_prices_are(live_prices, slug, language):
    document = guide_text(slug, language)
    assert document
    value = value_of(facts_for(document, now=datetime.now(UTC)))
    tokens = tokens_in(document.markdown)
    assert len(tokens) > 90
    assert [token for token in tokens if value(token) is None] == []


@pytest.mark.parametrize(
    "token",
    [
        Token(kind="prise", arguments=("h100-sxm",)),
        Token(kind="gpu", arguments=("h100-sxm", "colour")),
        Token(kind="gpu", arguments=("h100-sxm",)),
        Token(kind="rule", arguments=("nonsense",)),
        Token(kind="fits", arguments=("h100-sxm", "full", "3")),
        Token(kind="fits", arguments=("h100-sxm", "lora", "8")),
        Token(kind="clouds", arguments=("nice",)),
        Token(kind="ceiling", arguments=("h100-sxm", "8", "fp2")),
        Token(kind="need", arguments=("many",)),
        Token(kind="", arguments=()),
    ],
    ids=str,
)
@pytest.mark.django_db
def test_a_figure_that_nobody_can_give_is_refused(site_data, token):
    document = guide_text("choosing-a-training-gpu", "en")
    assert document
    with pytest.raises(UnknownToken):
        value_of(facts_for(document, now=datetime.now(UTC)))(token)


@each_text
def test_no_figure_is_typed_that_catalogue_or_engine_could_give(slug, language):
    """What stays: the examples' own assumptions, each under a hundred except the length of a table's scale."""
    document = guide_text(slug, language)
    assert document
    for part in (*document.sections, *document.questions):
        plain = re.sub(r"\{\{.*?\}\}|\]\([^)]*\)", " ", f"{part.body} {part.notes}")
        typed = {int(found) for found in re.findall(r"(?<![\w.,])\d+(?![\w])", NAMES.sub(" ", plain))}
        assert typed <= {1, 2, 3, 4, 5, 6, 7, 8, 14, 16, 20, 60, 70, 1000}, part.id


@pytest.mark.django_db
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_stands_within_the_query_limit(client, live_prices, language, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        html = page_of(client, language)
    assert "{{" not in text_of(html)
    assert "**" not in text_of(html)
    assert "page:" not in html
    assert 'style="' not in html


# --- its numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_its_numbers_are_those_of_api_and_engine(client, live_prices):
    text = text_of(page_of(client))
    h100, a100 = (client.get(f"/api/v1/gpus/{slug}/").json() for slug in ("h100-sxm", "a100-sxm-80gb"))
    assert f"{h100['memory_bandwidth_gb_s']} GB/s on H100 SXM" in text
    assert f"stands at {h100['bf16_dense_tflops']} TFLOPS, A100 SXM at {a100['bf16_dense_tflops']}: 3.2 times" in text
    assert f"{h100['fp8_dense_tflops']} TFLOPS on H100 SXM" in text
    trains = [full_training_b_params(memory_gb=Decimal(80), gpu_count=count) for count in (1, 8)]
    assert f"H100 SXM 80 {trains[0]} {trains[1]} 25 85" in text
    wasted = spot_waste(checkpoint_s=60, interruption_mean_s=6 * 3600, restart_s=300)
    assert f"{round(100 * wasted, 1)}% of the time is lost" in text
    price, spot = h100["prices"]["headline"]["price_per_gpu_hour"], h100["prices"]["elsewhere"]["spot"]["min"]
    assert f"lowest live spot price today is {spot} USD, the lowest live on-demand price {price} USD" in text
    assert f"more than {Decimal('2.88') / Decimal('1.79'):.2f} times as fast" in text


@pytest.mark.django_db
def test_the_worked_example_is_priced_as_of_today_and_says_so(client, live_prices):
    text = text_of(page_of(client))
    assert "about 370 hours on 8 × H100 SXM if the run reaches 40% of dense BF16" in text
    cost = Decimal("2.88") * 370 * 8
    assert f"At 2.88 USD per GPU-hour (live, read 12 minutes ago) that run costs {cost:,.2f} USD without tax" in text
    assert "cost 9.60 USD by the second and 28.80 USD by the started hour" in text


@pytest.mark.django_db
def test_a_list_price_says_its_date(client, site_data):
    Offer.objects.all().delete()
    make_list_offer(gpu=Gpu.objects.get(slug="h100-sxm"), price="3.00")
    assert "At 3.00 USD per GPU-hour (list price of 7 May 2026) that run costs" in text_of(page_of(client))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "price", "ratio"), [("en", "2.88 USD", "1.61"), ("nl", "US$ 2,88", "1,61"), ("pl", "2,88 USD", "1,61")]
)
def test_numbers_are_written_as_the_language_writes_them(client, live_prices, language, price, ratio):
    text = text_of(page_of(client, language))
    assert price in text
    assert ratio in text


@pytest.mark.django_db
def test_without_prices_and_without_a_catalogue_the_sentences_about_them_are_left_out(client):
    text = text_of(page_of(client))
    assert "that run costs" not in text
    assert "has to be more than" not in text
    assert "A checkpoint that was never restored is a hope." in text


@pytest.mark.django_db
def test_prices_can_be_read_in_another_currency(client, live_prices, django_assert_max_num_queries):
    assert "currency=EUR" in page_of(client)


# --- what programs are told ----------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_are_told_the_article_and_its_questions_as_printed(client, live_prices, language):
    html = page_of(client, language)
    blocks = [json.loads(text) for text in re.findall(r'<script type="application/ld\+json">(.*?)</script>', html)]
    found = {block["@type"]: block for block in blocks}
    assert {"Article", "FAQPage", "BreadcrumbList"} == found.keys()
    article = found["Article"]
    assert (article["inLanguage"], article["datePublished"]) == (language, "2026-11-30")
    assert "https://arxiv.org/abs/1910.02054" in article["citation"]
    assert f"<h1>{article['headline']}</h1>" in html
    text = text_of(html)
    for asked in found["FAQPage"]["mainEntity"]:
        assert asked["name"] in text
        assert asked["acceptedAnswer"]["text"].replace("\xa0", " ") in text


@pytest.mark.django_db
def test_an_unknown_guide_is_not_found(client):
    for slug in ("nothing", "texts", "choosing-a-training-gpu-2"):
        assert client.get(f"/guides/{slug}/").status_code == 404


@pytest.mark.django_db
def test_the_sitemap_names_pairs_and_guides_in_all_languages(client, site_data):
    make_snapshot(gpu=Gpu.objects.get(slug="h100-sxm"), at=datetime.now(UTC).replace(minute=0, second=0, microsecond=0))
    listed = client.get("/sitemap.xml").content.decode()
    for language in ("", "/nl", "/pl"):
        assert f"<loc>http://testserver{language}{PATH}</loc><lastmod>2026-11-30</lastmod>" in listed
        assert f"<loc>http://testserver{language}/gpus/h100-sxm-vs-a100-sxm-80gb/</loc>" in listed
    assert "/gpus/compare/" not in listed


# --- the parts -----------------------------------------------------------------------------------------------------


def test_a_paragraph_or_a_line_without_its_figure_is_left_out():
    def value(token: Token) -> str | None:
        return "7" if token.kind == "known" else None

    assert fill(
        "a {{ known:x }}\n\nb {{ missing:x }} {{ known:x }}\n\n| {{ known:x }} |\n| {{ missing:x }} |", value
    ) == ("a 7\n\n| 7 |")


@pytest.mark.parametrize(
    "text",
    [
        "no head",
        "---\ntitle\n---\n## A {#a}\n",
        "---\ntitle: T\n---\nText first\n## A {#a}\n",
        "---\ntitle: T\n---\n## A without a name\n",
    ],
)
def test_a_file_that_is_not_a_guide_is_refused(text):
    with pytest.raises(DocumentError):
        read_document(text)


def test_markdown_makes_no_raw_html_no_style_and_no_dead_link():
    html = to_html("<b onclick=x>raw</b> [gone](page:nothing:here) [out](https://example.com/)", name="T")
    assert "<b onclick" not in html
    assert "gone" in html
    assert html.count("<a ") == html.count("</a>") == 1
    assert 'rel="noopener"' in html
    table = to_html("| a | b |\n| --- | ---: |\n| 1 | 2 |", name='A "table" & more')
    assert 'style="' not in table
    assert '<th scope="col" class="r">b</th>' in table.replace('class="r" scope="col"', 'scope="col" class="r"')
    assert 'aria-label="A &quot;table&quot; &amp; more"' in table


def test_a_script_is_never_a_link():
    assert "<a " not in to_html("[x](javascript:alert(1))")


def test_every_kind_of_figure_is_used():
    document = guide_text("choosing-a-training-gpu", "en")
    assert document
    assert {token.kind for token in tokens_in(document.markdown)} == KINDS.keys()
