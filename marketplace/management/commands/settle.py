"""`manage.py settle`: settle every rental-hour that is due, in order; JSON counts."""

import json
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.settlement.due import settle_due
from marketplace.sweep import sweep


class Command(BaseCommand):
    """What the task does each minute, asked for by hand; a second run finds nothing."""

    help = "Settle every rental-hour that is due; prints JSON counts."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the time up to which hours are due."""
        parser.add_argument("--until", metavar="TIME", help="settle what was due then, e.g. 2026-11-30T06:00Z")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep up to now, settle, print."""
        now = datetime.now(UTC)
        until = _time(options["until"], now) if options["until"] else now
        sweep(now=now)
        counts = settle_due(until=until, now=now)
        self.stdout.write(json.dumps({"until": until.isoformat(), **counts}))


def _time(text: str, now: datetime) -> datetime:
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text!r} is not a time like 2026-11-30T06:00Z") from None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    if until > now:
        raise CommandError(f"{text} is still to come: only hours that have passed are settled")
    return until
