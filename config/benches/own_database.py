"""A database for one bench: made, migrated and dropped again, so that a bench leaves nothing in anybody's books."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection, connections

_NAME = "bourse_bench"


@contextmanager
def own_database() -> Iterator[None]:
    """Work in a fresh database and drop it afterwards. Its commits do not wait for the disk's flush."""
    settings = connections["default"].settings_dict
    home = settings["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {_NAME} WITH (FORCE)")
        cursor.execute(f"CREATE DATABASE {_NAME}")
    connection.close()
    settings["NAME"] = _NAME
    try:
        call_command("migrate", verbosity=0, interactive=False)
        set_commit(flushed=False)
        yield
    finally:
        connection.close()
        settings["NAME"] = home
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {_NAME} WITH (FORCE)")


def set_commit(*, flushed: bool) -> None:
    """Say whether this connection's commits wait for the disk."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET synchronous_commit = {'on' if flushed else 'off'}")
