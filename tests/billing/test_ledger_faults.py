"""A process killed at a named point loses nothing that was promised and doubles nothing when it is asked again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from billing import holds, ledger
from billing.ledger import Line
from billing.models import JournalEntry
from tests.billing.conftest import NOW, UNIT

PROJECT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.django_db(transaction=True)

CLIENT = """
import os, signal, sys
import django; django.setup()
from datetime import UTC, datetime
from django.db import connection, transaction
from billing import holds, ledger
from billing.ledger import Line
point, ana, bo, hold = sys.argv[1], *map(int, sys.argv[2:])
connection.settings_dict["NAME"] = os.environ["TEST_DATABASE"]
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
def die(): os.kill(os.getpid(), signal.SIGKILL)
if point == "before": die()
with transaction.atomic():
    ledger.post(key="t1", kind="x", lines=[Line(ana, -1000000), Line(bo, 1000000)], effective_at=NOW)
    if point == "after the entry": die()
    holds.release(key="r1", hold_id=hold, amount_micros=1000000)
    if point == "before the commit": die()
if point == "after the commit": die()
"""


def again(books, hold: int) -> None:
    """What whoever takes over does: the same calls with the same keys."""
    ledger.post(key="t1", kind="x", lines=[Line(books.ana.pk, -UNIT), Line(books.bo.pk, UNIT)], effective_at=NOW)
    holds.release(key="r1", hold_id=hold, amount_micros=UNIT)


@pytest.mark.parametrize("point", ["before", "after the entry", "before the commit", "after the commit"])
def test_killed_at_any_point_the_work_is_done_once(books, point):
    hold = holds.place_hold(key="h1", account_id=books.ana.pk, amount_micros=5 * UNIT)
    env = {**os.environ, "TEST_DATABASE": str(connection.settings_dict["NAME"])}
    arguments = [str(number) for number in (books.ana.pk, books.bo.pk, hold)]
    client = subprocess.run([sys.executable, "-c", CLIENT, point, *arguments], env=env, cwd=PROJECT, check=False)
    assert client.returncode == -signal.SIGKILL
    assert JournalEntry.objects.filter(key="t1").exists() is (point == "after the commit")
    again(books, hold)
    again(books, hold)
    books.ana.refresh_from_db()
    assert (books.ana.posted_micros, books.ana.held_micros) == (99 * UNIT, 4 * UNIT)


def test_a_server_side_connection_cut_in_the_middle_writes_nothing(books):
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    ledger.post(key="t1", kind="x", lines=[Line(books.ana.pk, -UNIT), Line(books.bo.pk, UNIT)], effective_at=NOW)
    connection.close()
    assert not JournalEntry.objects.filter(key="t1").exists()
