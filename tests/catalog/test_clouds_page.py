"""`/clouds/` and `/clouds/<slug>/`: facts with their sources, filters in the address, offers by GPU."""

from datetime import date
from decimal import Decimal

import pytest

from catalog.models import CloudFact
from tests.factories import make_cloud, make_cloud_fact, make_gpu, make_list_offer, make_live_offer

pytestmark = pytest.mark.django_db
Fact = CloudFact.Fact


def names(answer) -> list[str]:
    """The clouds of the list, in its order."""
    return [row.cloud.slug for row in answer.context["rows"]]


@pytest.fixture
def three_clouds():
    """One that bills by the second, one by the hour, one of which nothing was found."""
    make_cloud_fact(cloud="runpod", fact=Fact.BILLING_STEP_SECONDS, value="1")
    make_cloud_fact(cloud="runpod", fact=Fact.EGRESS_USD_PER_GB, value="0")
    make_cloud_fact(cloud="runpod", fact=Fact.PERSISTENT_VOLUMES, value="yes")
    make_cloud_fact(cloud="runpod", fact=Fact.SPOT_NOTICE_SECONDS, value="5")
    make_cloud_fact(cloud="vultr", fact=Fact.BILLING_STEP_SECONDS, value="3600")
    make_cloud_fact(cloud="vultr", fact=Fact.HEADQUARTERS_COUNTRY, value="US")
    make_cloud_fact(cloud="vultr", fact=Fact.STOP_SEMANTICS, value="full")
    make_cloud_fact(cloud="vultr", fact=Fact.EGRESS_USD_PER_GB, value="0.01")
    make_cloud(slug="unknown")


# The list


def test_each_cloud_is_listed_and_what_was_not_found_says_so(client, three_clouds):
    page = client.get("/clouds/")
    assert names(page) == ["runpod", "vultr", "unknown"]
    assert page.content.decode().count("not found") > 10
    assert "1 second" in page.content.decode()
    assert "as if running" in page.content.decode()
    assert "United States" in page.content.decode()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("billing_step_max_seconds=60", ["runpod"]),
        ("billing_step_max_seconds=3600", ["runpod", "vultr"]),
        ("persistent_volumes=1", ["runpod"]),
        ("free_egress=1", ["runpod"]),
        ("headquarters_country=US", ["vultr"]),
        ("stop_semantics=full", ["vultr"]),
        ("multi_node=1", []),
        ("has_price=1", []),
        ("search=vul", ["vultr"]),
        ("sort=-billing_step_seconds", ["vultr", "runpod", "unknown"]),
        ("sort=egress_usd_per_gb", ["runpod", "vultr", "unknown"]),
    ],
)
def test_the_address_filters_and_orders_and_unknown_facts_pass_no_filter(client, three_clouds, query, found):
    assert names(client.get(f"/clouds/?{query}")) == found


def test_a_filter_that_cannot_be_read_is_named_and_left_out(client, three_clouds):
    page = client.get("/clouds/?billing_step_max_seconds=7&headquarters_country=XX&sort=colour&persistent_volumes=1")
    assert page.status_code == 200
    assert set(page.context["form"].errors) == {"billing_step_max_seconds", "headquarters_country", "sort"}
    assert "“7” is not one of the list." in page.content.decode()
    assert "cannot be ordered that way" in page.content.decode()
    assert names(page) == ["runpod"]


def test_an_applied_filter_is_said_in_words_and_can_be_taken_away(client, three_clouds):
    applied = client.get("/clouds/?billing_step_max_seconds=60&persistent_volumes=1").context["applied"]
    assert [(str(one.label), str(one.value), one.href) for one in applied] == [
        ("Billed", "by the minute or finer", "?persistent_volumes=1"),
        ("Persistent volumes", "yes", "?billing_step_max_seconds=60"),
    ]


def test_live_prices_come_before_dated_ones_and_only_eligible_ones_count(client):
    h100, l4 = make_gpu(), make_gpu(slug="l4")
    make_live_offer(gpu=h100, price="2.50", cloud="runpod")
    make_live_offer(gpu=h100, price="2.10", cloud="runpod")
    make_live_offer(gpu=h100, price="1.00", cloud="runpod", verified=False)
    make_live_offer(gpu=l4, price="0.40", cloud="runpod", market="spot")
    make_list_offer(gpu=l4, price="0.50", cloud="runpod")
    make_list_offer(gpu=l4, price="0.60", cloud="oci")
    rows = {row.cloud.slug: row for row in client.get("/clouds/").context["rows"]}
    assert [(one.gpu_slug, one.price_usd_per_gpu_hour) for one in rows["runpod"].prices] == [
        ("h100-sxm", Decimal("2.10"))
    ]
    assert rows["runpod"].live_offers == 4
    assert [(one.gpu_slug, one.is_live) for one in rows["oci"].prices] == [("l4", False)]
    assert rows["oci"].live_offers == 0


