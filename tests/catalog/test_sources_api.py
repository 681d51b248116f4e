"""`sources/`: how each source is doing, in numbers anybody may check."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from catalog.models import Source
from tests.factories import make_document, make_gpu, make_offer, make_source

pytestmark = pytest.mark.django_db


def get(query: str = ""):
    response = Client().get(f"/api/v1/sources/{query}")
    assert response.status_code == 200, response.content
    return json.loads(response.content)["results"]


def test_a_source_tells_its_state_and_what_it_gave():
    at = datetime(2026, 11, 30, 13, 0, tzinfo=UTC)
    source = make_source(name="skypilot", title="SkyPilot", last_success_at=at, last_attempt_at=at, replayed=True)
    make_document(source=source, key="aws", unmapped=3)
    make_document(source=source, key="gcp", unmapped=4)
    gpu, now = make_gpu(), datetime.now(UTC)
    make_offer(gpu=gpu, price="2", source=source, observed_at=now)
    make_offer(gpu=gpu, price="90", source=source, observed_at=now, held_back="forty times the median")
    make_offer(gpu=gpu, price="2", source=source, observed_at=now, gone_at=now - timedelta(hours=1))
    (found,) = get()
    assert found == found | {
        "name": "skypilot",
        "title": "SkyPilot",
        "state": "ok",
        "last_success_at": "2026-11-30T13:00:00Z",
        "last_error": None,
        "offers": 1,
        "held_back": 1,
        "unmapped": 7,
        "replayed": True,
    }


def test_a_failing_source_says_why():
    make_source(name="dead", state=Source.State.FAILING, last_error="HTTP 503")
    (found,) = get()
    assert (found["state"], found["last_error"], found["last_success_at"]) == ("failing", "HTTP 503", None)


def test_sources_come_by_name_in_pages():
    for name in ("b", "c", "a"):
        make_source(name=name)
    assert [source["name"] for source in get()] == ["a", "b", "c"]
    assert [source["name"] for source in get("?limit=2")] == ["a", "b"]


def test_unknown_parameters_are_refused():
    assert Client().get("/api/v1/sources/?state=ok").status_code == 400
