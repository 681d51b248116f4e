"""When a source is asked again after it failed: each time after twice as long, up to six hours."""

from datetime import datetime, timedelta

LONGEST_WAIT = timedelta(hours=6)


def due_after_failure(*, now: datetime, interval: timedelta, failed_before_at: datetime | None) -> datetime:
    """Return the time of the next attempt after a failure at `now`.

    `failed_before_at` is the attempt before this one if it failed too: then the wait is twice the time since. A source
    whose own interval is longer than six hours keeps it.
    """
    since = now - failed_before_at if failed_before_at else timedelta(0)
    return now + max(interval, min(2 * since, LONGEST_WAIT))
