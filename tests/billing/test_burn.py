"""What a running rental burns: beside the hold's money, changed by one call of the door and by nothing else."""

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection, transaction

from billing import holds
from billing.ledger import UnknownAccount
from billing.models import Hold
from billing.roles import grant_to_application
from tests.billing.conftest import UNIT, refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def hold(books) -> int:
    return holds.place_hold(key="h1", account_id=books.ana.pk, amount_micros=60 * UNIT)


@pytest.fixture(params=["owner", "application"])
def role(request, hold) -> Iterator[str]:
    """Run the test as each role of the database."""
    if request.param == "application":
        run("DROP ROLE IF EXISTS bourse_app")
        run("CREATE ROLE bourse_app")
        grant_to_application("bourse_app")
        run("SET ROLE bourse_app")
    yield request.param
    run("RESET ROLE")


def run(statement: str, *parameters: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(parameters) or None)


def figures(hold_id):
    kept = Hold.objects.get(pk=hold_id)
    return kept.burn_micros_per_hour, kept.placed_micros, kept.remaining_micros, kept.released_micros


def test_a_hold_burns_nothing_until_its_rental_runs(hold):
    assert figures(hold) == (0, 60 * UNIT, 60 * UNIT, 0)


def test_a_burn_is_set_and_set_again_and_moves_no_money(books, hold, role):
    assert holds.set_burn(hold_id=hold, burn_micros_per_hour=20 * UNIT + 1) == 0
    assert holds.set_burn(hold_id=hold, burn_micros_per_hour=20 * UNIT + 1) == 20 * UNIT + 1
    assert figures(hold) == (20 * UNIT + 1, 60 * UNIT, 60 * UNIT, 0)
    assert holds.set_burn(hold_id=hold, burn_micros_per_hour=0) == 20 * UNIT + 1
    books.ana.refresh_from_db()
    assert (books.ana.posted_micros, books.ana.held_micros) == (100 * UNIT, 60 * UNIT)


def test_a_burn_stays_while_money_of_the_hold_moves(hold):
    holds.set_burn(hold_id=hold, burn_micros_per_hour=UNIT)
    holds.release(key="r1", hold_id=hold, amount_micros=10 * UNIT)
    assert figures(hold) == (UNIT, 60 * UNIT, 50 * UNIT, 10 * UNIT)


def test_a_burn_below_zero_or_of_no_hold_is_refused(hold):
    with pytest.raises(ValueError, match="earns its renter nothing"):
        holds.set_burn(hold_id=hold, burn_micros_per_hour=-1)
    with pytest.raises(DatabaseError, match="burn_not_negative"), transaction.atomic():
        run("SELECT billing_set_burn(%s::bigint, -1::bigint)", hold)
    with refused(UnknownAccount):
        holds.set_burn(hold_id=hold + 1, burn_micros_per_hour=1)


def test_nobody_changes_a_burn_beside_the_door(hold, role):
    with pytest.raises(DatabaseError, match=r"only grows|permission denied"), transaction.atomic():
        run("UPDATE billing_hold SET burn_micros_per_hour = 1 WHERE id = %s", hold)


def test_the_door_stays_shut_after_a_call_of_it(hold):
    holds.set_burn(hold_id=hold, burn_micros_per_hour=UNIT)
    with pytest.raises(DatabaseError, match="only grows"), transaction.atomic():
        run("UPDATE billing_hold SET burn_micros_per_hour = 1 WHERE id = %s", hold)


def test_money_of_a_hold_cannot_change_under_the_cover_of_its_burn(hold):
    """Even with the setting that the door uses, nothing but the burn may change."""
    for change in ("released_micros = placed_micros, remaining_micros = 0", "expires_at = now()", "key = 'other'"):
        with pytest.raises(DatabaseError, match="only grows"), transaction.atomic():  # noqa: PT012
            run("SET LOCAL billing.door = 'set_burn'")
            run(f"UPDATE billing_hold SET burn_micros_per_hour = 1, {change} WHERE id = %s", hold)
    assert figures(hold) == (0, 60 * UNIT, 60 * UNIT, 0)
