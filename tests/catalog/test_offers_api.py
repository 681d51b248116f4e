"""`offers/`: every tier but stale, nothing held back, filters that narrow, CSV of all."""

import csv
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from catalog.models import Offer
from tests.factories import make_cloud_fact, make_gpu, make_list_offer, make_offer, make_source

OFFERS = "/api/v1/offers/"

pytestmark = pytest.mark.django_db


def get(query: str = ""):
    response = Client().get(OFFERS + query)
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def machines(query: str = "") -> list[str]:
    return [offer["instance_type"] for offer in get(query)["results"]]


def rows_of_csv(query: str):
    response = Client().get(f"{OFFERS}?format=csv{query}")
    assert response.status_code == 200
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    text = response.getvalue().decode()
    return list(csv.DictReader(text.splitlines()))


def hours_ago(hours: float) -> datetime:
    return datetime.now(UTC) - timedelta(hours=hours)


def save_tiers():
    gpu = make_gpu()
    for name, hours in (("fresh", 1), ("warned", 3), ("old", 13), ("stale", 25)):
        make_offer(gpu=gpu, price="2.00", instance_type=name, observed_at=hours_ago(hours))
    make_list_offer(gpu=gpu, price="2.00", instance_type="list", observed_at=hours_ago(30))
    long_ago = (datetime.now(UTC) - timedelta(days=15)).date()
    make_offer(gpu=gpu, price="2.00", instance_type="dated", observed_at=hours_ago(1), priced_on=long_ago)


def test_an_offer_has_every_field_of_the_contract_in_its_type():
    gpu = make_gpu()
    at = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
    make_list_offer(
        gpu=gpu,
        price="2.19",
        gpu_count=8,
        instance_type="p5.48xlarge",
        cloud="aws",
        observed_at=at,
        priced_on=date(2026, 7, 1),
        vcpus=Decimal("192"),
        ram_gb=Decimal("2048.5"),
        country="US",
        region="us-east-1",
        billing_step_seconds=1,
        url="https://aws.example.com/",
    )
    (offer,) = get()["results"]
    assert UUID(offer.pop("id")).version == 7
    assert offer == {
        "cloud": "aws",
        "source": "skypilot",
        "instance_type": "p5.48xlarge",
        "gpu": "h100-sxm",
        "gpu_count": 8,
        "price_usd_per_hour": "17.52",
        "price_usd_per_gpu_hour": "2.19",
        "currency": "USD",
        "price_in_currency_per_hour": "17.52",
        "market": "on_demand",
        "term_months": None,
        "region": "us-east-1",
        "country": "US",
        "vcpus": 192,
        "ram_gb": 2048.5,
        "disk_gb": None,
        "interconnect": None,
        "billing_step_seconds": 1,
        "availability": "unknown",
        "observed_at": "2026-11-30T14:02:00Z",
        "priced_on": "2026-07-01",
        "freshness": "list",
        "url": "https://aws.example.com/",
    }


def test_every_tier_but_stale_is_shown_and_says_what_it_is():
    save_tiers()
    tiers = {offer["instance_type"]: offer["freshness"] for offer in get()["results"]}
    assert tiers == {"fresh": "fresh", "warned": "warned", "old": "old", "list": "list", "dated": "list"}


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ("stale", {"stale"}),
        ("fresh", {"fresh"}),
        ("warned,old", {"warned", "old"}),
        ("list", {"list", "dated"}),
        ("fresh,warned,old,stale,list", {"fresh", "warned", "old", "stale", "list", "dated"}),
    ],
)
def test_tiers_can_be_picked_and_the_query_agrees_with_the_rule(wanted, shown):
    save_tiers()
    found = get(f"?freshness={wanted}")["results"]
    assert {offer["instance_type"] for offer in found} == shown
    assert {offer["freshness"] for offer in found} <= set(wanted.split(","))


@pytest.mark.parametrize(
    "why", [{"held_back": "five times the median"}, {"gone_at": hours_ago(1)}, {"hidden_by_direct": True}]
)
@pytest.mark.parametrize("query", ["", "?freshness=stale,fresh", "?source=skypilot"])
def test_what_is_held_back_gone_or_replaced_never_shows(why, query):
    make_offer(gpu=make_gpu(), price="2.00", observed_at=hours_ago(1), **why)
    assert machines(query) == []


