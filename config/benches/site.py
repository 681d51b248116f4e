"""The whole site in process: a WSGI call through every middleware, without a network or a test client."""

import io
from collections.abc import Callable
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse
from django.test.utils import override_settings
from django.urls import path

from config.urls import urlpatterns as site_urls


def empty(request: HttpRequest) -> HttpResponse:
    """Answer nothing, through the same middleware: the limit a page is measured against."""
    return HttpResponse("")


urlpatterns = [path("bench/empty", empty), *site_urls]


class Site:
    """Calls the site; a context manager because the empty view exists only while measuring."""

    def __enter__(self) -> "Site":
        self._override = override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECURE_SSL_REDIRECT=False)
        self._override.enable()
        self._application = WSGIHandler()
        return self

    def __exit__(self, *exception: object) -> None:
        self._override.disable()

    def get(self, address: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of one GET."""
        address, _, query = address.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": address,
            "QUERY_STRING": query,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": io.StringIO(),
            **headers,
        }
        answered: dict[str, Any] = {}

        def start_response(
            status: str, lines: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], object]:
            answered.update(status=int(status.split()[0]), headers=dict(lines))
            return lambda chunk: None

        chunks = self._application(environ, start_response)
        body = b"".join(chunks)
        close = getattr(chunks, "close", None)
        if close:
            close()
        return answered["status"], answered["headers"], body
