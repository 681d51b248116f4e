"""What the site tells programs: JSON-LD, canonical addresses, robots.txt, the sitemap, llms.txt, link previews."""

import json
import re
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import HttpRequest
from django.template import Context, Template

from catalog.models import Gpu
from tests.factories import make_cloud_fact, make_gpu, make_list_offer, make_offer, make_snapshot
from tests.marketplace.conftest import make_listing
from tests.pages import PAGES

pytestmark = pytest.mark.django_db

ROOT = "http://testserver"
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
ALTERNATE = "{http://www.w3.org/1999/xhtml}link"


def html_of(client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def json_ld(html: str) -> dict[str, dict]:
    """Return the page's JSON-LD by type; a type stands once."""
    blocks = [json.loads(text) for text in re.findall(r'<script type="application/ld\+json">(.*?)</script>', html)]
    assert all(block["@context"] == "https://schema.org" for block in blocks)
    found = {block["@type"]: block for block in blocks}
    assert len(found) == len(blocks)
    return found


def meta(html: str, name: str) -> str:
    found = re.findall(rf'<meta (?:property|name)="{re.escape(name)}" content="([^"]*)">', html)
    assert len(found) == 1, name
    return found[0]


def canonical(html: str) -> str:
    (found,) = re.findall(r'<link rel="canonical" href="([^"]*)">', html)
    return found


# --- JSON-LD ---------------------------------------------------------------------------------------------------


def test_a_gpu_page_tells_the_prices_it_shows_and_the_api_gives(client):
    gpu = make_gpu(label="H100 SXM")
    now = datetime.now(UTC)
    make_offer(gpu=gpu, price="2.88", cloud="lambda", observed_at=now, availability="yes")
    make_offer(gpu=gpu, price="3.1234", cloud="nebius", observed_at=now)
    make_offer(gpu=gpu, price="1.50", cloud="vast", observed_at=now, market="spot")
    make_offer(gpu=gpu, price="1.00", cloud="verda", observed_at=now, verified=False)
    html = html_of(client, "/gpus/h100-sxm/")
    offers = json_ld(html)["Product"]["offers"]
    assert (offers["@type"], offers["priceCurrency"]) == ("AggregateOffer", "USD")
    assert '<mark class="mark">2.88</mark>' in html
    (of_api,) = client.get("/api/v1/prices/?gpu=h100-sxm").json()["results"]
    assert offers["lowPrice"] == "2.88"
    assert Decimal(offers["lowPrice"]) == Decimal(of_api["elsewhere"]["on_demand"]["min"])
    assert offers["offerCount"] == of_api["elsewhere"]["on_demand"]["offers"] == 2
    assert [(offer["seller"]["name"], offer["price"], offer.get("availability")) for offer in offers["offers"]] == [
        ("Lambda", "2.88", "https://schema.org/InStock"),
        ("Nebius", "3.1234", None),
    ]
    for offer in (offers, *offers["offers"]):
        specification = offer["priceSpecification"]
        assert specification["@type"] == "UnitPriceSpecification"
        assert (specification["unitCode"], specification["referenceQuantity"]["value"]) == ("HUR", 1)
        assert specification["price"] == offer.get("price", offers["lowPrice"])


def test_a_dated_list_price_is_not_offered_to_programs_as_todays(client):
    make_list_offer(gpu=make_gpu(), price="1.80")
    assert "offers" not in json_ld(html_of(client, "/gpus/h100-sxm/"))["Product"]


def test_a_price_stays_in_usd_for_programs_whatever_the_page_shows(client):
    make_offer(gpu=make_gpu(), price="2.88", observed_at=datetime.now(UTC))
    html = html_of(client, "/gpus/h100-sxm/?currency=EUR")
    assert json_ld(html)["Product"]["offers"]["lowPrice"] == "2.88"


def test_a_figure_that_is_not_published_is_left_out(client):
    make_gpu(bf16_dense_tflops=None)
    figures = json_ld(html_of(client, "/gpus/h100-sxm/"))["Product"]["additionalProperty"]
    assert {figure["name"]: figure["value"] for figure in figures} == {"Memory": 80, "Bandwidth": 3350}


def test_no_page_tells_ratings_or_reviews(client, site_data):
    for path in PAGES:
        assert not re.search(r"rating|review", " ".join(map(json.dumps, json_ld(html_of(client, path)).values())), re.I)


def test_a_price_history_is_a_dataset_with_downloads_that_answer(client):
    gpu = make_gpu(label="H100 SXM")
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    assert "Dataset" not in json_ld(html_of(client, "/prices/h100-sxm/"))
    for at in (hour - timedelta(days=2), hour):
        make_snapshot(gpu=gpu, at=at)
    dataset = json_ld(html_of(client, "/prices/h100-sxm/"))["Dataset"]
    assert len(dataset["description"]) >= 50
    assert dataset["temporalCoverage"] == f"{(hour - timedelta(days=2)).date()}/{hour.date()}"
    assert "license" not in dataset
    types = []
    for download in dataset["distribution"]:
        answer = client.get(download["contentUrl"].removeprefix(ROOT))
        assert answer.status_code == 200
        types.append(answer["Content-Type"].split(";")[0])
        assert types[-1] == download["encodingFormat"]
    assert types == ["text/csv", "application/json"]


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("/gpus/h100-sxm/", ["/", "/gpus/", "/gpus/h100-sxm/"]),
        ("/prices/h100-sxm/", ["/", "/gpus/h100-sxm/", "/prices/h100-sxm/"]),
        ("/clouds/aws/", ["/", "/clouds/", "/clouds/aws/"]),
        ("/use-cases/llm-training/", ["/", "/use-cases/llm-training/"]),
    ],
)
def test_the_breadcrumb_for_programs_is_the_one_for_people(client, site_data, path, steps):
    html = html_of(client, path)
    crumbs = json_ld(html)["BreadcrumbList"]["itemListElement"]
    assert [crumb["item"] for crumb in crumbs] == [ROOT + step for step in steps]
    assert [crumb["position"] for crumb in crumbs] == list(range(1, len(steps) + 1))
    (nav,) = re.findall(r'<nav class="crumbs".*?</nav>', html, re.DOTALL)
    visible = [word.strip() for word in re.sub(r"<[^>]+>", "\n", nav).split("\n") if word.strip()]
    assert [crumb["name"] for crumb in crumbs] == [word for word in visible if word != "Use cases"]


