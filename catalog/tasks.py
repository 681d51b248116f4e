"""The catalogue's tasks: each asks the database what is due, and may run twice or late without harm."""

import logging
from datetime import UTC, datetime
from typing import Any

from celery import shared_task

from catalog.alerts.tell import tell_alerts as tell_alerts_at
from catalog.history import is_every_source_read
from catalog.history import take_snapshots as take_snapshots_at
from catalog.history import thin_snapshots as thin_snapshots_at
from catalog.price_changes import note_changes
from catalog.refresh import refresh_due_sources as refresh_sources_due_at

log = logging.getLogger(__name__)


@shared_task(name="catalog.refresh_due_sources")
def refresh_due_sources(only: str | None = None, **_room: Any) -> None:
    """Refresh the price sources whose time has come, a line in the log for each; record what is live then.

    Beat asks for each source by name, so that a slow one keeps no other waiting and has the task's time for itself.
    """
    reports = refresh_sources_due_at(now=datetime.now(UTC), only=only)
    for report in reports:
        log.log(logging.WARNING if report.failed else logging.INFO, "Refreshed %s", report.line)
    now = datetime.now(UTC)
    if any(report.documents and not report.is_failure for report in reports) and is_every_source_read(now=now):
        take_snapshots_at(now=now)
        note_changes(now=now)


@shared_task(name="catalog.take_snapshots")
def take_snapshots(**_room: Any) -> None:
    """Record the live prices that the hour at hand does not hold yet, and note which of them moved."""
    now = datetime.now(UTC)
    if recorded := take_snapshots_at(now=now):
        log.info("Recorded the prices of %s series", recorded)
    if moved := note_changes(now=now):
        log.info("Noted %s price changes", moved)


@shared_task(name="catalog.thin_snapshots")
def thin_snapshots(**_room: Any) -> None:
    """Keep one snapshot a day of what is older than 90 days."""
    if thinned := thin_snapshots_at(now=datetime.now(UTC)):
        log.info("Thinned the price history by %s rows", thinned)


@shared_task(name="catalog.tell_alerts")
def tell_alerts(**_room: Any) -> None:
    """Tell who waits for a price that has come."""
    if told := tell_alerts_at(now=datetime.now(UTC)):
        log.info("Told %s price alerts", told)
