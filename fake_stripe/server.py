"""HTTP in front of it all, for this machine only: the API under /v1/, hosted pages under /c/, controls under /_control/."""

import contextlib
import ipaddress
import json
import re
import socket
import socketserver
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit

from fake_stripe.api import Answer, Request, answer
from fake_stripe.control import control, how_to
from fake_stripe.errors import ApiError, server_error
from fake_stripe.pages import STYLE, Page, pay_session, show_challenge, show_index, show_session, take_challenge
from fake_stripe.store import Json
from fake_stripe.webhooks import Postman
from fake_stripe.world import World

_MOST_BYTES = 1_000_000
_OUR_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class Server(ThreadingHTTPServer):
    """One listening address of the gateway."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, world: World, postman: Postman) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.world = world
        self.postman = postman
        super().__init__((host, port), Handler)

    def server_bind(self) -> None:
        """Take the address; unlike the parent's, without asking anybody for our name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


def listen(port: int, world: World, postman: Postman) -> list[Server]:
    """Listen on this machine's own addresses, both families where there are two; port 0 takes any free one."""
    first = Server("127.0.0.1", port, world, postman)
    servers = [first]
    with contextlib.suppress(OSError):  # no IPv6 here: the one address does
        servers.append(Server("::1", first.server_port, world, postman))
    for server in servers:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    return servers


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    timeout: ClassVar[int] = 60
    server_version = "FakeStripe"

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a POST."""
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
        """Say nothing: a line per request would bury the rest."""

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if 0 < size <= _MOST_BYTES else b""
        try:
            if not self._is_from_here():
                self._json(403, {"error": {"message": "This gateway serves its own machine only."}})
            elif parts.path.startswith("/v1/"):
                self._api(
                    Request(method=self.command, path=parts.path, query=parts.query, headers=self.headers, body=body)
                )
            elif parts.path.startswith("/_control/"):
                self._control(parts.path.removeprefix("/_control/").rstrip("/"), body)
            elif parts.path == "/pay.css":
                self._send(200, STYLE, {"Content-Type": "text/css", "Cache-Control": "max-age=300"})
            else:
                self._page(self._hosted(parts.path, parts.query, body))
        except Exception:  # whatever it is, the caller gets an answer and the log the reason
            traceback.print_exc()
            self._json(500, server_error().body())

    def _is_from_here(self) -> bool:
        """Whether the call comes from this machine, by one of its own names, and not from another site's page."""
        host = re.sub(r":\d+$", "", self.headers.get("Host", ""))
        origin = self.headers.get("Origin")
        is_own = origin is None or urlsplit(origin).netloc == self.headers.get("Host")
        is_page = not self.path.startswith(("/_control/", "/v1/"))
        return ipaddress.ip_address(self.client_address[0]).is_loopback and host in _OUR_HOSTS and (is_own or is_page)

    def _api(self, request: Request) -> None:
        given: Answer = answer(self.server.world, request)
        self.server.postman.wake()
        if given.is_dropped:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._json(given.status, given.body, given.headers)

    def _control(self, path: str, body: bytes) -> None:
        if path == "health":
            self._json(200, {"ok": True})
            return
        if self.command != "POST":
            self._json(405, ApiError("Controls are POSTed.", status=405).body())
            return
        try:
            self._json(200, control(self.server.world, self.server.postman, path, self._wishes(body)))
        except ApiError as refusal:
            self._json(refusal.status, refusal.body())
        except (KeyError, TypeError, ValueError) as wrong:
            self._json(400, ApiError(f"Not understood: {wrong!r}").body())

    def _wishes(self, body: bytes) -> Json:
        if not body:
            return {}
        if "json" in self.headers.get("Content-Type", ""):
            wishes = json.loads(body)
            if not isinstance(wishes, dict):
                raise ValueError("a JSON object is wanted")
            return wishes
        # A form, as curl sends it: numbers and yes/no are written as in JSON.
        pairs = parse_qsl(body.decode(), keep_blank_values=True)
        return {name: _value_of(text) for name, text in pairs}

    def _hosted(self, path: str, query: str, body: bytes) -> Page:
        world, is_post = self.server.world, self.command == "POST"
        found = re.fullmatch(r"/c/pay/(\w+)(/challenge)?", path)
        said = dict(parse_qsl(query)).get("said", "")
        with world.store.transaction():
            if path == "/":
                page = show_index(world, how_to(world))
            elif found is None:
                page = show_session(world, "")
            elif found[2]:
                page = take_challenge(world, found[1], body) if is_post else show_challenge(world, found[1])
            else:
                page = pay_session(world, found[1], body) if is_post else show_session(world, found[1], said)
        self.server.postman.wake()
        return page

    def _page(self, page: Page) -> None:
        targets = " ".join(("'self'", *page.form_targets))
        headers = {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": (
                f"default-src 'none'; style-src 'self'; form-action {targets}; base-uri 'none'; frame-ancestors 'none'"
            ),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        if page.location:
            headers["Location"] = page.location
        self._send(page.status, page.html.encode(), headers)

    def _json(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body, indent=2).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _value_of(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
