"""Facts about clouds: what the repository's file holds, what it must be, and that the table follows it."""

import csv
import shutil
from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.load_catalogue import DATA, FACT_VALUES, CatalogueInvalid, load_catalogue, read_cloud_facts, read_clouds
from catalog.models import Cloud, CloudFact
from tests.factories import NOW

Fact = CloudFact.Fact
HEADER = "cloud,fact,value,note,source_url,checked_on\n"
GOOD = "verda,billing_step_seconds,600,Prepaid.,https://docs.example.com/billing,2026-09-28\n"


@pytest.fixture
def data(tmp_path) -> Path:
    """A copy of the data folder whose files a test may change."""
    for name in ("gpus.csv", "clouds.csv", "cloud_facts.csv"):
        shutil.copy(DATA / name, tmp_path / name)
    return tmp_path


def facts_of_the_file() -> dict[tuple[str, str], CloudFact]:
    return read_cloud_facts(DATA / "cloud_facts.csv", clouds={cloud.slug for cloud in read_clouds(DATA / "clouds.csv")})


# What the repository's own file holds


def test_at_least_20_clouds_have_facts_and_each_fact_has_a_source_and_a_past_date():
    facts = facts_of_the_file()
    kinds = defaultdict(set)
    for (cloud, name), fact in facts.items():
        kinds[cloud].add(name)
        assert fact.source_url.startswith("https://"), (cloud, name)
        assert date(2023, 1, 1) <= fact.checked_on <= date(2026, 11, 30), (cloud, name)
    assert len(kinds) >= 20
    told = Counter(name for names in kinds.values() for name in names)
    assert {name for name in Fact.values if told[name]} == set(Fact.values)
    assert told["billing_step_seconds"] >= 15
    assert told["stop_semantics"] >= 15


def test_notes_are_short_and_end_as_sentences():
    for key, fact in facts_of_the_file().items():
        assert fact.note == "" or fact.note.endswith("."), key
        assert len(fact.note) <= 160, key


def test_each_fact_has_its_reading_and_a_number_only_where_it_is_one():
    assert set(FACT_VALUES) == set(Fact.values)
    facts = facts_of_the_file()
    assert facts["verda", "billing_step_seconds"].number == 600
    assert facts["ibm", "minimum_seconds"].number == 0
    assert facts["oci", "egress_usd_per_gb"].number == Decimal("0.0085")
    assert facts["vast", "egress_usd_per_gb"].number is None
    assert {name for (_, name), fact in facts.items() if fact.number is not None} == {
        "billing_step_seconds",
        "minimum_seconds",
        "egress_usd_per_gb",
        "spot_notice_seconds",
        "storage_usd_per_gb_month",
        "storage_mib_s",
    }


# Storing


@pytest.mark.django_db
def test_a_second_load_touches_no_row():
    first = load_catalogue(now=NOW)
    assert first.cloud_facts.created == CloudFact.objects.count() == len(facts_of_the_file())
    before = list(CloudFact.objects.order_by("pk").values())
    second = load_catalogue(now=NOW)
    assert (second.cloud_facts.created, second.cloud_facts.changed, second.cloud_facts.removed) == (0, 0, ())
    assert list(CloudFact.objects.order_by("pk").values()) == before


@pytest.mark.django_db
def test_a_changed_fact_is_updated_in_place_and_one_that_left_the_file_goes(data):
    load_catalogue(now=NOW)
    key = CloudFact.objects.get(cloud__slug="verda", fact=Fact.BILLING_STEP_SECONDS).pk
    (data / "cloud_facts.csv").write_text(HEADER + GOOD.replace("600", "60"))
    report = load_catalogue(now=NOW, data=data).cloud_facts
    assert (report.changed, report.created, CloudFact.objects.count()) == (1, 0, 1)
    assert "aws billing_step_seconds" in report.removed
    assert (CloudFact.objects.get(pk=key).value, CloudFact.objects.get(pk=key).number) == ("60", Decimal(60))


@pytest.mark.django_db
def test_a_cloud_that_left_both_files_goes_with_its_facts(data):
    load_catalogue(now=NOW)
    for name, column in (("clouds.csv", "slug"), ("cloud_facts.csv", "cloud")):
        with (data / name).open(newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row[column] != "verda"]
        with (data / name).open("w", newline="") as lines:
            writer = csv.DictWriter(lines, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    report = load_catalogue(now=NOW, data=data)
    assert report.clouds.removed == ("verda",)
    assert not Cloud.objects.filter(slug="verda").exists()


# Files that are refused


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("verda,", "nowhere,", r"cloud_facts.csv line 2 \(nowhere\), column cloud: 'nowhere' is not in clouds.csv"),
        ("billing_step_seconds", "colour", r"column fact: 'colour' is not a fact that is kept"),
        ("600", "ten", "column value: 'ten' is not a whole number"),
        ("600", "", "column value: must not be blank"),
        ("billing_step_seconds,600", "stop_semantics,sometimes", "'sometimes' is not one of storage_only, full"),
        ("billing_step_seconds,600", "multi_node,maybe", "'maybe' is not one of yes, no"),
        ("billing_step_seconds,600", "egress_usd_per_gb,-1", "'-1' is not a number of zero or more"),
        ("billing_step_seconds,600", "headquarters_country,Finland", "not a country as two capital letters"),
        ("billing_step_seconds,600", "docs_url,http://x.com", "'http://x.com' is not an https address"),
        ("https://docs.example.com/billing", "", "column source_url: must not be blank"),
        ("https://docs.example.com/billing", "the docs", "column source_url: Enter a valid URL"),
        ("2026-09-28", "", "column checked_on: '' is not a day"),
        ("2026-09-28", "September", "column checked_on: 'September' is not a day"),
        (",2026-09-28", "", "has not as many cells as the header"),
    ],
)
def test_a_bad_cell_is_named(tmp_path, before, after, message):
    (tmp_path / "cloud_facts.csv").write_text(HEADER + GOOD.replace(before, after))
    with pytest.raises(CatalogueInvalid, match=message):
        read_cloud_facts(tmp_path / "cloud_facts.csv", clouds={"verda"})


def test_a_fact_stands_once_per_cloud(tmp_path):
    (tmp_path / "cloud_facts.csv").write_text(HEADER + GOOD + GOOD)
    with pytest.raises(CatalogueInvalid, match="'billing_step_seconds' of 'verda' stands twice"):
        read_cloud_facts(tmp_path / "cloud_facts.csv", clouds={"verda"})
