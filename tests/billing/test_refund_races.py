"""Refunds, holds, disputes and the gateway's messages at the same moment: the same money goes one way, once."""

import threading
from decimal import Decimal

import pytest

from billing import holds
from billing.disputes import follow_dispute
from billing.ledger import InsufficientFunds
from billing.models import JournalEntry, Refund, TopUp
from billing.refunds import request
from billing.refunds.follow import follow_refund
from billing.refunds.request import DisputeOpen, MoreThanIsLeft, OrganisationFrozen, refund_top_up
from tests.billing.conftest import NOW, UNIT
from tests.billing.stub_gateway import dispute_of, stub
from tests.billing.test_ledger_race import together
from tests.billing.test_refunds import ask, outcome, wallet

__all__ = ["stub", "wallet"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_ten_refunds_at_once_never_exceed_the_payments(wallet, stub):
    barrier = threading.Barrier(10)

    def work(_number: int) -> list[Refund]:
        barrier.wait(10)
        return ask(wallet, "8.00")

    results = together(10, work)
    done = [result for result in results if isinstance(result, list)]
    assert len(done) == 7
    assert all(isinstance(result, MoreThanIsLeft) for result in results if not isinstance(result, list)), results
    assert outcome(wallet) == (4, 0, 0, 56, 0)
    for top_up in TopUp.objects.all():
        assert top_up.refunded_micros <= top_up.amount_micros
        assert sum(top_up.refunds.values_list("amount_micros", flat=True)) == top_up.refunded_micros


def test_without_the_payment_s_lock_two_refunds_see_the_same_money(wallet, stub, monkeypatch):
    both_have_read = threading.Barrier(2)
    top_up = TopUp.objects.earliest("paid_at")

    def read_unlocked(organisation, currency):
        payments = request._payments(request._paid(organisation, currency))
        both_have_read.wait(10)
        return payments

    monkeypatch.setattr(request, "_lock_payments", read_unlocked)
    together(2, lambda _: refund_top_up(top_up=top_up, amount=Decimal(30), requested_by=None, now=NOW))
    asked = sum(Refund.objects.filter(top_up=top_up).values_list("amount_micros", flat=True))
    assert asked == 60 * UNIT, "the race is real: a payment of 30 was to be refunded twice"
    TopUp.objects.filter(pk=top_up.pk).update(refunded_micros=30 * UNIT)


def test_a_refund_and_a_hold_never_get_the_same_money(wallet, stub):
    barrier = threading.Barrier(8)

    def work(number: int) -> object:
        barrier.wait(10)
        if number % 2:
            return holds.place_hold(key=f"h{number}", account_id=wallet.pk, amount_micros=40 * UNIT)
        return ask(wallet, "40.00")

    results = together(8, work)
    lucky = [result for result in results if not isinstance(result, Exception)]
    assert len(lucky) == 1, results
    assert all(isinstance(one, (MoreThanIsLeft, InsufficientFunds)) for one in results if isinstance(one, Exception))
    wallet.refresh_from_db()
    assert wallet.available_micros == 20 * UNIT


@pytest.mark.parametrize("webhook_comes", ["before our answer", "after it", "at the same time"])
def test_our_own_refund_and_the_gateway_s_message_are_one_journal(wallet, stub, webhook_comes):
    """Own refund racing the provider's webhook (pretix/pretix#4911)."""
    threads: list[threading.Thread] = []

    def told_by_webhook(refund):
        def follow() -> None:
            assert together(1, lambda _: follow_refund(refund, now=NOW))[0] is not None

        if webhook_comes == "before our answer":
            follow()
        elif webhook_comes == "at the same time":
            threads.append(threading.Thread(target=follow))
            threads[-1].start()

    stub.before_answer = told_by_webhook
    ask(wallet, "10")
    for thread in threads:
        thread.join()
    if webhook_comes == "after it":
        follow_refund(stub.last, now=NOW)
    refund = Refund.objects.get()
    assert (refund.origin, refund.state) == ("customer", "succeeded")
    assert outcome(wallet) == (50, 0, 0, 10, 0)
    assert JournalEntry.objects.filter(reference_type="refund").count() == 2


def test_a_refund_made_at_the_gateway_that_many_hear_of_at_once_is_booked_once(wallet, stub):
    told = stub.make_refund(TopUp.objects.earliest("paid_at").payment_intent_id, 25 * UNIT)
    results = together(8, lambda _: follow_refund(told, now=NOW))
    assert {type(result) for result in results} == {Refund}
    assert outcome(wallet) == (35, 0, 0, 25, 0)


def test_a_refund_racing_a_dispute_deducts_the_payment_once(wallet, stub):
    top_up = TopUp.objects.earliest("paid_at")
    barrier = threading.Barrier(2)

    def work(number: int) -> object:
        barrier.wait(10)
        if number:
            return follow_dispute(dispute_of(top_up), now=NOW)
        return refund_top_up(top_up=top_up, amount=None, requested_by=None, now=NOW)

    refund, _ = together(2, work)
    first = isinstance(refund, Refund)
    assert first or isinstance(refund, (OrganisationFrozen, DisputeOpen, MoreThanIsLeft)), refund
    assert outcome(wallet) == ((30, 0, 0, 60, 30) if first else (30, 0, 0, 30, 0))
