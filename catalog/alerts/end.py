"""Ending an alert: by whoever sees it on the page, or by the link of a mail, which needs no sign-in."""

import hashlib
from datetime import datetime
from uuid import UUID

from catalog.models import PriceAlert


class UnknownLink(Exception):
    """No message had this link."""


def sha256_of(token: str) -> str:
    """Return what is kept of a link's token: a copy of the database ends nothing."""
    return hashlib.sha256(token.encode()).hexdigest()


def alert_of_link(token: str) -> PriceAlert:
    """Return the alert, open or ended, that a mail's link is about. Raises UnknownLink."""
    alerts = PriceAlert.objects.select_related("gpu").filter(messages__token_sha256=sha256_of(token))
    found = alerts.first()
    if found is None:
        raise UnknownLink
    return found


def end_alert(*, alert_id: UUID, now: datetime) -> bool:
    """End an alert; return whether it was open. One conditional update: a second run changes nothing."""
    return bool(PriceAlert.objects.filter(pk=alert_id, ended_at__isnull=True).update(ended_at=now, met_since=None))
