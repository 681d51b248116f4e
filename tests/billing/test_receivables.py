"""What is owed after a clawback is paid first by whatever comes in, once, and by nobody else's money."""

import threading

import pytest
from django.db import connection, transaction

from billing import holds, ledger
from billing.accounts import open_account
from billing.ledger import Line
from billing.models import Account, JournalEntry
from billing.receivables import (
    claw_back,
    locked_wallet,
    open_receivable_micros,
    owes_anything,
    pay_open_receivables,
    pay_receivable,
    receivable_first,
)
from billing.roles import grant_to_application
from tests.billing.conftest import NOW, UNIT, wallet_of
from tests.billing.test_ledger_race import together

pytestmark = pytest.mark.django_db


def claw(wallet: Account, units: int) -> tuple[int, int]:
    """Claw back into the losses and return what was taken from the wallet and what is owed, in units."""
    losses = open_account(kind=Account.Kind.LOSSES, currency=wallet.currency)
    with transaction.atomic():
        taken = claw_back(organisation_id=wallet.owner_id or 0, currency=wallet.currency, amount_micros=units * UNIT)
        lines = [*taken.lines, Line(losses.pk, units * UNIT)]
        ledger.post(key=f"claw:{wallet.pk}:{units}", kind="grant", lines=lines, effective_at=NOW)
    return taken.clawed_micros // UNIT, taken.owed_micros // UNIT


def credit(wallet: Account, units: int, key: str = "credit") -> None:
    """Give money from the losses, the receivable first."""
    losses = open_account(kind=Account.Kind.LOSSES, currency=wallet.currency)
    with transaction.atomic():
        lines = receivable_first(
            organisation_id=wallet.owner_id or 0, currency=wallet.currency, amount_micros=units * UNIT
        )
        ledger.post(key=key, kind="grant", lines=[*lines, Line(losses.pk, -units * UNIT)], effective_at=NOW)


def state(wallet: Account) -> tuple[int, int]:
    """What the wallet has posted and what is owed, in units."""
    wallet.refresh_from_db()
    return wallet.posted_micros // UNIT, open_receivable_micros(wallet.owner_id or 0, wallet.currency) // UNIT


def test_a_clawback_takes_what_is_available_and_the_rest_is_owed(books):
    holds.place_hold(key="h", account_id=books.bo.pk, amount_micros=30 * UNIT)
    assert claw(books.bo, 60) == (20, 40), "what is held stays held"
    assert state(books.bo) == (30, 40)
    assert owes_anything(books.bo.owner_id)
    assert not owes_anything(books.ana.owner_id)
    assert claw(books.bo, 5) == (0, 5)
    assert state(books.bo) == (30, 45)


def test_a_clawback_of_what_the_wallet_has_owes_nothing(books):
    assert claw(books.bo, 50) == (50, 0)
    assert state(books.bo) == (0, 0)
    assert not owes_anything(books.bo.owner_id)


def test_money_that_comes_pays_the_receivable_of_its_currency_first(books):
    dollars = wallet_of("bo", currency="USD")
    claw(books.bo, 60)
    credit(dollars, 7, "dollars")
    assert (state(dollars), state(books.bo)) == ((7, 0), (0, 10))
    credit(books.bo, 4, "first")
    assert state(books.bo) == (0, 6)
    credit(books.bo, 20, "second")
    assert state(books.bo) == (14, 0)


def test_nothing_is_no_line(books):
    with transaction.atomic():
        assert receivable_first(organisation_id=books.bo.owner_id, currency="EUR", amount_micros=0) == []
        assert claw_back(organisation_id=books.bo.owner_id, currency="EUR", amount_micros=0).lines == ()


def test_money_released_by_a_hold_pays_what_is_owed_once(books):
    hold = holds.place_hold(key="h", account_id=books.bo.pk, amount_micros=50 * UNIT)
    claw(books.bo, 20)
    assert pay_receivable(organisation_id=books.bo.owner_id, currency="EUR", now=NOW) == 0, "all of it is held"
    holds.release(key="r", hold_id=hold, amount_micros=15 * UNIT)
    assert pay_receivable(organisation_id=books.bo.owner_id, currency="EUR", now=NOW) == 15 * UNIT
    assert pay_receivable(organisation_id=books.bo.owner_id, currency="EUR", now=NOW) == 0
    holds.release(key="rest", hold_id=hold)
    assert pay_open_receivables(now=NOW) == 1
    assert pay_open_receivables(now=NOW) == 0
    assert state(books.bo) == (30, 0)
    assert JournalEntry.objects.filter(kind="receivable_paid").count() == 2


def test_who_owes_nothing_pays_nothing(books):
    assert pay_receivable(organisation_id=books.ana.owner_id, currency="EUR", now=NOW) == 0
    assert pay_open_receivables(now=NOW) == 0


def test_the_application_role_may_lock_a_wallet_it_may_not_write(books):
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE bourse_refunds")
        grant_to_application("bourse_refunds")
        cursor.execute("SET LOCAL ROLE bourse_refunds")
        try:
            assert locked_wallet(books.ana.owner_id, "EUR").pk == books.ana.pk
            assert claw(books.bo, 60) == (50, 10)
            credit(books.bo, 10)
        finally:
            cursor.execute("RESET ROLE")


@pytest.mark.django_db(transaction=True)
def test_two_credits_at_once_do_not_pay_the_same_debt_twice(books):
    claw(books.bo, 60)
    barrier = threading.Barrier(6)

    def pay_in(number: int) -> None:
        barrier.wait(10)
        credit(books.bo, 5, f"credit {number}")

    assert together(6, pay_in) == [None] * 6
    assert state(books.bo) == (20, 0)


@pytest.mark.django_db(transaction=True)
def test_without_the_wallet_s_lock_they_do(books, monkeypatch):
    claw(books.bo, 60)
    both_have_read = threading.Barrier(2)
    monkeypatch.setattr(ledger, "lock_accounts", lambda account_ids: None)
    post = ledger.post

    def post_after_both_have_read(**entry):
        both_have_read.wait(10)
        return post(**entry)

    monkeypatch.setattr(ledger, "post", post_after_both_have_read)
    assert together(2, lambda number: credit(books.bo, 10, f"credit {number}")) == [None] * 2
    receivable = Account.objects.get(kind=Account.Kind.RECEIVABLE, owner=books.bo.owner)
    assert receivable.posted_micros == 10 * UNIT, "the race is real: more was paid than was owed"
