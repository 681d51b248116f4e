"""The daily task: asks whether a newer file can exist, and reads it."""

import logging
from datetime import UTC, datetime
from typing import Any

from celery import shared_task

from fx.ecb import FileRejected
from fx.refresh_rates import FetchFailed, is_due, newest_ecb_day, refresh_rates

log = logging.getLogger(__name__)


@shared_task(name="fx.refresh_due_rates")
def refresh_due_rates(**_room: Any) -> None:
    """Read the ECB's file when a newer one is due; a failure is logged and tried again at the next tick."""
    now = datetime.now(UTC)
    if not is_due(now=now, newest_day=newest_ecb_day()):
        return
    try:
        report = refresh_rates(now=now)
    except (FetchFailed, FileRejected) as why:
        log.warning("Rates were not refreshed: %s", why)
        return
    if report.held_back:
        log.error("%s rates of %s are held back: an operator decides.", report.held_back, report.day)
