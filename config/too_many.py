"""The answer to someone who asks too often."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

WAIT_SECONDS = 60


def too_many_requests(request: HttpRequest) -> HttpResponse:
    """Return the page that says so, and when to try again: limits are counted by the minute."""
    response = render(request, "429.html", status=HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(WAIT_SECONDS)
    return response
