"""A refresh from end to end, against made-up other sides: what it stores, what it leaves alone, what it says."""

import threading
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from catalog import refresh
from catalog.load_catalogue import load_catalogue
from catalog.models import Gpu, Offer, RawBody, Source, SourceDocument, UnmappedName
from catalog.refresh import NothingSaved, RefreshReport, refresh_due_sources, refresh_source
from catalog.sources import source_named
from catalog.sources.base import Body, Document, FetchFailed
from catalog.sources.fetching import Known, NotModified
from tests.factories import make_offer, make_source

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)
HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
AWS = [
    "p5.48xlarge,H100,8.0,192,2048,,55.04,20.0,us-east-1,use1-az1",
    "p5.48xlarge,H100,8.0,192,2048,,55.04,22.0,us-east-1,use1-az2",
    "g6e.xlarge,L40S,1.0,4,32,,1.861,,us-east-1,use1-az1",
    "g6e.xlarge,L40S,1.0,4,32,,1.95,,us-west-2,usw2-az1",
]
LAMBDA = ["gpu_1x_b200_sxm6,B200,1.0,26,360,,6.99,,us-east-1,", "gpu_1x_a10,A10,1.0,30,200,,1.29,,us-east-1,"]
UNKNOWN = "x9.large,Mystery 9000,1.0,4,32,,1.50,,us-east-1,use1-az1"
Answer = bytes | NotModified | Exception

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalogue(db) -> None:
    load_catalogue(now=NOW)


def csv(*lines: str) -> bytes:
    return "\n".join([HEADER, *lines, ""]).encode()


class OtherSide:
    """Answers by document; what it does not know cannot be reached."""

    def __init__(self, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = dict(answers)
        self.known: dict[str, Known] = {}

    def __call__(self, document: Document, known: Known, now: datetime) -> Body | NotModified:
        self.known[document.key] = known
        answer = self.answers.get(document.key, FetchFailed("nobody answers"))
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, NotModified):
            return answer
        url = document.urls[0]
        return Body(document=document, content=answer, fetched_at=now, url=url, etag='"1"', priced_on=now.date())


def skypilot(now: datetime = NOW, /, **answers: Answer) -> RefreshReport:
    return refresh_source(source_name="skypilot", now=now, fetch=OtherSide(**answers))


def on_sale() -> dict[tuple[str, str, str, str], Decimal]:
    offers = Offer.objects.on_sale()
    return {(o.instance_type, o.market, o.region, o.zone): o.price_usd_per_gpu_hour for o in offers}


def everything() -> list[tuple[object, ...]]:
    fields = [field.attname for field in Offer._meta.concrete_fields]
    return list(Offer.objects.order_by("pk").values_list(*fields))


def counts(report: RefreshReport, key: str = "aws") -> tuple[int, int, int]:
    [document] = [document for document in report.documents if document.key == key]
    return document.new, document.changed, document.gone


# What a good body becomes


def test_a_body_becomes_offers_with_whole_and_per_gpu_prices():
    skypilot(aws=csv(*AWS))
    offer = Offer.objects.get(instance_type="p5.48xlarge", market="on_demand")
    assert (offer.gpu.slug, offer.cloud.slug, offer.source.name, offer.document.key) == (
        "h100-sxm", "aws", "skypilot", "aws"
    )  # fmt: skip
    assert (offer.price_usd_per_hour, offer.price_usd_per_gpu_hour) == (Decimal("55.04"), Decimal("6.88"))
    assert (offer.gpu_count, offer.is_whole, offer.country, offer.ram_gb) == (8, True, "US", Decimal(2048))
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


def test_a_new_version_of_the_adapter_reads_everything_anew():
    skypilot(aws=csv(*AWS))
    Source.objects.filter(name="skypilot").update(adapter_version="0")
    other_side = OtherSide(aws=csv(*AWS))
    refresh_source(source_name="skypilot", now=NOW, fetch=other_side)
    assert other_side.known["aws"] == Known()
    assert Source.objects.get(name="skypilot").adapter_version == "1"


# What goes wrong, and stays with its document


