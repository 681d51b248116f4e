"""One request to a receiver: to the address that was checked, under its name, never elsewhere, never for long."""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from threading import Thread

import httpcore
import pytest

from tests.users.receivers import certified_for, receiving
from users.webhooks import sending
from users.webhooks.addresses import Target
from users.webhooks.sending import KEPT_BYTES, Fault, post, resolve

HEADERS = {"content-type": "application/json", "webhook-id": "1"}


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


def here(port: int, **values) -> Target:
    """A target on this machine, as the switch for trying out lets it through."""
    return Target(
        **{"scheme": "http", "host": "127.0.0.1", "port": port, "path": "/hook?a=b", "is_loopback": True, **values}
    )


def public(**values) -> Target:
    return Target(**{"scheme": "https", "host": "hooks.example.com", "port": 443, "path": "/", **values})


def send(target: Target, **values):
    return post(target, headers=HEADERS, body=b'{"a":1}', **values)


def test_a_message_arrives_as_it_is_and_the_answer_comes_back(receiver):
    answer = send(here(receiver.port))
    assert (answer.status, answer.text, answer.fault, answer.is_taken) == (200, "thanks", Fault.NONE, True)
    [(path, headers, body)] = receiver.requests
    assert (path, body) == ("/hook?a=b", b'{"a":1}')
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    assert headers["webhook-id"] == "1"


@pytest.mark.parametrize(("status", "is_taken"), [(200, True), (204, True), (299, True), (304, False), (500, False)])
def test_only_a_status_from_200_to_299_means_that_it_was_taken(receiver, status, is_taken):
    receiver.status, receiver.answer = status, b""
    answer = send(here(receiver.port))
    assert (answer.status, answer.is_taken) == (status, is_taken)


def test_a_redirect_is_not_followed(receiver):
    with receiving() as inside:
        receiver.status, receiver.headers = 302, {"location": inside.url}
        answer = send(here(receiver.port))
        assert (answer.status, answer.is_taken) == (302, False)
        assert inside.requests == []


def test_a_redirect_of_the_kind_that_keeps_the_method_is_not_followed_either(receiver):
    with receiving() as inside:
        receiver.status, receiver.headers = 307, {"location": inside.url}
        assert not send(here(receiver.port)).is_taken
        assert inside.requests == []


def test_of_an_answer_a_kilobyte_is_kept_and_64_are_read(receiver, monkeypatch):
    receiver.answer = b"x" * 5_000_000
    read = []
    iter_stream = httpcore.Response.iter_stream

    def counted(response):
        for chunk in iter_stream(response):
            read.append(len(chunk))
            yield chunk

    monkeypatch.setattr(httpcore.Response, "iter_stream", counted)
    answer = send(here(receiver.port))
    assert answer.is_taken
    assert answer.text == "x" * KEPT_BYTES
    assert sum(read) <= 2 * sending.MOST_BYTES


def test_an_answer_that_is_no_text_can_be_stored(receiver):
    receiver.answer = b"\x00\xff<b>"
    assert send(here(receiver.port)).text == "\ufffd\ufffd<b>"


def test_proxies_of_the_environment_are_not_used(receiver, monkeypatch):
    with receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert send(here(receiver.port)).is_taken
        assert proxy.requests == []


@pytest.mark.parametrize(
    "resolved", [["127.0.0.1"], ["10.0.0.7"], ["169.254.169.254"], ["::ffff:127.0.0.1"], ["93.184.216.34", "127.0.0.1"]]
)
def test_a_name_that_leads_inside_is_sent_nothing(receiver, resolved):
    answer = send(public(port=receiver.port), resolver=lambda host, port: resolved)
    assert (answer.status, answer.fault) == (None, Fault.ADDRESS_REFUSED)
    assert receiver.requests == []


def test_a_name_that_changes_its_mind_is_asked_once_and_the_checked_address_is_the_one_connected_to(monkeypatch):
    """DNS rebinding: public when it is checked, inside when it would be connected to."""
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]])
    asked, connected = [], []

    def getaddrinfo(host, port, **_):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in next(answers)]

    def connect_tcp(_, host, port, **__):
        connected.append((host, port))
        raise httpcore.ConnectError

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", connect_tcp)
    answer = send(public())
    assert answer.fault == Fault.CONNECTION
    assert asked == ["hooks.example.com"]
    assert connected == [("93.184.216.34", 443)]


