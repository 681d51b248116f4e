"""Races on real connections: first that each is real without the ledger's lock, then that the door is not open to it."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from billing import holds, ledger
from billing.checks import run_checks
from billing.ledger import HoldExceeded, InsufficientFunds, Line
from billing.models import Account, Hold
from tests.billing.conftest import NOW, UNIT, wallet_of

pytestmark = pytest.mark.django_db(transaction=True)


def together(count: int, work: Callable[[int], object]) -> list[object]:
    """Run `work` in threads with a connection each and return what each gave back or raised."""

    def run(number: int) -> object:
        try:
            return work(number)
        except Exception as problem:
            return problem
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def spend_unguarded(wallet: Account, barrier: threading.Barrier) -> bool:
    """What a careless ledger does: read the balance, decide, then write."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT balance FROM careless WHERE id = %s", [wallet.pk])
        balance = cursor.fetchone()[0]
        barrier.wait(10)
        if balance < 60:
            return False
        cursor.execute("UPDATE careless SET balance = balance - 60 WHERE id = %s", [wallet.pk])
        return True


def test_without_the_lock_two_readers_spend_the_same_money(books):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE careless (id bigint PRIMARY KEY, balance bigint)")
        cursor.execute("INSERT INTO careless VALUES (%s, 100)", [books.ana.pk])
    try:
        barrier = threading.Barrier(2)
        assert together(2, lambda _: spend_unguarded(books.ana, barrier)) == [True, True]
        with connection.cursor() as cursor:
            cursor.execute("SELECT balance FROM careless")
            assert cursor.fetchone()[0] == -20, "the race is real"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE careless")


def test_through_the_door_the_same_money_is_spent_once(books):
    barrier = threading.Barrier(8)

    def spend(number: int) -> int:
        barrier.wait(10)
        lines = [Line(books.ana.pk, -60 * UNIT), Line(books.bo.pk, 60 * UNIT)]
        return ledger.post(key=f"spend{number}", kind="x", lines=lines, effective_at=NOW)

    results = together(8, spend)
    assert sum(isinstance(result, int) for result in results) == 1
    assert sum(isinstance(result, InsufficientFunds) for result in results) == 7, results


def test_a_balance_is_read_after_the_lock_not_before(books):
    """Whoever waits for the lock sees what the other wrote (bavix/laravel-wallet#124)."""
    first_has_the_lock, may_commit = threading.Event(), threading.Event()

    def first(_number: int) -> None:
        with transaction.atomic():
            lines = [Line(books.ana.pk, -60 * UNIT), Line(books.bo.pk, 60 * UNIT)]
            ledger.post(key="first", kind="x", lines=lines, effective_at=NOW)
            first_has_the_lock.set()
            assert may_commit.wait(10)

    def second(_number: int) -> None:
        assert first_has_the_lock.wait(10)
        threading.Timer(0.2, may_commit.set).start()
        lines = [Line(books.ana.pk, -60 * UNIT), Line(books.bo.pk, 60 * UNIT)]
        ledger.post(key="second", kind="x", lines=lines, effective_at=NOW)

    outcome = together(2, lambda number: (first, second)[number](number))
    assert outcome[0] is None
    assert isinstance(outcome[1], InsufficientFunds)


def test_a_hold_is_captured_and_released_for_no_more_than_it_holds(books):
    hold = holds.place_hold(key="h", account_id=books.ana.pk, amount_micros=10 * UNIT)

    def take(number: int) -> int:
        if number % 2:
            return holds.release(key=f"r{number}", hold_id=hold, amount_micros=3 * UNIT)
        lines = [Line(books.revenue.pk, 3 * UNIT)]
        return holds.capture(
            key=f"c{number}", kind="settlement", hold_id=hold, amount_micros=3 * UNIT, lines=lines, effective_at=NOW
        )

    results = together(8, take)
    assert sum(isinstance(result, int) for result in results) == 3
    assert sum(isinstance(result, HoldExceeded) for result in results) == 5
    assert Hold.objects.get(pk=hold).remaining_micros == UNIT


def test_sixteen_clients_with_random_entries_never_deadlock(books):
    """Lines in any order, on the same few accounts (formancehq/ledger#767)."""
    accounts = [books.ana, books.bo, wallet_of("cy", units=70), books.revenue, books.tax]

    def work(number: int) -> int:
        dice, done = random.Random(number), 0
        for turn in range(25):
            chosen = dice.sample(accounts, dice.randint(2, 5))
            amounts = [dice.randint(1, UNIT) for _ in chosen[:-1]]
            lines = [
                Line(account.pk, amount) for account, amount in zip(chosen, [*amounts, -sum(amounts)], strict=True)
            ]
            dice.shuffle(lines)
            try:
                ledger.post(key=f"{number}:{turn}", kind="x", lines=lines, effective_at=NOW)
                done += 1
            except InsufficientFunds:
                continue
        return done

    results = together(16, work)
    assert all(isinstance(result, int) for result in results), [r for r in results if not isinstance(r, int)]
    assert sum(result for result in results if isinstance(result, int)) > 100


def test_a_roll_up_among_writers_loses_no_posting(books):
    def work(number: int) -> None:
        for turn in range(20):
            if number == 0:
                ledger.roll_up(books.revenue.pk)
            else:
                lines = [Line(books.ana.pk, -1), Line(books.revenue.pk, 1)]
                ledger.post(key=f"{number}:{turn}", kind="x", lines=lines, effective_at=NOW)

    assert together(5, work) == [None] * 5
    assert ledger.balance_micros(books.revenue.pk) == 80
    ledger.roll_up(books.revenue.pk)
    assert ledger.balance_micros(books.revenue.pk) == 80
    assert all(check.ok for check in run_checks(now=NOW))
