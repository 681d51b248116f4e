"""`/sources/` and `/method/`: the state of each source in words, and the rules."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.factories import make_document, make_gpu, make_offer, make_source, make_unmapped

pytestmark = pytest.mark.django_db


def text_of(client, path: str = "/sources/") -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_no_source_yet_is_said_so(client):
    assert "No source has been read yet." in text_of(client)


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("never", "not read yet"),
        ("ok", "working"),
        ("partly", "partly working"),
        ("failing", "failing"),
        ("needs_key", "needs a key"),
    ],
)
def test_a_state_is_a_word(client, state, word):
    make_source(state=state)
    assert word in text_of(client)


def test_a_source_shows_its_age_its_error_and_that_it_was_replayed(client):
    make_source(
        state="failing",
        last_success_at=datetime.now(UTC) - timedelta(hours=3),
        last_error="200 with HTML",
        replayed=True,
    )
    text = text_of(client)
    for words in ("3 hours ago", "200 with HTML", "replayed"):
        assert words in text


def test_rows_held_back_and_names_unclear_are_shown_with_their_reason(client):
    source = make_source()
    make_document(source=source, key="vast", last_error="half a file")
    make_offer(gpu=make_gpu(), price="0.01", source=source, held_back="placeholder price", instance_type="cheap-one")
    make_unmapped(source=source, gpu_name="RTX 6000", candidates=["rtx-6000-ada", "quadro-rtx-6000"])
    text = text_of(client)
    for words in ("placeholder price", "cheap-one", "RTX 6000", "rtx-6000-ada, quadro-rtx-6000", "half a file"):
        assert words in text


def test_a_page_of_many_sources_needs_no_more_queries(client, django_assert_max_num_queries):
    for number in range(8):
        make_document(source=make_source(name=f"source-{number}"))
    with django_assert_max_num_queries(6):
        client.get("/sources/")


def test_the_method_names_the_limits_of_the_rules(client):
    text = text_of(client, "/method/")
    for words in ("read under 2 hours ago", "more than 14 days back", "80% of the memory", "16 bytes per parameter"):
        assert words in text


def test_an_unknown_address_has_a_page_with_a_way_out(client):
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    assert "Look through all GPU models" in answer.content.decode()