def test_filters_narrow_by_what_the_offer_and_its_gpu_are():
    h100 = make_gpu(slug="h100-sxm")
    mi300x = make_gpu(slug="mi300x", vendor="AMD", memory_gb=Decimal(192), memory_bandwidth_gb_s=Decimal(5300))
    l4 = make_gpu(slug="l4", memory_gb=Decimal(24), memory_bandwidth_gb_s=None)
    common: dict[str, Any] = {"observed_at": hours_ago(1)}
    make_offer(gpu=h100, price="2", cloud="aws", instance_type="a", gpu_count=8, country="US", region="us-1", **common)
    make_offer(gpu=mi300x, price="3", cloud="vast", instance_type="b", country="NL", availability="yes", **common)
    make_offer(gpu=l4, price="1", cloud="vast", instance_type="c", market="spot", gpu_count="0.5", **common)
    make_offer(
        gpu=h100,
        price="1.5",
        cloud="gcp",
        instance_type="d",
        market="reserved",
        term_months=12,
        interconnect="NVLink 4 + IB 400",
        billing_step_seconds=60,
        source=make_source(name="gcp"),
        **common,
    )
    expected = {
        "gpu=l4,mi300x": "cb",
        "vendor=amd": "b",
        "cloud=vast": "cb",
        "source=gcp": "d",
        "market=spot,reserved": "cd",
        "country=nl,us": "ab",
        "region=us-1": "a",
        "min_gpus=1": "dab",
        "max_gpus=1": "cdb",
        "min_memory_gb=80": "dab",
        "min_total_memory_gb=193": "a",
        "min_memory_bandwidth_gb_s=3350": "dab",
        "max_price_usd_per_gpu_hour=1.5": "cd",
        "interconnect=nvlink": "d",
        "billing_step_max_seconds=60": "d",
        "billing_step_max_seconds=59": "",
        "term_months=12": "d",
        "availability=yes": "b",
        "cloud=vast&market=spot": "c",
    }
    assert {query: "".join(machines(f"?{query}")) for query in expected} == expected


def test_filters_by_precision_link_volume_notice_and_fabric():
    h100 = make_gpu(slug="h100-sxm", fp8_dense_tflops=Decimal(1979), interconnect="NVLink 4; PCIe Gen5")
    l4 = make_gpu(slug="l4", rt_cores=True, interconnect="PCIe Gen4", fp64_tflops=Decimal("0.47"))
    make_cloud_fact(cloud="aws", fact="stop_semantics", value="storage_only")
    make_cloud_fact(cloud="aws", fact="spot_notice_seconds", value="120")
    make_cloud_fact(cloud="aws", fact="fabric", value="Elastic Fabric Adapter (EFA)")
    make_cloud_fact(cloud="aws", fact="storage_mib_s", value="125")
    make_offer(gpu=h100, price="2", cloud="aws", instance_type="a", observed_at=hours_ago(1))
    make_offer(gpu=l4, price="3", cloud="vast", instance_type="b", observed_at=hours_ago(1), interconnect="NVLink 9")
    expected = {
        "precision=FP8": "a",
        "precision=BF16,FP8": "a",
        "precision=FP64": "b",
        "min_fp64_tflops=0.47": "b",
        "rt_cores=true": "b",
        "rt_cores=false": "",
        "interconnect=nvlink": "ab",
        "interconnect=nvlink 4,xe link": "a",
        "volume_survives_stop=true": "a",
        "min_spot_notice_seconds=120": "a",
        "min_storage_mib_s=126": "",
        "fabric=efa,infiniband": "a",
    }
    assert {query: "".join(machines(f"?{query}")) for query in expected} == expected


def test_a_use_sets_its_filters_and_a_value_beside_it_goes_before():
    make_offer(
        gpu=make_gpu(slug="l4", rt_cores=True, memory_gb=Decimal(24)),
        price="1",
        instance_type="a",
        observed_at=hours_ago(1),
    )
    make_offer(
        gpu=make_gpu(slug="a10", rt_cores=True, memory_gb=Decimal(16)),
        price="2",
        instance_type="b",
        observed_at=hours_ago(1),
    )
    make_offer(gpu=make_gpu(slug="h100", rt_cores=False), price="3", instance_type="c", observed_at=hours_ago(1))
    assert machines("?use_case=rendering") == ["a"]
    assert machines("?use_case=rendering&min_memory_gb=16") == ["a", "b"]
    assert [row["instance_type"] for row in rows_of_csv("&use_case=rendering&rt_cores=false")] == ["c"]


