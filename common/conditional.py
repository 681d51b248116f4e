"""Public answers that caches may keep: validators first, the body only when the caller does not hold it already.

A validator is made of what the body depends on: the version of the data, the minute (prices change tier with the
clock) and the address asked for. It is known before the body is built, so a 304 costs one small query; and what this
process has answered in the version at hand it answers again from memory.
"""

import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from http import HTTPStatus

from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import http_date
from django.utils.translation import gettext as _
from rest_framework.request import Request

from common.problems import Problem

MAX_AGE_SECONDS = 15
_ACCEPTS_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
_OF_A_BODY = frozenset(("Content-Type", "Content-Length", "Content-Disposition"))


@dataclass(frozen=True, kw_only=True)
class Version:
    """The state of the data: `key` differs whenever it does, `changed_at` is not before its last change."""

    key: str
    changed_at: datetime

    @classmethod
    def at(cls, now: datetime, *, key: str, changed_at: datetime | None) -> "Version":
        """Return the version of data that also depends on the clock, to the minute; `changed_at` None: not known."""
        minute = now.replace(second=0, microsecond=0)
        return cls(key=f"{key}@{minute:%Y%m%d%H%M}", changed_at=max(minute, min(changed_at or minute, now)))


def answer(request: Request, *, version: Version, build: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """Return 304 where the caller holds this version, else what `build` makes, with its validators."""
    etag = etag_of(request, version)
    changed_at = int(version.changed_at.timestamp())
    settled = get_conditional_response(request._request, etag=etag, last_modified=changed_at)
    if settled is not None and settled.status_code == HTTPStatus.PRECONDITION_FAILED:
        detail = _("The precondition of this request does not hold.")
        raise Problem(status=HTTPStatus.PRECONDITION_FAILED, code="precondition_failed", detail=detail)
    response: HttpResponseBase = settled if settled is not None else build()
    response["ETag"] = etag
    response["Last-Modified"] = http_date(changed_at)
    response["Cache-Control"] = f"public, max-age={MAX_AGE_SECONDS}"
    patch_vary_headers(response, ["Accept"])
    return response


def etag_of(request: Request, version: Version) -> str:
    """Return the weak validator of the address in this version (weak: packed and plain bodies share it)."""
    parts = (version.key, request.accepted_renderer.format, request.build_absolute_uri())
    return f'W/"{hashlib.sha256("|".join(parts).encode()).hexdigest()[:32]}"'


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """A 200 as it was given; `body` is None where only its headers are worth keeping."""

    version: Version
    headers: Mapping[str, str]
    body: bytes | None

    @cached_property
    def headers_of_a_304(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name not in _OF_A_BODY}

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.body or b"", compresslevel=6)


class Answers:
    """What one process has answered in one version of the data, by address. Forgotten with the version, or when full.

    Inside a transaction nothing is kept or recalled: what it wrote may never come to be, and nobody else may see it.
    """

    def __init__(self, *, at_most: int, at_most_bytes: int) -> None:
        self._at_most, self._at_most_bytes = at_most, at_most_bytes
        self._forget("")

    def _forget(self, version_key: str) -> None:
        self._version_key, self._bytes = version_key, 0
        self._answers: dict[tuple[str, ...], _Answer] = {}

    def recall(self, request: HttpRequest, *, version: Callable[[], Version | None]) -> HttpResponse | None:
        """Return the answer to this very request again, or None where it takes more than memory.

        `version` is asked for only when the address is known; None means that it cannot be told.
        """
        known = self._answers.get(_address(request)) if request.method == "GET" else None
        if known is None or connection.in_atomic_block:
            return None
        current = version()
        if current is None or current.key != known.version.key:
            return None
        if request.META.get("HTTP_IF_NONE_MATCH") == known.headers["ETag"]:
            return _not_modified(known)
        changed_at = int(known.version.changed_at.timestamp())
        settled = get_conditional_response(request, etag=known.headers["ETag"], last_modified=changed_at)
        if settled is not None:
            return _not_modified(known) if settled.status_code == HTTPStatus.NOT_MODIFIED else None
        return None if known.body is None else _again(known, request)

    def keep(
        self, request: HttpRequest, version: Version, response: HttpResponseBase, *, is_body_kept: bool | None = None
    ) -> None:
        """Remember a 200 and its body; where not said, the body only of an address without parameters."""
        if response.status_code != 200 or request.method != "GET" or connection.in_atomic_block:
            return
        if self._version_key != version.key or len(self._answers) >= self._at_most or self._bytes > self._at_most_bytes:
            self._forget(version.key)
        if is_body_kept is None:
            is_body_kept = not request.META.get("QUERY_STRING")
        body = response.content if is_body_kept and isinstance(response, HttpResponse) else None
        self._bytes += len(body or b"")
        self._answers[_address(request)] = _Answer(version=version, headers=dict(response.items()), body=body)


def _address(request: HttpRequest) -> tuple[str, ...]:
    """Return what tells one answer from another. The host as sent: the middleware before us has judged it."""
    meta = request.META
    return (
        request.scheme or "",
        meta.get("HTTP_HOST") or f"{meta.get('SERVER_NAME')}:{meta.get('SERVER_PORT')}",
        request.path,
        meta.get("QUERY_STRING", ""),
        meta.get("HTTP_ACCEPT", ""),
    )


def _not_modified(known: _Answer) -> HttpResponse:
    return HttpResponseNotModified(headers=known.headers_of_a_304)


def _again(known: _Answer, request: HttpRequest) -> HttpResponse:
    is_packed = bool(_ACCEPTS_GZIP.search(request.META.get("HTTP_ACCEPT_ENCODING", "")))
    response = HttpResponse(known.packed if is_packed else known.body, headers=dict(known.headers))
    patch_vary_headers(response, ["Accept-Encoding"])
    if is_packed:
        response["Content-Encoding"] = "gzip"
    return response


def json_response(body: bytes) -> HttpResponse:
    """Return rendered JSON as a response."""
    return HttpResponse(body, content_type="application/json")
