"""One body over the network, against a made-up other side."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime

import httpx
import pytest

from catalog.sources import fetching
from catalog.sources.base import Body, Document, FetchFailed
from catalog.sources.fetching import Known, Limits, NotModified, fetch_document

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FIRST, SECOND, MIRROR = "https://a.example/v8/x.csv", "https://a.example/v7/x.csv", "https://b.example/v8/x.csv"
DOCUMENT = Document(key="x", urls=[FIRST, SECOND, MIRROR], file_name="x.csv")


class OtherSide:
    """Answers by address and remembers what it was asked."""

    def __init__(self, **answers: Callable[[httpx.Request], httpx.Response]) -> None:
        self.answers = {"first": FIRST, "second": SECOND, "mirror": MIRROR, "commits": "https://c.example/commits"}
        self.handlers = {self.answers[name]: answer for name, answer in answers.items()}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        handler = self.handlers.get(str(request.url))
        return handler(request) if handler else httpx.Response(404)


def fetch(side: OtherSide, known: Known | None = None, document: Document = DOCUMENT) -> Body | NotModified:
    return fetch_document(document, known or Known(), NOW, transport=httpx.MockTransport(side))


def ok(content: bytes = b"body", **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(200, content=content, headers=headers)


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectTimeout("no answer", request=request)


def test_the_first_address_with_a_body_wins_and_its_headers_are_kept():
    side = OtherSide(
        second=ok(b"body", **{"ETag": '"2"', "Last-Modified": "Mon, 30 Nov 2026 06:00:00 GMT"}), mirror=ok(b"other")
    )
    body = fetch(side)
    assert isinstance(body, Body)
    assert (body.url, body.content, body.etag, body.last_modified) == (
        SECOND, b"body", '"2"', "Mon, 30 Nov 2026 06:00:00 GMT"
    )  # fmt: skip
    assert [str(request.url) for request in side.asked] == [FIRST, SECOND]


def test_a_known_address_is_asked_for_changes_only():
    side = OtherSide(first=lambda request: httpx.Response(304 if request.headers.get("If-None-Match") else 200))
    known = Known(url=FIRST, etag='"1"', last_modified="Mon, 30 Nov 2026 06:00:00 GMT")
    assert fetch(side, known) == NotModified(url=FIRST)
    assert side.asked[0].headers["If-Modified-Since"] == known.last_modified


def test_what_is_known_of_one_address_is_not_told_to_another():
    side = OtherSide(first=ok())
    fetch(side, Known(url=SECOND, etag='"1"'))
    assert "If-None-Match" not in side.asked[0].headers


@pytest.mark.parametrize(
    "trouble", [unreachable, lambda request: httpx.Response(503), lambda request: httpx.Response(429)]
)
def test_a_host_in_trouble_is_not_asked_again_and_the_mirror_is(trouble):
    side = OtherSide(first=trouble, mirror=ok())
    body = fetch(side)
    assert isinstance(body, Body)
    assert [str(request.url) for request in side.asked] == [FIRST, MIRROR]


def test_when_nothing_answers_the_failure_names_every_refusal():
    with pytest.raises(FetchFailed, match=r"a\.example.*no answer; .*b\.example.* answered 404"):
        fetch(OtherSide(first=unreachable))


def test_a_document_without_an_address_cannot_be_fetched():
    with pytest.raises(FetchFailed, match="no address"):
        fetch(OtherSide(), document=Document(key="x", urls=(), file_name="x.csv"))


def test_redirects_are_refused():
    side = OtherSide(first=lambda request: httpx.Response(302, headers={"Location": "https://evil.example/"}))
    with pytest.raises(FetchFailed, match="answered 302"):
        fetch(side)
    assert all(request.url.host != "evil.example" for request in side.asked)


def test_only_https_is_read():
    side = OtherSide()
    with pytest.raises(FetchFailed, match="only https"):
        fetch(side, document=Document(key="x", urls=["http://a.example/x.csv"], file_name="x.csv"))
    assert side.asked == []


@pytest.mark.parametrize("pages", [{}, {b"1": SECOND}])
def test_a_body_beyond_the_limit_is_cut_off_with_all_its_pages(pages: dict[bytes, str]):
    side = OtherSide(first=ok(b"1" if pages else b"1234"), second=ok(b"234"))
    with pytest.raises(FetchFailed, match=r"more than [23] bytes"):
        fetch_document(paged(pages), Known(), NOW, limits=Limits(most_bytes=3), transport=httpx.MockTransport(side))


def test_a_body_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetching, "LONGEST_SECONDS", -1)
    with pytest.raises(FetchFailed, match="not whole"):
        fetch(OtherSide(first=ok()))


def test_a_document_with_a_body_is_asked_by_post_without_conditions():
    side = OtherSide(first=ok())
    document = Document(key="x", urls=[FIRST], file_name="x.json", json_body={"limit": 3}, headers={"X-Key": "k"})
    fetch(side, Known(url=FIRST, etag='"1"'), document)
    [request] = side.asked
    assert (request.method, request.content, request.headers["X-Key"]) == ("POST", b'{"limit":3}', "k")
    assert "If-None-Match" not in request.headers


def paged(pages: dict[bytes, str]) -> Document:
    return Document(key="x", urls=[FIRST], file_name="x.json", next_url=lambda content, _url: pages.get(content, ""))


def test_pages_are_followed_and_joined():
    side = OtherSide(first=ok(b"1"), second=ok(b"2"))
    body = fetch(side, document=paged({b"1": SECOND}))
    assert isinstance(body, Body)
    assert body.content == b"1\n2"
    assert body.url == FIRST


def test_pages_are_asked_for_without_conditions():
    side = OtherSide(first=ok(b"1"))
    fetch(side, Known(url=FIRST, etag='"1"'), paged({}))
    assert "If-None-Match" not in side.asked[0].headers


@pytest.mark.parametrize("following", [MIRROR, "http://a.example/v7/x.csv"])
def test_a_next_page_elsewhere_is_not_read(following: str):
    side = OtherSide(first=ok(b"1"), mirror=ok(b"2"))
    with pytest.raises(FetchFailed, match=r"page 2|only https"):
        fetch(side, document=paged({b"1": following}))
    assert [str(request.url) for request in side.asked] == [FIRST]


def test_a_page_that_is_missing_fails_the_whole_body():
    with pytest.raises(FetchFailed, match="page 2 answered 404"):
        fetch(OtherSide(first=ok(b"1")), document=paged({b"1": SECOND}))


def test_pages_without_end_are_given_up():
    def number(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=request.url.params.get("page", "1").encode())

    document = replace(paged({}), next_url=lambda content, _url: f"{FIRST}?page={int(content) + 1}")
    with pytest.raises(FetchFailed, match="page 101"):
        fetch_document(document, Known(), NOW, transport=httpx.MockTransport(number))


def test_a_page_that_leads_back_to_one_already_read_fails_the_whole_body():
    with pytest.raises(FetchFailed, match="page 2 leads back"):
        fetch(OtherSide(first=ok(b"1")), document=paged({b"1": FIRST}))


def test_a_page_that_repeats_one_already_read_ends_them():
    side = OtherSide(first=ok(b"1"), second=ok(b"1"))
    body = fetch(side, document=paged({b"1": SECOND}))
    assert isinstance(body, Body)
    assert body.content == b"1"
    assert len(side.asked) == 2


COMMITS = b'[{"commit": {"committer": {"date": "2026-05-20T06:10:00Z"}}}]'


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ok(COMMITS), date(2026, 5, 20)),
        (ok(b"[]"), None),
        (ok(b'{"message": "rate limit"}'), None),
        (ok(b"<html>"), None),
        (lambda request: httpx.Response(403), None),
        (unreachable, None),
    ],
)
def test_the_newest_commit_dates_the_body_and_its_absence_costs_nothing_else(answer, expected):
    document = Document(key="x", urls=[FIRST], last_change_urls=["https://c.example/commits"], file_name="x.csv")
    body = fetch(OtherSide(first=ok(), commits=answer), document=document)
    assert isinstance(body, Body)
    assert (body.content, body.priced_on) == (b"body", expected)
