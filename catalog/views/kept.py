"""Pages that everybody sees alike are rendered once a minute and version, and then given again.

What a page shows depends on the catalogue's version, on the minute (ages are told in minutes) and on its address,
which holds language, currency and filters. Someone with a session gets a page of their own.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from catalog.version import catalogue_version
from common.conditional import Answers, Version

_PAGES = Answers(at_most=512, at_most_bytes=32 * 1024 * 1024)


def kept_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Give the page again from memory while nothing it depends on has changed; 304 where the browser still holds it."""

    @wraps(view)
    def show(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            return view(request, *args, **kwargs)
        version = catalogue_version(now=datetime.now(UTC))
        known = _PAGES.recall(request, version=lambda: version)
        if known is not None:
            return known
        response = view(request, *args, **kwargs)
        if response.status_code == 200:
            response["ETag"] = _etag(request, version)
            response["Cache-Control"] = "no-cache"
            _PAGES.keep(request, version, response, is_body_kept=True)
        return response

    return show


def _etag(request: HttpRequest, version: Version) -> str:
    return f'W/"{sha256(f"{version.key}|{request.build_absolute_uri()}".encode()).hexdigest()[:32]}"'
