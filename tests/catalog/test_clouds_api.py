"""`clouds/`: facts as what they are, each with its source; and the filters of `offers/` that go by facts."""

import json
from datetime import date

import pytest
from django.test import Client

from catalog.models import CloudFact
from tests.factories import make_cloud, make_cloud_fact, make_gpu, make_live_offer

pytestmark = pytest.mark.django_db
Fact = CloudFact.Fact
CLOUDS, OFFERS = "/api/v1/clouds/", "/api/v1/offers/"


def get(address: str):
    response = Client().get(address)
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def slugs(query: str = "") -> list[str]:
    return [cloud["slug"] for cloud in get(CLOUDS + query)["results"]]


def clouds_of_offers(query: str) -> list[str]:
    return sorted(offer["cloud"] for offer in get(OFFERS + query)["results"])


# The list


def test_a_cloud_tells_its_facts_as_what_they_are_with_their_source():
    make_cloud(slug="verda", name="Verda", website="https://verda.com")
    make_cloud_fact(cloud="verda", fact=Fact.BILLING_STEP_SECONDS, value="600", note="Prepaid.")
    make_cloud_fact(cloud="verda", fact=Fact.EGRESS_USD_PER_GB, value="0.0085")
    make_cloud_fact(cloud="verda", fact=Fact.PERSISTENT_VOLUMES, value="yes")
    make_cloud_fact(cloud="verda", fact=Fact.MULTI_NODE, value="no")
    make_cloud_fact(cloud="verda", fact=Fact.STOP_SEMANTICS, value="full")
    make_cloud_fact(cloud="verda", fact=Fact.SPOT_NOTICE_SECONDS, value="0", checked_on=date(2026, 9, 28))
    make_live_offer(gpu=make_gpu(), price="2", cloud="verda")
    (found,) = get(CLOUDS)["results"]
    assert found["facts"][0] == {
        "fact": "billing_step_seconds",
        "value": "600",
        "note": "Prepaid.",
        "source_url": "https://example.com/docs",
        "checked_on": "2026-11-30",
    }
    assert found["facts"][-1]["checked_on"] == "2026-09-28"
    assert {name: value for name, value in found.items() if name != "facts"} == {
        "slug": "verda",
        "name": "Verda",
        "website": "https://verda.com",
        "live_offers": 1,
        "headquarters_country": None,
        "billing_step_seconds": 600,
        "minimum_seconds": None,
        "stop_semantics": "full",
        "persistent_volumes": True,
        "egress_usd_per_gb": "0.0085",
        "storage_usd_per_gb_month": None,
        "storage_mib_s": None,
        "multi_node": False,
        "fabric": None,
        "spot_notice_seconds": 0,
        "docs_url": None,
        "api_url": None,
    }


def test_a_price_that_varies_is_null_and_its_fact_says_so():
    make_cloud_fact(cloud="vast", fact=Fact.EGRESS_USD_PER_GB, value="varies")
    (found,) = get(CLOUDS)["results"]
    assert (found["egress_usd_per_gb"], found["facts"][0]["value"]) == (None, "varies")


def test_clouds_come_by_slug_in_pages_and_each_is_seen_once():
    for slug in ("c", "a", "e", "b", "d"):
        make_cloud(slug=slug)
    seen, address = [], f"{CLOUDS}?limit=2"
    while address:
        page = get(address)
        seen += [cloud["slug"] for cloud in page["results"]]
        address = page["next"]
    assert seen == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["hour", "second", "unknown"]),
        ("?cloud=hour", ["hour"]),
        ("?billing_step_max_seconds=60", ["second"]),
        ("?billing_step_max_seconds=3600", ["hour", "second"]),
        ("?minimum_time_max_seconds=60", ["second"]),
        ("?persistent_volumes=true", ["second"]),
        ("?persistent_volumes=false", ["hour"]),
        ("?max_egress_usd_per_gb=0", ["second"]),
        ("?max_egress_usd_per_gb=0.05", ["hour", "second"]),
        ("?multi_node=true", ["second"]),
        ("?headquarters_country=us,fi", ["hour"]),
        ("?headquarters_country=us&multi_node=true", []),
    ],
)
def test_filters_take_only_clouds_whose_fact_was_found(query, found):
    make_two_clouds()
    make_cloud(slug="unknown")
    assert slugs(query) == found


