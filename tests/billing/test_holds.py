"""Holds: money set aside is neither spent twice nor lost."""

from datetime import timedelta

import pytest

from billing import holds, ledger
from billing.ledger import HoldExceeded, InsufficientFunds, KeyReused, Line, Unbalanced, UnknownAccount
from billing.models import Hold
from tests.billing.conftest import NOW, UNIT, refused

pytestmark = pytest.mark.django_db


def place(books, key="h1", micros=60 * UNIT, **more):
    return holds.place_hold(key=key, account_id=books.ana.pk, amount_micros=micros, **more)


def capture(books, hold_id, key="c1", micros=10 * UNIT, lines=None):
    lines = lines or [Line(books.revenue.pk, micros - micros // 6), Line(books.tax.pk, micros // 6)]
    return holds.capture(
        key=key, kind="settlement", hold_id=hold_id, amount_micros=micros, lines=lines, effective_at=NOW
    )


def figures(hold_id):
    hold = Hold.objects.get(pk=hold_id)
    return hold.placed_micros, hold.remaining_micros, hold.captured_micros, hold.released_micros


def available(books):
    books.ana.refresh_from_db()
    return books.ana.available_micros


def test_held_money_cannot_be_spent_or_held_again(books):
    place(books)
    assert available(books) == 40 * UNIT
    with refused(InsufficientFunds):
        place(books, key="h2", micros=40 * UNIT + 1)
    with refused(InsufficientFunds):
        lines = [Line(books.ana.pk, -41 * UNIT), Line(books.bo.pk, 41 * UNIT)]
        ledger.post(key="t", kind="x", lines=lines, effective_at=NOW)


def test_a_hold_is_captured_in_parts_and_the_rest_released(books):
    hold = place(books)
    capture(books, hold, "c1", 10 * UNIT)
    capture(books, hold, "c2", 15 * UNIT)
    assert figures(hold) == (60 * UNIT, 35 * UNIT, 25 * UNIT, 0)
    assert holds.release(key="r1", hold_id=hold) == 35 * UNIT
    assert figures(hold) == (60 * UNIT, 0, 25 * UNIT, 35 * UNIT)
    assert available(books) == 75 * UNIT
    assert ledger.balance_micros(books.revenue.pk) + ledger.balance_micros(books.tax.pk) == 25 * UNIT


def test_each_call_again_is_the_same_answer(books):
    hold = place(books)
    assert place(books) == hold
    assert capture(books, hold) == capture(books, hold)
    assert holds.release(key="r1", hold_id=hold, amount_micros=UNIT) == UNIT
    assert holds.release(key="r1", hold_id=hold, amount_micros=UNIT) == UNIT
    assert figures(hold) == (60 * UNIT, 49 * UNIT, 10 * UNIT, UNIT)


def test_a_key_used_again_for_something_else_is_an_error(books):
    hold = place(books)
    with refused(KeyReused):
        place(books, micros=UNIT)
    capture(books, hold)
    with refused(KeyReused):
        capture(books, hold, "c1", 11 * UNIT)
    holds.release(key="r1", hold_id=hold, amount_micros=UNIT)
    with refused(KeyReused):
        holds.release(key="r1", hold_id=hold, amount_micros=2 * UNIT)


def test_no_more_is_taken_than_is_left(books):
    hold = place(books)
    with refused(HoldExceeded):
        capture(books, hold, micros=60 * UNIT + 1)
    with refused(HoldExceeded):
        holds.release(key="r", hold_id=hold, amount_micros=60 * UNIT + 1)
    capture(books, hold, micros=60 * UNIT)
    assert holds.release(key="r", hold_id=hold) == 0
    with refused(HoldExceeded):
        capture(books, hold, key="c2", micros=1, lines=[Line(books.revenue.pk, 1)])


def test_a_capture_whose_lines_do_not_add_up_is_refused(books):
    hold = place(books)
    with refused(Unbalanced):
        capture(books, hold, micros=10, lines=[Line(books.revenue.pk, 9)])
    assert figures(hold) == (60 * UNIT, 60 * UNIT, 0, 0)


def test_only_wallets_hold(books):
    with refused(UnknownAccount):
        holds.place_hold(key="h", account_id=books.revenue.pk, amount_micros=1)
    with refused(UnknownAccount):
        holds.release(key="r", hold_id=10**9)


def test_expired_holds_are_released_once(books):
    early = place(books, key="early", micros=UNIT, expires_at=NOW)
    late = place(books, key="late", micros=UNIT, expires_at=NOW + timedelta(seconds=1))
    assert holds.release_expired(now=NOW) == 1
    assert holds.release_expired(now=NOW) == 0
    assert figures(early) == (UNIT, 0, 0, UNIT)
    assert figures(late) == (UNIT, UNIT, 0, 0)
