"""Refreshes from saved bodies: a folder, a file, and the saved files as a whole."""

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.models import Offer, RawBody, Source
from catalog.refresh import NothingSaved, RefreshReport, refresh_source
from tests.catalog.refreshes import AWS, HALF_AN_HOUR, LAMBDA, NOW, csv, everything, on_sale, skypilot

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loaded_catalogue")]


# Replays


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    (tmp_path / "aws.csv").write_bytes(csv(*AWS))
    (tmp_path / "lambda.csv").write_bytes(csv(*LAMBDA))
    return tmp_path


def replay(path: Path, observed_at: datetime | None = None, now: datetime = NOW) -> RefreshReport:
    return refresh_source(source_name="skypilot", now=now, from_path=path, observed_at=observed_at)


def test_a_folder_of_saved_bodies_is_read_in_place_of_the_network(saved: Path):
    report = replay(saved)
    assert [document.key for document in report.documents] == ["aws", "lambda"]
    assert set(Offer.objects.values_list("observed_at", flat=True)) == {NOW}
    source = Source.objects.get(name="skypilot")
    assert (source.replayed, source.state, source.last_success_at) == (True, Source.State.FRESH, NOW)
    assert RawBody.objects.filter(replayed=True).count() == 2


def test_a_replay_may_say_when_its_bodies_were_read(saved: Path):
    observed_at = NOW - timedelta(days=3)
    replay(saved, observed_at)
    offer = Offer.objects.first()
    assert offer is not None
    assert (offer.observed_at, offer.priced_on) == (observed_at, observed_at.date())


def test_a_single_file_is_read_by_its_name_or_by_the_cloud_its_name_begins_with(saved: Path):
    assert [document.key for document in replay(saved / "lambda.csv").documents] == ["lambda"]
    (saved / "aws_ondemand_2026-07.csv").write_bytes(csv(AWS[2].replace("1.861", "1.8")))
    report = replay(saved / "aws_ondemand_2026-07.csv")
    assert [document.key for document in report.documents] == ["aws"]
    assert on_sale()["g6e.xlarge", "on_demand", "us-east-1", "use1-az1"] == Decimal("1.8")


def test_hosts_beside_a_single_file_are_read_with_it(tmp_path: Path):
    header = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice\n"
    gpu = ",,,A100,1,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 40960}}]},us-central1,us-central1-a,2.93391,\n"
    (tmp_path / "gcp.csv").write_text(header + gpu)
    (tmp_path / "gcp_hosts.csv").write_text(header + "a2-highgpu-1g,12,85,,,,us-central1,us-central1-a,0.73948,\n")
    assert [document.key for document in replay(tmp_path / "gcp.csv").documents] == ["gcp"]
    assert Offer.objects.get().price_usd_per_hour == Decimal("3.67339")
    with pytest.raises(NothingSaved):
        replay(tmp_path / "gcp_hosts.csv")


@pytest.mark.parametrize("name", ["", "other.csv", "awsome.csv", "aws.json"])
def test_a_path_without_a_body_of_the_source_is_refused(tmp_path: Path, name: str):
    path = tmp_path / name
    if name:
        path.write_bytes(csv(*AWS))
    with pytest.raises(NothingSaved, match="holds no saved body of skypilot"):
        replay(path)
    assert not Offer.objects.exists()


def test_a_live_success_ends_the_replay(saved: Path):
    replay(saved)
    skypilot(NOW + HALF_AN_HOUR)
    assert Source.objects.get(name="skypilot").replayed
    skypilot(NOW + 2 * HALF_AN_HOUR, aws=csv(*AWS))
    assert not Source.objects.get(name="skypilot").replayed


def test_a_file_without_a_date_dates_its_prices_by_the_day_its_content_was_first_seen(saved: Path):
    replay(saved)
    replay(saved, now=NOW + timedelta(days=20))
    offer = Offer.objects.filter(document__key="aws").first()
    assert offer is not None
    assert (offer.priced_on, offer.observed_at) == (NOW.date(), NOW + timedelta(days=20))
    assert Offer.objects.dated(NOW + timedelta(days=20)).count() == Offer.objects.count()


# The saved files as a whole


def test_the_saved_folder_is_replayed_whole_and_a_second_time_without_effect(
    shared_data: Path, django_assert_max_num_queries
):
    refresh_source(source_name="reference", now=NOW)
    with django_assert_max_num_queries(650):
        report = replay(shared_data / "skypilot")
    assert not report.failed
    assert Offer.objects.filter(source__name="skypilot").count() > 6500
    assert Offer.objects.live(NOW).eligible().values("gpu").distinct().count() >= 55
    before = everything()
    again = replay(shared_data / "skypilot")
    assert everything() == before
    assert all((d.new, d.changed, d.gone) == (0, 0, 0) for d in again.documents)


def test_few_prices_of_the_saved_folder_are_held_back_and_each_says_why(shared_data: Path):
    replay(shared_data / "skypilot")
    held = Offer.objects.filter(source__name="skypilot").exclude(held_back="")
    codes = {offer.held_back.partition(":")[0] for offer in held}
    assert codes <= {"spot_above_on_demand", "out_of_band"}
    assert held.count() < 100
    assert held.filter(gpu__slug="tpu-v6e", price_usd_per_hour=700).exists()
    assert not held.filter(gpu__slug="h100-sxm", cloud__slug="vast").exists()
