"""A disputed payment is clawed back once, whatever order its messages come in; won, everything comes back."""

import threading
from dataclasses import replace
from decimal import Decimal
from itertools import permutations

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing import holds, ledger
from billing.checks import run_checks
from billing.disputes import DisputeDiffers, follow_dispute
from billing.gateway.objects import GatewayDispute
from billing.ledger import Line
from billing.models import Account, Dispute, JournalEntry, Posting, Refund, TopUp
from billing.receivables import locked_wallet, pay_open_receivables
from billing.refunds.follow import PaymentNotCredited, follow_refund
from billing.refunds.request import refund_top_up
from tests.billing.conftest import NOW, UNIT, paid_top_up, wallet_of
from tests.billing.stub_gateway import StubGateway, dispute_of, stub
from tests.billing.test_ledger_race import together
from tests.billing.test_money_document import FLOWS, lines_of
from users.models import AuditRecord, Organisation

__all__ = ["stub"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def wallet() -> Account:
    """A wallet with one top-up of 60, of which 25 are left."""
    wallet = wallet_of("ana")
    paid_top_up(wallet, units=60)
    revenue = Account.objects.create(kind=Account.Kind.REVENUE, currency="EUR", entries_only=True)
    lines = [Line(wallet.pk, -35 * UNIT), Line(revenue.pk, 35 * UNIT)]
    ledger.post(key="spend", kind="settlement", lines=lines, effective_at=NOW)
    return wallet


@pytest.fixture
def top_up(wallet) -> TopUp:
    return TopUp.objects.get()


def units(kind: Account.Kind) -> int:
    return sum(ledger.balance_micros(one.pk) for one in Account.objects.filter(kind=kind)) // UNIT


def outcome() -> tuple[int, int, int, int]:
    """Wallet, owed, lost, gone from the gateway, in units; the clearing accounts are at zero."""
    assert (units(Account.Kind.DISPUTES), units(Account.Kind.UNMATCHED)) == (0, 0)
    paid = sum(TopUp.objects.values_list("amount_micros", flat=True)) // UNIT
    owed, lost = -units(Account.Kind.RECEIVABLE), -units(Account.Kind.LOSSES)
    return units(Account.Kind.WALLET), owed, lost, paid + units(Account.Kind.GATEWAY)


def followed(told: GatewayDispute) -> Dispute:
    dispute = follow_dispute(told, now=NOW)
    assert dispute is not None
    return dispute


def is_frozen() -> bool:
    return Organisation.objects.get(name="ana").frozen_at is not None


def test_a_dispute_takes_what_the_wallet_has_the_rest_is_owed_and_the_organisation_is_frozen(top_up):
    dispute = followed(dispute_of(top_up))
    assert (dispute.clawed_micros, dispute.owed_micros, dispute.loss_micros) == (25 * UNIT, 35 * UNIT, 0)
    assert outcome() == (0, 35, 0, 60)
    assert is_frozen()
    assert AuditRecord.objects.get().action == "organisation.frozen"


def test_what_is_held_is_not_clawed_and_pays_what_is_owed_once_it_is_released(wallet, top_up):
    hold = holds.place_hold(key="h", account_id=wallet.pk, amount_micros=20 * UNIT)
    follow_dispute(dispute_of(top_up), now=NOW)
    assert outcome() == (20, 55, 0, 60)
    holds.release(key="r", hold_id=hold)
    pay_open_receivables(now=NOW)
    assert outcome() == (0, 35, 0, 60)


def test_lost_is_final_and_posts_nothing_more(top_up):
    follow_dispute(dispute_of(top_up), now=NOW)
    entries = JournalEntry.objects.count()
    for status in ("lost", "needs_response", "under_review"):
        dispute = followed(dispute_of(top_up, status=status))
        assert (dispute.state, dispute.closed_at) == ("lost", NOW)
    assert JournalEntry.objects.count() == entries
    assert outcome() == (0, 35, 0, 60)


def test_won_gives_everything_back_and_leaves_the_freeze_to_an_operator(top_up):
    follow_dispute(dispute_of(top_up), now=NOW)
    dispute = followed(dispute_of(top_up, status="won"))
    assert dispute.state == "won"
    assert outcome() == (25, 0, 0, 0)
    assert is_frozen()


def test_won_after_the_debt_was_paid_goes_to_the_wallet(wallet, top_up):
    follow_dispute(dispute_of(top_up), now=NOW)
    paid_top_up(wallet, units=40)
    pay_open_receivables(now=NOW)
    assert outcome() == (5, 0, 0, 60)
    follow_dispute(dispute_of(top_up, status="won"), now=NOW)
    assert outcome() == (65, 0, 0, 0)


@pytest.mark.parametrize("end", ["won", "lost"])
def test_every_order_of_the_messages_ends_the_same(top_up, end):
    """Each message makes us ask; an answer may still be from before another one's."""
    answers = ["needs_response", "under_review", end, end]
    ends = set()
    for order in sorted(set(permutations(answers))):
        with transaction.atomic():
            for status in order:
                followed(dispute_of(top_up, status=status))
            ends.add((Dispute.objects.get().state, outcome(), is_frozen(), JournalEntry.objects.count()))
            transaction.set_rollback(True)
    assert len(ends) == 1
    [(state, figures, frozen, _)] = ends
    assert (state, frozen) == (end, True)
    assert figures == ((25, 0, 0, 0) if end == "won" else (0, 35, 0, 60))


def test_what_is_beyond_the_payment_is_our_loss(top_up):
    """A dispute larger than the payment, by exchange rates (polarsource/polar#8344)."""
    dispute = followed(dispute_of(top_up, micros=65 * UNIT))
    assert (dispute.clawed_micros, dispute.owed_micros, dispute.loss_micros) == (25 * UNIT, 35 * UNIT, 5 * UNIT)
    assert outcome() == (0, 35, 5, 65)
    follow_dispute(dispute_of(top_up, micros=65 * UNIT, status="won"), now=NOW)
    assert outcome() == (25, 0, 0, 0)


def test_a_dispute_of_a_part_takes_a_part(top_up):
    follow_dispute(dispute_of(top_up, micros=10 * UNIT), now=NOW)
    assert outcome() == (15, 0, 0, 10)
    follow_dispute(dispute_of(top_up, micros=50 * UNIT, number=2), now=NOW)
    assert outcome() == (0, 35, 0, 60)


def test_a_refund_and_a_chargeback_deduct_the_payment_once(stub, top_up):
    """Chargeback and refund both deducted (antiwork/gumroad#4372)."""
    refund_top_up(top_up=top_up, amount=Decimal(20), requested_by=None, now=NOW)
    follow_dispute(dispute_of(top_up), now=NOW)
    assert outcome() == (0, 35, 20, 80)
    follow_refund(stub.change(stub.last, "failed"), now=NOW)
    assert outcome() == (0, 35, 0, 60)


def test_a_refund_made_at_the_gateway_after_the_chargeback_is_our_loss(stub, top_up):
    """The late refund is matched to its payment, and not deducted again (juspay/hyperswitch#10533)."""
    follow_dispute(dispute_of(top_up), now=NOW)
    follow_refund(stub.make_refund(top_up.payment_intent_id, 60 * UNIT), now=NOW)
    assert Refund.objects.get().top_up == top_up
    assert outcome() == (0, 35, 60, 120)
    follow_dispute(dispute_of(top_up, status="won"), now=NOW)
    assert outcome() == (0, 35, 0, 60)


def test_an_inquiry_moves_nothing(top_up, caplog):
    for status in ("warning_needs_response", "warning_under_review", "warning_closed"):
        assert follow_dispute(dispute_of(top_up, status=status), now=NOW) is None
    assert follow_dispute(dispute_of(top_up, status="prevented"), now=NOW) is None
    assert Dispute.objects.count() == 0
    assert not is_frozen()
    assert "prevented" in caplog.text


def test_a_dispute_that_differs_waits_for_a_person(top_up):
    told = dispute_of(top_up)
    with pytest.raises(DisputeDiffers):
        follow_dispute(replace(told, currency="USD"), now=NOW)
    follow_dispute(told, now=NOW)
    with pytest.raises(DisputeDiffers):
        follow_dispute(replace(told, amount_micros=UNIT), now=NOW)
    assert outcome() == (0, 35, 0, 60)


def test_won_after_lost_is_left_to_a_person(top_up, caplog):
    follow_dispute(dispute_of(top_up, status="lost"), now=NOW)
    assert followed(dispute_of(top_up, status="won")).state == "lost"
    assert "a person must look" in caplog.text


def test_a_dispute_of_a_payment_that_is_not_credited_yet_is_asked_for_again_later(top_up):
    with pytest.raises(PaymentNotCredited):
        follow_dispute(replace(dispute_of(top_up), payment_intent_id="pi_unknown"), now=NOW)
    assert follow_dispute(replace(dispute_of(top_up), payment_intent_id=""), now=NOW) is None


def test_a_dispute_of_money_that_was_set_aside_leaves_the_clearing_account(top_up):
    gateway = Account.objects.get(kind=Account.Kind.GATEWAY)
    unmatched = Account.objects.create(kind=Account.Kind.UNMATCHED, currency="EUR", entries_only=True)
    lines = [Line(gateway.pk, -60 * UNIT), Line(unmatched.pk, 60 * UNIT)]
    ledger.post(key="unmatched:pi_other", kind="unmatched", lines=lines, effective_at=NOW)
    told = replace(dispute_of(top_up), payment_intent_id="pi_other")
    assert follow_dispute(told, now=NOW) is None
    assert units(Account.Kind.UNMATCHED) == 0
    follow_dispute(replace(told, status="won"), now=NOW)
    assert units(Account.Kind.UNMATCHED) == 60
    assert not is_frozen()


def test_the_entries_are_those_of_the_document(stub, top_up):
    follow_dispute(dispute_of(top_up), now=NOW)
    follow_dispute(dispute_of(top_up, status="won"), now=NOW)
    documented = {
        frozenset((line.account_id, line.amount_micros) for line in lines_of(table, currency))
        for _, kind, currency, table in FLOWS
        if kind in ("dispute", "dispute_won")
    }
    entries = JournalEntry.objects.filter(kind__in=["dispute", "dispute_won"])
    assert entries.count() == 4
    for entry in entries:
        assert frozenset(entry.postings.values_list("account_id", "amount_micros")) in documented, entry.key


@pytest.mark.django_db(transaction=True)
def test_many_that_hear_of_a_dispute_at_once_claw_back_once(top_up):
    barrier = threading.Barrier(8)

    def follow(number: int) -> Dispute | None:
        barrier.wait(10)
        return follow_dispute(dispute_of(top_up, status=("needs_response", "won")[number % 2]), now=NOW)

    results = together(8, follow)
    assert {type(result) for result in results} == {Dispute}
    assert outcome() == (25, 0, 0, 0)
    assert JournalEntry.objects.filter(reference_type="dispute").count() == 4


@pytest.mark.django_db(transaction=True)
def test_a_claw_back_racing_a_spender_leaves_no_wallet_overdrawn(wallet, top_up):
    barrier = threading.Barrier(6)
    revenue = Account.objects.get(kind=Account.Kind.REVENUE)

    def work(number: int) -> object:
        barrier.wait(10)
        if number == 0:
            return follow_dispute(dispute_of(top_up), now=NOW)
        lines = [Line(wallet.pk, -10 * UNIT), Line(revenue.pk, 10 * UNIT)]
        return ledger.post(key=f"s{number}", kind="settlement", lines=lines, effective_at=NOW)

    results = together(6, work)
    spent = sum(isinstance(result, int) for result in results)
    assert isinstance(results[0], Dispute)
    assert outcome() == (0, 35 + 10 * spent, 0, 60)


steps = st.lists(
    st.tuples(
        st.sampled_from(["refund", "fail", "revive", "dispute", "win", "lose", "spend", "pay in"]), st.integers(1, 30)
    ),
    max_size=14,
)


@given(steps=steps)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_happens_to_a_payment_it_is_deducted_once_and_the_books_hold(monkeypatch, steps):
    """Refunds and disputes of one payment in any order: its payer bears at most the payment, we bear the rest."""
    with transaction.atomic():
        _Life(monkeypatch).live(steps)
        assert [check for check in run_checks(now=NOW) if not check.ok] == []
        transaction.set_rollback(True)


class _Life:
    """A payment of 40 with made-up events, and a model of what has left it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gateway = StubGateway()
        monkeypatch.setattr("billing.gateway.client.get_refund", self.gateway.get_refund)
        self.wallet = wallet_of("eve")
        self.top_up = paid_top_up(self.wallet, units=40)
        self.disputes: list[GatewayDispute] = []
        self.others = 0  # what was paid in besides, less what was spent

    def live(self, steps: list[tuple[str, int]]) -> None:
        for number, (step, size) in enumerate(steps):
            getattr(self, "_" + step.replace(" ", "_"))(size, number)
            self._judge()

    def _refund(self, size: int, _number: int) -> None:
        follow_refund(self.gateway.make_refund(self.top_up.payment_intent_id, size * UNIT), now=NOW)

    def _fail(self, size: int, _number: int) -> None:
        self._change_refund(size, "failed")

    def _revive(self, size: int, _number: int) -> None:
        self._change_refund(size, "succeeded")

    def _change_refund(self, size: int, status: str) -> None:
        refunds = list(self.gateway.refunds.values())
        if refunds:
            follow_refund(self.gateway.change(refunds[size % len(refunds)], status), now=NOW)

    def _dispute(self, size: int, number: int) -> None:
        self.disputes.append(dispute_of(self.top_up, micros=size * UNIT, number=number))
        follow_dispute(self.disputes[-1], now=NOW)

    def _win(self, size: int, _number: int) -> None:
        self._close(size, "won")

    def _lose(self, size: int, _number: int) -> None:
        self._close(size, "lost")

    def _close(self, size: int, status: str) -> None:
        if self.disputes:
            follow_dispute(replace(self.disputes[size % len(self.disputes)], status=status), now=NOW)

    def _spend(self, size: int, number: int) -> None:
        available = locked_wallet(self.wallet.owner_id or 0, "EUR").available_micros
        amount = min(available, size * UNIT)
        if amount:
            self._move(-amount, f"spend {number}")

    def _pay_in(self, size: int, number: int) -> None:
        self._move(size * UNIT, f"gift {number}")
        pay_open_receivables(now=NOW)

    def _move(self, micros: int, key: str) -> None:
        house, _ = Account.objects.get_or_create(kind=Account.Kind.REVENUE, currency="EUR", entries_only=True)
        ledger.post(key=key, kind="x", lines=[Line(self.wallet.pk, micros), Line(house.pk, -micros)], effective_at=NOW)
        self.others += micros

    def _judge(self) -> None:
        out = sum(Refund.objects.exclude(state="failed").values_list("amount_micros", flat=True))
        out += sum(Dispute.objects.exclude(state="won").values_list("amount_micros", flat=True))
        own = Posting.objects.filter(account__owner=self.wallet.owner)
        customer = sum(own.values_list("amount_micros", flat=True))
        lost = sum(Posting.objects.filter(account__kind="losses").values_list("amount_micros", flat=True))
        assert customer == self.others + 40 * UNIT - min(40 * UNIT, out)
        assert -lost == max(0, out - 40 * UNIT)
