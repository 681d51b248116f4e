"""The catalogue's tasks: each asks the database what is due, and may run twice or late without harm."""

import logging
from datetime import UTC, datetime
from typing import Any

from celery import shared_task

from catalog.refresh import refresh_due_sources as refresh_sources_due_at

log = logging.getLogger(__name__)


@shared_task(name="catalog.refresh_due_sources")
def refresh_due_sources(**_room: Any) -> None:
    """Refresh the price sources whose time has come; a line in the log for each."""
    for report in refresh_sources_due_at(now=datetime.now(UTC)):
        log.log(logging.WARNING if report.failed else logging.INFO, "Refreshed %s", report.line)
