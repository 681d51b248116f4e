"""The version of the catalogue: one short text that differs whenever any answer made of it may."""

from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from django.db import connection

from common.conditional import Version

_TABLES = (
    "catalog_gpu",
    "catalog_cloud",
    "catalog_cloudfact",
    "catalog_source",
    "catalog_sourcedocument",
    "catalog_bestask",
    "fx_rate",
)
# Which transaction, and which of its commands, wrote each row: the sums differ after any insert, update or delete.
# Offers are too many to sum; every refresh also writes its source and documents, and a new offer has the newest id.
# Snapshots never change and a new one has the newest id; thinning shows with the next minute.
_WRITTEN = "(SELECT concat_ws('.', count(*), sum(xmin::text::bigint), sum(cmin::text::bigint)) FROM {table})"
_STATE = f"""
    SELECT concat_ws(',', {", ".join(_WRITTEN.format(table=table) for table in _TABLES)},
                     (SELECT id FROM catalog_offer ORDER BY id DESC LIMIT 1),
                     (SELECT max(id) FROM catalog_pricesnapshot)),
           greatest((SELECT max(last_attempt_at) FROM catalog_source), (SELECT max(observed_at) FROM catalog_bestask))
"""  # noqa: S608 (made of constants)
# Under load the version is read 100 times a second, not for every call. No request that writes is done in less time,
# so whoever changes a price and then asks for it gets the new one.
_READ_EVERY_SECONDS = 0.01


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """The version as it was last read; `until` is on the monotonic clock."""

    version: Version
    until: float


_last_reading: _Reading | None = None


def catalogue_version(*, now: datetime) -> Version:
    """Return the version of all that these calls answer from. One query over small tables, or none."""
    global _last_reading
    reading = _last_reading
    if reading is not None and monotonic() < reading.until and not connection.in_atomic_block:
        return reading.version
    with connection.cursor() as cursor:
        cursor.execute(_STATE)
        key, changed_at = cursor.fetchone()
    version = Version.at(now, key=key, changed_at=changed_at)
    if not connection.in_atomic_block:  # a transaction sees what nobody else does yet
        _last_reading = _Reading(version=version, until=monotonic() + _READ_EVERY_SECONDS)
    return version
