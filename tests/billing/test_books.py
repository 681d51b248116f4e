"""A breach is found, loud, and stops new outgoing money until a person lifts it with a reason."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from billing import books as the_books
from billing import ledger
from billing.accounts import open_account
from billing.books import BooksStopped, NotStopped
from billing.checks import CLEARING_DAYS, run_checks
from billing.ledger import Line
from billing.models import Account, BooksStop
from tests.billing.conftest import NOW, UNIT, paid_top_up

pytestmark = pytest.mark.django_db


def tamper(statement: str, *parameters: int) -> None:
    """Break the books as only someone with the database's own powers can."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(statement, list(parameters))
        cursor.execute("SET session_replication_role = origin")


def broken(name: str) -> list[str]:
    return [check.detail for check in run_checks(now=NOW) if not check.ok and check.name.startswith(name)]


BREACHES = [
    ("I1", "UPDATE billing_posting SET amount_micros = amount_micros + 1 WHERE account_id = %s"),
    ("I2", "UPDATE billing_account SET posted_micros = posted_micros + 1 WHERE id = %s"),
    ("I3", "UPDATE billing_account SET held_micros = held_micros + 1 WHERE id = %s"),
]


@pytest.mark.broken_books
@pytest.mark.parametrize(("name", "statement"), BREACHES)
def test_each_kind_of_damage_is_found(books, name, statement):
    assert broken(name) == []
    tamper(statement, books.ana.pk)
    assert len(broken(name)) == 1


@pytest.mark.broken_books
def test_an_entry_without_lines_is_found(books):
    tamper("DELETE FROM billing_posting WHERE account_id IN (%s, %s)", books.bo.pk, books.gateway.pk)
    assert broken("I1 entries have postings")


@pytest.mark.broken_books
def test_an_overdrawn_wallet_is_found(books):
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE billing_account DROP CONSTRAINT wallet_never_overdrawn")
    tamper("UPDATE billing_account SET posted_micros = -1 WHERE id = %s", books.ana.pk)
    assert broken("I4")


@pytest.mark.broken_books
def test_a_clearing_account_that_stays_open_is_found_after_ten_days(books):
    unmatched = open_account(kind=Account.Kind.UNMATCHED, currency="EUR")
    lines = [Line(books.gateway.pk, -UNIT), Line(unmatched.pk, UNIT)]
    early = NOW - timedelta(days=CLEARING_DAYS)
    ledger.post(key="u", kind="unmatched", lines=lines, effective_at=early)
    assert broken("I9") == []
    assert [check.ok for check in run_checks(now=NOW + timedelta(seconds=1)) if check.name.startswith("I9")] == [False]


@pytest.mark.broken_books
def test_money_that_left_the_gateway_by_no_known_flow_is_found(books):
    ledger.post(key="x", kind="gift", lines=[Line(books.gateway.pk, UNIT), Line(books.ana.pk, -UNIT)], effective_at=NOW)
    assert broken("I11")


@pytest.mark.broken_books
def test_a_breach_is_logged_stops_outgoing_money_and_is_lifted_with_a_reason(books, caplog, client):
    the_books.refuse_when_stopped()
    tamper(BREACHES[1][1], books.ana.pk)
    the_books.audit(now=NOW)
    the_books.audit(now=NOW)
    assert BooksStop.objects.count() == 1, "a second breach while stopped adds nothing"
    assert "do not add up" in caplog.text
    with pytest.raises(BooksStopped, match="I2"):
        the_books.refuse_when_stopped()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "stopped" in answer.json()["checks"]["books"]
    with pytest.raises(ValueError, match="reason"):
        the_books.lift_stop(operator="cy", reason=" ", now=NOW)
    the_books.lift_stop(operator="cy", reason="restored from the journal", now=NOW)
    the_books.refuse_when_stopped()
    with pytest.raises(NotStopped):
        the_books.lift_stop(operator="cy", reason="again", now=NOW)


def test_top_ups_go_on_while_the_books_are_stopped(books):
    BooksStop.objects.create(breach="I2", stopped_at=NOW)
    paid_top_up(books.ana, units=1)


def test_the_command_prints_every_check_and_exits_1_on_a_breach(books):
    out = StringIO()
    call_command("audit_ledger", stdout=out)
    report = json.loads(out.getvalue())
    assert report["ok"] is True
    assert {check["name"].split()[0] for check in report["checks"]} == {f"I{number}" for number in range(1, 12)}


@pytest.mark.broken_books
def test_the_command_exits_1_on_a_breach(books):
    tamper(BREACHES[1][1], books.ana.pk)
    with pytest.raises(SystemExit) as ended:
        call_command("audit_ledger", stdout=StringIO())
    assert ended.value.code == 1
    call_command("lift_books_stop", operator="cy", reason="known", stdout=StringIO())
    with pytest.raises(CommandError, match="not stopped"):
        call_command("lift_books_stop", operator="cy", reason="known", stdout=StringIO())