def test_clouds_with_a_price_come_first_then_those_with_facts(client, three_clouds):
    make_live_offer(gpu=make_gpu(), price="2.10", cloud="zuletzt")
    assert names(client.get("/clouds/")) == ["zuletzt", "runpod", "vultr", "unknown"]


def test_no_match_says_why_and_leads_back(client, three_clouds):
    page = client.get("/clouds/?multi_node=1").content.decode()
    assert "No cloud matches all of that." in page
    assert 'href="/clouds/"' in page


# One cloud


def test_a_fact_stands_with_its_note_source_and_date(client):
    make_cloud_fact(
        cloud="verda",
        fact=Fact.BILLING_STEP_SECONDS,
        value="600",
        note="Prepaid in steps.",
        source_url="https://docs.example.com/billing",
        checked_on=date(2026, 9, 28),
    )
    page = client.get("/clouds/verda/").content.decode()
    assert "10 minutes" in page
    assert "Prepaid in steps." in page
    assert 'href="https://docs.example.com/billing"' in page
    assert "read 28 Sept 2026" in page or "read 28 Sep 2026" in page
    assert page.count("not found") == len(Fact) - 1


@pytest.mark.parametrize(
    ("fact", "value", "words"),
    [
        (Fact.MINIMUM_SECONDS, "0", "none"),
        (Fact.SPOT_NOTICE_SECONDS, "0", "no notice"),
        (Fact.EGRESS_USD_PER_GB, "0", "free"),
        (Fact.EGRESS_USD_PER_GB, "varies", "varies"),
        (Fact.EGRESS_USD_PER_GB, "0.0085", "0.0085"),
        (Fact.HEADQUARTERS_COUNTRY, "NL", "Netherlands"),
        (Fact.MULTI_NODE, "no", "</th><td>no"),
        (Fact.STOP_SEMANTICS, "no_stop", "no stop, delete only"),
    ],
)
def test_zero_none_and_unknown_are_told_apart(client, fact, value, words):
    make_cloud_fact(cloud="verda", fact=fact, value=value)
    assert words in client.get("/clouds/verda/").content.decode()


def test_offers_stand_by_gpu_with_kind_and_age_and_stale_ones_are_left_out(client):
    h100, l4 = make_gpu(position=1), make_gpu(slug="l4", position=2)
    make_live_offer(gpu=l4, price="0.40", cloud="runpod")
    make_live_offer(gpu=h100, price="2.50", cloud="runpod", region="eu-2")
    make_live_offer(gpu=h100, price="2.10", cloud="runpod")
    make_live_offer(gpu=h100, price="1.20", cloud="runpod", market="spot")
    make_list_offer(gpu=h100, price="1.90", cloud="runpod")
    make_live_offer(gpu=h100, price="0.90", cloud="runpod", held_back="price far from all others")
    make_live_offer(gpu=h100, price="0.80", cloud="runpod", hours_old=30)
    make_live_offer(gpu=h100, price="0.70", cloud="lambda")
    page = client.get("/clouds/runpod/")
    groups = page.context["groups"]
    assert [group.gpu.slug for group in groups] == ["h100-sxm", "l4"]
    assert [(line.offer.market, line.offer.price_usd_per_gpu_hour, line.places) for line in groups[0].lines] == [
        ("on_demand", Decimal("2.10"), 2),
        ("spot", Decimal("1.20"), 1),
        ("on_demand", Decimal("1.90"), 1),
    ]
    assert "list price of 7 May 2026" in page.content.decode()
    assert "12 minutes ago" in page.content.decode()


def test_the_sources_of_its_prices_stand_with_their_state(client):
    make_live_offer(gpu=make_gpu(), price="2.10", cloud="runpod")
    page = client.get("/clouds/runpod/").content.decode()
    assert 'href="/sources/#skypilot"' in page
    assert "working" in page


def test_a_cloud_without_facts_and_offers_says_so(client):
    make_cloud(slug="empty")
    page = client.get("/clouds/empty/").content.decode()
    assert "No source lists this cloud today." in page
    assert "We have not read any of its facts" in page


def test_an_unknown_cloud_is_not_found(client):
    assert client.get("/clouds/nowhere/").status_code == 404
