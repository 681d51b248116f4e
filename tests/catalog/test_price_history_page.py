"""`/prices/<slug>/`: the price in words, the chart with its table twin, coverage; and the trends of other pages."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from catalog.history_queries import hour_of
from tests.factories import make_best_ask, make_gpu, make_live_offer, make_snapshot

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
PAGE = "/prices/h100-sxm/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu():
    return make_gpu(label="H100 SXM")


@pytest.fixture
def this_hour() -> datetime:
    return hour_of(datetime.now(UTC))


def html_of(client, path: str = PAGE) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def text_of(client, path: str = PAGE) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html_of(client, path)))


def test_an_unknown_gpu_is_not_found(client):
    assert client.get("/prices/h9000/").status_code == 404


def test_the_sentence_says_the_price_and_how_it_moved(client, gpu, this_hour):
    make_live_offer(gpu=gpu, price="2.88")
    make_snapshot(gpu=gpu, at=this_hour - 7 * DAY, price="2.40")
    make_snapshot(gpu=gpu, at=this_hour - 30 * DAY, price="3.20")
    text = text_of(client)
    assert "H100 SXM on demand costs 2.88 USD per GPU-hour at the cheapest cloud." in text
    assert "That is 20% more than a week ago. It is 10% less than a month ago." in text


def test_each_market_has_its_own_sentence(client, gpu):
    make_live_offer(gpu=gpu, price="1.10", market="spot")
    make_best_ask(gpu=gpu, price="2.50", observed_at=datetime.now(UTC))
    assert "H100 SXM spot costs 1.10 USD" in text_of(client, f"{PAGE}?market=spot")
    assert "H100 SXM costs 2.50 USD per GPU-hour on the exchange." in text_of(client, f"{PAGE}?market=exchange")
    assert "No live reserved price of H100 SXM is known now." in text_of(client, f"{PAGE}?market=reserved")


def test_one_snapshot_is_no_line_but_a_date(client, gpu, this_hour):
    make_live_offer(gpu=gpu, price="2.88")
    make_snapshot(gpu=gpu, at=this_hour)
    html = html_of(client)
    assert "<path" not in html
    assert f"Tracking since {this_hour.day} {this_hour:%b %Y}" in html


def test_nothing_recorded_is_said_and_nothing_is_drawn(client, gpu):
    make_live_offer(gpu=gpu, price="2.88")
    text = text_of(client)
    assert "Nothing recorded yet" in text
    assert "Nothing to draw yet." in text


def test_what_is_no_longer_live_says_when_it_was_last_recorded(client, gpu, this_hour):
    make_snapshot(gpu=gpu, at=this_hour - 2 * DAY, price="2.60")
    text = text_of(client)
    assert "No live on-demand price of H100 SXM is known now. The last one recorded was 2.60 USD on" in text


def test_the_chart_has_a_title_a_description_and_its_numbers_in_a_table(client, gpu, this_hour):
    for age in (0, 1, 24):
        make_snapshot(gpu=gpu, at=this_hour - age * HOUR, min="2.00", p25="2.50", median="3.00", p75="3.50", offers=3)
    html = html_of(client, f"{PAGE}?days=7")
    assert 'role="img" aria-labelledby="chart-title chart-desc"' in html
    assert re.search(r'<title id="chart-title">H100 SXM, on-demand: price from .+ to .+</title>', html)
    assert "lowest 2.00 USD, median 3.00, half of the clouds between 2.50 and 3.50" in html
    assert 'class="band"' in html
    assert html.count('scope="row" class="nowrap"') == 2
    assert "style=" not in html


def test_a_day_without_a_snapshot_is_named_in_the_table(client, gpu, this_hour):
    for age in (0, 3):
        make_snapshot(gpu=gpu, at=this_hour - age * DAY)
    assert text_of(client).count("nothing recorded") == 2


def test_coverage_and_age_stand_beside_the_price(client, gpu, this_hour):
    for age in (1, 2, 4):
        make_snapshot(gpu=gpu, at=this_hour - age * HOUR)
    text = text_of(client)
    assert "75%: 3 of 4 hours have a snapshot." in text
    assert "Last recorded" in text


def test_the_window_and_the_market_are_in_the_address_and_in_the_links_for_programs(client, gpu):
    html = html_of(client, f"{PAGE}?days=90&market=spot")
    assert "/api/v1/prices/h100-sxm/history/?days=90&amp;market=spot&amp;format=csv" in html
    assert '<a href="?market=spot&amp;days=90#chart" aria-current="true">90 days</a>' in html


def test_a_choice_that_does_not_exist_is_named(client, gpu):
    text = text_of(client, f"{PAGE}?days=8&market=futures")
    assert "Not understood, so the usual view is shown: days, market" in text
    assert "30 days, on-demand" in text


def test_the_page_needs_few_queries(client, gpu, this_hour, django_assert_max_num_queries):
    make_live_offer(gpu=gpu, price="2.88")
    for market in ("on_demand", "spot"):
        make_snapshot(gpu=gpu, at=this_hour, market=market)
    with django_assert_max_num_queries(12):
        client.get(PAGE)


PAGES_WITH_TRENDS = ("/", "/gpus/", "/gpus/h100-sxm/", "/use-cases/llm-training/")


@pytest.mark.parametrize("path", PAGES_WITH_TRENDS)
def test_a_table_draws_a_line_only_where_two_hours_were_recorded(client, gpu, this_hour, path):
    make_live_offer(gpu=gpu, price="2.88")
    assert "tracking since" not in html_of(client, path)
    make_snapshot(gpu=gpu, at=this_hour - HOUR)
    html = html_of(client, path)
    assert f"tracking since {this_hour.day if this_hour.hour else (this_hour - HOUR).day} " in html
    assert 'class="spark"' not in html
    make_snapshot(gpu=gpu, at=this_hour, price="2.90")
    html = html_of(client, path)
    assert "<title>H100 SXM, 30 days: 2.88 to 2.90 USD, last 2.90</title>" in html
    assert f'href="{PAGE}"' in html


@pytest.mark.parametrize("path", PAGES_WITH_TRENDS)
def test_a_table_says_the_change_in_seven_days(client, gpu, this_hour, path):
    make_live_offer(gpu=gpu, price="2.88")
    for age, price in ((0, "2.88"), (7, "3.20")):
        make_snapshot(gpu=gpu, at=this_hour - age * DAY, price=price)
    assert '<span class="down num">10%<span class="vh"> less than 7 days ago</span></span>' in html_of(client, path)


def test_a_line_follows_the_exchange_where_that_is_the_price(client, gpu, this_hour):
    make_best_ask(gpu=gpu, price="2.50", observed_at=datetime.now(UTC))
    for age in (0, 1):
        make_snapshot(gpu=gpu, at=this_hour - age * HOUR, market="exchange", price="2.50")
    assert f'href="{PAGE}?market=exchange"' in html_of(client, "/")


@pytest.mark.parametrize("path", [*PAGES_WITH_TRENDS, PAGE])
def test_pages_with_young_series_keep_to_the_budget_of_queries(
    client, gpu, this_hour, django_assert_max_num_queries, path
):
    make_live_offer(gpu=gpu, price="2.88")
    make_snapshot(gpu=gpu, at=this_hour)
    with django_assert_max_num_queries(12):
        client.get(path)
