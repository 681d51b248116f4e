"""The reference snapshot: what the committed file promises, and what the adapter refuses."""

import csv
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from catalog.sources import ALL_SOURCES, source_named
from catalog.sources.base import Body, BodyRejected, Market, OfferRow
from catalog.sources.reference import COLUMNS, REFERENCE_FILE, ReferenceSnapshot

SNAPSHOT = ReferenceSnapshot()
[DOCUMENT] = SNAPSHOT.documents()
LINE = "aws,p5.48xlarge,h100-sxm,8,55.04,on_demand,us-east-1,US,2026-07-20,https://example.org/,note"


def parse(content: str) -> list[OfferRow]:
    body = Body(document=DOCUMENT, content=content.encode(), fetched_at=datetime(2026, 11, 30, tzinfo=UTC))
    return list(SNAPSHOT.parse(body, {}))


@pytest.fixture(scope="module")
def facts() -> list[OfferRow]:
    return parse(SNAPSHOT.read(DOCUMENT).read_text())


def test_the_snapshot_holds_at_most_150_facts_of_several_clouds(facts: list[OfferRow]):
    assert 100 <= len(facts) <= 150
    assert len({fact.cloud for fact in facts}) >= 6


def test_every_fact_is_a_dated_list_price_with_its_source(facts: list[OfferRow]):
    for fact in facts:
        assert fact.is_list
        assert fact.priced_on is not None
        assert date(2026, 1, 1) <= fact.priced_on <= date(2026, 11, 30)
        assert fact.url.startswith("https://")
        assert fact.price_per_hour > 0
        assert fact.gpu_count >= 1


def test_no_fact_appears_twice(facts: list[OfferRow]):
    keys = [(fact.cloud, fact.instance_type, fact.gpu_slug, fact.gpu_count, fact.region, fact.market) for fact in facts]
    assert len(keys) == len(set(keys))


def test_facts_name_gpus_and_clouds_of_the_catalogue(facts: list[OfferRow]):
    for column, file in (("gpu_slug", "gpus.csv"), ("cloud", "clouds.csv")):
        with (REFERENCE_FILE.parent / file).open(newline="") as lines:
            known = {row["slug"] for row in csv.DictReader(lines)}
        assert {getattr(fact, column) for fact in facts} <= known


@pytest.mark.parametrize(
    "slug", ["b300", "b200", "mi300x", "h200-sxm", "h100-nvl", "h100-sxm", "a100-sxm-80gb", "a100-pcie-80gb", "l40s"]
)
def test_the_important_gpus_have_an_on_demand_list_price(facts: list[OfferRow], slug: str):
    assert any(fact.gpu_slug == slug and fact.market is Market.ON_DEMAND for fact in facts)


def test_a_gpu_without_a_dated_price_is_left_without(facts: list[OfferRow]):
    assert not {fact.gpu_slug for fact in facts} & {"mi325x", "mi355x", "gaudi-3"}


def test_on_demand_facts_of_one_gpu_lie_within_the_sanity_band_of_their_median(facts: list[OfferRow]):
    prices: dict[str, list[Decimal]] = defaultdict(list)
    for fact in facts:
        if fact.market is Market.ON_DEMAND:
            prices[fact.gpu_slug].append(fact.price_per_hour / fact.gpu_count)
    for found in prices.values():
        median = sorted(found)[len(found) // 2]
        assert all(median / 5 <= price <= median * 5 for price in found)


@pytest.mark.parametrize(
    "line",
    [
        LINE.replace("55.04", ""),
        LINE.replace(",8,", ",,"),
        LINE.replace("2026-07-20", "July"),
        LINE.replace("on_demand", "cheap"),
        LINE.replace(",note", ""),
    ],
)
def test_an_incomplete_fact_rejects_the_file(line: str):
    with pytest.raises(BodyRejected):
        parse(f"{','.join(COLUMNS)}\n{line}\n")


def test_every_source_is_listed_once_and_found_by_its_name():
    names = [source.name for source in ALL_SOURCES]
    assert len(names) == len(set(names))
    assert [source_named(name).name for name in names] == names
    with pytest.raises(KeyError, match="known: reference"):
        source_named("nowhere")
