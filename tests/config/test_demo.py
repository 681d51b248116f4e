"""`manage.py demo` as its users meet it: real processes, real sockets, killed and started again."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from config.runtime import addresses, postgres, servers
from config.runtime import demo as demo_command
from marketplace.sample_market.rows import sample_books

PROJECT = Path(__file__).resolve().parent.parent.parent
A_THOUSAND_EACH = dict.fromkeys(("EUR", "USD", "GBP"), "1000.000000")
REFERENCE_PRICES = {
    gpu: f"{servers[0].price_usd_per_gpu_hour:.4f}"
    for gpu, servers in sample_books().items()
    if servers[0].is_reference
}
SECOND_START_SECONDS = 40  # 20 on a quiet machine; this one also runs the rest of the suite

pytestmark = [pytest.mark.demo, pytest.mark.timeout(240)]


@contextmanager
def demo(home: Path, port: int, **servers_outside: str) -> Iterator[subprocess.Popen[str]]:
    outside = ("BOURSE_ENV", "BOURSE_HOME", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
    env = {name: value for name, value in os.environ.items() if name not in outside} | servers_outside
    command = [sys.executable, str(PROJECT / "manage.py"), "demo", "--home", str(home), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def lines_until(process: subprocess.Popen[str], start: str) -> list[str]:
    """Read output up to the line that begins with `start`; fails with all of it when the process ends first."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith(start):
            return lines
    raise AssertionError("the demo ended early:\n" + "\n".join(lines))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.status, answer.read().decode()


def line_about_payments(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("Test payments: http://localhost:"))


def available_of(facts: dict[str, Any]) -> dict[str, str]:
    """Ask the API with the renter's key what each wallet has."""
    request = urllib.request.Request(
        f"{facts['base_url']}api/v1/wallets/", headers={"Authorization": f"Bearer {facts['renter']['api_key']}"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return {wallet["currency"]: wallet["available"] for wallet in json.load(answer)["results"]}


def best_asks_of(facts: dict[str, Any]) -> dict[str, str]:
    """Ask the API for the best ask of each GPU that has a reference price."""
    markets = json.loads(get(f"{facts['base_url']}api/v1/market/")[1])
    best = {market["gpu"]: market["best_ask_usd_per_gpu_hour"] for market in markets}
    return {gpu: price for gpu, price in best.items() if gpu in REFERENCE_PRICES}


def processes_of(home: Path) -> list[str]:
    """Every living process that names the home on its command line, plus those noted in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if entry.name != str(os.getpid()) and f"BOURSE_HOME={home}".encode() in environment:
            found.append(f"{entry.name} {command}")
    return found


def test_the_demo_starts_survives_a_kill_and_stops_without_a_trace(tmp_path):
    """One home from its first start, on a port that is taken, to its end: a start costs more than all the rest."""
    home = tmp_path / "home"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with demo(home, taken.getsockname()[1]) as process:
            lines = lines_until(process, "Ready: ")
            facts = check_that_it_is_open(home, lines, wanted_port=taken.getsockname()[1])
            check_that_a_second_one_says_so(home)
            assert process.poll() is None, "the second one left the first alone"
            process.kill()  # SIGKILL: nothing of ours gets to clean up
            process.wait(10)

    started = time.monotonic()
    with demo(home, port_of(facts)) as process:
        second = lines_until(process, "Ready: ")
        assert time.monotonic() - started < SECOND_START_SECONDS
        again = json.loads((home / "demo.json").read_text())
        assert again == facts, "a second start resumes with the same data"
        assert available_of(again) == A_THOUSAND_EACH, "the sample payments are made once"
        assert best_asks_of(again) == REFERENCE_PRICES, "the fleet beats again at once"
        assert line_about_payments(second) == line_about_payments(lines), "payment pages keep their address"
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0
    assert processes_of(home) == []
    assert not (home / "processes.json").exists()


def check_that_it_is_open(home: Path, lines: list[str], *, wanted_port: int) -> dict[str, Any]:
    """Check a first start and return the facts that it wrote down."""
    facts: dict[str, Any] = json.loads((home / "demo.json").read_text())
    assert any(f"Port {wanted_port} is taken" in line for line in lines)
    assert port_of(facts) != wanted_port
    assert lines[-1] == f"Ready: {facts['base_url']}"
    assert {"email", "password"} <= facts["operator"].keys()
    assert facts["renter"].keys() == facts["provider"].keys() == {"email", "password", "api_key"}
    assert available_of(facts) == A_THOUSAND_EACH
    assert "no real money moves" in line_about_payments(lines)
    assert get(f"{facts['base_url']}readyz")[0] == 200
    assert best_asks_of(facts) == REFERENCE_PRICES, "the sample market is open"
    status, page = get(facts["base_url"])
    assert status == 200
    assert "B300" in page
    return facts


def check_that_a_second_one_says_so(home: Path) -> None:
    """A second demo in a home that has one ends with 1 and one clear line."""
    with demo(home, free_port()) as second:
        assert second.stdout is not None
        output = second.stdout.read()
        assert second.wait(30) == 1
        assert "A site already runs from" in output


def port_of(facts: dict[str, Any]) -> int:
    port = urlsplit(facts["base_url"]).port
    assert port is not None
    return port


def test_the_demo_runs_on_outside_servers_and_leaves_them_running(tmp_path, monkeypatch):
    monkeypatch.setenv("BOURSE_HOME", str(tmp_path / "outside"))
    with servers.owned(dict(os.environ), quiet=True):
        home, port = tmp_path / "home", free_port()
        addresses_outside = {"DATABASE_URL": addresses.database_url(), "REDIS_URL": addresses.redis_url()}
        with demo(home, port, **addresses_outside) as process:
            lines = lines_until(process, "Ready: ")
            assert not any("PostgreSQL" in line or "broker" in line for line in lines)
            assert get(f"http://localhost:{port}/readyz")[0] == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(40) == 0
        assert postgres.accepts_connections(), "what was there before is left alone"
        assert not list(home.glob("postgres-*"))


def test_a_live_key_is_refused_in_words_before_anything_starts(tmp_path):
    with demo(tmp_path / "home", free_port(), STRIPE_SECRET_KEY="sk_live_1") as process:
        assert process.stdout is not None
        output = process.stdout.read()
        assert process.wait(30) == 1
    assert "real money would move" in output
    assert "Traceback" not in output
    assert not (tmp_path / "home").exists()


def test_a_bad_port_is_refused_in_words():
    answer = subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), "demo", "--port", "eighty"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert "a port is a number from 1 to 65535" in answer.stderr


@pytest.mark.parametrize(("flag", "is_there"), [("1", True), ("0", False)])
def test_the_fleet_has_a_worker_of_its_own_unless_it_is_left_out(flag, is_there):
    children = demo_command._site(8000, {"DEMO_FLEET": flag})
    assert ("fleet" in [child.name for child in children]) is is_there
