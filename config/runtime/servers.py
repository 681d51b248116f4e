"""The two servers a local site needs, started unless the environment names outside ones.

One process per home owns the servers (it holds `servers.lock`). Another command in the same home finds them
answering and uses them; with nothing running, it starts them for its own duration.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from config.runtime import addresses, postgres, valkey
from config.runtime.lines import say, step
from config.runtime.processes import Child, note_children, stop_leftovers


class HomeBusy(RuntimeError):
    """Another run owns this home's servers."""


@contextmanager
def owned(env: dict[str, str], *, quiet: bool = False) -> Iterator[list[Child]]:
    """Own this home, start its servers, stop them at the end. Raises HomeBusy when another run owns it."""
    with _lock(addresses.home()):
        found = stop_leftovers(_notes())
        if found:
            say(f"  The last run was killed: stopped what it left behind ({', '.join(found)})")
        children: list[Child] = []
        addresses.private_folder(addresses.run_folder())
        try:
            if not os.environ.get("DATABASE_URL"):
                with step("Starting PostgreSQL") if not quiet else _silence():
                    children.append(postgres.start(env))
                note_children(_notes(), children)
            if not os.environ.get("REDIS_URL"):
                with step("Starting the broker") if not quiet else _silence():
                    children.append(valkey.start(env))
                note_children(_notes(), children)
            yield children
        finally:
            for child in reversed(children):
                child.stop()
            _notes().unlink(missing_ok=True)


@contextmanager
def available(env: dict[str, str]) -> Iterator[bool]:
    """Use the servers of a running site in this home (True), or start them for the block (False)."""
    if _answering():
        yield True
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(owned(env, quiet=True))
        except HomeBusy:
            _wait_until_answering()
            yield True
            return
        yield False


def note(children: list[Child]) -> None:
    """Record the processes of this home, for the next start."""
    note_children(_notes(), children)


def _notes() -> Path:
    return addresses.home() / "processes.json"


def _answering() -> bool:
    database = bool(os.environ.get("DATABASE_URL")) or postgres.accepts_connections()
    return database and (bool(os.environ.get("REDIS_URL")) or valkey.accepts_connections())


def _wait_until_answering() -> None:
    deadline = time.monotonic() + 60
    while not _answering():
        if time.monotonic() > deadline:
            raise HomeBusy("Another run owns this home, but its servers do not answer.")
        time.sleep(0.2)


@contextmanager
def _silence() -> Iterator[None]:
    yield


@contextmanager
def _lock(home: Path) -> Iterator[IO[str]]:
    addresses.private_folder(home)
    with (home / "servers.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeBusy(f"A site already runs from {home}. Stop it, or choose another folder with --home.") from None
        yield lock
