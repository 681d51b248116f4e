"""`/compare/`: what is filtered and how much each filter removes, the order, pages, columns, the job, and the CSV."""

import csv
import html
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from catalog.compare.columns import SORTABLE
from catalog.compare.filters import FILTERS
from catalog.compare.presets import PRESETS
from catalog.models import SourceDocument
from tests.factories import (
    make_best_ask,
    make_cloud,
    make_cloud_fact,
    make_gpu,
    make_list_offer,
    make_offer,
    make_source,
)

pytestmark = pytest.mark.django_db
COMPARE = "/compare/"


def hours_ago(hours: float) -> datetime:
    return datetime.now(UTC) - timedelta(hours=hours)


@pytest.fixture
def offers():
    h100 = make_gpu(slug="h100-sxm", interconnect="NVLink 4 + NVSwitch; PCIe Gen5", rt_cores=False)
    l4 = make_gpu(slug="l4", memory_gb=Decimal(24), memory_bandwidth_gb_s=Decimal(300), rt_cores=True)
    at: dict[str, Any] = {"observed_at": hours_ago(1)}
    make_offer(gpu=h100, price="2", gpu_count=8, cloud="aws", instance_type="eight", **at)
    make_offer(gpu=h100, price="3", cloud="lambda", instance_type="one", country="US", **at)
    make_offer(gpu=l4, price="0.70", cloud="gcp", instance_type="small", market="spot", **at)
    make_offer(gpu=l4, price="0.30", cloud="gcp", instance_type="slice", gpu_count="0.5", is_whole=False, **at)
    make_list_offer(gpu=h100, price="1.50", cloud="aws", instance_type="dated", **at)
    make_offer(gpu=h100, price="1", instance_type="stale", observed_at=hours_ago(25))
    make_offer(gpu=h100, price="1", instance_type="kept-out", held_back="far from all others", **at)
    make_best_ask(gpu=h100, price="2.50", devices=5, observed_at=hours_ago(1))
    return {"h100": h100, "l4": l4}


def text_of(client, query="") -> str:
    answer = client.get(COMPARE + query)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def shown(client, query="") -> list[str]:
    """Return the lines in order: machines, and "here" for our own asks."""
    body = text_of(client, query).partition("<tbody>")[2]
    return [
        "here" if "for rent here" in row else re.findall(r'class="id">([\w-]+)<', row)[0]
        for row in re.findall(r'<tr(?: class="here")?><th scope="row" class="wrap">.*?</th>', body)
    ]


def removes(client, query) -> dict[str, int]:
    chips = re.search(r'<ul class="applied counted".*?</ul>', text_of(client, query), re.DOTALL)
    assert chips
    found = re.findall(r"</span>([^<:]+): .*?removes (\d+)</span>", chips[0])
    return {label: int(count) for label, count in found}


def test_offers_and_our_asks_stand_in_one_table_by_price_and_ours_are_named(client, offers):
    assert shown(client) == ["slice", "small", "dated", "eight", "here", "one"]
    body = text_of(client)
    assert "1 to 6 of 6 rows" in body
    assert "1 of them for rent here" in body
    assert "5 free" in body
    assert "/market/h100-sxm/?kind=best#ticket" in body


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?gpu=l4", ["slice", "small"]),
        ("?vendor=nvidia&gpu=l4", ["slice", "small"]),
        ("?vendor=nvidia&gpu=l4&min_memory_gb=25", []),
        ("?cloud=aws", ["dated", "eight"]),
        ("?market=spot", ["small"]),
        ("?market=on_demand&gpu=h100-sxm", ["dated", "eight", "here", "one"]),
        ("?min_gpus=2", ["eight"]),
        ("?max_gpus=1", ["slice", "small", "dated", "here", "one"]),
        ("?min_memory_gb=80", ["dated", "eight", "here", "one"]),
        ("?min_total_memory_gb=100", ["eight"]),
        ("?country=US", ["one"]),
        ("?freshness=list", ["dated"]),
        ("?freshness=fresh,warned", ["slice", "small", "eight", "here", "one"]),
        ("?freshness=stale", ["stale"]),
        ("?interconnect=nvlink", ["dated", "eight", "here", "one"]),
        ("?rt_cores=true", ["slice", "small"]),
        ("?max_price_usd_per_gpu_hour=1.5", ["slice", "small", "dated"]),
        ("?availability=yes", ["here"]),
    ],
)
def test_a_filter_narrows_offers_and_asks(client, offers, query, found):
    assert shown(client, query) == found


