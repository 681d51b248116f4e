"""Proof that beat, broker and a worker are alive: a moment kept in the cache, written by a task, read by `/readyz`."""

from datetime import datetime

from django.core.cache import cache

_KEY = "beat:last_seen_at"
_KEPT_SECONDS = 3600


def note(now: datetime) -> None:
    """Keep the moment."""
    cache.set(_KEY, now.isoformat(), timeout=_KEPT_SECONDS)


def age_seconds(now: datetime) -> float | None:
    """Return how long ago the last beat was noted; None when none was within the hour."""
    seen = cache.get(_KEY)
    return None if seen is None else (now - datetime.fromisoformat(seen)).total_seconds()
