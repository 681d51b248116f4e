"""Pages that are one person's affair: neither stored on the way nor listed by search engines."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_cache_control

Arguments = ParamSpec("Arguments")
View = Callable[Arguments, HttpResponseBase]


def private(view: View[Arguments]) -> View[Arguments]:
    """Make every answer of a view private."""

    @wraps(view)
    def answer(*args: Arguments.args, **kwargs: Arguments.kwargs) -> HttpResponseBase:
        response = view(*args, **kwargs)
        patch_cache_control(response, private=True, no_store=True)
        response["X-Robots-Tag"] = "noindex"
        return response

    return answer


def keep_private(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: whatever is answered to somebody with a session, and does not say who may keep it, is private.

    Each page names the person who is signed in, also one that is missing or refused.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if settings.SESSION_COOKIE_NAME in request.COOKIES and not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_store=True)
        return response

    return answer