def test_chips_say_what_is_filtered_and_how_many_offers_each_filter_alone_removes(client, offers):
    assert removes(client, "?gpu=h100-sxm&min_gpus=2&max_price_usd_per_gpu_hour=2") == {
        "GPU": 0,
        "GPUs per machine from": 1,  # dated: an H100 under 2 USD that stands alone
        "USD per GPU-hour, up to": 0,
    }
    assert removes(client, "?cloud=aws&market=spot") == {"Cloud": 1, "Type of price": 2}


def test_a_filter_that_cannot_be_read_is_named_and_left_out_and_the_others_hold(client, offers):
    body = text_of(client, "?gpu=h900&min_gpus=many&max_gpus=0&cloud=aws&sort=colour")
    assert "GPU: Not known here: h900." in body
    assert body.count('class="error"') == 3
    assert "cannot be ordered that way" in body
    assert shown(client, "?gpu=h900&min_gpus=many&cloud=aws") == ["dated", "eight"]


@pytest.mark.parametrize("use", PRESETS)
def test_a_use_sets_its_filters_and_says_why(client, offers, use):
    body = text_of(client, f"?use_case={use}")
    for each in PRESETS[use].filters.values():
        assert str(each.reason) in body


def test_a_value_beside_a_use_goes_before_it_and_a_blank_one_takes_it_away(client, offers):
    assert "removes" in text_of(client, "?use_case=llm-training")
    assert set(removes(client, "?use_case=rendering")) == {"Ray-tracing cores", "Memory each, GB from"}
    assert set(removes(client, "?use_case=rendering&rt_cores=")) == {"Memory each, GB from"}
    assert shown(client, "?use_case=rendering&rt_cores=&min_memory_gb=80") == ["dated", "eight", "here", "one"]


def test_the_links_of_a_use_and_of_chips_lead_where_they_say(client, offers):
    body = text_of(client, "?use_case=rendering&cloud=gcp")
    hrefs = [html.unescape(href) for href in re.findall(r'<li><a href="(\?[^"]*)" rel="nofollow"><span>', body)]
    assert hrefs == [
        "?use_case=rendering&cloud=gcp&min_memory_gb=",
        "?use_case=rendering&cloud=gcp&rt_cores=",
        "?use_case=rendering",
    ]


@pytest.mark.parametrize("name", SORTABLE)
def test_every_number_sorts_both_ways_and_unknown_figures_come_last(client, offers, name):
    make_cloud_fact(cloud="gcp", fact="spot_notice_seconds", value="30")
    for sign in ("", "-"):
        lines = shown(client, f"?sort={sign}{name}&columns={name}")
        assert sorted(lines) == sorted(["slice", "small", "dated", "eight", "here", "one"])
    assert f"sort=-{name}" in text_of(client, f"?sort={name}&columns={name}") or name.startswith("price")


def test_orders_are_those_of_the_figures(client, offers):
    assert shown(client, "?sort=-total_memory_gb")[0] == "eight"
    assert shown(client, "?sort=-price_usd_per_gpu_hour")[:2] == ["one", "here"]
    assert shown(client, "?sort=price_usd_per_hour")[:3] == ["slice", "small", "dated"]


def test_chosen_columns_are_shown_and_kept_in_the_links(client, offers):
    body = text_of(client, "?columns=region&columns=fp8_dense_tflops&cloud=aws")
    assert re.findall(r'<th scope="col" id="c-(\w+)"', body) == ["fp8_dense_tflops", "region", "last"]
    assert "?columns=fp8_dense_tflops&columns=region" in body


