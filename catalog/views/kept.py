"""Pages that everybody sees alike are rendered once a minute and version, and then given again.

What a page shows depends on the version of its data (for `kept_page`: of the catalogue), on the minute (ages are told
in minutes) and on its address, which holds language, currency and filters. Someone with a session gets a page of
their own, which nobody keeps: it may name a person or hold a message for them.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from catalog.version import catalogue_version
from common.conditional import Answers, Version

Page = Callable[..., HttpResponse]


def kept_by(version_of: Callable[..., Version]) -> Callable[[Page], Page]:
    """Make a decorator: a page is given again from memory while `version_of(now=)` says the same.

    304 where the browser still holds it. Pages of one decorator share their room, and are forgotten together.
    """
    pages = Answers(at_most=512, at_most_bytes=32 * 1024 * 1024)

    def keep(view: Page) -> Page:
        @wraps(view)
        def show(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if settings.SESSION_COOKIE_NAME in request.COOKIES:
                return view(request, *args, **kwargs)
            version = version_of(now=datetime.now(UTC))
            known = pages.recall(request, version=lambda: version)
            if known is not None:
                return known
            response = view(request, *args, **kwargs)
            if response.status_code == 200:
                response.headers.setdefault("ETag", _etag(request, version))  # unless it names its content itself
                response["Cache-Control"] = "no-cache"
                # caches between us and a visitor must ask again after a sign-in
                patch_vary_headers(response, ["Cookie"])
                pages.keep(request, version, response, is_body_kept=True)
            return response

        return show

    return keep


def _etag(request: HttpRequest, version: Version) -> str:
    return f'W/"{sha256(f"{version.key}|{request.build_absolute_uri()}".encode()).hexdigest()[:32]}"'


kept_page = kept_by(catalogue_version)
