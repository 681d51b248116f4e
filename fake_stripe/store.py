"""The one file of the gateway's state: objects, answers kept for their keys, messages to deliver, timers, switches."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Json = dict[str, Any]

_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, kind TEXT, created INTEGER, body TEXT);
CREATE INDEX IF NOT EXISTS objects_by_kind ON objects (kind, seq);
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, request TEXT, status INTEGER, body TEXT, created INTEGER);
CREATE TABLE IF NOT EXISTS deliveries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT, attempts INTEGER DEFAULT 0, next_at REAL, last_status INTEGER,
    delivered_at REAL);
CREATE TABLE IF NOT EXISTS timers (seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER, action TEXT, object_id TEXT);
CREATE TABLE IF NOT EXISTS switches (name TEXT PRIMARY KEY, value TEXT);
"""
_NAMES = ("objects", "answers", "deliveries", "timers", "switches")


class Store:
    """Rows in SQLite. One writer at a time: every caller works inside `transaction`."""

    def __init__(self, path: str) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.row_factory = sqlite3.Row
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")  # a killed process loses nothing
        self._database.executescript(_TABLES)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the store; commit at the end, undo all on an error. May be nested: the outermost decides."""
        with self._lock:
            self._depth += 1
            try:
                if self._depth == 1:
                    self._database.execute("BEGIN")
                yield
            except BaseException:
                if self._depth == 1:
                    self._database.execute("ROLLBACK")
                raise
            else:
                if self._depth == 1:
                    self._database.execute("COMMIT")
            finally:
                self._depth -= 1

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """Run one statement; return its rows."""
        with self._lock:
            return self._database.execute(sql, values).fetchall()

    def put(self, thing: Json) -> Json:
        """Keep an object as it is now; return it."""
        self.rows(
            "INSERT INTO objects (id, kind, created, body) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            thing["id"],
            thing["object"],
            thing["created"],
            json.dumps(thing),
        )
        return thing

    def find(self, kind: str, object_id: str) -> Json | None:
        """Return an object, None when there is none of that kind."""
        rows = self.rows("SELECT body FROM objects WHERE id = ? AND kind = ?", object_id, kind)
        return json.loads(rows[0]["body"]) if rows else None

    def find_any(self, object_id: str) -> Json | None:
        """Return an object of whatever kind."""
        rows = self.rows("SELECT body FROM objects WHERE id = ?", object_id)
        return json.loads(rows[0]["body"]) if rows else None

    def place_of(self, object_id: str) -> int | None:
        """Return an object's place in the order of making."""
        rows = self.rows("SELECT seq FROM objects WHERE id = ?", object_id)
        return int(rows[0]["seq"]) if rows else None

    def newest(self, kind: str, *, before: int = 2**62, after: int = 0) -> Iterator[Json]:
        """Yield the objects of a kind, newest first, between two places."""
        found = self.rows(
            "SELECT body FROM objects WHERE kind = ? AND seq < ? AND seq > ? ORDER BY seq DESC", kind, before, after
        )
        return (json.loads(row["body"]) for row in found)

    def switch(self, name: str, default: Any) -> Any:
        """Return a switch's value."""
        rows = self.rows("SELECT value FROM switches WHERE name = ?", name)
        return json.loads(rows[0]["value"]) if rows else default

    def set_switch(self, name: str, value: Any) -> None:
        """Set a switch; it outlives a restart."""
        self.rows("INSERT OR REPLACE INTO switches (name, value) VALUES (?, ?)", name, json.dumps(value))

    def clear(self) -> None:
        """Forget everything."""
        for name in _NAMES:
            self.rows(f"DELETE FROM {name}")  # noqa: S608  # our own table names

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()