def make_two_clouds() -> None:
    """One that bills by the second and has all, one by the hour."""
    for fact, second, hour in (
        (Fact.BILLING_STEP_SECONDS, "1", "3600"),
        (Fact.MINIMUM_SECONDS, "60", "3600"),
        (Fact.PERSISTENT_VOLUMES, "yes", "no"),
        (Fact.EGRESS_USD_PER_GB, "0", "0.05"),
        (Fact.MULTI_NODE, "yes", "no"),
    ):
        make_cloud_fact(cloud="second", fact=fact, value=second)
        make_cloud_fact(cloud="hour", fact=fact, value=hour)
    make_cloud_fact(cloud="hour", fact=Fact.HEADQUARTERS_COUNTRY, value="US")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?colour=green", "colour"),
        ("?cloud=nowhere", "cloud"),
        ("?persistent_volumes=yes", "persistent_volumes"),
        ("?multi_node=1", "multi_node"),
        ("?billing_step_max_seconds=0", "billing_step_max_seconds"),
        ("?minimum_time_max_seconds=-1", "minimum_time_max_seconds"),
        ("?max_egress_usd_per_gb=cheap", "max_egress_usd_per_gb"),
        ("?headquarters_country=USA", "headquarters_country"),
        ("?limit=501", "limit"),
        ("?cursor=made-up", "cursor"),
    ],
)
def test_a_bad_parameter_is_refused_by_name(query, field):
    response = Client().get(CLOUDS + query)
    assert response.status_code == 400
    assert [error["field"] for error in json.loads(response.content)["errors"]] == [field]


def test_an_unchanged_list_answers_304_and_a_new_fact_changes_it():
    make_cloud_fact(cloud="verda", fact=Fact.BILLING_STEP_SECONDS, value="600")
    tag = Client().get(CLOUDS).headers["ETag"]
    assert Client().get(CLOUDS, headers={"If-None-Match": tag}).status_code == 304
    CloudFact.objects.update(note="Prepaid in steps.")
    changed = Client().get(CLOUDS, headers={"If-None-Match": tag})
    assert (changed.status_code, json.loads(changed.content)["results"][0]["facts"][0]["note"]) == (
        200,
        "Prepaid in steps.",
    )


def test_a_page_of_clouds_costs_few_queries(django_assert_max_num_queries):
    make_two_clouds()
    with django_assert_max_num_queries(6):
        get(f"{CLOUDS}?limit=100")


# The filters of offers


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?billing_step_max_seconds=60", ["hour", "second", "second"]),
        ("?billing_step_max_seconds=1", ["second"]),
        ("?minimum_time_max_seconds=60", ["second", "second"]),
        ("?persistent_volumes=false", ["hour", "hour"]),
        ("?max_egress_usd_per_gb=0.01", ["second", "second"]),
        ("?multi_node=true", ["second", "second"]),
        ("?multi_node=true&persistent_volumes=false", []),
    ],
)
def test_offers_go_by_the_facts_of_their_cloud_and_by_their_own_billing_step_first(query, found):
    make_two_clouds()
    gpu = make_gpu()
    make_live_offer(gpu=gpu, price="2", cloud="second")
    make_live_offer(gpu=gpu, price="3", cloud="second", billing_step_seconds=60)
    make_live_offer(gpu=gpu, price="4", cloud="hour")
    make_live_offer(gpu=gpu, price="5", cloud="hour", billing_step_seconds=60)
    make_live_offer(gpu=gpu, price="6", cloud="unknown")
    assert clouds_of_offers(query) == found


@pytest.mark.parametrize("query", ["?multi_node=maybe", "?persistent_volumes=1", "?max_egress_usd_per_gb=-1"])
def test_a_bad_fact_filter_of_offers_is_refused(query):
    assert Client().get(OFFERS + query).status_code == 400
