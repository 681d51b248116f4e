"""`manage.py bench NAME`: measure the physical limit and us in turn; JSON."""

import json
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.benches import compare, ledger, orders, pages, prices_api, settlement
from sizing import bench as sizing_bench

BENCHES: dict[str, Callable[..., dict[str, Any]]] = {
    "compare": compare.run,
    "ledger": ledger.run,
    "orders": orders.run,
    "pages": pages.run,
    "prices_api": prices_api.run,
    "settlement": settlement.run,
    "sizing": sizing_bench.measure,
}


class Command(BaseCommand):
    """Print one measurement as JSON."""

    help = "Measure the physical limit and us in turn."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the bench's name, and its size."""
        parser.add_argument("name", choices=sorted(BENCHES))
        parser.add_argument(
            "--size",
            type=int,
            metavar="N",
            help="settlement: how many rentals (100000); compare: how many offers (1000000)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it."""
        sized = {} if options["size"] is None else {"size": options["size"]}
        if sized and options["name"] not in ("settlement", "compare"):
            raise CommandError("--size is for settlement and compare")
        self.stdout.write(json.dumps(BENCHES[options["name"]](**sized), indent=2))
