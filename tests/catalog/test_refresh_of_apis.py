"""Refreshes of the sources that are asked by API: keys, POST, companions, waits after failures, other currencies."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from catalog import refresh
from catalog.load_catalogue import load_catalogue
from catalog.models import Offer, Source, SourceDocument
from catalog.refresh import DocumentReport, RefreshReport, refresh_due_sources, refresh_source
from catalog.sources import ALL_SOURCES
from catalog.sources.base import Body, Document, FetchFailed, KeyedSource
from catalog.sources.fetching import Known, NotModified
from fx.models import Rate

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)
KEYS = {source.key_setting: "" for source in ALL_SOURCES if isinstance(source, KeyedSource)}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalogue(db) -> None:
    load_catalogue(now=NOW)


class OtherSide:
    """Answers by document key, remembers what it was asked, and cannot be reached for the rest."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers
        self.asked: list[Document] = []

    def __call__(self, document: Document, known: Known, now: datetime) -> Body | NotModified:
        self.asked.append(document)
        answer = self.answers.get(document.key.replace("-", "_"))
        if answer is None:
            raise FetchFailed("nobody answers")
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return Body(document=document, content=content, fetched_at=now, url=document.urls[0])


def read(source_name: str, side: OtherSide, now: datetime = NOW) -> RefreshReport:
    return refresh_source(source_name=source_name, now=now, fetch=side)


def rate_of_the_day(day: date = date(2026, 11, 27), usd_per_eur: str = "1.10", origin: str = "ecb") -> None:
    Rate.objects.create(currency="USD", day=day, units_per_eur=Decimal(usd_per_eur), origin=origin, stored_at=NOW)


def product(name: str, currency: str, value: float) -> dict:
    prices = [{"model": "PAY_AS_YOU_GO", "value": value}]
    return {
        "partNumber": "B1",
        "displayName": f"Compute - GPU - {name}",
        "metricName": "GPU Per Hour",
        "currencyCodeLocalizations": [{"currencyCode": currency, "prices": prices}],
    }


# Keys


@pytest.mark.parametrize("source_name", ["digitalocean", "lambda", "primeintellect", "shadeform", "tensordock"])
def test_without_its_key_a_source_is_not_asked_and_says_that_it_needs_one(settings, source_name: str):
    settings.SOURCE_KEYS = KEYS
    side = OtherSide()
    report = read(source_name, side)
    assert side.asked == []
    assert not report.is_failure
    source = Source.objects.get(name=source_name)
    assert (source.state, source.last_error) == (Source.State.NEEDS_KEY, "")
    assert not SourceDocument.objects.filter(source=source).exists()


def test_with_its_key_it_is_asked_and_the_key_is_stored_nowhere(settings, shared_data: Path):
    settings.SOURCE_KEYS = {**KEYS, "LAMBDA_API_KEY": "a-secret"}
    side = OtherSide(instance_types=(shared_data / "feeds" / "lambda.json").read_bytes())
    report = read("lambda", side)
    assert side.asked[0].headers == {"Authorization": "Bearer a-secret"}
    assert Source.objects.get(name="lambda").state == Source.State.FRESH
    assert Offer.objects.filter(cloud__slug="lambda").count() == 5
    assert "a-secret" not in f"{report}{list(Source.objects.values())}{list(SourceDocument.objects.values())}"


def test_a_key_that_is_optional_chooses_what_is_asked(settings):
    for key, method_body in (("", True), ("a-secret", False)):
        settings.SOURCE_KEYS = {**KEYS, "RUNPOD_API_KEY": key}
        side = OtherSide()
        read("runpod", side)
        assert [document.json_body is not None for document in side.asked] == [method_body]


@pytest.mark.parametrize("source_name", ["digitalocean", "lambda", "primeintellect", "shadeform", "tensordock"])
def test_a_saved_body_needs_no_key(settings, shared_data: Path, source_name: str):
    settings.SOURCE_KEYS = KEYS
    path = shared_data / "feeds" / f"{source_name}.json"
    report = refresh_source(source_name=source_name, now=NOW, from_path=path)
    assert not report.failed
    assert Source.objects.get(name=source_name).state == Source.State.FRESH


# The shared samples, from end to end


