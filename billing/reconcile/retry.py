"""An operator has a message of the gateway applied again at once."""

from datetime import datetime

from django.db import transaction

from billing.models import GatewayEvent
from users.audit import record
from users.models import User


def retry_event(*, event_pk: int, operator: User, ip_address: str | None, now: datetime) -> bool:
    """Make a message due now that was not applied yet, and write that down; return whether there was one.

    One conditional update. A second run makes it due again.
    """
    with transaction.atomic():
        waiting = GatewayEvent.objects.filter(pk=event_pk, applied_at=None)
        event = waiting.first()
        if event is None or not waiting.update(next_attempt_at=now):
            return False
        record(
            at=now,
            action="gateway_event.retried",
            actor=operator,
            subject_type="gateway_event",
            subject_id=event.event_id,
            before={"attempts": event.attempts, "last_error": event.last_error},
            ip_address=ip_address,
        )
    return True
