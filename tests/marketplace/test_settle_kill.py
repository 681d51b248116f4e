"""A worker killed after any statement, or a server process in the middle of one: every hour is settled once after all."""

import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction

from billing import ledger
from billing.models import Account, JournalEntry
from marketplace.models import Rental, Settlement
from marketplace.settlement.due import settle_due
from tests.factories import make_gpu
from tests.marketplace.conftest import end_rental, make_listing, make_renter, make_running_rental

PROJECT = Path(__file__).resolve().parent.parent.parent
NOW = datetime(2026, 11, 30, 12, 30, tzinfo=UTC)
RENTALS, HOURS = 3, 3
pytestmark = pytest.mark.django_db(transaction=True)

# Forks a child for each number it reads, so that Django is loaded once. Half step 2n is right before the n-th
# statement, 2n + 1 right after it, so before the commit that may follow.
WORKER = """
import os, signal, sys
import django; django.setup()
from datetime import UTC, datetime
from django.db import connection
from marketplace.settlement.due import settle_due
from marketplace.settlement.settle import settle_rental_now
connection.settings_dict["NAME"] = os.environ["TEST_DATABASE"]
NOW = datetime(2026, 11, 30, 12, 30, tzinfo=UTC)

class Dies:
    def __init__(self, at): self.at, self.half_steps = at, 0
    def step(self):
        if self.half_steps == self.at: os.kill(os.getpid(), signal.SIGKILL)
        self.half_steps += 1
    def __call__(self, execute, sql, params, many, context):
        self.step()
        answer = execute(sql, params, many, context)
        self.step()
        return answer

for line in sys.stdin:
    at, rental = line.split()
    child = os.fork()
    if child == 0:
        with connection.execute_wrapper(Dies(int(at))):
            if rental == "all": settle_due(until=NOW, now=NOW, rentals_per_chunk=2)
            else: settle_rental_now(rental_id=rental, now=NOW)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def worker():
    env = {**os.environ, "TEST_DATABASE": str(connection.settings_dict["NAME"])}
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER], env=env, cwd=PROJECT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    yield process
    process.communicate(timeout=20)


def work(worker: subprocess.Popen[str], *, at: int, rental: object = "all") -> int:
    """Return how the job ended: 0, or minus the signal that ended it."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{at} {rental}\n")
    worker.stdin.flush()
    return int(worker.stdout.readline())


def make_ended_rentals() -> list[Rental]:
    renter, gpu = make_renter(), make_gpu(slug="h100-sxm")
    listing = make_listing(gpu=gpu, devices=RENTALS)
    rentals = [
        make_running_rental(
            renter=renter, gpu=gpu, ready_at=NOW - timedelta(hours=2, minutes=25), hours=6, listing=listing
        )
        for _ in range(RENTALS)
    ]
    for rental in rentals:
        end_rental(rental, stop_at=NOW)
    return rentals


def state() -> tuple[list[object], ...]:
    """Return all that a settlement leaves behind, without what differs from run to run."""
    lines = Settlement.objects.order_by("rental_id", "hour").values_list("hour", "billed_seconds", "gross_micros")
    accounts = [
        (account.kind, ledger.balance_micros(account.pk)) for account in Account.objects.order_by("kind", "currency")
    ]
    holds = Rental.objects.order_by("pk").values_list(
        "hold__captured_micros", "hold__remaining_micros", "fully_settled_at"
    )
    return list(lines), accounts, list(holds), [JournalEntry.objects.filter(kind__endswith="_hour").count()]


def test_killed_after_any_statement_the_next_run_settles_the_rest(worker):
    make_ended_rentals()
    at = 0
    while (ended := work(worker, at=at)) == -signal.SIGKILL:
        for rental in Rental.objects.all():
            hours = list(Settlement.objects.filter(rental=rental).order_by("hour").values_list("hour", flat=True))
            assert hours == sorted(set(hours))
            assert (rental.settled_until is None) == (not hours)
        at += 1
    assert ended == 0
    assert at >= 10, "it died at many points, each time a little further"
    assert Settlement.objects.count() == RENTALS * HOURS
    after_kills = state()
    settle_due(until=NOW, now=NOW)
    assert state() == after_kills
    assert after_kills[3] == [2 * RENTALS * HOURS]


def test_killed_at_every_point_of_one_rental_s_end(worker):
    rental = make_ended_rentals()[0]
    at = 0
    while work(worker, at=at, rental=rental.pk) == -signal.SIGKILL:
        assert not Settlement.objects.filter(rental=rental).exists(), "one transaction: all of it or nothing"
        at += 1
    assert Settlement.objects.filter(rental=rental).count() == HOURS
    assert Rental.objects.get(pk=rental.pk).fully_settled_at == NOW


def test_a_server_process_that_dies_in_the_middle_of_the_statement_leaves_nothing_of_it():
    rental = make_ended_rentals()[0]
    settle_due(until=NOW - timedelta(hours=3), now=NOW)  # opens the accounts
    failed: list[Exception] = []

    def settles() -> None:
        try:
            settle_due(until=NOW, now=NOW)
        except DatabaseError as problem:
            failed.append(problem)
        finally:
            connection.close()

    with transaction.atomic():
        ledger.lock_accounts([rental.wallet_id])  # it comes as far as the accounts, with the rentals locked
        thread = threading.Thread(target=settles)
        thread.start()
        cut_off_who_waits()
        thread.join(20)
    assert len(failed) == 1
    assert not Settlement.objects.exists()
    assert settle_due(until=NOW, now=NOW)["hours"] == RENTALS * HOURS


def cut_off_who_waits() -> None:
    """End the server process that waits for a lock."""
    for _ in range(2000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted")
            if cursor.fetchall():
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("nobody waited")
