"""How the catalogue's calls answer: 304 or a body under the validators of the version they were made from."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from catalog.version import catalogue_version
from common.conditional import Answers, Version, answer, json_response

_ANSWERS = Answers(at_most=1024, at_most_bytes=16 * 1024 * 1024)


class CatalogueView(APIView):
    """A call that reads the catalogue."""

    http_method_names = ["get", "head"]

    def answer(self, request: Request, build: Callable[[datetime], Any]) -> HttpResponseBase:
        """Return 304, or what `build` makes of the moment: a response, or data to render."""
        now = datetime.now(UTC)
        version = catalogue_version(now=now)

        def respond() -> HttpResponseBase:
            built = build(now)
            return built if isinstance(built, HttpResponseBase) else json_response(JSONRenderer().render(built))

        response = answer(request, version=version, build=respond)
        _ANSWERS.keep(request._request, version, response)
        return response


def recall_answers(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware, the innermost: give an answer again before anything asks which call it belongs to."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        known = _ANSWERS.recall(request, version=_version)
        return get_response(request) if known is None else known

    return respond


def _version() -> Version | None:
    try:
        return catalogue_version(now=datetime.now(UTC))
    except DatabaseError:  # the call will meet it too, and knows how to say so
        return None
