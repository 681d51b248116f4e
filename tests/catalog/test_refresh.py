"""A refresh from end to end, against made-up other sides: what it stores, and when it runs."""

import threading
import zlib
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection

from catalog import refresh
from catalog.models import Offer, RawBody, Source, SourceDocument, UnmappedName
from catalog.refresh import RefreshReport, refresh_due_sources, refresh_source
from catalog.sources import source_named
from catalog.sources.base import Body, Document, FetchFailed
from catalog.sources.fetching import Known, NotModified
from catalog.sources.skypilot import SkyPilot
from tests.catalog.refreshes import (
    AWS,
    HALF_AN_HOUR,
    LAMBDA,
    NOW,
    UNKNOWN,
    OtherSide,
    counts,
    csv,
    everything,
    on_sale,
    skypilot,
)
from tests.factories import make_source

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loaded_catalogue")]


# What a good body becomes


def test_a_body_becomes_offers_with_whole_and_per_gpu_prices():
    skypilot(aws=csv(*AWS))
    offer = Offer.objects.get(instance_type="p5.48xlarge", market="on_demand")
    assert (offer.gpu.slug, offer.cloud.slug, offer.source.name, offer.document.key) == (
        "h100-sxm", "aws", "skypilot", "aws"
    )  # fmt: skip
    assert (offer.price_usd_per_hour, offer.price_usd_per_gpu_hour) == (Decimal("55.04"), Decimal("6.88"))
    assert (offer.gpu_count, offer.is_whole, offer.country, offer.ram_gb) == (Decimal(8), True, "US", Decimal(2048))
    assert (offer.observed_at, offer.priced_on, offer.first_seen_at) == (NOW, NOW.date(), NOW)
    assert offer.url.startswith("https://raw.githubusercontent.com/")


def test_spot_prices_are_offers_of_their_own_per_zone():
    skypilot(aws=csv(*AWS))
    assert on_sale() == {
        ("p5.48xlarge", "on_demand", "us-east-1", ""): Decimal("6.88"),
        ("p5.48xlarge", "spot", "us-east-1", "use1-az1"): Decimal("2.5"),
        ("p5.48xlarge", "spot", "us-east-1", "use1-az2"): Decimal("2.75"),
        ("g6e.xlarge", "on_demand", "us-east-1", "use1-az1"): Decimal("1.861"),
        ("g6e.xlarge", "on_demand", "us-west-2", "usw2-az1"): Decimal("1.95"),
    }


def test_a_slice_of_a_card_is_kept_out_of_per_gpu_bests():
    skypilot(azure=csv("Standard_NV6ads_A10_v5,A10,0.167,6,55,A10,0.454,,eastus,"))
    [offer] = Offer.objects.on_sale()
    assert not offer.is_whole
    assert offer.price_usd_per_gpu_hour == Decimal("2.718563")
    assert not Offer.objects.eligible().exists()


def test_the_body_is_kept_as_read():
    skypilot(aws=csv(*AWS))
    [raw] = RawBody.objects.all()
    assert zlib.decompress(bytes(raw.content_zlib)) == csv(*AWS)
    assert (raw.adapter_version, raw.fetched_at, raw.replayed) == ("1", NOW, False)


def test_only_the_newest_bodies_stay():
    for minutes in range(7):
        skypilot(NOW + timedelta(minutes=minutes), aws=csv(*AWS, f"g5.xlarge,A10G,1,4,16,,1.0{minutes},,us-east-1,a"))
    kept = [zlib.decompress(bytes(raw.content_zlib)) for raw in RawBody.objects.order_by("pk")]
    assert len(kept) == refresh.KEPT_BODIES
    assert b"1.06" in kept[-1]


# A second run


def test_a_second_run_of_the_same_body_changes_nothing():
    skypilot(aws=csv(*AWS, UNKNOWN), **{"lambda": csv(*LAMBDA)})
    before = everything()
    report = skypilot(aws=csv(*AWS, UNKNOWN), **{"lambda": csv(*LAMBDA)})
    assert everything() == before
    assert counts(report) == counts(report, "lambda") == (0, 0, 0)
    assert RawBody.objects.count() == 2
    assert UnmappedName.objects.get().rows == 1


