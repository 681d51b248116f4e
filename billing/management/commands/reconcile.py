"""`manage.py reconcile [--close]`: compare the books with the gateway now, as JSON; exit 1 when a person must look."""

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.gateway.errors import GatewayOff, GatewayUnavailable
from billing.reconcile.close import Close, close_day
from billing.reconcile.run import reconcile
from common.money import from_micros


class Command(BaseCommand):
    """Reconcile now."""

    help = "Follow what the gateway lists, match its movements with the ledger's entries."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whether to close the day too."""
        parser.add_argument("--close", action="store_true", help="compare the balances per currency too")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report; the same run as the hourly one, or the daily one."""
        now = datetime.now(UTC)
        closes: list[Close] = []
        try:
            if options["close"]:
                closes, report = close_day(now=now)
            else:
                report = reconcile(now=now)
        except GatewayOff as off:
            raise CommandError("Payments are off: no key of the gateway is set.") from off
        except GatewayUnavailable as silence:
            raise CommandError(f"The gateway gave no answer: {silence}") from silence
        printed = {"report": asdict(report), "close": [_line(close) for close in closes]}
        self.stdout.write(json.dumps(printed, indent=2))
        if report.failures or report.unmatched or any(close.difference_micros for close in closes):
            sys.exit(1)


def _line(close: Close) -> dict[str, str]:
    figures = {
        "books": close.books_micros,
        "gateway": close.gateway_micros,
        "difference": close.difference_micros,
    }
    return {"currency": close.currency, **{name: f"{from_micros(micros):.2f}" for name, micros in figures.items()}}
