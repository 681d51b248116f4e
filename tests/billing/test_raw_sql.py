"""What nobody can do to the books with SQL of their own, as the owner (one role) and as the application (two roles)."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import DatabaseError, connection, transaction

from billing import holds, ledger
from billing.ledger import Line
from billing.models import Account
from billing.roles import grant_to_application, has_two_roles
from tests.billing.conftest import NOW, UNIT, wallet_of

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["owner", "application"])
def role(request, books) -> Iterator[str]:
    """Run the test as each role; the application's has the grants that production gives it."""
    if request.param == "application":
        with connection.cursor() as cursor:
            cursor.execute("DROP ROLE IF EXISTS bourse_app")
            cursor.execute("CREATE ROLE bourse_app")
            grant_to_application("bourse_app")
            cursor.execute("SET ROLE bourse_app")
        assert has_two_roles()
    yield request.param
    with connection.cursor() as cursor:
        cursor.execute("RESET ROLE")


@contextmanager
def refused_with(*words: str) -> Iterator[None]:
    with pytest.raises(DatabaseError) as refusal, transaction.atomic():  # noqa: PT012 (the commit's checks belong to it)
        yield
        run("SET CONSTRAINTS ALL IMMEDIATE")
    assert any(word in str(refusal.value) for word in (*words, "permission denied")), refusal.value


def run(statement: str, *parameters: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(parameters) or None)


def seed(books) -> tuple[int, int]:
    entry = ledger.post(
        key="t1", kind="x", lines=[Line(books.ana.pk, -UNIT), Line(books.bo.pk, UNIT)], effective_at=NOW
    )
    hold = holds.place_hold(key="h1", account_id=books.ana.pk, amount_micros=UNIT)
    run("SET CONSTRAINTS ALL IMMEDIATE")
    run("SET CONSTRAINTS ALL DEFERRED")
    return entry, hold


NEW_ENTRY = """
    INSERT INTO billing_journalentry (key, content_sha256, kind, reference_type, reference_id, description, effective_at, created_at)
    VALUES ('raw', ''::bytea, 'x', '', '', '', now(), now())
"""
LINE = "INSERT INTO billing_posting (entry_id, account_id, currency, amount_micros) VALUES "


def raw_entry() -> int:
    with connection.cursor() as cursor:
        cursor.execute(NEW_ENTRY + " RETURNING id")
        return int(cursor.fetchone()[0])


def test_an_unbalanced_entry(books, role):
    with refused_with("does not balance"):
        run(LINE + "(%s, %s, 'EUR', -2), (%s, %s, 'EUR', 1)", entry := raw_entry(), books.ana.pk, entry, books.bo.pk)


def test_an_entry_with_mixed_currencies(books, role):
    dollars = Account.objects.filter(currency="USD").first()
    assert dollars is None
    with refused_with("posting_account_in_its_currency"):
        run(LINE + "(%s, %s, 'USD', -1), (%s, %s, 'USD', 1)", entry := raw_entry(), books.ana.pk, entry, books.bo.pk)


def test_an_overdrawn_wallet(books, role):
    taken = 100 * UNIT + 1
    with refused_with("wallet_never_overdrawn"):
        run(
            LINE + "(%s, %s, 'EUR', %s), (%s, %s, 'EUR', %s)",
            e := raw_entry(),
            books.ana.pk,
            -taken,
            e,
            books.bo.pk,
            taken,
        )