BAD_BODIES = {
    "a page": b"<!DOCTYPE html><html><body>down for maintenance</body></html>\n",
    "half a line": csv(*AWS)[:-20],
    "half a quoted text": csv(*AWS) + b"p5.48xlarge,H100,8.0,192,2048,\"{'Gpus': [",
    "no offer": csv("m5.large,,,2,8,,0.096,,us-east-1,use1-az1"),
    "only a header": csv(),
    "nothing": b"",
    "another format": b"a,b\n1,2\n",
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_changes_nothing_and_says_why(name: str):
    skypilot(aws=csv(*AWS))
    before = everything()
    report = skypilot(NOW + HALF_AN_HOUR, aws=BAD_BODIES[name])
    assert everything() == before
    [document] = [document for document in report.documents if document.key == "aws"]
    assert document.error
    assert SourceDocument.objects.get(key="aws").last_error == document.error
    assert RawBody.objects.count() == 1


def test_a_dead_source_keeps_its_offers_and_shows_that_it_fails():
    skypilot(aws=csv(*AWS))
    before = everything()
    report = skypilot(NOW + HALF_AN_HOUR)
    assert report.is_failure
    assert everything() == before
    source = Source.objects.get(name="skypilot")
    assert source.state == Source.State.FAILING
    assert "aws: nobody answers" in source.last_error
    assert (source.last_success_at, source.last_attempt_at) == (NOW, NOW + HALF_AN_HOUR)


def test_one_failing_document_leaves_the_others():
    report = skypilot(aws=b"<html>\n", **{"lambda": csv(*LAMBDA)})
    assert not report.is_failure
    assert "aws" in {document.key for document in report.failed}
    assert len(on_sale()) == 2
    assert Source.objects.get(name="skypilot").state == Source.State.PARTLY


def test_a_mistake_of_the_adapter_stays_with_its_document(monkeypatch: pytest.MonkeyPatch):
    adapter = source_named("skypilot")
    parse = type(adapter).parse

    def mistaken(self: object, body: Body, companions: dict[str, Body]) -> Iterator[object]:
        if body.document.key == "aws":
            raise ZeroDivisionError
        return parse(self, body, companions)  # type: ignore[arg-type]

    monkeypatch.setattr(type(adapter), "parse", mistaken)
    report = skypilot(aws=csv(*AWS), **{"lambda": csv(*LAMBDA)})
    assert len(on_sale()) == 2
    assert "could not be read: ZeroDivisionError" in report.line


def test_a_fetch_that_breaks_stays_with_its_document():
    report = skypilot(aws=RuntimeError("broken"), **{"lambda": csv(*LAMBDA)})
    assert len(on_sale()) == 2
    assert "could not be fetched: RuntimeError" in report.line


def test_a_source_that_recovers_says_so():
    skypilot(aws=b"<html>\n")
    keys = [document.key for document in source_named("skypilot").documents() if document.urls]
    answers = dict.fromkeys(keys, csv(*LAMBDA)) | {"gcp": csv(",tpu-v6e-8,1,,,,21.6,,us-east5,us-east5-a")}
    report = skypilot(NOW + HALF_AN_HOUR, **answers)
    assert not report.failed
    source = Source.objects.get(name="skypilot")
    assert (source.state, source.last_error) == (Source.State.FRESH, "")


def test_a_live_body_that_lost_most_of_its_rows_is_not_believed_for_a_day():
    rows = [f"g6e.xlarge,L40S,1.0,4,32,,1.86,,us-east-{n},az" for n in range(9)]
    skypilot(aws=csv(*rows))
    later = NOW + timedelta(hours=23)
    assert "only 4 of 9 rows" in skypilot(later, aws=csv(*rows[:4])).line
    assert Offer.objects.on_sale().count() == 9
    assert counts(skypilot(NOW + timedelta(hours=24), aws=csv(*rows[:4]))) == (0, 0, 5)


def test_losing_half_of_the_rows_is_believed_at_once():
    rows = [f"g6e.xlarge,L40S,1.0,4,32,,1.86,,us-east-{n},az" for n in range(8)]
    skypilot(aws=csv(*rows))
    assert counts(skypilot(NOW + HALF_AN_HOUR, aws=csv(*rows[:4]))) == (0, 0, 4)


def test_an_empty_catalogue_is_named_as_the_reason():
    Gpu.objects.all().delete()
    assert "run load_catalogue first" in skypilot(aws=csv(*AWS)).line


# Sanity


def h100_at(price: str, count: int = 8) -> str:
    return f"p5.48xlarge,H100,{count},192,2048,,{price},,us-east-1,use1-az1"


def verdict(instance_type: str = "p5.48xlarge") -> str:
    return Offer.objects.get(instance_type=instance_type, market="on_demand").held_back


@pytest.mark.parametrize(
    ("price", "code"),
    [("0", "zero_price"), ("0.08", "placeholder"), ("0.4", "out_of_band"), ("4000", "out_of_band"), ("55.04", "")],
)
def test_an_odd_price_is_held_back_with_its_reason(price: str, code: str):
    report = skypilot(aws=csv(h100_at(price), *AWS[2:]))
    assert verdict().partition(":")[0] == code
    assert sum(document.held_back for document in report.documents) == bool(code)
    assert SourceDocument.objects.get(key="aws").held_back == bool(code)
    assert ("p5.48xlarge", "on_demand", "us-east-1", "use1-az1") in on_sale() or code


@pytest.mark.parametrize(("count", "code"), [("1.5", "wrong_count"), ("80", "wrong_count")])
def test_a_wrong_count_is_held_back(count: str, code: str):
    skypilot(aws=csv(f"p5.48xlarge,H100,{count},192,2048,,{Decimal(count) * 7},,us-east-1,use1-az1"))
    assert verdict().startswith(code)


def test_a_count_of_nothing_cannot_be_filed_and_is_counted():
    report = skypilot(aws=csv(*AWS, "p5.4xlarge,H100,0,16,256,,6.88,,us-east-1,use1-az1"))
    assert sum(document.held_back for document in report.documents) == 1
    assert not Offer.objects.filter(instance_type="p5.4xlarge").exists()


def test_a_count_against_the_instance_name_is_held_back():
    skypilot(**{"lambda": csv("gpu_8x_h100_sxm5,H100,4,208,1800,,16.0,,us-east-1,")})
    assert verdict("gpu_8x_h100_sxm5") == "wrong_count: the instance name says 8 GPUs, the source 4"


def test_spot_above_on_demand_of_the_same_machine_is_held_back():
    skypilot(aws=csv(AWS[0].replace(",20.0,", ",56.0,"), AWS[1].replace(",22.0,", ",55.04,")))
    held = {offer.zone: offer.held_back for offer in Offer.objects.filter(market="spot")}
    assert held["use1-az1"].startswith("spot_above_on_demand: 56 against 55.04")
    assert held["use1-az2"] == ""


def test_the_median_of_thirty_days_decides_where_five_prices_are_known():
    for number, price in enumerate(("6", "7", "8", "9", "10")):
        make_offer(gpu=known_gpu("h100-sxm"), price=price, cloud=f"cloud-{number}", observed_at=NOW)
    skypilot(aws=csv(h100_at("320.01"), *AWS[2:]))
    assert verdict() == (
        "out_of_band: 40.00125 USD per GPU-hour is outside 0.2 to 5 times 8, the median of 5 prices of 30 days"
    )
    skypilot(NOW + HALF_AN_HOUR, aws=csv(h100_at("320"), *AWS[2:]))
    assert verdict() == ""


def known_gpu(slug: str) -> Gpu:
    return Gpu.objects.get(slug=slug)


@pytest.mark.parametrize(
    "values",
    [
        {"observed_at": NOW - timedelta(days=31)},
        {"priced_on": date(2026, 1, 1), "observed_at": NOW},
        {"is_list": True, "observed_at": NOW},
        {"held_back": "out_of_band: ...", "observed_at": NOW},
        {"is_whole": False, "observed_at": NOW},
        {"market": "spot", "observed_at": NOW},
        {"instance_type": "one-machine", "cloud": "lambda", "observed_at": NOW},
    ],
)
def test_old_listed_held_back_sliced_other_market_and_repeated_prices_make_no_median(values: Mapping[str, Any]):
    for number in range(5):
        place: dict[str, Any] = {"cloud": f"cloud-{number}", "region": f"r{number}", **values}
        make_offer(gpu=known_gpu("h100-sxm"), price="100", **place)
    skypilot(aws=csv(*AWS))
    assert verdict() == ""


def test_a_file_whose_prices_all_jump_is_held_back():
    rows = [f"Standard_NC{n}as_T4_v3,T4,1,4,28,T4,{{}},,eastus," for n in (4, 8, 16)]
    more = ["Standard_NC4as_T4_v3,T4,1,4,28,T4,{},,westus,", "Standard_NC64as_T4_v3,T4,4,64,440,T4,{},,eastus,"]
    skypilot(azure=csv(*(row.format("0.6") for row in rows + more)), scp=csv("g1v1,T4,1,8,64,T4,0.5,,KOREA-1,"))
    skypilot(NOW + HALF_AN_HOUR, azure=csv(*(row.format("6.0") for row in rows + more)))
    held = Offer.objects.filter(document__key="azure", gone_at=None).exclude(held_back="")
    assert held.count() >= 4


def test_a_verdict_stands_while_the_content_stands():
    skypilot(aws=csv(h100_at("160"), *AWS[2:]))
    for number in range(5):
        make_offer(gpu=known_gpu("h100-sxm"), price="2", cloud=f"cloud-{number}", observed_at=NOW)
    assert counts(skypilot(NOW + HALF_AN_HOUR, aws=csv(h100_at("160"), *AWS[2:]))) == (0, 0, 0)
    assert verdict() == ""
    skypilot(NOW + 2 * HALF_AN_HOUR, aws=csv(h100_at("160"), *AWS[2:], "g6.xlarge,L4,1,4,16,,0.80,,us-east-1,a"))
    assert verdict().startswith("out_of_band")


def test_a_price_without_any_median_is_shown_and_counted():
    skypilot(aws=csv("p2.xlarge,K80,1,4,61,,0.90,,us-east-1,use1-az1", *AWS))
    assert verdict("p2.xlarge") == ""
    assert SourceDocument.objects.get(key="aws").band_skipped == 1


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


# The reference snapshot, and rows that a better source replaces


def test_the_reference_snapshot_is_read_from_the_repository_and_stays_a_list_price():
    report = refresh_source(source_name="reference", now=NOW)
    assert "0 held back, 0 unmapped" in report.line
    assert Offer.objects.count() == Offer.objects.dated(NOW).count() > 100
    assert set(Offer.objects.values_list("hidden_by_direct", flat=True)) == {False}
    assert counts(refresh_source(source_name="reference", now=NOW + HALF_AN_HOUR), "reference-prices") == (0, 0, 0)


def direct_offer(cloud: str, **values: Any) -> Offer:
    source = make_source(name=f"{cloud}-direct", is_collector=False)
    return make_offer(gpu=known_gpu("l40s"), price="1.80", cloud=cloud, source=source, **{"observed_at": NOW, **values})


def test_a_fresh_direct_source_replaces_the_clouds_collected_rows():
    direct_offer("aws")
    skypilot(aws=csv(*AWS), **{"lambda": csv(*LAMBDA)})
    hidden = set(Offer.objects.filter(hidden_by_direct=True).values_list("cloud__slug", flat=True))
    assert hidden == {"aws"}
    assert Offer.objects.on_sale().filter(cloud__slug="aws").get().source.name == "aws-direct"


@pytest.mark.parametrize(
    "values",
    [
        {"observed_at": NOW - timedelta(hours=12)},
        {"priced_on": date(2026, 11, 1)},
        {"is_list": True},
        {"held_back": "out_of_band: ..."},
        {"gone_at": NOW},
    ],
)
def test_a_direct_source_that_is_not_live_replaces_nothing(values: Mapping[str, Any]):
    direct_offer("aws", **values)
    skypilot(aws=csv(*AWS))
    assert not Offer.objects.filter(hidden_by_direct=True).exists()


def test_collected_rows_come_back_when_the_direct_source_grows_old():
    direct_offer("aws")
    skypilot(aws=csv(*AWS))
    skypilot(NOW + timedelta(hours=13), aws=csv(*AWS))
    assert not Offer.objects.filter(hidden_by_direct=True).exists()


def test_a_clouds_own_file_replaces_what_aggregators_resell_of_the_same_gpu():
    resold = [f"datacrunch__1x{name}__1__1,{name},1,1,1,,1.4,,FI," for name in ("L40S", "A6000")]
    skypilot(primeintellect=csv(*resold), verda=csv("1L40S.1V,L40S,1,1,1,,1.5,,FIN-01,"))
    assert {offer.instance_type for offer in Offer.objects.filter(hidden_by_direct=True)} == {
        "datacrunch__1xL40S__1__1"
    }


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
