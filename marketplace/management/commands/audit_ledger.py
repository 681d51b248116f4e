"""`manage.py audit_ledger`: every check of the ledger and of the exchange, as JSON; exit 1 on any breach."""

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand

from billing import books
from marketplace.checks import ALL_CHECKS


class Command(BaseCommand):
    """Check the books now."""

    help = "Run every check of the ledger and of the exchange."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the outcomes; a breach stops the books as the nightly audit does."""
        outcomes = books.audit(now=datetime.now(UTC), checks=ALL_CHECKS)
        ok = all(outcome.ok for outcome in outcomes)
        self.stdout.write(json.dumps({"ok": ok, "checks": [asdict(outcome) for outcome in outcomes]}, indent=2))
        if not ok:
            sys.exit(1)
