"""Workers killed between any two statements, everything done twice at once, reports repeated: money stays exact.

Each seed tells a story of some hours: starts, stops, silence, downtime, money that runs out. It is told once without
faults and rolled back, then by a worker process that dies at random half steps (before a statement, or after it and
before its commit); what was cut off is done again, as the next beat would. Every rental, line, hold, wallet and alert
must then be the same, to the micro. And it is told by two such workers at once: then who comes first is open, but every
second is billed once. The seed is printed.
"""

import base64
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.db import connection, transaction

from billing.checks import run_checks
from billing.models import Account
from marketplace import checks
from marketplace.models import Rental, RunwayAlert, Server, Settlement, Strike
from marketplace.orders.place import NotEnoughMoney, place_order
from tests.billing.conftest import paid_top_up
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for
from tests.marketplace.rental_clock import beats_all_along, kinds, up_all_along
from tests.marketplace.rental_jobs import do
from users.models import Organisation

PROJECT = Path(__file__).resolve().parent.parent.parent
SHORT_RUN = 3
LONG_RUN = range(100)
pytestmark = pytest.mark.django_db(transaction=True)

# Reads a job a line: what to do, and the half step to die at. Half step 2n is right before the n-th statement, 2n + 1
# right after it, so before the commit that may follow.
WORKER = """
import base64, os, pickle, signal, sys
import django; django.setup()
from django.db import connection
from tests.marketplace.rental_jobs import do
connection.settings_dict["NAME"] = os.environ["TEST_DATABASE"]

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
    job, at = pickle.loads(base64.b64decode(line))
    child = os.fork()
    if child == 0:
        with connection.execute_wrapper(Dies(at)):
            do(*job)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Worker:
    """A process that forks one for each job, so that Django is loaded once."""

    def __init__(self) -> None:
        env = {**os.environ, "TEST_DATABASE": str(connection.settings_dict["NAME"])}
        command = [sys.executable, "-c", WORKER]
        self.process = subprocess.Popen(
            command, env=env, cwd=PROJECT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, job: tuple[Any, ...], *, dies_at: int) -> int:
        """Return how the job ended: 0, or minus the signal that ended it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(base64.b64encode(pickle.dumps((job, dies_at))).decode() + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.communicate(timeout=20)


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    started = [Worker(), Worker()]
    yield started
    for worker in started:
        worker.stop()


@dataclass
class Story:
    """A story of some hours, the same for the same seed; `act` does each thing that happens in it."""

    seed: int
    act: Callable[..., None]
    lasts: timedelta = timedelta(hours=3)
    now: datetime = NOW
    renters: list[Organisation] = field(default_factory=list)

    def tell(self) -> None:
        self.random = Random(self.seed)
        self.open_the_market()
        while self.now < NOW + self.lasts:
            self.pass_time(self.random.choice([55, 170, 290, 540]))
            self.something_happens()
        for rental_id in Rental.objects.order_by("fill__sequence").values_list("pk", flat=True):
            self.act("stop", rental_id, self.now)
        for _ in range(4):
            self.pass_time(100)
        self.act("settle", self.now)

    def open_the_market(self) -> None:
        self.gpu = make_gpu(slug="h100-sxm")
        for price in ("2.80", "2.84", "2.88"):
            make_listing(gpu=self.gpu, price=price, devices=2)
        self.renters = [make_renter(name="Rich B.V.", units=500), make_renter(name="Short B.V.", units=15)]
        self.silent: set[int] = set()
        up_all_along(since=NOW, until=NOW)
        for renter, hours, gpu_count in ((0, 1, 2), (0, 3, 1), (1, None, 1), (0, None, 1), (0, 2, 1)):
            self.order(renter, hours, gpu_count)

    def order(self, renter: int, hours: int | None, gpu_count: int) -> None:
        """Place an order, and let its machines be ready at once, but for one in six."""
        instruction = order_for(self.gpu, hours=hours, gpu_count=gpu_count)
        with suppress(NotEnoughMoney):
            place_order(organisation_id=self.renters[renter].pk, instruction=instruction, now=self.now)
        for rental_id in self.rentals("pending"):
            if self.random.random() < 5 / 6:
                self.act("ready", rental_id, self.now)

    def something_happens(self) -> None:
        self.random.choice([self.act_on, self.act_on, self.settle, self.change_silence, self.change_market])()

    def act_on(self) -> None:
        what, states = self.random.choice(
            [
                ("ready", ("pending", "provisioning")),
                ("stop", ("pending", "running")),
                ("ack", ("ending", "running")),
                ("ack", ("ending", "ended")),
                ("fail", ("provisioning", "running")),
            ]
        )
        found = self.rentals(*states)
        if found:
            self.act(what, self.random.choice(found), self.now)

    def settle(self) -> None:
        self.act("settle", self.now)

    def change_silence(self) -> None:
        server = self.random.randrange(3)
        (self.silent.add if self.random.random() < 0.4 else self.silent.discard)(server)

    def change_market(self) -> None:
        what = self.random.randrange(6)
        if what == 0:
            self.now += timedelta(minutes=self.random.randrange(2, 50))
            self.act("sweep", self.now)
        elif what == 1:
            wallet = Account.objects.get(owner=self.renters[1], kind="wallet")
            paid_top_up(wallet, micros=1_500_000, paid_at=self.now)
        else:
            self.order(self.random.randrange(2), self.random.choice([1, 2, None]), self.random.choice([1, 2]))

    def rentals(self, *states: str) -> list[Any]:
        return list(Rental.objects.filter(state__in=states).order_by("fill__sequence").values_list("pk", flat=True))

    def pass_time(self, seconds: int) -> None:
        until = self.now + timedelta(seconds=seconds)
        up_all_along(since=self.now, until=until)
        for number, server in enumerate(Server.objects.order_by("created_at", "pk")):
            if number not in self.silent:
                beats_all_along(server, since=self.now, until=until)
        self.now = until
        self.act("sweep", self.now)


def outcome() -> list[object]:
    """Return everything that came of a story, without the ids."""
    found: list[object] = []
    for rental in Rental.objects.order_by("fill__sequence").select_related("hold"):
        hold = rental.hold
        found.append((rental.state, rental.end_reason, rental.ready_at, rental.paid_until, rental.stop_requested_at))
        found.append((rental.ended_at, rental.unbilled_from, kinds(rental)))
        found.append((hold.placed_micros, hold.captured_micros, hold.released_micros, hold.burn_micros_per_hour))
        found += [
            (line.hour, line.billed_seconds, line.gap_seconds, line.gross_micros, line.payable_micros, line.reversed_at)
            for line in Settlement.objects.filter(rental=rental).order_by("hour")
        ]
    accounts = Account.objects.filter(kind__in=["wallet", "payable"]).order_by("kind", "owner__name")
    found += list(accounts.values_list("kind", "posted_micros", "held_micros"))
    found += list(RunwayAlert.objects.order_by("raised_at", "level_seconds").values_list("level_seconds", "raised_at"))
    found.append(Strike.objects.count())
    return found


def told_without_faults(seed: int) -> list[object]:
    with transaction.atomic():
        Story(seed=seed, act=do).tell()
        found = outcome()
        transaction.set_rollback(True)
    return found


def told_with_faults(seed: int, workers: list[Worker]) -> int:
    """Tell it with each thing done by workers that may die, all of them at once, and then again; return how many died."""
    faults, died = Random(f"faults of {seed}"), 0

    def act(*job: Any) -> None:
        nonlocal died
        with ThreadPoolExecutor(len(workers)) as pool:
            ends = [
                pool.submit(worker.run, job, dies_at=faults.choice([faults.randrange(12), faults.randrange(90), -1]))
                for worker in workers
            ]
            died += sum(end.result() != 0 for end in ends)
        do(*job)

    Story(seed=seed, act=act).tell()
    return died


def check(seed: int) -> None:
    """Every invariant holds; what is over has every second from the probe to its end in one line, and none twice."""
    now = NOW + timedelta(hours=9)
    broken = [check for check in (*run_checks(now=now), *checks.run_checks(now=now)) if not check.ok]
    assert broken == [], f"seed {seed}"
    for rental in Rental.objects.filter(ready_at__isnull=False).select_related("hold"):
        lines = list(Settlement.objects.filter(rental=rental).order_by("hour"))
        ends = [at for at in (rental.stop_requested_at, rental.paid_until, rental.unbilled_from) if at is not None]
        billed = [line for line in lines if rental.unbilled_from is None or line.hour < rental.unbilled_from]
        seconds = sum(line.billed_seconds + line.gap_seconds for line in billed)
        assert seconds == max(0, (min(ends) - rental.ready_at).total_seconds()), f"seed {seed}"
        assert rental.hold.remaining_micros == 0, f"seed {seed}"
        assert rental.hold.captured_micros == sum(line.gross_micros for line in lines), f"seed {seed}"
        assert [line.pk for line in lines if line.reversed_at is not None] == (
            [line.pk for line in (*billed[-1:], *lines[len(billed) :])] if rental.state == "interrupted" else []
        ), f"seed {seed}"


def killed(seed: int, workers: list[Worker]) -> None:
    sys.stdout.write(f"seed {seed}\n")
    expected = told_without_faults(seed)
    died = told_with_faults(seed, workers[:1])
    assert outcome() == expected, f"seed {seed}"
    assert died > 5, f"seed {seed}: nobody died"
    check(seed)


def doubled(seed: int, workers: list[Worker]) -> None:
    sys.stdout.write(f"seed {seed}, doubled\n")
    told_with_faults(seed, workers)
    check(seed)


@pytest.mark.timeout(300)
def test_killed_workers_change_nothing(workers):
    killed(SHORT_RUN, workers)


@pytest.mark.timeout(300)
def test_two_at_once_of_everything_break_nothing(workers):
    doubled(SHORT_RUN, workers)


@pytest.mark.long
@pytest.mark.parametrize("seed", LONG_RUN)
@pytest.mark.timeout(600)
def test_killed_workers_change_nothing_in_long_runs(workers, seed):
    killed(seed, workers)


@pytest.mark.long
@pytest.mark.parametrize("seed", LONG_RUN)
@pytest.mark.timeout(600)
def test_two_at_once_of_everything_break_nothing_in_long_runs(workers, seed):
    doubled(seed, workers)