def test_the_use_case_lists_its_gpus_and_the_board_names_the_site(client, site_data):
    listed = json_ld(html_of(client, "/use-cases/llm-training/"))["ItemList"]
    assert listed["numberOfItems"] == len(listed["itemListElement"]) > 9
    assert client.get(listed["itemListElement"][0]["url"].removeprefix(ROOT)).status_code == 200
    assert json_ld(html_of(client, "/"))["WebSite"]["url"] == f"{ROOT}/"


def test_no_text_can_leave_the_data_block():
    text = '</script><script>alert("1")</script> & <!--'
    template = Template("{% load machine_use %}{{ data|as_json }}")
    printed = template.render(Context({"data": {"name": text}}))
    assert not set("<>&") & set(printed)
    assert json.loads(printed) == {"name": text}


# --- Addresses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_a_view_of_a_page_names_the_plain_page_as_canonical(client, site_data, path):
    html = html_of(client, path)
    plain = ROOT + urlsplit(path).path
    assert canonical(html) == plain == meta(html, "og:url")
    assert canonical(html_of(client, f"{urlsplit(path).path}?utm_source=elsewhere&currency=EUR")) == plain


def is_allowed(rules: list[tuple[str, str]], target: str) -> bool:
    """Apply RFC 9309: the longest rule that fits counts, Allow wins among equals."""
    fitting = [
        (len(pattern), verb == "Allow")
        for verb, pattern in rules
        if re.match(re.escape(pattern).replace(r"\*", ".*").replace(r"\$", "$"), target)
    ]
    return max(fitting, default=(0, True))[1]


def test_robots_read_pages_and_few_views_of_them(client, site_data):
    answer = client.get("/robots.txt")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    text = answer.content.decode()
    rules = re.findall(r"^(Allow|Disallow): (\S+)$", text, re.MULTILINE)
    assert f"Sitemap: {ROOT}/sitemap.xml" in text.splitlines()
    for path in {urlsplit(path).path for path in PAGES}:
        assert is_allowed(rules, path)
        assert not is_allowed(rules, f"{path}?sort=price&currency=EUR")
    for readable in ("/gpus/?vendor=AMD", "/gpus/?has_price=1", "/clouds/?free_egress=1", "/api/v1/prices/?gpu=b200"):
        assert is_allowed(rules, readable)
        assert client.get(readable).status_code == 200
    assert not is_allowed(rules, "/gpus/?vendor=AMD&sort=-memory_gb")
    assert not is_allowed(rules, "/admin/login/")


def sitemap(client) -> dict[str, ElementTree.Element]:
    answer = client.get("/sitemap.xml")
    assert answer["Content-Type"] == "application/xml"
    entries = ElementTree.fromstring(answer.content)
    return {str(entry.findtext(f"{SITEMAP}loc")).removeprefix(ROOT): entry for entry in entries}


def test_every_address_of_the_sitemap_answers_as_itself(client, site_data):
    make_listing(gpu=Gpu.objects.get(slug="h100-sxm"))
    found = sitemap(client)
    assert {urlsplit(path).path for path in PAGES} - {"/prices/h100-sxm/"} <= found.keys()
    for path in found:
        html = html_of(client, path)
        assert canonical(html) == ROOT + path