def test_a_name_that_leads_nowhere_is_said_so():
    def nowhere(host: str, port: int):
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    assert send(public(), resolver=nowhere).fault == Fault.UNKNOWN_HOST


def test_every_address_of_a_name_is_looked_at_and_each_once(monkeypatch):
    found = [("93.184.216.34", 443), ("93.184.216.34", 443), ("2606:4700::1111", 443, 0, 0)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", address) for address in found])
    assert resolve("hooks.example.com", 443) == ["93.184.216.34", "2606:4700::1111"]


def test_the_certificate_is_checked_for_the_name_though_the_connection_goes_to_a_number(tmp_path):
    shown, trusting = certified_for("hooks.example.com", tmp_path)
    with receiving(tls=shown) as receiver:
        target = here(receiver.port, scheme="https", host="hooks.example.com")
        answer = send(target, resolver=lambda host, port: ["127.0.0.1"], tls=trusting)
        assert (answer.status, answer.fault) == (200, Fault.NONE)
        assert receiver.asked_for == ["hooks.example.com"]
        other = here(receiver.port, scheme="https", host="other.example.com")
        refused = send(other, resolver=lambda host, port: ["127.0.0.1"], tls=trusting)
        assert (refused.status, refused.fault) == (None, Fault.TLS)
        assert len(receiver.requests) == 1


def test_a_certificate_that_nobody_vouches_for_is_not_believed(tmp_path):
    shown, _ = certified_for("hooks.example.com", tmp_path)
    with receiving(tls=shown) as receiver:
        target = here(receiver.port, scheme="https", host="hooks.example.com")
        assert send(target, resolver=lambda host, port: ["127.0.0.1"]).fault == Fault.TLS
        assert receiver.requests == []


def test_what_trusts_the_public_authorities_checks_names():
    context = sending._public_authorities()
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("talk", "fault"),
    [
        (lambda connection: None, Fault.NOT_HTTP),
        (lambda connection: connection.sendall(b"220 smtp.example.com ready\r\n"), Fault.NOT_HTTP),
        (lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000), Fault.NOT_HTTP),
    ],
    ids=["hangs up", "speaks something else", "headers without end"],
)
def test_what_is_not_http_is_a_fault_and_no_error(talk, fault):
    with answering(talk) as port:
        assert send(here(port)).fault in (fault, Fault.CONNECTION)


def test_nothing_listening_is_a_fault():
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert send(here(port)).fault == Fault.CONNECTION


@pytest.mark.parametrize(
    "dripped", [b"", b"HTTP/1.1 200 OK\r\n" + b"x-slow: 1\r\n" * 10_000], ids=["silent", "headers"]
)
def test_an_answer_that_never_ends_is_cut_off_at_the_deadline(monkeypatch, dripped):
    monkeypatch.setattr(sending, "MOST_SECONDS", 0.4)
    with answering(lambda connection: drip(connection, dripped)) as port:
        began = time.monotonic()
        answer = send(here(port))
        assert (answer.status, answer.fault) == (None, Fault.TIMEOUT)
        assert time.monotonic() - began < 2
        assert answer.took_ms >= 400


def test_a_body_that_never_ends_does_not_undo_a_status(monkeypatch):
    monkeypatch.setattr(sending, "MOST_SECONDS", 0.4)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"

    def talk(connection: socket.socket) -> None:
        connection.sendall(head)
        drip(connection, b"z" * 1000)

    with answering(talk) as port:
        answer = send(here(port))
    assert answer.is_taken
    assert set(answer.text) == {"z"}


@contextmanager
def answering(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """Run a server that reads one request and then does what it is told with the connection; the block gets its port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with closing(connection), suppress(OSError):
            connection.recv(65536)
            talk(connection)

    thread = Thread(target=serve, daemon=True)
    thread.start()
    with closing(listening):
        yield listening.getsockname()[1]
    thread.join(10)


def drip(connection: socket.socket, text: bytes) -> None:
    """Send a byte now and then, until the other side hangs up; with nothing to send, only wait for that."""
    connection.settimeout(0.05)
    for position in range(10_000):
        try:
            if connection.recv(1) == b"":
                return
        except TimeoutError:
            pass
        connection.sendall(text[position : position + 1])
