"""Unspent money goes back once, whatever the gateway answers, repeats, loses or says first."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import permutations

import pytest

from billing import books as the_books
from billing import holds, ledger
from billing.accounts import UnknownCurrency
from billing.disputes import follow_dispute
from billing.ledger import Line
from billing.models import Account, BooksStop, Refund, TopUp
from billing.receivables import pay_open_receivables
from billing.refunds.follow import follow_refund
from billing.refunds.request import (
    DisputeOpen,
    MoreThanIsLeft,
    NotAnAmount,
    OrganisationFrozen,
    ReceivableOpen,
    refund_top_up,
    request_refund,
)
from billing.refunds.submit import submit_due_refunds
from tests.billing.conftest import NOW, UNIT, paid_top_up, wallet_of
from tests.billing.stub_gateway import dispute_of, stub
from tests.factories import make_member, make_operator
from users.freezing import freeze, unfreeze
from users.models import Organisation

__all__ = ["stub"]
pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def wallet() -> Account:
    """A wallet with two top-ups of 30."""
    wallet = wallet_of("dee")
    paid_top_up(wallet, units=30, paid_at=NOW - 2 * DAY)
    paid_top_up(wallet, units=30, paid_at=NOW - DAY)
    return wallet


def ask(wallet: Account, amount: str) -> list[Refund]:
    return request_refund(
        organisation=Organisation.objects.get(accounts=wallet),
        currency="EUR",
        amount=Decimal(amount),
        requested_by=None,
        now=NOW,
    )


def most_left(wallet: Account) -> int:
    with pytest.raises(MoreThanIsLeft) as refused:
        ask(wallet, "1000000")
    return refused.value.refundable_micros


def units(account: Account | Account.Kind, currency: str = "EUR") -> int:
    if isinstance(account, Account):
        return ledger.balance_micros(account.pk) // UNIT
    found = Account.objects.filter(kind=account, currency=currency)
    return sum(ledger.balance_micros(one.pk) for one in found) // UNIT


def spend(wallet: Account, micros: int, key: str = "spend") -> None:
    revenue = Account.objects.get_or_create(kind=Account.Kind.REVENUE, currency="EUR", entries_only=True)[0]
    lines = [Line(wallet.pk, -micros), Line(revenue.pk, micros)]
    ledger.post(key=key, kind="settlement", lines=lines, effective_at=NOW)


def outcome(wallet: Account) -> tuple[int, int, int, int, int]:
    """Wallet, owed, in transit, gone from the gateway, lost: in units."""
    gone = 60 + units(Account.Kind.GATEWAY)
    owed, lost = -units(Account.Kind.RECEIVABLE), -units(Account.Kind.LOSSES)
    return units(wallet), owed, units(Account.Kind.REFUNDS), gone, lost


def is_frozen(wallet: Account) -> bool:
    return Organisation.objects.get(accounts=wallet).frozen_at is not None


# --- Asking ------------------------------------------------------------------------------------------------


def test_40_of_two_top_ups_of_30_goes_back_as_30_and_10(wallet, stub):
    refunds = ask(wallet, "40.00")
    assert [refund.amount_micros for refund in refunds] == [30 * UNIT, 10 * UNIT]
    assert {refund.state for refund in refunds} == {"succeeded"}
    assert outcome(wallet) == (20, 0, 0, 40, 0)
    assert [top_up.refunded_micros // UNIT for top_up in TopUp.objects.order_by("paid_at")] == [30, 10]
    assert [refund.top_up.paid_at for refund in refunds] == [NOW - 2 * DAY, NOW - DAY]
    assert most_left(wallet) == 20 * UNIT


def test_one_top_up_goes_back_by_its_own_id_wholly_without_an_amount(wallet, stub):
    older, newer = TopUp.objects.order_by("paid_at")
    spend(wallet, 10 * UNIT + 1)
    refund = refund_top_up(top_up=newer, amount=Decimal(5), requested_by=make_member(), now=NOW)
    assert (refund.top_up, refund.amount_micros) == (newer, 5 * UNIT)
    with pytest.raises(MoreThanIsLeft) as refused:
        refund_top_up(top_up=newer, amount=Decimal("25.01"), requested_by=None, now=NOW)
    assert refused.value.refundable_micros == 25 * UNIT
    assert refund_top_up(top_up=newer, amount=None, requested_by=None, now=NOW).amount_micros == 25 * UNIT
    rest = refund_top_up(top_up=older, amount=None, requested_by=None, now=NOW)
    assert rest.amount_micros == 19_990_000, "whole cents of what the wallet still has"
    with pytest.raises(MoreThanIsLeft):
        refund_top_up(top_up=older, amount=None, requested_by=None, now=NOW)


def test_spent_or_held_money_does_not_go_back(wallet, stub):
    spend(wallet, 15 * UNIT)
    holds.place_hold(key="h", account_id=wallet.pk, amount_micros=20 * UNIT)
    with pytest.raises(MoreThanIsLeft) as refused:
        ask(wallet, "25.01")
    assert refused.value.refundable_micros == 25 * UNIT
    ask(wallet, "25.00")
    assert outcome(wallet) == (20, 0, 0, 25, 0)
    assert stub.asked == 1


@pytest.mark.parametrize("amount", ["0", "-1", "0.001", "NaN", "Infinity"])
def test_an_amount_that_is_none_moves_nothing(wallet, stub, amount):
    with pytest.raises(NotAnAmount):
        ask(wallet, amount)
    assert stub.asked == 0
    assert Refund.objects.count() == 0


def test_a_currency_without_wallets_is_refused(wallet, stub):
    organisation = Organisation.objects.get(accounts=wallet)
    with pytest.raises(UnknownCurrency):
        request_refund(organisation=organisation, currency="JPY", amount=Decimal(1), requested_by=None, now=NOW)


def test_a_frozen_organisation_gets_no_refund(wallet, stub):
    freeze(organisation_id=wallet.owner_id, reason="to be looked at", now=NOW)
    with pytest.raises(OrganisationFrozen):
        ask(wallet, "1")


def test_an_open_receivable_or_dispute_stops_refunds_of_every_payment(wallet, stub):
    older, newer = TopUp.objects.order_by("paid_at")
    spend(wallet, 45 * UNIT)
    follow_dispute(dispute_of(older), now=NOW)
    operator = make_operator()
    unfreeze(organisation_id=wallet.owner_id, operator=operator, reason="known customer", now=NOW)
    with pytest.raises(ReceivableOpen):
        refund_top_up(top_up=newer, amount=None, requested_by=None, now=NOW)
    paid_top_up(wallet, units=40)  # this helper credits the wallet whole
    with pytest.raises(ReceivableOpen):
        ask(wallet, "1")
    pay_open_receivables(now=NOW)
    with pytest.raises(DisputeOpen):
        ask(wallet, "1")
    assert stub.asked == 0


def test_no_refund_while_the_books_are_stopped_and_those_asked_for_wait(wallet, stub):
    stub.answer = "no answer"
    [refund] = ask(wallet, "10")
    BooksStop.objects.create(breach="I2", stopped_at=NOW)
    with pytest.raises(the_books.BooksStopped):
        ask(wallet, "1")
    stub.answer = "succeeded"
    assert submit_due_refunds(now=NOW) == 0
    the_books.lift_stop(operator="cy", reason="known", now=NOW)
    assert submit_due_refunds(now=NOW) == 1
    refund.refresh_from_db()
    assert refund.state == "succeeded"


# --- The gateway's answer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["no answer", "answer lost"])
def test_an_unknown_outcome_stays_requested_and_is_asked_again_with_the_same_key(wallet, stub, answer):
    stub.answer = answer
    [refund] = ask(wallet, "10")
    assert refund.state == "requested"
    assert outcome(wallet) == (50, 0, 10, 0, 0)
    assert submit_due_refunds(now=NOW) == 0
    stub.answer = "succeeded"
    assert submit_due_refunds(now=NOW) == 1
    assert submit_due_refunds(now=NOW) == 0
    assert outcome(wallet) == (50, 0, 0, 10, 0)
    assert len(stub.refunds) == 1


def test_a_day_later_the_refund_is_looked_for_because_the_key_may_be_forgotten(wallet, stub):
    stub.answer = "answer lost"
    ask(wallet, "10")
    stub.forget_keys()
    stub.answer, asked = "succeeded", stub.asked
    assert submit_due_refunds(now=NOW + DAY) == 1
    assert (stub.asked, len(stub.refunds)) == (asked, 1)
    assert outcome(wallet) == (50, 0, 0, 10, 0)


def test_a_refusal_gives_the_money_back(wallet, stub):
    stub.answer = "refused"
    [refund] = ask(wallet, "10")
    assert (refund.state, refund.failure_reason) == ("failed", "charge_disputed")
    assert outcome(wallet) == (60, 0, 0, 0, 0)
    assert refund.top_up.refunded_micros == 0
    stub.answer = "succeeded"
    ask(wallet, "60")
    assert outcome(wallet) == (0, 0, 0, 60, 0)


def test_a_refusal_because_our_own_lost_call_had_refunded_is_a_success(wallet, stub):
    stub.answer = "answer lost"
    ask(wallet, "10")
    stub.answer = "refused"
    assert submit_due_refunds(now=NOW) == 1
    assert Refund.objects.get().state == "succeeded"
    assert outcome(wallet) == (50, 0, 0, 10, 0)


def test_a_pending_refund_is_cleared_when_it_succeeds(wallet, stub):
    stub.answer = "pending"
    [refund] = ask(wallet, "10")
    assert refund.state == "submitted"
    assert outcome(wallet) == (50, 0, 10, 0, 0)
    with pytest.raises(MoreThanIsLeft):
        refund_top_up(top_up=refund.top_up, amount=Decimal("20.01"), requested_by=None, now=NOW)
    follow_refund(stub.change(stub.last, "succeeded"), now=NOW)
    assert outcome(wallet) == (50, 0, 0, 10, 0)


@pytest.mark.parametrize("answer", ["pending", "succeeded"])
def test_a_refund_that_fails_days_later_puts_the_money_back(wallet, stub, answer):
    stub.answer = answer
    [refund] = ask(wallet, "10")
    failed = stub.change(stub.last, "failed")
    for _ in range(2):
        follow_refund(failed, now=NOW + 3 * DAY)
    refund.refresh_from_db()
    assert (refund.state, refund.failure_reason) == ("failed", "expired_or_canceled_card")
    assert outcome(wallet) == (60, 0, 0, 0, 0)
    assert TopUp.objects.get(pk=refund.top_up_id).refunded_micros == 0
    assert not is_frozen(wallet)


def test_money_of_a_failed_refund_pays_what_is_owed_first(wallet, stub):
    older, newer = TopUp.objects.order_by("paid_at")
    refund_top_up(top_up=newer, amount=None, requested_by=None, now=NOW)
    spend(wallet, 20 * UNIT)
    follow_dispute(dispute_of(older), now=NOW)
    assert outcome(wallet) == (0, 20, 0, 60, 0)
    follow_refund(stub.change(stub.last, "failed"), now=NOW)
    assert outcome(wallet) == (10, 0, 0, 30, 0)


def test_every_order_of_what_the_gateway_says_ends_the_same(wallet, stub):
    stub.answer = "pending"
    for order in permutations(["pending", "succeeded", "failed"]):
        [refund] = ask(wallet, "10")
        told = stub.last
        stub.change(told, "failed")
        for status in order:
            follow_refund(replace(told, status=status), now=NOW)
        refund.refresh_from_db()
        assert refund.state == "failed", order
        assert outcome(wallet) == (60, 0, 0, 0, 0), order


def test_an_unknown_status_changes_nothing_and_is_logged(wallet, stub, caplog):
    stub.answer = "pending"
    ask(wallet, "10")
    follow_refund(replace(stub.last, status="in_orbit"), now=NOW)
    assert Refund.objects.get().state == "submitted"
    assert "in_orbit" in caplog.text


def test_a_refund_taken_for_failed_that_lives_after_all_is_clawed_back(wallet, stub):
    """Refused by us, given back, spent; then it turns up at the gateway."""
    stub.answer = "refused"
    [refund] = ask(wallet, "30")
    spend(wallet, 50 * UNIT)
    told = stub.make_refund(refund.top_up.payment_intent_id, 30 * UNIT, refund_id=str(refund.pk))
    for _ in range(2):
        follow_refund(told, now=NOW)
    refund.refresh_from_db()
    assert refund.state == "succeeded"
    assert outcome(wallet) == (0, 20, 0, 30, 0)
    assert is_frozen(wallet)
    follow_refund(stub.change(told, "failed"), now=NOW)
    assert outcome(wallet) == (10, 0, 0, 0, 0)


def test_a_late_success_of_a_failed_refund_is_asked_for_before_it_is_believed(wallet, stub):
    [refund] = ask(wallet, "30")
    told = stub.last
    follow_refund(stub.change(told, "failed"), now=NOW)
    follow_refund(told, now=NOW)
    refund.refresh_from_db()
    assert refund.state == "failed"
    assert outcome(wallet) == (60, 0, 0, 0, 0)
