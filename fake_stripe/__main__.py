"""Run the gateway until it is asked to stop."""

import argparse
import signal
import sys
import threading

from fake_stripe.server import listen
from fake_stripe.store import Store
from fake_stripe.webhooks import Postman
from fake_stripe.world import World


def main() -> int:
    """Start, say where, wait, stop cleanly; return the exit code."""
    options = _parse()
    defaults = {
        "webhook_url": options.webhook,
        "webhook_secrets": options.secret,
        "settle_seconds": options.settle_seconds,
    }
    store = Store(options.state)
    world = World(store=store, api_key=options.key, public_url=options.public_url, defaults=defaults)
    postman = Postman(world)
    try:
        servers = listen(options.port, world, postman)
    except OSError as taken:
        sys.stderr.write(f"Port {options.port} cannot be had: {taken}\n")
        return 1
    world.public_url = options.public_url or f"http://localhost:{servers[0].server_port}"
    postman.start()
    sys.stdout.write(f"Test payments on {world.public_url}\n")
    sys.stdout.flush()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    over.wait()
    for server in servers:
        server.shutdown()
    postman.stop()
    postman.join(2)
    with store.transaction():
        pass  # a call in progress ends first
    store.close()
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fake_stripe", description="A test gateway that speaks Stripe.")
    parser.add_argument("--port", type=int, default=8420, help="port on this machine (8420); 0 = any free one")
    parser.add_argument("--state", default=":memory:", help="file that keeps its state; without one it forgets")
    parser.add_argument("--key", default="sk_test_fake", help="the secret key it takes (sk_test_fake)")
    parser.add_argument("--webhook", default="", help="where its messages go")
    parser.add_argument("--secret", action="append", default=[], help="signs its messages; several while one changes")
    parser.add_argument("--public-url", default="", help="how browsers reach it (http://localhost:PORT)")
    parser.add_argument("--settle-seconds", type=int, default=0, help="bank debits settle after so long; 0 = never")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
