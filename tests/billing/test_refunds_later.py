"""What becomes of refunds after the gateway has them."""

from decimal import Decimal

import pytest
from django.db import connection

from billing import holds, ledger
from billing.disputes import follow_dispute
from billing.ledger import Line
from billing.models import Account, Refund, TopUp
from billing.refunds.follow import PaymentNotCredited, RefundDiffers, follow_refund
from billing.refunds.request import (
    MoreThanIsLeft,
    refund_top_up,
)
from billing.refunds.submit import submit_due_refunds, submit_refund
from billing.roles import grant_to_application
from tests.billing.conftest import NOW, UNIT
from tests.billing.stub_gateway import dispute_of, stub
from tests.billing.test_refunds import ask, is_frozen, outcome, spend, units, wallet

__all__ = ["stub", "wallet"]
pytestmark = pytest.mark.django_db


def test_two_submitters_at_once_make_one_refund(wallet, stub):
    stub.answer = "no answer"
    [refund] = ask(wallet, "10")
    stub.answer = "succeeded"
    submit_refund(refund, now=NOW)
    submit_refund(refund, now=NOW)
    assert len(stub.refunds) == 1
    assert outcome(wallet) == (50, 0, 0, 10, 0)


# --- Made at the gateway -----------------------------------------------------------------------------------


def test_a_refund_made_at_the_gateway_is_booked_once(wallet, stub):
    top_up = TopUp.objects.earliest("paid_at")
    told = stub.make_refund(top_up.payment_intent_id, 25 * UNIT)
    for _ in range(3):
        follow_refund(told, now=NOW)
    refund = Refund.objects.get()
    assert (refund.origin, refund.state, refund.gateway_refund_id) == ("gateway", "succeeded", told.id)
    assert outcome(wallet) == (35, 0, 0, 25, 0)
    assert not is_frozen(wallet)
    with pytest.raises(MoreThanIsLeft) as refused:
        refund_top_up(top_up=top_up, amount=Decimal("5.01"), requested_by=None, now=NOW)
    assert refused.value.refundable_micros == 5 * UNIT


def test_a_refund_made_at_the_gateway_of_spent_money_is_owed_and_freezes(wallet, stub):
    spend(wallet, 50 * UNIT)
    holds.place_hold(key="h", account_id=wallet.pk, amount_micros=4 * UNIT)
    told = stub.make_refund(TopUp.objects.earliest("paid_at").payment_intent_id, 30 * UNIT)
    follow_refund(told, now=NOW)
    assert outcome(wallet) == (4, 24, 0, 30, 0)
    assert is_frozen(wallet)
    follow_refund(stub.change(told, "failed"), now=NOW)
    assert outcome(wallet) == (10, 0, 0, 0, 0)


def test_a_refund_made_at_the_gateway_beside_one_of_ours_deducts_the_payment_once(wallet, stub):
    """Ours waits; the gateway's own takes the whole payment, so ours is refused there."""
    top_up = TopUp.objects.earliest("paid_at")
    stub.answer = "no answer"
    refund_top_up(top_up=top_up, amount=Decimal(20), requested_by=None, now=NOW)
    follow_refund(stub.make_refund(top_up.payment_intent_id, 30 * UNIT), now=NOW)
    assert outcome(wallet) == (30, 0, 20, 30, 20)
    top_up.refresh_from_db()
    assert top_up.refunded_micros == 30 * UNIT
    stub.answer = "refused"
    assert submit_due_refunds(now=NOW) == 1
    assert outcome(wallet) == (30, 0, 0, 30, 0)


def test_a_refund_first_seen_failed_moves_nothing_in_the_end(wallet, stub):
    told = stub.make_refund(TopUp.objects.earliest("paid_at").payment_intent_id, 25 * UNIT, status="failed")
    follow_refund(told, now=NOW)
    assert outcome(wallet) == (60, 0, 0, 0, 0)
    assert not is_frozen(wallet)


def test_a_second_refund_in_the_name_of_ours_is_booked_as_its_own_and_logged(wallet, stub, caplog):
    [refund] = ask(wallet, "10")
    follow_refund(stub.make_refund(refund.top_up.payment_intent_id, 10 * UNIT, refund_id=str(refund.pk)), now=NOW)
    assert sorted(Refund.objects.values_list("origin", flat=True)) == ["customer", "gateway"]
    assert outcome(wallet) == (40, 0, 0, 20, 0)
    assert "another one" in caplog.text


def test_a_refund_that_differs_from_our_row_waits_for_a_person(wallet, stub):
    stub.answer = "no answer"
    [refund] = ask(wallet, "10")
    told = stub.make_refund(refund.top_up.payment_intent_id, 9 * UNIT, refund_id=str(refund.pk))
    with pytest.raises(RefundDiffers):
        follow_refund(told, now=NOW)
    with pytest.raises(RefundDiffers):
        follow_refund(stub.make_refund(refund.top_up.payment_intent_id, 9 * UNIT, "USD"), now=NOW)
    assert outcome(wallet) == (50, 0, 10, 0, 0)


def test_a_refund_of_a_payment_that_is_not_credited_yet_is_asked_for_again_later(wallet, stub):
    with pytest.raises(PaymentNotCredited):
        follow_refund(stub.make_refund("pi_unknown", UNIT), now=NOW)
    assert follow_refund(stub.make_refund("", UNIT), now=NOW) is None


def test_a_refund_of_money_that_was_set_aside_leaves_the_clearing_account(books, stub):
    unmatched = Account.objects.create(kind=Account.Kind.UNMATCHED, currency="EUR", entries_only=True)
    lines = [Line(books.gateway.pk, -12 * UNIT), Line(unmatched.pk, 12 * UNIT)]
    ledger.post(key="unmatched:pi_other", kind="unmatched", lines=lines, effective_at=NOW)
    told = stub.make_refund("pi_other", 12 * UNIT)
    for _ in range(2):
        assert follow_refund(told, now=NOW) is None
    assert units(Account.Kind.UNMATCHED) == 0
    follow_refund(stub.change(told, "failed"), now=NOW)
    assert units(Account.Kind.UNMATCHED) == 12
    assert Refund.objects.count() == 0


def test_the_application_s_own_database_role_may_refund_and_claw_back(wallet, stub):
    older, newer = TopUp.objects.order_by("paid_at")
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE bourse_application")
        grant_to_application("bourse_application")
        cursor.execute("SET LOCAL ROLE bourse_application")
        try:
            refund_top_up(top_up=newer, amount=None, requested_by=None, now=NOW)
            follow_refund(stub.change(stub.last, "failed"), now=NOW)
            follow_dispute(dispute_of(older, micros=70 * UNIT), now=NOW)
        finally:
            cursor.execute("RESET ROLE")
    assert outcome(wallet) == (30, 0, 0, 70, 40)