@pytest.mark.parametrize("table", ["billing_journalentry", "billing_posting", "billing_holdmovement"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_an_edited_or_deleted_line(books, role, table, statement):
    seed(books)
    with refused_with("only grows"):
        run(statement.format(table))


def test_an_edited_balance(books, role):
    for column in ("posted_micros", "held_micros"):
        with refused_with("by postings and holds alone", "permission denied"):
            run(f"UPDATE billing_account SET {column} = {column} + 1 WHERE id = %s", books.ana.pk)
    with refused_with("a roll-up must equal its postings"):
        run("UPDATE billing_account SET posted_micros = posted_micros + 1 WHERE id = %s", books.revenue.pk)


def test_an_account_that_changes_its_currency_kind_or_owner(books, role):
    for change in ("currency = 'USD'", "kind = 'receivable'", f"owner_id = {books.bo.owner_id}"):
        with refused_with("by postings and holds alone"):
            run(f"UPDATE billing_account SET {change} WHERE id = %s", books.ana.pk)


def test_an_account_that_starts_with_money(books, role):
    with refused_with("starts empty"):
        run(
            "INSERT INTO billing_account (kind, currency, owner_id, posted_micros, held_micros, entries_only, rolled_up_to, opened_at)"
            " VALUES ('wallet', 'GBP', %s, 5, 0, false, 0, now())",
            books.ana.owner_id,
        )


def test_a_deleted_account_or_hold(books, role):
    seed(books)
    for table in ("billing_account", "billing_hold"):
        with refused_with("only grows"):
            run(f"DELETE FROM {table}")


def test_an_edited_hold(books, role):
    _, hold = seed(books)
    with refused_with("only grows"):
        run("UPDATE billing_hold SET remaining_micros = 0, released_micros = placed_micros WHERE id = %s", hold)


def test_a_release_of_more_than_is_left(books, role):
    _, hold = seed(books)
    with refused_with("hold_parts_not_negative"):
        run(
            "INSERT INTO billing_holdmovement (hold_id, key, content_sha256, kind, amount_micros, created_at)"
            " VALUES (%s, 'raw', ''::bytea, 'released', %s, now())",
            hold,
            UNIT + 1,
        )


def test_a_capture_that_pays_nobody(books, role):
    entry, hold = seed(books)
    with refused_with("does not match its entry"):
        run(
            "INSERT INTO billing_holdmovement (hold_id, key, content_sha256, kind, amount_micros, entry_id, created_at)"
            " VALUES (%s, 'raw', ''::bytea, 'captured', %s, %s, now())",
            hold,
            UNIT // 2,
            entry,
        )


def test_the_application_reaches_everything_it_needs_through_the_door(books, role):
    entry, hold = seed(books)
    ledger.reverse(key="r", entry_id=entry, effective_at=NOW)
    lines = [Line(books.revenue.pk, UNIT // 2)]
    holds.capture(key="c", kind="settlement", hold_id=hold, amount_micros=UNIT // 2, lines=lines, effective_at=NOW)
    assert holds.release(key="rest", hold_id=hold) == UNIT // 2
    assert ledger.roll_up(books.revenue.pk) == 1
    assert ledger.balance_micros(books.revenue.pk) == UNIT // 2
    assert wallet_of("cy").pk


def test_the_inner_functions_are_not_for_the_application(books, role):
    entry, _ = seed(books)
    if role == "owner":
        return  # the owner may call them; the triggers judge what they write all the same
    with refused_with("permission denied"):
        run("SELECT billing_write_postings(%s, '{1,2}', '{-1,1}')", entry)


def test_a_line_of_nothing(books, role):
    with refused_with("does not balance"):
        run(LINE + "(%s, %s, 'EUR', 0), (%s, %s, 'EUR', 0)", entry := raw_entry(), books.ana.pk, entry, books.bo.pk)


@pytest.mark.parametrize(
    "terms",
    [
        "'wallet', 'EUR', NULL, false",
        "'revenue', 'EUR', {owner}, true",
        "'wallet', 'GBP', {owner}, true",
        "'wallet', 'eur', {owner}, false",
    ],
)
def test_an_account_whose_terms_do_not_fit_its_kind(books, role, terms):
    values = terms.format(owner=books.ana.owner_id)
    with refused_with("do not fit"):
        run(
            "INSERT INTO billing_account (kind, currency, owner_id, entries_only, posted_micros, held_micros, rolled_up_to, opened_at)"
            f" VALUES ({values}, 0, 0, 0, now())"
        )
