"""The door: what it writes, what it refuses, and that asking twice is asking once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection

from billing import ledger
from billing.accounts import UnknownCurrency, open_account
from billing.ledger import AlreadyReversed, InsufficientFunds, KeyReused, Line, Unbalanced, UnknownAccount
from billing.models import Account, JournalEntry, Posting
from tests.billing.conftest import NOW, UNIT, refused, wallet_of

pytestmark = pytest.mark.django_db


def transfer(books, key, micros=10 * UNIT, **more):
    lines = [Line(books.ana.pk, -micros), Line(books.bo.pk, micros)]
    return ledger.post(key=key, kind="transfer", lines=lines, effective_at=NOW, **more)


def test_an_entry_moves_both_balances(books):
    entry = transfer(books, "t1")
    assert ledger.balance_micros(books.ana.pk) == 90 * UNIT
    assert ledger.balance_micros(books.bo.pk) == 60 * UNIT
    assert JournalEntry.objects.get(pk=entry).postings.count() == 2


def test_the_same_key_and_content_is_the_same_entry(books):
    assert transfer(books, "t1") == transfer(books, "t1")
    assert ledger.balance_micros(books.ana.pk) == 90 * UNIT


def test_the_same_key_with_other_content_is_an_error_and_writes_nothing(books):
    transfer(books, "t1")
    for changed in ({"micros": UNIT}, {"description": "other"}):
        with refused(KeyReused):
            transfer(books, "t1", **changed)
    assert Posting.objects.filter(account=books.ana).count() == 2


def test_a_wallet_is_never_overdrawn(books):
    with refused(InsufficientFunds):
        transfer(books, "t1", micros=100 * UNIT + 1)
    assert transfer(books, "t2", micros=100 * UNIT)


def test_an_unbalanced_entry_is_refused(books):
    with refused(Unbalanced):
        ledger.post(key="t", kind="x", lines=[Line(books.ana.pk, -2), Line(books.bo.pk, 1)], effective_at=NOW)
    with refused(Unbalanced):
        dollars = wallet_of("ana", currency="USD", units=5)
        ledger.post(key="t", kind="x", lines=[Line(dollars.pk, -1), Line(books.bo.pk, 1)], effective_at=NOW)
    assert not JournalEntry.objects.filter(key="t").exists()


def test_a_line_names_an_account_that_exists(books):
    with refused(UnknownAccount):
        ledger.post(key="t", kind="x", lines=[Line(books.ana.pk, -1), Line(10**9, 1)], effective_at=NOW)
    with refused(UnknownAccount):
        ledger.post(key="t", kind="x", lines=[], effective_at=NOW)


def test_an_entry_may_hold_two_currencies_each_balanced(books):
    dollars = wallet_of("ana", currency="USD", units=5)
    house = open_account(kind=Account.Kind.REVENUE, currency="USD")
    lines = [Line(books.ana.pk, -3), Line(books.revenue.pk, 3), Line(dollars.pk, -4), Line(house.pk, 4)]
    ledger.post(key="t", kind="x", lines=lines, effective_at=NOW)
    assert ledger.balance_micros(house.pk) == 4


def test_a_reversal_is_a_new_entry_and_happens_once(books):
    entry = transfer(books, "t1")
    undone = ledger.reverse(key="r1", entry_id=entry, effective_at=NOW + timedelta(hours=1))
    assert undone != entry
    assert ledger.balance_micros(books.ana.pk) == 100 * UNIT
    assert ledger.reverse(key="r1", entry_id=entry, effective_at=NOW) == undone
    with refused(AlreadyReversed):
        ledger.reverse(key="r2", entry_id=entry, effective_at=NOW)


def test_a_reversal_cannot_take_what_was_spent(books):
    entry = transfer(books, "t1", micros=100 * UNIT)
    ledger.post(
        key="spent",
        kind="x",
        lines=[Line(books.bo.pk, -150 * UNIT), Line(books.revenue.pk, 150 * UNIT)],
        effective_at=NOW,
    )
    with refused(InsufficientFunds):
        ledger.reverse(key="r1", entry_id=entry, effective_at=NOW)


def test_house_accounts_take_entries_only_and_are_rolled_up(books):
    for number in range(5):
        ledger.post(
            key=f"s{number}",
            kind="x",
            lines=[Line(books.ana.pk, -UNIT), Line(books.revenue.pk, UNIT)],
            effective_at=NOW,
        )
    books.revenue.refresh_from_db()
    assert books.revenue.posted_micros == 0
    assert ledger.balance_micros(books.revenue.pk) == 5 * UNIT
    assert ledger.roll_up(books.revenue.pk) == 5
    assert ledger.roll_up(books.revenue.pk) == 0
    books.revenue.refresh_from_db()
    assert books.revenue.posted_micros == ledger.balance_micros(books.revenue.pk) == 5 * UNIT
    assert ledger.roll_up(books.ana.pk) == 0, "a stored balance has no tail"


def test_an_account_is_opened_once(books):
    assert open_account(kind=Account.Kind.REVENUE, currency="EUR").pk == books.revenue.pk
    with pytest.raises(UnknownCurrency):
        open_account(kind=Account.Kind.REVENUE, currency="JPY")


@pytest.mark.django_db(transaction=True)
def test_the_same_key_in_parallel_is_one_entry(books):
    def ask(_number):
        try:
            return transfer(books, "t1")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(20)))) == 1
    assert ledger.balance_micros(books.ana.pk) == 90 * UNIT
