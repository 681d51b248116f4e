"""The demo's test-payment server: `fake_stripe`, on a port of its own that this home remembers, so that links stay good."""

import json
import sys
import time
import urllib.error
import urllib.request

from config.runtime import addresses, ports
from config.runtime.lines import say
from config.runtime.processes import Child

_FIRST_PORT = 8420
_STARTS_TRIED = 5
_READY_WITHIN_SECONDS = 15
_SETTLE_SECONDS = 30  # bank debits and pending refunds, so that someone who waits sees them arrive
# A proxy for the outside world does not lead to our own machine.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class GatewayUnavailable(RuntimeError):
    """The test-payment server does not start, or does not answer; the message says what is known."""


def start(env: dict[str, str]) -> Child:
    """Start the server and wait until it answers; return its process. Raises GatewayUnavailable."""
    before = addresses.fake_stripe()
    wanted = before.port if before else _FIRST_PORT
    child = None
    for _try in range(_STARTS_TRIED):  # another home may take the port between our look and our start
        port = ports.first_free(wanted)
        if port is None:
            break
        child = _child(addresses.remember_fake_stripe(port=port), env)
        child.start()
        if _answers_soon(child):
            if before and port != before.port:
                say(f"  Port {before.port} is taken: payment pages opened before are on {port} now")
            return child
        child.stop()
    raise GatewayUnavailable(f"The test-payment server does not start:\n{child.last_lines() if child else 'no port'}")


def send_messages_to(webhook_url: str) -> None:
    """Tell the server where its messages go: those that wait are sent at once. Raises GatewayUnavailable."""
    _call("switches", {"webhook_url": webhook_url})


def _child(fake: addresses.FakeStripe, env: dict[str, str]) -> Child:
    options = {
        "--port": str(fake.port),
        "--state": str(addresses.fake_stripe_state()),
        "--key": fake.api_key,
        "--secret": fake.webhook_secret,
        "--public-url": fake.url,
        "--settle-seconds": str(_SETTLE_SECONDS),
    }
    command = [sys.executable, "-m", "fake_stripe", *[part for option in options.items() for part in option]]
    env = {**env, "PYTHONPATH": str(addresses.PROJECT), "PYTHONUNBUFFERED": "1"}
    return Child(name="payments", command=command, log=addresses.home() / "logs" / "payments.log", env=env)


def _answers_soon(child: Child) -> bool:
    deadline = time.monotonic() + _READY_WITHIN_SECONDS
    while child.is_running and time.monotonic() < deadline:
        try:
            _call("health", {})
        except GatewayUnavailable:
            time.sleep(0.05)
        else:
            return child.is_running
    return False


def _call(path: str, wishes: dict[str, str]) -> None:
    fake = addresses.fake_stripe()
    if fake is None:
        raise GatewayUnavailable("This home has no test-payment server.")
    request = urllib.request.Request(  # noqa: S310  # our own loopback address
        f"{fake.url}/_control/{path}",
        data=json.dumps(wishes).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    try:
        with _direct.open(request, timeout=5) as answer:
            answer.read()
    except OSError as why:
        raise GatewayUnavailable(f"The test-payment server does not answer: {why}") from why
