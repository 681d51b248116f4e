"""`manage.py replay_book GPU`: rebuild a book from its rows and prove every fill; exit 1 on a difference."""

import json
import sys
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.models import Gpu
from marketplace.book_history import unproved
from marketplace.levels import Book, Level
from marketplace.models import Fill
from marketplace.queries.market import book_of


class Command(BaseCommand):
    """Prove the fills of one book."""

    help = "Rebuild a book from its rows with the pure matcher and prove every fill."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the GPU."""
        parser.add_argument("gpu", help="the slug of a GPU")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what was proved."""
        gpu = Gpu.objects.filter(slug=options["gpu"]).first()
        if gpu is None:
            raise CommandError(f"There is no GPU {options['gpu']!r}.")
        found = list(unproved(gpu.pk))
        fills = Fill.objects.filter(gpu=gpu).count()
        told = {"gpu": gpu.slug, "ok": not found, "fills": fills, "differences": found}
        book = book_of(gpu, now=datetime.now(UTC))
        self.stdout.write(json.dumps({**told, "book": _told(book)}) if options["json"] else _text(told))
        if found:
            sys.exit(1)


def _text(told: dict[str, Any]) -> str:
    lines = [f"{told['gpu']}: {told['fills']} fills, {len(told['differences'])} differences"]
    return "\n".join([*lines, *told["differences"]])


def _told(book: Book) -> dict[str, list[dict[str, Any]]]:
    return {"bids": [_level(level) for level in book.bids], "asks": [_level(level) for level in book.asks]}


def _level(level: Level) -> dict[str, Any]:
    return {"price_usd_per_gpu_hour": str(level.price), "gpu_count": level.gpu_count, "orders": level.orders}
