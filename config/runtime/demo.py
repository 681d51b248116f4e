"""`manage.py demo`: the whole site on one machine, until Ctrl-C.

Steps: own the home (stopping what a killed run left), start PostgreSQL, the broker and the test-payment server (unless
a test key of Stripe is set), migrate and load the sample data, start web, worker and beat, wait until `/readyz` is
satisfied, have payment messages sent to the site, write `demo.json`, print the address. Then watch: a process that dies
is started again. On SIGINT or SIGTERM everything is stopped, in reverse order, exit 0.
A second run with the same home resumes with the same data.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import FrameType

from billing.gateway.keys import fault_of_keys
from config.runtime import addresses, gateway, ports, postgres, root, servers, valkey
from config.runtime.lines import say, step
from config.runtime.processes import Child

READY_WITHIN_SECONDS = 90
_CALM_SECONDS = 30


class Stopped(Exception):
    """Someone asked the site to stop."""


class NotReady(RuntimeError):
    """A process did not come up; the message holds the end of its log."""


def main(arguments: list[str]) -> int:
    """Run the demo; return the exit code."""
    options = _parse(arguments)
    if options.home:
        os.environ["BOURSE_HOME"] = str(Path(options.home).expanduser().resolve())
    os.environ["BOURSE_ENV"] = "demo"
    os.environ["DEMO_FLEET"] = "0" if options.no_fleet else "1"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _raise_stopped)
    try:
        return _run(options.port)
    except Stopped:
        return 0
    except (
        servers.HomeBusy,
        postgres.PostgresUnavailable,
        valkey.BrokerUnavailable,
        gateway.GatewayUnavailable,
        root.RootRefused,
        NotReady,
    ) as why:
        say(str(why))
        return 1


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="manage.py demo", description="Start the whole site with sample data.")
    parser.add_argument("--port", type=_port, default=8000, help="web port on this machine (8000)")
    parser.add_argument("--home", help="folder for all state (.bourse)")
    parser.add_argument("--no-fleet", action="store_true", help="without the demo fleet")
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


def _raise_stopped(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the stop itself is not interrupted
    raise Stopped


def _run(wanted_port: int) -> int:
    say("GPU Bourse: starting")
    env = dict(os.environ)
    if fault := fault_of_keys(env.get("STRIPE_SECRET_KEY", ""), [], is_local=True):
        raise NotReady(fault)
    children: list[Child] = []
    with servers.owned(env) as own_servers:
        try:
            children += _test_gateway(env)
            servers.note([*own_servers, *children])
            _prepare(env)
            port = _free_port(wanted_port)
            address = f"http://localhost:{port}/"
            with step("Starting web, worker and beat"):
                for child in _site(port, env):
                    child.start()
                    children.append(child)
                servers.note([*own_servers, *children])
                _wait_until_ready(port, children)
            _say_how_payments_work(address)
            _write_demo_json(address)
            say(f"Ready: {address}")
            _watch([*own_servers, *children], own_servers)
        finally:
            say("Stopping")
            for child in reversed(children):
                child.ask_to_stop()
            for child in reversed(children):
                child.stop()
    return 0


def _test_gateway(env: dict[str, str]) -> list[Child]:
    if env.get("STRIPE_SECRET_KEY"):
        return []
    with step("Starting the test-payment server"):
        return [gateway.start(env)]


def _say_how_payments_work(address: str) -> None:
    fake = addresses.fake_stripe()
    if os.environ.get("STRIPE_SECRET_KEY") or fake is None:
        say("Payments go to Stripe with your test key: no real money moves")
        return
    gateway.send_messages_to(f"{address}webhooks/stripe/")
    say(f"Test payments: {fake.url}/ (no real money moves)")


def _prepare(env: dict[str, str]) -> None:
    answer = subprocess.Popen([sys.executable, "-m", "config.runtime.prepare"], env=env, cwd=addresses.PROJECT)
    try:
        if answer.wait() != 0:
            raise NotReady("The sample data could not be prepared; the lines above say why.")
    finally:
        if answer.poll() is None:
            answer.terminate()
            answer.wait(10)


def _site(port: int, env: dict[str, str]) -> list[Child]:
    binaries, logs = Path(sys.executable).parent, addresses.home() / "logs"
    env = {**env, "PYTHONUNBUFFERED": "1"}
    celery = [str(binaries / "celery"), "-A", "config.celery"]
    web = [str(binaries / "gunicorn"), "config.wsgi", "--worker-class=gthread", "--workers=2", "--threads=4"]
    web.append("--no-control-socket")  # it would lie outside our home
    bind = [f"--bind={host}:{port}" for host in ports.loopback_hosts()]
    worker = [*celery, "worker", "--loglevel=INFO", "--concurrency=2", "--hostname=worker@local"]
    beat = [*celery, "beat", "--loglevel=INFO", f"--schedule={addresses.run_folder() / 'beat-schedule'}", "--pidfile="]
    children = [
        Child(name="web", command=[*web, *bind], log=logs / "web.log", env=env),
        Child(name="worker", command=worker, log=logs / "worker.log", env=env),
        Child(name="beat", command=beat, log=logs / "beat.log", env=env),
    ]
    if env["DEMO_FLEET"] == "1":  # a worker of its own: machines beat while prices are being read
        fleet = [*celery, "worker", "--loglevel=INFO", "--pool=solo", "--queues=fleet", "--hostname=fleet@local"]
        children.append(Child(name="fleet", command=fleet, log=logs / "fleet.log", env=env))
    return children


def _free_port(wanted: int) -> int:
    port = ports.first_free(wanted)
    if port is None:
        raise NotReady(f"No free port from {wanted} on: name another with --port.")
    if port != wanted:
        say(f"  Port {wanted} is taken: using {port}")
    return port


def _wait_until_ready(port: int, children: list[Child]) -> None:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while time.monotonic() < deadline:
        dead = next((child for child in children if not child.is_running), None)
        if dead is not None:
            raise NotReady(f"{dead.name} did not start:\n{dead.last_lines()}")
        if _answer(f"http://127.0.0.1:{port}/readyz") == 200:
            return
        time.sleep(0.2)
    logs = "\n".join(f"{child.name}: {child.last_lines(2)}" for child in children)
    raise NotReady(f"The site was not ready within {READY_WITHIN_SECONDS} s.\n{logs}")


def _answer(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  # our own loopback address
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0


def _write_demo_json(address: str) -> None:
    people = json.loads((addresses.home() / "people.json").read_text())
    path = addresses.home() / "demo.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"base_url": address, **people}, indent=2))


def _watch(children: list[Child], own_servers: list[Child]) -> None:
    started = {child.name: time.monotonic() for child in children}
    while True:
        time.sleep(0.5)
        for child in children:
            if child.is_running:
                continue
            say(f"  {child.name} stopped by itself: starting it again")
            if time.monotonic() - started[child.name] < _CALM_SECONDS:
                time.sleep(2)
            child.start()
            started[child.name] = time.monotonic()
            servers.note(children)
