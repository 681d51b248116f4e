"""A host that cannot be reached is asked once in a run, whatever documents still wait for it."""

from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from catalog.sources.base import Body, Document, FetchFailed
from catalog.sources.fetching import Known, Limits, fetch_document

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
Answer = Callable[[httpx.Request], httpx.Response]


class Run:
    """Fetches documents one after another, as one run does, from hosts that answer alike at every address."""

    def __init__(self, **hosts: Answer) -> None:
        self.hosts = hosts
        self.asked: list[str] = []
        self.silent_hosts: set[str] = set()

    def fetch(self, *urls: str, limits: Limits | None = None) -> Body:
        body = fetch_document(
            Document(key="x", urls=urls, file_name="x.json"),
            Known(),
            NOW,
            limits=limits or Limits(),
            silent_hosts=self.silent_hosts,
            transport=httpx.MockTransport(self._answer),
        )
        assert isinstance(body, Body)
        return body

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        return self.hosts[request.url.host.partition(".")[0]](request)


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no route", request=request)


def too_slow(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("no answer", request=request)


def answering(status_code: int, content: bytes = b"{}") -> Answer:
    return lambda _request: httpx.Response(status_code, content=content)


@pytest.mark.parametrize("answer", [unreachable, too_slow, answering(429)])
def test_a_host_that_gives_no_answer_is_not_asked_for_the_next_document(answer: Answer):
    run = Run(a=answer)
    with pytest.raises(FetchFailed):
        run.fetch("https://a.example/1")
    with pytest.raises(FetchFailed, match=r"a\.example gave no answer before in this run"):
        run.fetch("https://a.example/2", "https://a.example/3")
    assert run.asked == ["https://a.example/1"]


def test_the_mirror_is_asked_at_once_when_the_first_host_was_silent():
    run = Run(a=unreachable, b=answering(200, b"[]"))
    for number in (1, 2):
        assert run.fetch(f"https://a.example/{number}", f"https://b.example/{number}").content == b"[]"
    assert run.asked == ["https://a.example/1", "https://b.example/1", "https://b.example/2"]


@pytest.mark.parametrize("status_code", [404, 500, 503])
def test_a_refusal_of_one_document_does_not_silence_the_host_for_others(status_code: int):
    run = Run(a=answering(status_code))
    for number in (1, 2):
        with pytest.raises(FetchFailed, match=str(status_code)):
            run.fetch(f"https://a.example/{number}")
    assert len(run.asked) == 2


def test_a_body_that_is_too_large_is_that_documents_matter():
    run = Run(a=answering(200, b"12345"))
    with pytest.raises(FetchFailed, match="more than 3 bytes"):
        run.fetch("https://a.example/1", limits=Limits(most_bytes=3))
    assert run.fetch("https://a.example/2").content == b"12345"


def test_the_next_run_asks_again():
    for _ in range(2):
        run = Run(a=unreachable)
        with pytest.raises(FetchFailed, match="no route"):
            run.fetch("https://a.example/1")
        assert len(run.asked) == 1
