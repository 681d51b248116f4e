"""`manage.py bench NAME`: measure the physical limit and us in turn; JSON."""

import json
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config.benches import ledger, orders, pages, prices_api
from sizing import bench as sizing_bench

BENCHES: dict[str, Callable[[], dict[str, Any]]] = {
    "ledger": ledger.run,
    "orders": orders.run,
    "pages": pages.run,
    "prices_api": prices_api.run,
    "sizing": sizing_bench.measure,
}


class Command(BaseCommand):
    """Print one measurement as JSON."""

    help = "Measure the physical limit and us in turn."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the bench's name."""
        parser.add_argument("name", choices=sorted(BENCHES))

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it."""
        self.stdout.write(json.dumps(BENCHES[options["name"]](), indent=2))
