"""What happens about people, keys and webhooks by the clock."""

import time
from datetime import UTC, datetime
from typing import Any

from celery import shared_task

from users import idempotency
from users.webhooks import log
from users.webhooks.deliver import deliver_due

_MOST_PASSES = 20
_SLOW_SECONDS = 1.0


@shared_task(name="users.thin_idempotency_keys")
def thin_idempotency_keys() -> None:
    """Delete idempotency keys older than 24 hours."""
    idempotency.thin_idempotency_keys(now=datetime.now(UTC))


@shared_task(name="users.send_webhooks")
def send_webhooks(**_room: Any) -> None:
    """Send the webhook messages that are due, pass after pass; a slow receiver ends it, so that none keeps a worker."""
    for _ in range(_MOST_PASSES):
        began = time.monotonic()
        if not deliver_due(now=datetime.now(UTC)) or time.monotonic() - began > _SLOW_SECONDS:
            return


@shared_task(name="users.thin_webhook_log")
def thin_webhook_log(**_room: Any) -> None:
    """Delete webhook messages older than 30 days."""
    log.thin_log(now=datetime.now(UTC))