def test_the_sitemap_dates_only_what_has_a_date(client):
    gpu = make_gpu()
    make_offer(gpu=gpu, price="2.88", cloud="nebius", observed_at=datetime.now(UTC))
    make_cloud_fact(cloud="lambda", fact="minimum_seconds", value="60", checked_on=date(2026, 11, 3))
    make_snapshot(gpu=gpu, at=datetime(2026, 11, 30, 14, tzinfo=UTC))
    dates = {path: entry.findtext(f"{SITEMAP}lastmod") for path, entry in sitemap(client).items()}
    assert {path: on for path, on in dates.items() if on} == {
        f"{prefix}{path}": on
        for prefix in ["" if code == settings.LANGUAGE_CODE else f"/{code}" for code, _ in settings.LANGUAGES]
        for path, on in (
            ("/clouds/lambda/", "2026-11-03"),
            ("/prices/h100-sxm/", "2026-11-30"),
            ("/guides/choosing-a-training-gpu/", "2026-11-30"),
        )
    }
    assert {"/clouds/nebius/", "/gpus/h100-sxm/"} <= dates.keys()


def test_each_entry_of_the_sitemap_names_its_sisters(client):
    make_gpu()
    entry = sitemap(client)["/gpus/h100-sxm/"]
    named = {link.get("hreflang"): str(link.get("href")) for link in entry.findall(ALTERNATE)}
    assert named.pop("x-default") == f"{ROOT}/gpus/h100-sxm/"
    assert named.keys() == dict(settings.LANGUAGES).keys()
    assert all(client.get(href.removeprefix(ROOT)).status_code == 200 for href in named.values())


# --- llms.txt --------------------------------------------------------------------------------------------------


def test_llms_txt_has_the_agreed_form_and_no_dead_link(client, site_data):
    text = client.get("/llms.txt").content.decode()
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "# GPU Bourse"
    assert lines[1].startswith("> ")
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles == ["Prices", "GPUs", "Clouds", "Use cases", "Method", "Optional"]
    for part in text.split("\n## ")[1:]:
        for line in part.splitlines()[1:]:
            assert not line or re.fullmatch(r"- \[[^]]+\]\(\S+\)(: .+)?", line), line
    links = re.findall(r"\]\((\S+)\)", text)
    assert len(links) > 90
    for link in links:
        assert client.get(link.removeprefix(ROOT)).status_code == 200, link


def test_llms_txt_gives_each_price_with_its_kind(client):
    live, dated = make_gpu(label="H100 SXM"), make_gpu(slug="b200", label="B200", memory_gb=Decimal(180))
    make_gpu(slug="b300", label="B300", memory_gb=Decimal(288))
    make_offer(gpu=live, price="2.88", observed_at=datetime.now(UTC))
    make_list_offer(gpu=dated, price="4.20", cloud="vast")
    text = client.get("/llms.txt", headers={"accept-language": "pl"}).content.decode()
    assert re.search(
        r"\[H100 SXM\]\(\S+\): 80 GB, 2\.88 USD per GPU-hour on demand at Lambda, read \S+ \S+ UTC\n", text
    )
    assert re.search(r"\[B200\]\(\S+\): 180 GB, 4\.20 USD per GPU-hour, list price of Vast of 2026-05-07\n", text)
    assert re.search(r"\[B300\]\(\S+\): 288 GB, no price yet\n", text)


# --- Link previews ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_a_link_to_a_page_shows_its_own_title_and_description(client, site_data, path):
    html = html_of(client, path)
    (title,) = re.findall(r"<title>(.*?)</title>", html)
    assert meta(html, "og:title") == title
    assert meta(html, "og:description") == meta(html, "description") != ""
    assert meta(html, "og:locale") == "en_US"
    has_its_own = path.startswith(("/gpus/h100-sxm/", "/gpus/max-1550/", "/prices/h100-sxm/"))
    own = f"{ROOT}/og{path.partition('?')[0].removesuffix('/')}.png"
    assert meta(html, "og:image") == (own if has_its_own else f"{ROOT}/static/img/og.png")
    assert meta(html, "og:image:alt")


def test_a_page_in_another_language_says_so_to_programs_too(client):
    make_gpu(label="H100 SXM")
    for code, _ in settings.LANGUAGES[1:]:
        html = html_of(client, f"/{code}/gpus/h100-sxm/")
        assert canonical(html) == f"{ROOT}/{code}/gpus/h100-sxm/" == json_ld(html)["Product"]["url"]
        assert meta(html, "og:locale").startswith(f"{code}_")
        assert all(f"/{code}/" in crumb["item"] for crumb in json_ld(html)["BreadcrumbList"]["itemListElement"])
        assert f"Allow: /{code}/gpus/?vendor=AMD$" in client.get("/robots.txt").content.decode().splitlines()


def test_the_picture_has_the_size_that_is_told(client):
    html = html_of(client, "/method/")
    header = Path(str(finders.find("img/og.png"))).read_bytes()[:24]
    width, height = struct.unpack(">II", header[16:])
    assert (meta(html, "og:image:width"), meta(html, "og:image:height")) == (str(width), str(height))


def test_a_quotation_mark_in_a_title_does_not_end_its_attribute():
    template = Template(
        '{% load machine_use %}{% keep as kept %}The "{{ name }}"{% endkeep %}<meta content="{{ kept }}">'
    )
    printed = template.render(Context({"name": '<a "b">', "request": HttpRequest()}))
    assert printed == '<meta content="The &quot;&lt;a &quot;b&quot;&gt;&quot;">'
