"""What beat asks of the ledger: expired holds, roll-ups, the nightly audit. Each may run twice or late."""

from datetime import UTC, datetime
from typing import Any

from celery import shared_task

from billing import books, holds, ledger
from billing.models import Account


@shared_task(name="billing.release_expired_holds")
def release_expired_holds(**_room: Any) -> None:
    """Give back what is left of holds whose time has passed."""
    holds.release_expired(now=datetime.now(UTC))


@shared_task(name="billing.roll_up_accounts")
def roll_up_accounts(**_room: Any) -> None:
    """Fold the tails of the entries-only accounts."""
    for account_id in Account.objects.filter(entries_only=True).order_by("pk").values_list("pk", flat=True):
        ledger.roll_up(account_id)


@shared_task(name="billing.audit_books")
def audit_books(**_room: Any) -> None:
    """Check the books; a breach is logged and stops new outgoing money."""
    books.audit(now=datetime.now(UTC))
