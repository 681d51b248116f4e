"""`manage.py lift_books_stop --operator NAME --reason TEXT`: let new outgoing money go again."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing import books


class Command(BaseCommand):
    """End the stop in force."""

    help = "Lift the stop of the books, with a name and a reason."

    def add_arguments(self, parser: CommandParser) -> None:
        """Both are required and kept with the stop."""
        parser.add_argument("--operator", required=True)
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Lift it."""
        try:
            stop = books.lift_stop(operator=options["operator"], reason=options["reason"], now=datetime.now(UTC))
        except (books.NotStopped, ValueError) as why:
            raise CommandError(str(why)) from why
        self.stdout.write(f"Lifted: {stop.breach}")
