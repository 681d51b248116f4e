"""One request to a receiver: to an address that was looked up once and found to be public, and to no other.

The look-up, the connection, the handshake, the request and the answer share `MOST_SECONDS`. Redirects are not followed,
proxies of the environment are not used, an answer is read up to `MOST_BYTES`. The certificate must be for the name,
though the connection goes to the number: between look-up and connection nobody is asked again.

Nothing here raises for what a receiver does: whatever happens is an answer.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

import httpcore
import httpx

from users.webhooks.addresses import NotReachable, Target, reachable_address

MOST_SECONDS = 5.0
MOST_BYTES = 64 * 1024
KEPT_BYTES = 1024
Resolver = Callable[[str, int], Sequence[str]]


class Fault(StrEnum):
    """What went wrong before there was a status."""

    NONE = ""
    ADDRESS_REFUSED = "address_refused"
    UNKNOWN_HOST = "unknown_host"
    TIMEOUT = "timeout"
    TLS = "tls"
    CONNECTION = "connection"
    NOT_HTTP = "not_http"
    SECRET_LOST = "secret_lost"  # noqa: S105  # a word about a secret
    OURS = "ours"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a receiver answered: `text` is the first kilobyte. Without a `status` there is a `fault`."""

    took_ms: int
    status: int | None = None
    text: str = ""
    fault: Fault = Fault.NONE

    @property
    def is_taken(self) -> bool:
        """Whether the receiver has the message."""
        return self.status is not None and 200 <= self.status < 300


def resolve(host: str, port: int) -> Sequence[str]:
    """Return every address that a name stands for now. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def post(
    target: Target,
    *,
    headers: Mapping[str, str],
    body: bytes,
    resolver: Resolver = resolve,
    tls: ssl.SSLContext | None = None,
) -> Answer:
    """Send one request and return what became of it. `tls`: whom to trust, by default the public authorities."""
    began = time.monotonic()
    status, text, fault = _try(target, headers, body, resolver, tls, began + MOST_SECONDS)
    return Answer(status=status, text=text, fault=fault, took_ms=round((time.monotonic() - began) * 1000))


def _try(
    target: Target,
    headers: Mapping[str, str],
    body: bytes,
    resolver: Resolver,
    tls: ssl.SSLContext | None,
    deadline: float,
) -> tuple[int | None, str, Fault]:
    try:
        address = reachable_address(target, resolver(target.host, target.port))
        status, text = _exchange(target, address, headers, body, tls or _public_authorities(), deadline)
    except NotReachable:
        return None, "", Fault.ADDRESS_REFUSED
    except OSError:
        return None, "", Fault.UNKNOWN_HOST
    except httpcore.TimeoutException:
        return None, "", Fault.TIMEOUT
    except httpcore.NetworkError as problem:
        return None, "", Fault.TLS if _is_about_tls(problem) else Fault.CONNECTION
    except httpcore.ProtocolError:
        return None, "", Fault.NOT_HTTP
    return status, text, Fault.NONE


def _is_about_tls(problem: httpcore.NetworkError) -> bool:
    return any(isinstance(cause, ssl.SSLError) for cause in problem.args)  # the library hands its cause on like this


def _exchange(
    target: Target, address: str, headers: Mapping[str, str], body: bytes, tls: ssl.SSLContext, deadline: float
) -> tuple[int, str]:
    url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
    with (
        httpcore.ConnectionPool(ssl_context=tls, network_backend=_OneAddress(address, deadline)) as pool,
        pool.stream("POST", url, headers=list(headers.items()), content=body) as response,
    ):
        return response.status, _start_of(response)


def _start_of(response: httpcore.Response) -> str:
    """Return how the body begins. The status has been told by now, so a body that breaks off changes nothing."""
    kept, size = b"", 0
    try:
        for chunk in response.iter_stream():
            kept += chunk[: KEPT_BYTES - len(kept)]
            size += len(chunk)
            if size >= MOST_BYTES:
                break
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        pass
    return kept.decode(errors="replace").replace("\x00", "\ufffd")


@cache
def _public_authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()


class _OneAddress(httpcore.NetworkBackend):
    """Connects to one address, whatever name it is asked for."""

    def __init__(self, address: str, deadline: float) -> None:
        self._address = address
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the address instead of the host."""
        stream = httpcore.SyncBackend().connect_tcp(self._address, port, timeout=_left(self._deadline))
        return _TimedStream(stream, self._deadline)


class _TimedStream(httpcore.NetworkStream):
    """A connection that ends at its deadline, however slowly the other side goes on."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what there is."""
        return self._stream.read(max_bytes, timeout=_left(self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it."""
        self._stream.write(buffer, timeout=_left(self._deadline))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Shake hands."""
        stream = self._stream.start_tls(ssl_context, server_hostname, timeout=_left(self._deadline))
        return _TimedStream(stream, self._deadline)

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        """Return what the connection knows of itself."""
        return self._stream.get_extra_info(info)


def _left(deadline: float) -> float:
    """Return the seconds that are left. Raises ReadTimeout when there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout
    return left
