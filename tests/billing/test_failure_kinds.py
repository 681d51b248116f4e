"""Kinds of failure that other ledgers met in public, where no other test here names them."""

import ast
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import DatabaseError, connection
from psycopg import errors

from billing import holds, ledger
from billing.ledger import Line, reason_of
from billing.models import Hold, JournalEntry, Posting
from billing.tasks import release_expired_holds, roll_up_accounts
from tests.billing.conftest import NOW, UNIT

PROJECT = Path(__file__).resolve().parent.parent.parent
FLOWS = sorted(PROJECT.glob("billing/*.py")) + sorted(PROJECT.glob("billing/re*/*.py"))
MONEY_MODULES = [
    *FLOWS,
    PROJECT / "common" / "money.py",
    *sorted(PROJECT.glob("fx/*.py")),
]

pytestmark = pytest.mark.django_db


def test_what_a_wallet_shows_is_the_sum_of_its_lines(books):
    """A total and its lines that differ by a cent (getlago/lago-api#4642)."""
    for number, micros in enumerate((3, 333_333, 999_999, 10 * UNIT + 7)):
        lines = [
            Line(books.ana.pk, -micros),
            Line(books.bo.pk, micros // 2),
            Line(books.revenue.pk, micros - micros // 2),
        ]
        ledger.post(key=f"k{number}", kind="x", lines=lines, effective_at=NOW)
    shown = ledger.balance_micros(books.ana.pk)
    assert shown == sum(Posting.objects.filter(account=books.ana).values_list("amount_micros", flat=True))


@pytest.mark.parametrize("path", MONEY_MODULES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_no_module_that_touches_money_knows_a_float(path):
    """Float dust that blocks a payout (stustapay/stustapay#548)."""
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), f"line {node.lineno}"
        assert not (isinstance(node, ast.Name) and node.id == "float"), f"line {node.lineno}"


@pytest.mark.django_db(transaction=True)
def test_a_task_delivered_twice_at_once_does_its_work_once(books):
    """A broker that redelivers, two beats, a storm after downtime (celery/celery#5935, #2856)."""
    hold = holds.place_hold(key="h", account_id=books.ana.pk, amount_micros=UNIT, expires_at=NOW)
    ledger.post(key="t", kind="x", lines=[Line(books.ana.pk, -UNIT), Line(books.revenue.pk, UNIT)], effective_at=NOW)

    def deliver(number: int) -> None:
        try:
            (release_expired_holds, roll_up_accounts)[number % 2]()
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(deliver, range(12)))
    kept = Hold.objects.get(pk=hold)
    assert (kept.remaining_micros, kept.released_micros) == (0, UNIT)
    assert ledger.balance_micros(books.revenue.pk) == UNIT


@pytest.mark.parametrize("path", FLOWS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_no_flow_sends_a_task(path):
    """A task that runs before its row is committed (celery/celery#8491): work is found in rows, never sent."""
    called = {
        node.func.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not called & {"delay", "apply_async", "send_task"}


def test_only_the_guard_says_insufficient_funds():
    """A serialisation error told as missing money (interledger-deprecated/five-bells-ledger#402)."""
    for other in (errors.DeadlockDetected(), errors.SerializationFailure(), errors.LockNotAvailable()):
        problem = DatabaseError()
        problem.__cause__ = other
        assert reason_of(problem) is None


def test_lines_inserted_in_bulk_move_the_balances_too(books):
    """Balances kept by hooks that a bulk insert skips (adamcharnock/django-hordak#76)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO billing_journalentry (key, content_sha256, kind, reference_type, reference_id, description,"
            " effective_at, created_at) SELECT 'bulk ' || n, ''::bytea, 'x', '', '', '', now(), now()"
            " FROM generate_series(1, 1000) AS n"
        )
        cursor.execute(
            "INSERT INTO billing_posting (entry_id, account_id, currency, amount_micros)"
            " SELECT id, line.account, 'EUR', line.amount FROM billing_journalentry,"
            " (VALUES (%s::bigint, -1000), (%s::bigint, 600), (%s::bigint, 400)) AS line (account, amount)"
            " WHERE key LIKE 'bulk %%'",
            [books.ana.pk, books.bo.pk, books.revenue.pk],
        )
    assert JournalEntry.objects.filter(kind="x").count() == 1000
    assert ledger.balance_micros(books.ana.pk) == 99 * UNIT
    assert ledger.balance_micros(books.bo.pk) == 50 * UNIT + 600_000
    assert ledger.balance_micros(books.revenue.pk) == 400_000
