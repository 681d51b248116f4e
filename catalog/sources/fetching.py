"""One body over the network: https only, no redirects, conditional, and never more than fits.

The addresses of a document are tried in order. An address that answers "not here" leads to the next; a host in
trouble is not asked again for this document, and one that cannot be reached, or asks for fewer questions, is not asked
again in this run at all. Pages are followed on the same host.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import httpx

from catalog.sources.base import Body, Document, FetchFailed

MOST_BYTES_OF_A_DATE = 1024 * 1024
MOST_PAGES = 100
LONGEST_SECONDS = 60
CONNECT_SECONDS = 5
TROUBLE = 500
HEADERS = {"User-Agent": "gpu-bourse price catalogue"}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long one answer may keep us waiting, and how large one body may be, all its pages together."""

    timeout_seconds: int = 20
    most_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the last answer for a document said about itself; all blank before the first."""

    url: str = ""
    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, kw_only=True)
class NotModified:
    """The body is the one already known."""

    url: str


DEFAULT_LIMITS = Limits()


def fetch_document(
    document: Document,
    known: Known,
    now: datetime,
    *,
    limits: Limits = DEFAULT_LIMITS,
    silent_hosts: set[str] | None = None,
    transport: httpx.BaseTransport | None = None,
) -> Body | NotModified:
    """Return the body of the first address that has one, or word that it did not change.

    `silent_hosts` are those not to ask in this run; hosts that prove to be such are added.
    Raises FetchFailed, naming what each address answered; BodyRejected where a page cannot be read for its next one.
    """
    hosts = _Hosts(silent_in_run=set() if silent_hosts is None else silent_hosts)
    refusals = [f"{host} gave no answer before in this run" for host in hosts.silent_among(document.urls)]
    dates = [*document.last_change_urls, *([""] * len(document.urls))]
    timeout = httpx.Timeout(limits.timeout_seconds, connect=CONNECT_SECONDS)
    with httpx.Client(timeout=timeout, headers=HEADERS, follow_redirects=False, transport=transport) as client:
        for url, last_change_url in zip(document.urls, dates, strict=False):
            if hosts.is_silent(url):
                continue
            try:
                answer, content = _ask(client, document, url, _conditions(url, known), limits.most_bytes)
            except (httpx.HTTPError, FetchFailed) as why:
                hosts.note_error(url, why)
                refusals.append(f"{url}: {str(why) or type(why).__name__}")
                continue
            if answer.status_code == httpx.codes.NOT_MODIFIED and url == known.url:
                return NotModified(url=url)
            if answer.status_code == httpx.codes.OK:
                return _body(document, url, answer, content, now, priced_on=_changed_on(client, last_change_url))
            hosts.note_refusal(url, answer.status_code)
            refusals.append(f"{url} answered {answer.status_code}")
    raise FetchFailed("; ".join(refusals) or "the document has no address")


class _Hosts:
    """Which hosts are not asked again: some for this document, those in `silent_in_run` for every later one too."""

    def __init__(self, *, silent_in_run: set[str]) -> None:
        self.silent_in_run = silent_in_run
        self.silent_here = set(silent_in_run)

    def silent_among(self, urls: Sequence[str]) -> list[str]:
        return [host for host in dict.fromkeys(httpx.URL(url).host for url in urls) if host in self.silent_here]

    def is_silent(self, url: str) -> bool:
        return httpx.URL(url).host in self.silent_here

    def note_error(self, url: str, why: Exception) -> None:
        """A body that is too large is that document's matter; a host that cannot be reached is everybody's."""
        host = httpx.URL(url).host
        self.silent_here.add(host)
        if isinstance(why, httpx.TransportError):
            self.silent_in_run.add(host)

    def note_refusal(self, url: str, status_code: int) -> None:
        host = httpx.URL(url).host
        if status_code >= TROUBLE or status_code == httpx.codes.TOO_MANY_REQUESTS:
            self.silent_here.add(host)
        if status_code == httpx.codes.TOO_MANY_REQUESTS:
            self.silent_in_run.add(host)


def _body(
    document: Document, url: str, answer: httpx.Response, content: bytes, now: datetime, *, priced_on: date | None
) -> Body:
    return Body(
        document=document,
        content=content,
        fetched_at=now,
        url=url,
        etag=answer.headers.get("ETag", ""),
        last_modified=answer.headers.get("Last-Modified", ""),
        priced_on=priced_on,
    )


def _conditions(url: str, known: Known) -> dict[str, str]:
    if url != known.url:
        return {}
    stated = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: value for name, value in stated.items() if value}


def _ask(
    client: httpx.Client, document: Document, url: str, conditions: Mapping[str, str], most_bytes: int
) -> tuple[httpx.Response, bytes]:
    """Return the first answer and the whole body: all pages of a paged document, one after another.

    A page equal to one already read ends them: some APIs repeat themselves when asked for more than there is. Pages
    are asked for whole, because a first page that did not change says nothing about those behind it.
    """
    method = "GET" if document.json_body is None else "POST"
    is_conditional = method == "GET" and document.next_url is None
    request = client.build_request(
        method, url, json=document.json_body, headers={**document.headers, **(conditions if is_conditional else {})}
    )
    answer, content = _read(client, request, most_bytes)
    pages, asked = [content], [url]
    while (
        document.next_url
        and answer.status_code == httpx.codes.OK
        and (following := document.next_url(pages[-1], asked[-1]))
    ):
        if httpx.URL(following).netloc != request.url.netloc or len(pages) >= MOST_PAGES:
            raise FetchFailed(f"page {len(pages) + 1} is not read: {following}")
        if following in asked:
            raise FetchFailed(f"page {len(pages) + 1} leads back to one already read: {following}")
        page = client.build_request("GET", following, headers=document.headers)
        paged, content = _read(client, page, most_bytes - sum(map(len, pages)))
        if paged.status_code != httpx.codes.OK:
            raise FetchFailed(f"page {len(pages) + 1} answered {paged.status_code}")
        if content in pages:
            break
        pages.append(content)
        asked.append(following)
    return answer, b"\n".join(pages)


def _read(client: httpx.Client, request: httpx.Request, most_bytes: int) -> tuple[httpx.Response, bytes]:
    """Return the answer and its whole body. Raises FetchFailed past the limits of size and time."""
    if request.url.scheme != "https":
        raise FetchFailed("only https is read")
    started = time.monotonic()
    content = bytearray()
    answer = client.send(request, stream=True)
    try:
        for chunk in answer.iter_bytes():
            content += chunk
            if len(content) > most_bytes:
                raise FetchFailed(f"more than {most_bytes} bytes")
            if time.monotonic() - started > LONGEST_SECONDS:
                raise FetchFailed(f"not whole after {LONGEST_SECONDS} seconds")
    finally:
        answer.close()
    return answer, bytes(content)


def _changed_on(client: httpx.Client, url: str) -> date | None:
    """Return the day of the newest commit of a GitHub list. A date is a help: without one the body is still good."""
    if not url:
        return None
    try:
        answer, content = _read(client, client.build_request("GET", url), MOST_BYTES_OF_A_DATE)
        return committed_on(json.loads(content)) if answer.status_code == httpx.codes.OK else None
    except (httpx.HTTPError, FetchFailed, ValueError):
        return None


def committed_on(commits: Any) -> date | None:
    """Return the newest commit's day from GitHub's answer, None when it names none.

    >>> committed_on([{"commit": {"committer": {"date": "2026-11-29T06:10:00Z"}}}])
    datetime.date(2026, 11, 29)
    """
    try:
        return datetime.fromisoformat(commits[0]["commit"]["committer"]["date"]).date()
    except (LookupError, TypeError, ValueError):
        return None
