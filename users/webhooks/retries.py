"""When a message that did not arrive is sent again, and when that ends. Pure.

>>> wait_after(1), wait_after(4)
(datetime.timedelta(seconds=10), datetime.timedelta(seconds=1800))
>>> wait_after(11) is None
True
"""

from datetime import datetime, timedelta

# After the first failure, the second, and so on: three days less a few minutes, like the Standard Webhooks' advice.
WAITS = (
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=20),
)
KEEPS_TRYING_FOR = sum(WAITS, timedelta())


def wait_after(failures: int) -> timedelta | None:
    """Return how long to wait after so many failures of one message; None: it is given up."""
    return WAITS[failures - 1] if 1 <= failures <= len(WAITS) else None


def is_dead(*, failing_since: datetime, now: datetime) -> bool:
    """Whether an endpoint that has taken nothing since then is switched off when a message for it is given up."""
    return now - failing_since >= KEEPS_TRYING_FOR