def test_cheapest_gpu_hour_comes_first_and_other_orders_put_the_unknown_last():
    gpu, at = make_gpu(), hours_ago(1)
    make_offer(gpu=gpu, price="3", instance_type="a", vcpus=Decimal(8), observed_at=at)
    make_offer(gpu=gpu, price="1", instance_type="b", gpu_count=8, observed_at=at)
    make_offer(gpu=gpu, price="2", instance_type="c", vcpus=Decimal(16), observed_at=at)
    assert machines() == ["b", "c", "a"]
    assert machines("?ordering=-price_usd_per_hour") == ["b", "a", "c"]
    assert machines("?ordering=vcpus") == ["a", "c", "b"]
    assert machines("?ordering=-vcpus") == ["c", "a", "b"]


def test_pages_join_up_to_the_whole_list_though_all_prices_are_equal():
    gpu, at = make_gpu(), hours_ago(1)
    for number in range(7):
        make_offer(gpu=gpu, price="2", instance_type=f"m{number}", observed_at=at)
    url, joined = f"{OFFERS}?limit=3", []
    while url:
        page = json.loads(Client().get(url).content)
        joined += [offer["instance_type"] for offer in page["results"]]
        url = page["next"]
    assert joined == machines()
    assert len(set(joined)) == 7


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?gpu=h900", "gpu"),
        ("?cloud=nimbus", "cloud"),
        ("?source=hearsay", "source"),
        ("?vendor=Voodoo", "vendor"),
        ("?market=auction", "market"),
        ("?country=NLD", "country"),
        ("?freshness=rotten", "freshness"),
        ("?freshness=fresh&freshness=old", "freshness"),
        ("?min_gpus=0.5", "min_gpus"),
        ("?min_gpus=", "min_gpus"),
        ("?max_price_usd_per_gpu_hour=NaN", "max_price_usd_per_gpu_hour"),
        ("?min_total_memory_gb=1e400", "min_total_memory_gb"),
        ("?term_months=99999999999999999999", "term_months"),
        ("?interconnect=%00", "interconnect"),
        ("?region=a%00b", "region"),
        ("?format=xml", "format"),
        ("?ordering=url", "ordering"),
        ("?use_case=llm", "use_case"),
        ("?precision=FP16", "precision"),
        ("?rt_cores=1", "rt_cores"),
        ("?volume_survives_stop=maybe", "volume_survives_stop"),
        ("?min_spot_notice_seconds=-1", "min_spot_notice_seconds"),
        ("?fabric=%20", "fabric"),
        ("?limit=1000", "limit"),
    ],
)
def test_bad_parameters_are_refused_by_name(query, field):
    response = Client().get(OFFERS + query)
    assert response.status_code == 400
    assert [error["field"] for error in json.loads(response.content)["errors"]] == [field]


def test_csv_holds_every_row_with_the_values_of_the_json():
    gpu = make_gpu()
    for number in range(3):
        make_offer(gpu=gpu, price=f"{number + 1}", instance_type=f"m{number}", observed_at=hours_ago(1))
    found = get()["results"]
    assert rows_of_csv("") == [
        {key: "" if value is None else str(value) for key, value in row.items()} for row in found
    ]


def test_csv_keeps_filters_order_and_a_page_where_one_is_asked_for():
    gpu = make_gpu()
    for number in range(3):
        make_offer(gpu=gpu, price=f"{number + 1}", instance_type=f"m{number}", observed_at=hours_ago(1))
    ordered = rows_of_csv("&ordering=-price_usd_per_gpu_hour&max_price_usd_per_gpu_hour=2")
    assert [row["instance_type"] for row in ordered] == ["m1", "m0"]
    assert [row["instance_type"] for row in rows_of_csv("&limit=1")] == ["m0"]


def test_csv_can_be_asked_for_by_accept_too():
    make_offer(gpu=make_gpu(), price="1", observed_at=hours_ago(1))
    response = Client().get(OFFERS, headers={"accept": "text/csv"})
    assert response["Content-Type"].startswith("text/csv")
    response.close()


def test_text_that_a_spreadsheet_would_run_is_marked_as_text():
    make_offer(gpu=make_gpu(), price="1", instance_type="=HYPERLINK(1)", observed_at=hours_ago(1))
    assert rows_of_csv("")[0]["instance_type"] == "'=HYPERLINK(1)"


def test_a_page_takes_the_same_few_queries_however_many_offers_there_are(django_assert_max_num_queries):
    gpu = make_gpu()
    for _ in range(20):
        make_offer(gpu=gpu, price="1", observed_at=hours_ago(1))
    assert Offer.objects.count() == 20
    with django_assert_max_num_queries(2):
        get()
