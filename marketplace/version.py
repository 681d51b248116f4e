"""The version of all books: one short text that differs whenever any page made of them may."""

from datetime import datetime
from time import monotonic

from django.db import connection

from catalog.version import catalogue_version
from common.conditional import Version

# Which transaction, and which of its commands, wrote each row that stands in a book; the newest fill and terms; and
# which servers are heard of: one that falls silent leaves its book without anything being written.
_WRITTEN = "concat_ws('.', count(*), sum(xmin::text::bigint), sum(cmin::text::bigint))"
_STATE = f"""
    SELECT concat_ws(',',
        (SELECT {_WRITTEN} FROM marketplace_order WHERE state IN ('open', 'partly_filled')),
        (SELECT {_WRITTEN} FROM marketplace_listing WHERE state <> 'ended'),
        (SELECT {_WRITTEN} FROM marketplace_lease WHERE closed_sequence IS NULL),
        (SELECT max(sequence) FROM marketplace_fill),
        (SELECT max(id) FROM marketplace_listingterms),
        (SELECT concat_ws('.', count(*), sum(hashtext(id::text)::bigint)) FROM marketplace_server
          WHERE last_beat_at >= %s::timestamptz - interval '60 seconds'))
"""  # noqa: S608 (made of constants)
_READ_EVERY_SECONDS = 0.01

_last_reading: tuple[float, Version] | None = None


def market_version(*, now: datetime) -> Version:
    """Return the version of the books and of the catalogue behind them. Two queries, or none."""
    global _last_reading
    if _last_reading is not None and monotonic() < _last_reading[0] and not connection.in_atomic_block:
        return _last_reading[1]
    catalogue = catalogue_version(now=now)
    with connection.cursor() as cursor:
        cursor.execute(_STATE, [now])
        (state,) = cursor.fetchone()
    version = Version(key=f"{catalogue.key}|{state}", changed_at=catalogue.changed_at)
    if not connection.in_atomic_block:  # a transaction sees what nobody else does yet
        _last_reading = (monotonic() + _READ_EVERY_SECONDS, version)
    return version
