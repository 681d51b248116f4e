"""From a use to a file in a real browser: choose, filter, add up a job, open its sum, keep columns, download all."""

import csv
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest

from catalog.models import Gpu
from tests.factories import make_best_ask, make_offer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def offers(site_data):
    h100, b200, l4 = (Gpu.objects.get(slug=slug) for slug in ("h100-sxm", "b200", "l4"))
    at = {"observed_at": datetime.now(UTC) - timedelta(minutes=20)}
    for gpu, price, cloud, name, values in (
        (h100, "2.49", "lambda", "eight-h100", {"gpu_count": 8}),
        (h100, "1.20", "gcp", "spot-h100", {"gpu_count": 8, "market": "spot"}),
        (h100, "3.10", "gcp", "steady-h100", {"gpu_count": 8}),
        (b200, "5.40", "nebius", "eight-b200", {"gpu_count": 8}),
        (h100, "2.10", "runpod", "one-h100", {}),
        (l4, "0.60", "gcp", "one-l4", {}),
    ):
        make_offer(gpu=gpu, price=price, cloud=cloud, instance_type=name, **values, **at)
    make_best_ask(gpu=h100, price=Decimal("1.99"), observed_at=datetime.now(UTC))


def machines(page) -> list[str]:
    return page.locator("table tbody th .sub .id").all_inner_texts()


def totals(page) -> list[Decimal]:
    texts = page.locator(".opens").evaluate_all("all => all.map(each => each.firstChild.textContent.trim())")
    return [Decimal(text.replace(",", "")) for text in texts]


def download(page) -> list[dict[str, str]]:
    with page.expect_download() as caught:
        page.click("text=All rows as CSV")
    with open(caught.value.path(), newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("javascript", [True, False])
def test_from_a_use_to_a_file(open_page, offers, javascript):
    visit = open_page("/compare/?freshness=fresh,warned", javascript=javascript)
    page = visit.page
    assert machines(page) == ["one-l4", "spot-h100", "one-h100", "eight-h100", "steady-h100", "eight-b200"]

    page.click("text=LLM training >> nth=0")
    page.wait_for_url("**use_case=llm-training**")
    assert "Gradients are summed over all GPUs" in page.inner_text(".reasons")
    page.select_option("#f-freshness", "fresh,warned")
    page.click("text=Apply >> nth=0")
    page.wait_for_url("**freshness=**")
    assert machines(page) == ["spot-h100", "eight-h100", "steady-h100", "eight-b200"]

    page.click("summary:has-text('My job')")
    page.fill("#id_job_hours", "100")
    page.fill("#id_job_gpus", "8")
    page.click("text=Add up")
    page.wait_for_url("**job_hours=100**")
    assert totals(page) == sorted(totals(page))
    assert page.locator("mark.mark").count() == 1

    page.click(".opens >> nth=0")
    sheet = page.locator(".receipt:popover-open")
    assert "interruptions" in sheet.inner_text()
    assert "The same machine on demand: 2,480.00" in sheet.inner_text()
    page.keyboard.press("Escape")
    assert sheet.count() == 0

    page.click("summary:has-text('Columns')")
    page.check("input[value=fp8_dense_tflops]")
    page.click("text=Show these")
    page.wait_for_url("**columns=**")
    assert page.locator("th#c-fp8_dense_tflops").count() == 1

    rows = download(page)
    assert [row["instance_type"] for row in rows] == machines(page)
    assert [Decimal(row["job_total_usd"]).quantize(Decimal("0.01")) for row in rows] == totals(page)
    assert parse_qs(urlsplit(page.url).query)["use_case"] == ["llm-training"]
    assert visit.complaints == []


def test_a_filter_is_taken_away_by_its_chip_and_the_keyboard_reaches_everything(open_page, offers):
    page = open_page("/compare/?cloud=gcp&market=spot", width=360).page
    assert "removes" in page.inner_text(".counted")
    page.locator(".counted a").nth(0).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "market" not in url)
    assert machines(page) == ["one-l4", "spot-h100", "steady-h100"]
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
