"""What goes wrong in a refresh stays with its document, and is said in words."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from catalog.models import Gpu, Offer, RawBody, Source, SourceDocument
from catalog.refresh import refresh_source
from catalog.sources import source_named
from catalog.sources.base import Body
from tests.catalog.refreshes import (
    AWS,
    HALF_AN_HOUR,
    LAMBDA,
    NOW,
    OtherSide,
    counts,
    csv,
    everything,
    on_sale,
    skypilot,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loaded_catalogue")]


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
    assert source.last_error.startswith("aws, azure, ")
    assert source.last_error.endswith(": nobody answers")
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


def test_after_a_refusal_the_whole_body_is_asked_for():
    skypilot(aws=csv(*AWS))
    skypilot(NOW + HALF_AN_HOUR, aws=b"<html>\n")
    other_side = OtherSide(aws=csv(*AWS))
    refresh_source(source_name="skypilot", now=NOW + 2 * HALF_AN_HOUR, fetch=other_side)
    assert other_side.known["aws"].etag == ""