def test_pages_of_a_hundred_join_up_to_the_whole_with_each_ask_once_in_its_place(client):
    gpus = [make_gpu(slug=f"g{number}") for number in range(4)]
    for number in range(220):
        make_offer(gpu=gpus[0], price=Decimal(number // 3), instance_type=f"m{number}", observed_at=hours_ago(1))
    for gpu, price in zip(gpus, ("0.5", "33", "33.5", "999"), strict=True):
        make_best_ask(gpu=gpu, price=price)
    for sort in ("price_usd_per_gpu_hour", "-price_usd_per_gpu_hour", "vcpus"):
        pages = [shown(client, f"?sort={sort}&page={number}") for number in (1, 2, 3)]
        assert [len(page) for page in pages] == [100, 100, 24]
        together = [line for page in pages for line in page]
        assert together.count("here") == 4
        assert len({line for line in together if line != "here"}) == 220
    assert shown(client, "?page=900") == shown(client, "?page=3")


def test_the_lowest_live_price_that_can_be_had_is_marked_and_nothing_else(client, offers):
    body = text_of(client)
    assert body.count('<mark class="mark">') == 1
    assert re.search(r'<mark class="mark">0.70', body)
    assert '<mark class="mark">' not in text_of(client, "?freshness=list")


def test_each_price_says_when_it_was_seen_or_dated_and_its_source_and_leads_out(client):
    gpu = make_gpu()
    make_list_offer(
        gpu=gpu, price="2", priced_on=date(2026, 5, 7), source=make_source(name="gcp"), url="https://gcp.example.com/",
        observed_at=hours_ago(1),
    )  # fmt: skip
    body = text_of(client)
    assert "list, 7 May 2026" in body
    assert 'href="/sources/#gcp"' in body
    assert 'href="https://gcp.example.com/"' in body


def test_cells_are_cells_and_a_name_that_looks_like_markup_is_text(client, offers):
    make_offer(
        gpu=offers["l4"], price="9", instance_type="<b>x", region="<i>", verified=False, observed_at=hours_ago(1)
    )
    body = client.get(COMPARE).content.decode()
    assert '<td class="r">640</td>' in body
    assert "&lt;td" not in body
    assert "&lt;span" not in body
    assert "<td>&lt;i&gt;</td>" in body
    assert '<span class="label-fixed">unverified host</span>' in body


def test_rows_held_back_and_unclear_names_are_counted_and_the_order_is_stated(client, offers):
    SourceDocument.objects.update(held_back=12, unmapped=3)
    body = text_of(client)
    assert "12 rows were held back" in body
    assert "3 have a GPU name that is not clear" in body
    assert "Nobody pays for a place" in body


def test_prices_can_be_read_in_another_currency_with_its_rate(client, offers, django_db_blocker):
    from fx.refresh_rates import load_sample_rates

    load_sample_rates(now=datetime.now(UTC))
    assert "sample rate of" in text_of(client, "?currency=EUR")


# My job


def totals(client, query) -> list[str]:
    return re.findall(r'popovertarget="sum-[\w-]+">(?:<mark class="mark">)?([\d,.]+)', text_of(client, query))


def test_a_job_orders_by_its_total_and_each_total_opens_its_sum(client, offers):
    assert shown(client, "?job_hours=10&freshness=fresh") == ["small", "here", "one", "eight", "slice"]
    body = text_of(client, "?job_hours=10&freshness=fresh&market=on_demand")
    assert "Work: 10 h × 1 machine × 16.00" in body
    assert "Total, USD without tax" in body


def test_eight_gpus_take_eight_single_ones_or_one_machine_of_eight(client, offers):
    query = "?job_hours=10&job_gpus=8&gpu=h100-sxm&freshness=fresh"
    assert shown(client, query) == ["eight", "here", "one"]
    assert totals(client, query) == ["160.00", "200.00", "240.00"]


def test_a_price_that_is_not_published_is_said_and_the_total_says_it_may_be_more(client, offers):
    query = "?job_hours=10&job_egress_gb=100&cloud=lambda"
    body = text_of(client, query)
    assert 'class="plus"' in body
    assert '<span class="np">not known</span>' in body
    assert "so it may be more" in body


def test_spot_stands_beside_on_demand_with_the_rate_at_which_both_cost_the_same(client, offers):
    make_offer(gpu=offers["l4"], price="1.40", cloud="gcp", instance_type="steady", observed_at=hours_ago(1))
    body = text_of(client, "?job_hours=10&market=spot")
    assert "The same machine on demand: 14.00\u00a0USD." in body
    assert re.search(r"Spot costs less up to 61\.8 interruptions a day", body)


def test_the_database_orders_by_the_same_sum_that_the_page_shows(client, offers):
    for number, step in enumerate((1, 60, 3600, None)):
        slug = f"cloud{number}"
        make_cloud(slug=slug)
        if step:
            make_cloud_fact(cloud=slug, fact="billing_step_seconds", value=str(step))
        make_cloud_fact(cloud=slug, fact="minimum_seconds", value=str(600 * number))
        for market, price in (("on_demand", "2.10"), ("spot", "1.30"), ("reserved", "1.10")):
            make_offer(
                gpu=offers["h100"], price=price, cloud=slug, market=market, gpu_count=2,
                instance_type=f"{market}-{number}", observed_at=hours_ago(1),
            )  # fmt: skip
    query = "?job_hours=7.3&job_gpus=3&job_starts=5&job_stopped_hours=9&job_interruptions_per_day=4"
    found = [Decimal(text.replace(",", "")) for text in totals(client, query)]
    assert len(found) > 12
    assert found == sorted(found)
    assert [Decimal(t.replace(",", "")) for t in totals(client, f"{query}&sort=-job")] == sorted(found, reverse=True)


def test_a_job_field_that_cannot_be_read_is_named_and_takes_the_usual_value(client, offers):
    body = text_of(client, "?job_hours=10&job_gpus=none&cloud=lambda")
    assert "Enter a whole number." in body
    assert totals(client, "?job_hours=10&job_gpus=none&cloud=lambda") == ["30.00"]
    assert totals(client, "?job_hours=ten") == []


# The file


def rows_of_csv(client, query=""):
    answer = client.get(f"/compare/offers.csv{query}")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(answer.getvalue().decode().splitlines()))


def test_the_file_holds_every_row_of_the_table_in_its_order(client, offers):
    for query in ("", "?gpu=h100-sxm", "?sort=-total_memory_gb", "?use_case=rendering&min_memory_gb="):
        names = ["here" if row["cloud"] == "gpu-bourse" else row["instance_type"] for row in rows_of_csv(client, query)]
        assert names == shown(client, query)


def test_the_file_has_what_the_job_costs_and_what_is_not_known(client, offers):
    rows = rows_of_csv(client, "?job_hours=10&job_egress_gb=1&freshness=fresh&gpu=h100-sxm")
    assert [(row["cloud"], row["job_total_usd"], row["job_not_known"]) for row in rows] == [
        ("gpu-bourse", "25.00", ""),
        ("lambda", "30.00", "billing_step minimum egress"),
        ("aws", "160.00", "billing_step minimum egress"),
    ]


def test_the_file_has_every_page(client):
    gpu = make_gpu()
    for number in range(105):
        make_offer(gpu=gpu, price=Decimal(number), instance_type=f"m{number}", observed_at=hours_ago(1))
    assert [row["instance_type"] for row in rows_of_csv(client)] == [f"m{number}" for number in range(105)]


# Cost of a page


def test_a_page_takes_few_queries_however_much_is_asked(client, offers, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        text_of(client, "?use_case=llm-inference&market=&gpu=l4&cloud=gcp&job_hours=10&currency=EUR&vendor=NVIDIA")


def test_every_filter_has_a_control(client, offers):
    body = text_of(client)
    for each in FILTERS:
        assert f'name="{each.name}"' in body, each.name


@pytest.mark.parametrize(
    "query", ["?page=x", "?page=-1", "?page=0", "?columns=none", "?use_case=war", "?gpu=%00", "?gpu=a&gpu=b"]
)
def test_nonsense_in_the_address_is_never_a_failure(client, offers, query):
    assert text_of(client, query)


@pytest.mark.parametrize("language", ["nl", "pl"])
def test_the_page_exists_in_every_language(client, offers, language):
    assert client.get(f"/{language}{COMPARE}?job_hours=10&use_case=science").status_code == 200