def test_a_later_run_of_the_same_body_renews_the_reading_and_nothing_else():
    skypilot(aws=csv(*AWS))
    report = skypilot(NOW + HALF_AN_HOUR, aws=csv(*AWS))
    assert counts(report) == (0, 0, 0)
    assert set(Offer.objects.values_list("observed_at", "first_seen_at")) == {(NOW + HALF_AN_HOUR, NOW)}


def test_new_changed_and_gone_offers_are_told_apart():
    skypilot(aws=csv(*AWS))
    cheaper = AWS[2].replace("1.861", "1.75")
    report = skypilot(NOW + HALF_AN_HOUR, aws=csv(*AWS[:2], cheaper, "g6.xlarge,L4,1,4,16,,0.80,,us-east-1,use1-az1"))
    assert counts(report) == (1, 1, 1)
    assert on_sale()["g6e.xlarge", "on_demand", "us-east-1", "use1-az1"] == Decimal("1.75")
    gone = Offer.objects.get(region="us-west-2")
    assert (gone.gone_at, gone.observed_at) == (NOW + HALF_AN_HOUR, NOW)


def test_an_offer_that_comes_back_is_on_sale_again_under_its_old_name():
    skypilot(aws=csv(*AWS))
    first = Offer.objects.get(region="us-west-2")
    skypilot(NOW + HALF_AN_HOUR, aws=csv(*AWS[:3]))
    report = skypilot(NOW + 2 * HALF_AN_HOUR, aws=csv(*AWS))
    again = Offer.objects.get(region="us-west-2")
    assert counts(report) == (1, 0, 0)
    assert (again.pk, again.gone_at, again.first_seen_at) == (first.pk, None, NOW)


def test_an_unchanged_answer_renews_the_offers_still_on_sale():
    skypilot(aws=csv(*AWS))
    skypilot(NOW + HALF_AN_HOUR, aws=csv(*AWS[:3]))
    other_side = OtherSide(aws=NotModified(url="https://raw.githubusercontent.com/"))
    later = NOW + 2 * HALF_AN_HOUR
    report = refresh_source(source_name="skypilot", now=later, fetch=other_side)
    [document] = [document for document in report.documents if document.key == "aws"]
    assert document.is_unchanged
    assert other_side.known["aws"].etag == '"1"'
    assert set(Offer.objects.filter(gone_at=None).values_list("observed_at", flat=True)) == {later}
    assert Offer.objects.get(region="us-west-2").observed_at == NOW
    assert SourceDocument.objects.get(key="aws").read_at == later


def test_another_version_of_adapter_or_names_reads_everything_anew():
    skypilot(aws=csv(*AWS))
    version = Source.objects.get(name="skypilot").adapter_version
    assert version.startswith("1+")
    Source.objects.filter(name="skypilot").update(adapter_version="1+00000000")
    other_side = OtherSide(aws=csv(*AWS))
    refresh_source(source_name="skypilot", now=NOW, fetch=other_side)
    assert other_side.known["aws"] == Known()
    assert Source.objects.get(name="skypilot").adapter_version == version


# Names


def test_an_unclear_name_goes_to_the_review_queue_and_to_no_card():
    report = skypilot(aws=csv(*AWS, UNKNOWN, UNKNOWN.replace("us-east-1", "us-west-2")))
    queued = UnmappedName.objects.get()
    assert (queued.cloud_slug, queued.gpu_name, queued.rows, queued.candidates) == ("aws", "Mystery 9000", 2, [])
    assert (queued.first_seen_at, queued.last_seen_at) == (NOW, NOW)
    assert SourceDocument.objects.get(key="aws").unmapped == 2
    assert "2 unmapped" in report.line
    assert not Offer.objects.filter(instance_type="x9.large").exists()


def test_an_ambiguous_name_waits_with_its_candidates():
    skypilot(jarvislabs=csv("1x_H100_24V_200G,H100,1,24,200,,3.49,,IN2,"))
    assert set(UnmappedName.objects.get().candidates) >= {"h100-sxm", "h100-pcie"}


def test_a_name_of_one_cloud_in_two_files_is_one_entry():
    aggregated = "datacrunch__1xMystery__1__1,Mystery 9000,1,1,1,,1.5,,FI,"
    skypilot(primeintellect=csv(aggregated), verda=csv("1M.1V,Mystery 9000,1,1,1,,1.5,,FIN-01,"), aws=csv(*AWS))
    assert UnmappedName.objects.get(cloud_slug="verda").rows == 2


