"""`/status/`: what works, in words, and each source over thirty days."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from catalog.models import Source
from catalog.source_days import count_refresh
from config import beat, health
from marketplace.models import UpSpan
from tests.factories import make_source

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def well(monkeypatch, now):
    """A site of which every part does its work."""
    monkeypatch.setattr(beat, "age_seconds", lambda _: 3.0)
    UpSpan.objects.create(started_at=now - DAY, last_seen_at=now)


def words_of(client) -> str:
    answer = client.get("/status/")
    assert answer.status_code == 200
    main = answer.content.decode().partition("<main")[2].partition("</main>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", main))


def test_when_all_is_well_it_says_so(client, well):
    words = words_of(client)
    assert "Every part of the site works." in words
    assert "not working" not in words


def test_it_is_never_kept(client, well):
    assert client.get("/status/")["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    ("check", "problem"), [("_broker_problem", "no answer"), ("_books_problem", "stopped: I2 does not hold")]
)
def test_what_readyz_finds_wrong_stands_here_in_words(client, well, monkeypatch, check, problem):
    monkeypatch.setattr(health, check, lambda: problem)
    words = words_of(client)
    assert "1 part of the site does not work as it should." in words
    assert f"not working {problem}" in words
    assert client.get("/readyz").status_code == 503


def test_the_exchange_is_down_when_its_round_stopped(client, monkeypatch, now):
    monkeypatch.setattr(beat, "age_seconds", lambda _: 3.0)
    assert "not seen yet" in words_of(client)
    UpSpan.objects.create(started_at=now - DAY, last_seen_at=now - timedelta(minutes=5))
    assert "not working last seen" in words_of(client)


def test_each_source_has_its_thirty_days(client, well, now):
    source = make_source(name="skypilot", title="SkyPilot catalogue", last_success_at=now - timedelta(minutes=4))
    make_source(name="vast", title="Vast.ai", state=Source.State.FAILING)
    for age in (0, 1, 2, 40):
        count_refresh(source=source, state="whole", now=now - age * DAY)
    count_refresh(source=source, state="failed", now=now - DAY)
    words = words_of(client)
    assert "1 price source is failing." in words
    assert "Read whole on 2 of the last 30 days" in words
    assert "4 minutes ago" in words
    html = client.get("/status/").content.decode()
    assert html.count('class="day ') == 30
    assert html.count("nothing recorded") == 1


def test_it_takes_few_queries_however_many_sources(client, well, now, django_assert_max_num_queries):
    for number in range(8):
        count_refresh(source=make_source(name=f"s{number}"), state="whole", now=now)
    with django_assert_max_num_queries(12):
        client.get("/status/")


def test_the_footer_of_every_page_leads_there(client):
    assert 'href="/status/"' in client.get("/method/").content.decode().partition("<footer")[2]