@pytest.mark.parametrize(
    ("source_name", "file_name", "offers", "unmapped"),
    [
        ("akash", "akash.json", 8, 0),
        ("azure", "azure.json", 6, 0),
        ("cudo", "cudo.json", 11, 0),
        ("digitalocean", "digitalocean.json", 4, 0),
        ("lambda", "lambda.json", 5, 0),
        ("oci", "oci.json", 6, 0),
        ("ovh", "ovh.json", 1, 2),
        ("primeintellect", "primeintellect.json", 4, 0),
        ("runpod", "runpod_v2_catalog_gpus.json", 16, 0),
        ("scaleway", "scaleway.json", 3, 0),
        ("shadeform", "shadeform.json", 6, 0),
        ("tensordock", "tensordock.json", 8, 0),
        ("vast", "vast.json", 15, 2),
        ("verda", "verda_instance_types.json", 5, 0),
        ("vultr", "vultr.json", 5, 1),
    ],
)
def test_a_shared_sample_is_replayed_and_a_second_time_without_effect(
    shared_data: Path, source_name: str, file_name: str, offers: int, unmapped: int
):
    rate_of_the_day()
    path = shared_data / "feeds" / file_name
    first = refresh_source(source_name=source_name, now=NOW, from_path=path)
    again = refresh_source(source_name=source_name, now=NOW + HALF_AN_HOUR, from_path=path)
    assert not first.failed
    assert Offer.objects.filter(source__name=source_name, gone_at=None).count() == offers
    assert [(d.new, d.unmapped) for d in first.documents] == [(offers, unmapped)]
    assert [(d.new, d.changed, d.gone) for d in again.documents] == [(0, 0, 0)]


def test_a_placeholder_price_is_held_back_with_its_reason(shared_data: Path):
    refresh_source(source_name="azure", now=NOW, from_path=shared_data / "feeds" / "azure.json")
    assert Offer.objects.get(region="ukwest").held_back.startswith("placeholder")


def test_a_slice_and_an_unverified_host_stay_out_of_the_bests(shared_data: Path):
    for source_name in ("azure", "vast"):
        refresh_source(source_name=source_name, now=NOW, from_path=shared_data / "feeds" / f"{source_name}.json")
    eligible = Offer.objects.eligible()
    assert not eligible.filter(gpu__slug="a10").exists()
    assert not eligible.filter(gpu__slug="rtx-4070-ti-super").exists()
    assert eligible.filter(gpu__slug="h100-sxm", cloud__slug="vast").exists()


@pytest.mark.parametrize("answer", [{"success": False, "error": "auth_error"}, {"offers": []}, b"<html>"])
def test_an_error_answer_keeps_what_was_there(shared_data: Path, answer: object):
    refresh_source(source_name="vast", now=NOW, from_path=shared_data / "feeds" / "vast.json")
    before = Offer.objects.filter(gone_at=None).count()
    assert read("vast", OtherSide(offers=answer), NOW + HALF_AN_HOUR).is_failure
    assert Offer.objects.filter(gone_at=None).count() == before
    assert Source.objects.get(name="vast").state == Source.State.FAILING


def test_a_missing_companion_costs_the_stock_and_no_price(shared_data: Path):
    types = (shared_data / "feeds" / "verda_instance_types.json").read_bytes()
    report = read("verda", OtherSide(instance_types=types))
    assert not report.failed
    assert set(Offer.objects.values_list("availability", flat=True)) == {"unknown"}


def test_one_failing_region_leaves_the_others(shared_data: Path):
    pages = (shared_data / "feeds" / "azure.json").read_bytes()
    read("azure", OtherSide(eastus=pages))
    source = Source.objects.get(name="azure")
    assert source.state == Source.State.PARTLY
    assert Offer.objects.filter(cloud__slug="azure", document__key="eastus").exists()


# Other currencies


def test_a_row_in_a_currency_without_a_rate_is_counted_and_said_and_not_stored():
    side = OtherSide(products={"items": [product("H200", "USD", 9.9), product("A10", "XTS", 1.9)]})
    report = read("oci", side)
    assert [(d.rows_read, d.new, d.held_back, d.without_rate) for d in report.documents] == [(4, 1, 3, 3)]
    assert "3 of those held back in a currency without a rate" in report.line
    assert [offer.gpu.slug for offer in Offer.objects.filter(source__name="oci")] == ["h200-sxm"]
    assert SourceDocument.objects.get(key="products").held_back == 3


def test_a_row_in_another_currency_is_converted_by_the_rate_of_its_day():
    Rate.objects.all().delete()
    rate_of_the_day()
    read("oci", OtherSide(products={"items": [product("H200", "EUR", 9)]}))
    offer = Offer.objects.get(source__name="oci")
    assert (offer.currency, offer.price_in_currency_per_hour) == ("EUR", Decimal(72))
    assert offer.price_usd_per_hour == Decimal("79.2")
    assert (offer.rate_on, offer.rate_origin) == (date(2026, 11, 27), "ecb")


