"""An hour of many rentals settled end to end, against COPY of the very rows it wrote.

They are copied into twins of their tables: the same indexes, checks and foreign keys, but no guard, no balances to move
and no formula. That is what storing the lines costs at least; twins without foreign keys are measured beside it. Slice
by slice an hour is settled by the task's own function, settled again (nothing is due), and its rows are copied.
Everything happens in a database of its own, commits do not wait for the disk's flush.
"""

import gc
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import IO, Any

from django.db import connection

from config.benches.many_rentals import READY_AT, make_rentals
from config.benches.own_database import own_database, set_commit
from marketplace.settlement.due import settle_due

FLOOR, AIM = 0.25, 0.45
AGAIN_FLOOR, AGAIN_AIM = 0.3, 0.2
SIZE = 100_000
MEMORY_MB = 500
_MOST_SLICES = 5
_MOST_HOURS = 500_000  # in all slices together; one slice there is always
_BYTES_AT_ONCE = 1 << 20
_TABLES = ("marketplace_settlement", "billing_journalentry", "billing_posting", "billing_holdmovement")


def run(size: int = SIZE) -> dict[str, Any]:
    """Return JSON-ready results for `size` rentals: rentals settled per second, as a share of COPY's."""
    with own_database():
        make_rentals(size)
        _make_twins()
        before_mb = _peak_mb()
        slices = [_slice(number, size) for number in range(max(1, min(_MOST_SLICES, _MOST_HOURS // size)))]
        after_mb = _peak_mb()
    ours, again, limit, bare = (statistics.median(column) for column in zip(*slices, strict=True))
    return {
        "name": "settlement",
        "limit": round(size / limit),
        "ours": round(size / ours),
        "ratio": round(statistics.median(each[2] / each[0] for each in slices), 3),
        "unit": "rental-hours per second, synchronous_commit=off",
        "floor": FLOOR,
        "aim": AIM,
        "rentals": size,
        "seconds": {
            "settled": round(ours, 2),
            "settled_again": round(again, 3),
            "copied": round(limit, 2),
            "copied_without_foreign_keys": round(bare, 2),
        },
        "ratio_without_foreign_keys": round(statistics.median(each[3] / each[0] for each in slices), 3),
        "settled_again": {
            "ratio": round(statistics.median(each[1] / each[0] for each in slices), 4),
            "floor": AGAIN_FLOOR,
            "aim": AGAIN_AIM,
        },
        "peak_memory_mb": {"before": before_mb, "after": after_mb, "most": MEMORY_MB},
    }


def _make_twins() -> None:
    with connection.cursor() as cursor:
        for table in _TABLES:
            for kind in ("limit", "bare"):
                cursor.execute(f"CREATE TABLE {kind}_{table} (LIKE {table} INCLUDING ALL)")
        for table in _TABLES:
            cursor.execute(_FOREIGN_KEYS, [table])
            for name, definition in cursor.fetchall():
                # Entries are among the copied rows: the twin's lines refer to the twin's entries.
                referring = definition.replace(
                    "REFERENCES billing_journalentry", "REFERENCES limit_billing_journalentry"
                )
                cursor.execute(f'ALTER TABLE limit_{table} ADD CONSTRAINT "{name}" {referring}')
        cursor.execute("VACUUM ANALYZE")


_FOREIGN_KEYS = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' AND conrelid = %s::text::regclass
"""


def _slice(number: int, size: int) -> tuple[float, float, float, float]:
    """Settle one hour, settle it again, copy its rows with and without foreign keys; return the seconds of each."""
    due_at = READY_AT.replace(minute=5, second=0) + timedelta(hours=number + 1)
    marks = {table: _last_id(table) for table in _TABLES}
    ours = _seconds(lambda: _settle(due_at, expected=size))
    again = _seconds(lambda: _settle(due_at, expected=0))
    with tempfile.TemporaryFile() as rows:
        sizes = [_copy_out(table, marks[table], rows) for table in _TABLES]
        limit = _seconds(lambda: _copy_in("limit", rows, sizes))
        bare = _seconds(lambda: _copy_in("bare", rows, sizes))
    return ours, again, limit, bare


def _settle(due_at: datetime, *, expected: int) -> None:
    set_commit(flushed=False)
    counts = settle_due(until=due_at, now=due_at)
    if counts["hours"] != expected:
        raise RuntimeError(f"{expected} hours were due and {counts} were settled.")


def _copy_out(table: str, mark: int, rows: IO[bytes]) -> int:
    """Write a table's new rows to the file; return how many bytes."""
    begun = rows.tell()
    query = f"COPY (SELECT * FROM {table} WHERE id > {mark} ORDER BY id) TO STDOUT"  # our own names
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for block in copy:
            rows.write(block)
    return rows.tell() - begun


def _copy_in(twins: str, rows: IO[bytes], sizes: list[int]) -> None:
    """Copy each table's rows into its twin, in one transaction."""
    rows.seek(0)
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for table, left in zip(_TABLES, sizes, strict=True):
            with cursor.copy(f"COPY {twins}_{table} FROM STDIN") as copy:
                while left > 0:
                    block = rows.read(min(left, _BYTES_AT_ONCE))
                    copy.write(block)
                    left -= len(block)
        cursor.execute("COMMIT")


def _last_id(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT coalesce(max(id), 0) FROM {table}")
        return int(cursor.fetchone()[0])


def _seconds(call: Callable[[], object]) -> float:
    gc.collect()
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _peak_mb() -> int:
    per_mb = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // per_mb
