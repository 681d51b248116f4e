"""A worker killed between any two statements: after the restart the payment is credited, exactly once.

The record of a step that survives while the credit beside it does not (akash-network/console#1864), and the reverse.
"""

import base64
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connection

from billing import ledger
from billing.models import Account, GatewayEvent, JournalEntry, TopUp
from billing.topups.apply_event import apply_due_events
from billing.topups.credit import credit_top_up
from billing.topups.start import start_top_up
from billing.topups.take_event import take_event
from tests.billing.conftest import NOW, UNIT
from tests.billing.gateway_double import GatewayDouble, event, install
from tests.factories import make_organisation

PROJECT = Path(__file__).resolve().parent.parent.parent
LATER = NOW + timedelta(hours=1)
pytestmark = pytest.mark.django_db(transaction=True)

# Reads a job a line: the work, the half step to die at, and the gateway. Half step 2n is right before the n-th
# statement, 2n + 1 right after it, so before the commit that may follow.
WORKER = """
import base64, os, pickle, signal, sys
import django; django.setup()
from django.db import connection
from billing.gateway import client
from billing.topups.apply_event import apply_due_events
from billing.topups.credit import credit_top_up
from tests.billing.gateway_double import REPLACED, SOON
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
    work, at, double = pickle.loads(base64.b64decode(line))
    child = os.fork()
    if child == 0:
        for name in REPLACED: setattr(client, name, getattr(double, name))
        with connection.execute_wrapper(Dies(at)):
            if work == "apply": apply_due_events(now=SOON)
            else: credit_top_up(payment=list(double.payments.values())[-1], now=SOON)
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

    def run(self, work: str, at: int, double: GatewayDouble) -> int:
        """Return how the job ended: 0, or minus the signal that ended it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(base64.b64encode(pickle.dumps((work, at, double))).decode() + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.communicate(timeout=20)


@pytest.fixture
def worker() -> Iterator[Worker]:
    started = Worker()
    yield started
    started.stop()


def start(number: int) -> TopUp:
    return start_top_up(
        organisation=make_organisation(name=f"killed {number}"),
        currency="EUR",
        amount=Decimal(100),
        created_by=None,
        now=NOW,
        return_url_of=lambda top_up_id: f"https://bourse.example/{top_up_id}/",
        locale="en",
    )


@pytest.mark.parametrize("work", ["apply", "credit"])
def test_killed_before_or_after_any_statement_a_payment_is_credited_once(monkeypatch, worker, work):
    double = GatewayDouble()
    install(monkeypatch, double)
    credited_at: list[bool] = []
    how = -1
    for half_step in range(200):
        top_up = start(half_step)
        payment = double.pay(top_up.pk)
        if work == "apply":
            take_event(event("checkout.session.completed", top_up.checkout_session_id or ""), now=NOW)
        how = worker.run(work, half_step, double)
        credited_at.append(check_whole(top_up))
        if work == "apply":
            apply_due_events(now=LATER)  # whoever takes over, once the lease is over
            apply_due_events(now=LATER)
            assert not GatewayEvent.objects.filter(applied_at=None).exists()
        else:
            credit_top_up(payment=payment, now=LATER)
        assert check_whole(top_up), f"not credited after a kill at half step {half_step}"
        if how == 0:
            break
        assert how == -signal.SIGKILL
    assert how == 0, "the work has an end"
    assert len(credited_at) > 20
    assert credited_at == sorted(credited_at), "once it is committed it stays"
    assert not credited_at[0]
    assert credited_at[-1]


def check_whole(top_up: TopUp) -> bool:
    """Return whether it is credited; it is wholly, once, or not at all."""
    top_up.refresh_from_db()
    entries = JournalEntry.objects.filter(key=f"topup:{top_up.pk}").count()
    wallet = Account.objects.get(pk=top_up.wallet_id)
    assert (top_up.state == "paid") == (entries == 1) == (top_up.credit_entry_id is not None)
    assert ledger.balance_micros(wallet.pk) == entries * 100 * UNIT
    return entries == 1