def test_a_name_that_is_understood_later_leaves_the_queue():
    UnmappedName.objects.create(
        source=make_source(), cloud_slug="aws", gpu_name="L40S", rows=1, first_seen_at=NOW, last_seen_at=NOW
    )
    skypilot(aws=csv(*AWS, UNKNOWN))
    assert [queued.gpu_name for queued in UnmappedName.objects.all()] == ["Mystery 9000"]


def test_a_cloud_nobody_knows_is_a_matter_of_review_too():
    skypilot(shadeform=csv("newcloud_A6000,A6000,1,6,48,,0.49,,oslo-norway-1,", "imwt_A6000,A6000,1,6,48,,0.49,,oslo-norway-1,"))  # fmt: skip
    assert UnmappedName.objects.get().cloud_slug == "newcloud"
    assert [offer.cloud.slug for offer in Offer.objects.all()] == ["imwt"]


# Companions over the network


class TwoBodies(SkyPilot):
    """Lambda's file, read beside a companion that has an address too."""

    name = "two-bodies"

    def documents(self) -> list[Document]:
        beside = Document(key="beside", urls=["https://a.example/b"], file_name="b.csv", companion_of="lambda")
        return [document for document in super().documents() if document.key == "lambda"] + [beside]


def test_a_document_and_its_companion_are_always_read_whole_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(refresh, "source_named", lambda name: TwoBodies())
    for _time in range(2):
        other_side = OtherSide(**{"lambda": csv(*LAMBDA), "beside": b"beside"})
        report = refresh_source(source_name="two-bodies", now=NOW, fetch=other_side)
        assert set(other_side.known.values()) == {Known()}
        assert [document.key for document in report.documents] == ["lambda"]
    assert RawBody.objects.filter(document__key="beside").count() == 1
    assert Source.objects.get(name="two-bodies").state == Source.State.FRESH


# Who runs when


@pytest.fixture
def two_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "ALL_SOURCES", [source_named(name) for name in ("reference", "skypilot")])


@pytest.mark.usefixtures("two_sources")
def test_sources_that_are_due_are_refreshed_once_and_have_their_next_time(monkeypatch: pytest.MonkeyPatch):
    ran: list[str] = []

    def note(*, source_name: str, now: datetime) -> RefreshReport:
        ran.append(source_name)
        return RefreshReport(source_name=source_name)

    monkeypatch.setattr(refresh, "refresh_source", note)
    refresh_due_sources(now=NOW)
    refresh_due_sources(now=NOW + timedelta(minutes=29, seconds=59))
    assert ran == ["reference", "skypilot"]
    refresh_due_sources(now=NOW + HALF_AN_HOUR)
    assert ran == ["reference", "skypilot"] * 2


@pytest.mark.usefixtures("two_sources")
def test_a_source_that_breaks_does_not_keep_the_next_from_its_turn(monkeypatch: pytest.MonkeyPatch):
    def breaking(*, source_name: str, now: datetime) -> RefreshReport:
        if source_name == "reference":
            raise RuntimeError
        return RefreshReport(source_name=source_name)

    monkeypatch.setattr(refresh, "refresh_source", breaking)
    assert [report.source_name for report in refresh_due_sources(now=NOW)] == ["skypilot"]


def test_the_interval_of_a_source_is_its_own(monkeypatch: pytest.MonkeyPatch):
    make_source(interval_minutes=120)
    monkeypatch.setattr(refresh, "refresh_source", lambda *, source_name, now: RefreshReport(source_name=source_name))
    refresh_due_sources(now=NOW)
    assert Source.objects.get(name="skypilot").due_at == NOW + timedelta(hours=2)


@pytest.mark.django_db(transaction=True)
def test_two_refreshes_of_one_source_at_once_are_one():
    inside, leave = threading.Event(), threading.Event()

    def slow(document: Document, known: Known, now: datetime) -> Body | NotModified:
        inside.set()
        leave.wait(10)
        raise FetchFailed("nobody answers")

    def first() -> None:
        try:
            refresh_source(source_name="skypilot", now=NOW, fetch=slow)
        finally:
            connection.close()

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(10)
    second = skypilot(aws=csv(*AWS))
    leave.set()
    thread.join(10)
    assert second.not_read == "another refresh of it is running"
    assert not Offer.objects.exists()
    assert not skypilot(aws=csv(*AWS)).not_read
