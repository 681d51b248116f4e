"""The advisory locks of a refresh. Order: a source's own, then the offers'; row locks come after both."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from catalog.models import Source

# The two halves of a lock's name: ours among all, and the source's id; no source has the id 0.
LOCK_SPACE = 0x6F66
OFFERS = 0


@contextmanager
def only_refresh_of(source: Source) -> Iterator[bool]:
    """Hold the source's lock, which outlives transactions and dies with the connection; False if it is taken."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCK_SPACE, source.pk])
        [is_ours] = cursor.fetchone()
    try:
        yield bool(is_ours)
    finally:
        if is_ours:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK_SPACE, source.pk])


def lock_offers_for_own_rows() -> None:
    """Join those who write the offers of one document; until the transaction ends nobody writes across sources."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", [LOCK_SPACE, OFFERS])


def lock_offers_for_all_rows() -> None:
    """Be alone with the offers until the transaction ends: rows of several sources are written in no set order."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_SPACE, OFFERS])