def test_a_row_in_usd_needs_no_rate():
    read("oci", OtherSide(products={"items": [product("H200", "USD", 9.9)]}))
    offer = Offer.objects.get(source__name="oci")
    assert (offer.rate_on, offer.rate_origin) == (None, "")


def test_a_body_that_did_not_change_is_converted_anew_by_the_next_days_rate():
    rate_of_the_day()
    read("oci", OtherSide(products={"items": [product("H200", "EUR", 9), product("A10", "USD", 1.9)]}))
    rate_of_the_day(date(2026, 11, 30), "1.20")

    def unchanged(document: Document, known: Known, now: datetime) -> NotModified:
        return NotModified(url=document.urls[0])

    for _ in range(2):
        refresh_source(source_name="oci", now=NOW + HALF_AN_HOUR, fetch=unchanged)
        offer = Offer.objects.get(gpu__slug="h200-sxm")
        assert (offer.price_usd_per_hour, offer.price_usd_per_gpu_hour) == (Decimal("86.4"), Decimal("10.8"))
        assert (offer.rate_on, offer.price_in_currency_per_hour) == (date(2026, 11, 30), Decimal(72))
    assert set(Offer.objects.filter(gpu__slug="a10").values_list("rate_on", flat=True)) == {None}


@pytest.mark.parametrize(("source_name", "gpu", "eur"), [("scaleway", "l40s", "1.45"), ("ovh", "l40s", "1.38")])
def test_a_source_in_eur_is_shown_in_usd_beside_its_own_price(shared_data: Path, source_name: str, gpu: str, eur: str):
    rate_of_the_day(origin="sample")
    refresh_source(source_name=source_name, now=NOW, from_path=shared_data / "feeds" / f"{source_name}.json")
    offer = Offer.objects.get(source__name=source_name, gpu__slug=gpu)
    assert offer.currency == "EUR"
    assert offer.price_in_currency_per_hour == Decimal(eur) * offer.gpu_count
    assert offer.price_usd_per_gpu_hour == pytest.approx(Decimal(eur) * Decimal("1.10"), abs=Decimal("0.000001"))
    assert offer.rate_origin == "sample"


# Waits after failures


def failing(monkeypatch: pytest.MonkeyPatch, *, error: str) -> None:
    """Let every source be refreshed at once, with one document that fails with `error`, or does not."""

    def note(*, source_name: str, now: datetime) -> RefreshReport:
        state = Source.State.FAILING if error else Source.State.FRESH
        Source.objects.filter(name=source_name).update(state=state, last_attempt_at=now)
        return RefreshReport(source_name=source_name, documents=[DocumentReport(key="x", error=error)])

    monkeypatch.setattr(refresh, "refresh_source", note)


def test_a_failing_source_waits_longer_each_time_up_to_six_hours_and_not_after_a_success(
    monkeypatch: pytest.MonkeyPatch,
):
    failing(monkeypatch, error="nobody answers")
    at, waits = NOW, []
    for _ in range(6):
        refresh_due_sources(now=at)
        due_at = Source.objects.get(name="vast").due_at
        assert due_at is not None
        waits.append((due_at - at) / timedelta(hours=1))
        at = due_at
    assert waits == [0.5, 1, 2, 4, 6, 6]
    failing(monkeypatch, error="")
    refresh_due_sources(now=at)
    assert Source.objects.get(name="vast").due_at == at + HALF_AN_HOUR


def test_a_source_without_its_key_keeps_its_turn(settings):
    settings.SOURCE_KEYS = KEYS
    without = {source.name for source in ALL_SOURCES if isinstance(source, KeyedSource) and source.needs_key}
    Source.objects.bulk_create(
        Source(name=source.name, due_at=NOW + timedelta(days=1)) for source in ALL_SOURCES if source.name not in without
    )
    refresh_due_sources(now=NOW)
    assert without == {"digitalocean", "lambda", "primeintellect", "shadeform", "tensordock"}
    for source in Source.objects.filter(name__in=without):
        assert (source.due_at, source.state) == (NOW + HALF_AN_HOUR, Source.State.NEEDS_KEY)


def test_a_source_that_is_paced_is_due_after_its_own_interval(monkeypatch: pytest.MonkeyPatch):
    failing(monkeypatch, error="")
    refresh_due_sources(now=NOW, only="ovh")
    assert Source.objects.get(name="ovh").due_at == NOW + timedelta(hours=6)
