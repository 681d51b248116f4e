"""What happens about people and keys by the clock."""

from datetime import UTC, datetime

from celery import shared_task

from users import idempotency


@shared_task(name="users.thin_idempotency_keys")
def thin_idempotency_keys() -> None:
    """Delete idempotency keys older than 24 hours."""
    idempotency.thin_idempotency_keys(now=datetime.now(UTC))
