"""`manage.py load_sample_rates`: the demo's own dated rates, where no better one is known."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand

from fx.refresh_rates import load_sample_rates


class Command(BaseCommand):
    """Load them; a second run changes nothing."""

    help = "Load the demo's dated exchange rates."

    def handle(self, *args: Any, **options: Any) -> None:
        """Load."""
        report = load_sample_rates(now=datetime.now(UTC))
        if options["verbosity"]:
            self.stdout.write(f"{report.stored} rates of {report.day} stored")
