"""The door for many hours at once: the same keys and content again change nothing, and what does not fit is refused."""

from datetime import datetime

import pytest
from django.db import DatabaseError, connection, transaction

from billing import holds
from billing.accounts import open_settlement_accounts
from billing.ledger import HoldExceeded, KeyReused, Unbalanced, UnknownAccount, reason_of
from billing.models import Account, Hold, JournalEntry
from tests.billing.conftest import NOW, UNIT, refused
from tests.factories import make_organisation

pytestmark = pytest.mark.django_db


@pytest.fixture
def settle(books):
    """Settle hours of ana's hold of 50 EUR, for one provider; one hour for each (net, tax, payable, rest)."""
    provider = make_organisation(name="noord", kind="provider")
    open_settlement_accounts(owner_ids=[provider.pk])
    hold = holds.place_hold(key="h", account_id=books.ana.pk, amount_micros=50 * UNIT)

    def call(
        *hours: tuple[int, int, int, int], first: int = 0, owner: int = provider.pk
    ) -> list[tuple[int | None, int | None]]:
        count, numbers = len(hours), range(first, first + len(hours))
        nets, taxes, payables, rests = (list(column) for column in zip(*hours, strict=True))
        return settled(
            [hold] * count, ["r"] * count, [NOW] * count, [f"settle:{n}" for n in numbers], nets, taxes,
            [owner] * count, [f"earn:{n}" for n in numbers], payables, [f"rest:{n}" for n in numbers], rests,
        )  # fmt: skip

    return call


def settled(*columns: list[int] | list[str] | list[datetime]) -> list[tuple[int | None, int | None]]:
    types = ("bigint", "text", "timestamptz", "text", "bigint", "bigint", "bigint", "text", "bigint", "text", "bigint")
    placeholders = ", ".join(f"%s::{name}[]" for name in types)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                f"SELECT entry_id, provider_entry_id FROM billing_settle({placeholders}) ORDER BY line", columns
            )
            return cursor.fetchall()
    except DatabaseError as problem:
        raise reason_of(problem) or problem from problem


def figures(books) -> tuple[int, ...]:
    books.ana.refresh_from_db()
    hold = Hold.objects.get()
    payable = Account.objects.get(kind="payable").posted_micros
    return books.ana.posted_micros, books.ana.held_micros, hold.captured_micros, hold.released_micros, payable


def test_hours_of_both_sides_are_posted_and_the_rest_released(books, settle):
    first, second = settle((10 * UNIT, 2 * UNIT, 9 * UNIT, 3 * UNIT), (5 * UNIT, 0, 4 * UNIT, 0))
    assert None not in (*first, *second)
    assert figures(books) == (83 * UNIT, 30 * UNIT, 17 * UNIT, 3 * UNIT, 13 * UNIT)


def test_an_hour_that_comes_to_nothing_has_no_entries(books, settle):
    assert settle((0, 0, 0, 0), (0, 0, 0, UNIT)) == [(None, None), (None, None)]
    assert figures(books) == (100 * UNIT, 49 * UNIT, 0, UNIT, 0)


def test_the_same_again_is_the_same_and_moves_nothing(books, settle):
    hours = ((10 * UNIT, 2 * UNIT, 9 * UNIT, 3 * UNIT), (5 * UNIT, 0, 4 * UNIT, 0))
    entries, after = settle(*hours), figures(books)
    assert settle(*hours) == entries
    assert settle(*hours, (UNIT, 0, UNIT, 0))[:2] == entries
    assert JournalEntry.objects.filter(kind__endswith="_hour").count() == 6
    assert figures(books)[0] == after[0] - UNIT


@pytest.mark.parametrize("other", [(UNIT, UNIT, 4 * UNIT, 0), (5 * UNIT, 0, 3 * UNIT, 0)])
def test_other_content_under_a_known_key_is_refused(books, settle, other):
    settle((5 * UNIT, 0, 4 * UNIT, 0))
    before = figures(books)
    with refused(KeyReused):
        settle(other)
    assert figures(books) == before


def test_more_than_the_hold_has_is_refused_with_all_of_it(books, settle):
    with refused(HoldExceeded):
        settle((30 * UNIT, 0, 0, 0), (21 * UNIT, 0, 0, 0))
    assert figures(books) == (100 * UNIT, 50 * UNIT, 0, 0, 0)


def test_an_account_that_is_not_open_is_refused(books, settle):
    with refused(UnknownAccount):
        settle((UNIT, 0, UNIT, 0), owner=make_organisation(name="zuid", kind="provider").pk)


def test_nothing_is_settled_of_no_hours(books, settle):
    assert settled([], [], [], [], [], [], [], [], [], [], []) == []


def test_a_negative_amount_is_refused(books, settle):
    with refused(Unbalanced):
        settle((-UNIT, 2 * UNIT, 0, 0), (UNIT, 0, 0, 0))
