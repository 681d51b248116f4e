"""The gateway's lists and movements against our books, over real HTTP to the test gateway: nothing is lost or doubled."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from billing import ledger
from billing.models import (
    Account,
    Dispute,
    GatewayEvent,
    GatewayTransaction,
    Refund,
    TopUp,
)
from billing.reconcile.close import close_day
from billing.reconcile.run import reconcile
from billing.reconcile.transactions import unmatched_transactions
from billing.refunds.request import refund_top_up
from billing.topups.apply_event import apply_due_events
from billing.topups.start import start_top_up
from tests.billing.conftest import NOW, UNIT
from tests.billing.gateway_server import GOOD_DEBIT, FakeStripe
from tests.factories import make_organisation
from users.models import AuditRecord

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def gateway(fake_stripe, settings) -> FakeStripe:
    """The test gateway at our tests' time; nobody is near a limit."""
    settings.TOP_UPS_PER_HOUR = 1000
    settings.TOP_UP_TIERS = ((0, 0, 1_000_000, 1_000_000),)
    fake_stripe.set_clock(NOW)
    return fake_stripe


def top_up(gateway: FakeStripe, amount: int = 100, *, now: datetime = NOW, pay: bool = True, **values) -> TopUp:
    """Start a top-up and pay it at the gateway; its messages wait there."""
    whole = {"organisation": make_organisation(), "currency": "EUR", **values}
    started = start_top_up(
        amount=Decimal(amount),
        created_by=None,
        now=now,
        return_url_of=lambda top_up_id: f"https://bourse.example/wallet/top-up/{top_up_id}/",
        locale="en",
        **whole,
    )
    if pay:
        gateway.pay(started.checkout_session_id or "")
    return started


def told(gateway: FakeStripe, client, *, now: datetime = NOW) -> None:
    """Deliver what the gateway has to say, and apply it."""
    gateway.deliver(client)
    while apply_due_events(now=now):
        pass


def units(kind: Account.Kind, currency: str = "EUR") -> Decimal:
    found = Account.objects.filter(kind=kind, currency=currency)
    return Decimal(sum(ledger.balance_micros(one.pk) for one in found)) / UNIT


def close(now: datetime = NOW) -> dict[str, int]:
    """The differences of a close, in units."""
    closes, report = close_day(now=now)
    assert report.failures == []
    return {one.currency: one.difference_micros // UNIT for one in closes if one.difference_micros}


# --- All messages lost -------------------------------------------------------------------------------------


def test_all_messages_lost_for_a_day_the_balances_are_right(gateway, client):
    gateway.switch(withhold=True)
    first, second, third = top_up(gateway), top_up(gateway, 60), top_up(gateway, 30, pay=False)
    dollars = top_up(gateway, 50, currency="USD")
    debit = top_up(gateway, 40)
    report = reconcile(now=NOW)
    assert (report.failures, report.unmatched) == ([], 0)
    assert units(Account.Kind.WALLET) == 200
    assert units(Account.Kind.WALLET, "USD") == 50
    first.refresh_from_db()
    second.refresh_from_db()
    debit.refresh_from_db()
    gateway.refund(first.payment_intent_id or "", 2500)
    gateway.dispute(second.payment_intent_id or "")
    gateway.expire(third.checkout_session_id or "")
    refund = refund_top_up(top_up=dollars, amount=Decimal(20), requested_by=None, now=NOW)
    gateway.fail_refund(refund.gateway_refund_id or "")
    reconcile(now=NOW + DAY)
    state = {top_up.pk: top_up.state for top_up in TopUp.objects.all()}
    assert [state[one.pk] for one in (first, second, third)] == ["paid", "paid", "expired"]
    figures = figures_of_the_books()
    assert figures["wallet EUR"] == 200 - 25 - 60
    assert figures["wallet USD"] == 50
    assert make_organisation().frozen_at is not None
    again = reconcile(now=NOW + DAY)
    assert (again.new_transactions, again.matched, again.unmatched, again.failures) == (0, 0, 0, [])
    gateway.switch(withhold=False, webhook_reversed=True, webhook_copies=2)
    told(gateway, client, now=NOW + DAY)
    assert GatewayEvent.objects.filter(applied_at=None).count() == 0
    assert figures_of_the_books() == figures, "what comes late changes nothing"
    assert close(NOW + DAY) == {}


def figures_of_the_books() -> dict[str, Decimal]:
    return {
        f"{account.kind} {account.currency}": Decimal(ledger.balance_micros(account.pk)) / UNIT
        for account in Account.objects.order_by("kind", "currency")
    }


def test_a_bank_debit_that_arrives_after_a_week_is_credited_and_matched(gateway):
    started = top_up(gateway, pay=False)
    gateway.switch(withhold=True)
    gateway.control("objects/" + (started.checkout_session_id or ""), payment_method_types=["card", "sepa_debit"])
    gateway.pay(started.checkout_session_id or "", GOOD_DEBIT)
    reconcile(now=NOW)
    started.refresh_from_db()
    assert started.state == "processing"
    gateway.set_clock(NOW + 7 * DAY)
    payment = gateway.control("objects/" + (started.checkout_session_id or ""))["payment_intent"]
    gateway.settle(payment)
    assert close(NOW + 7 * DAY) == {}
    started.refresh_from_db()
    assert started.state == "paid"
    assert unmatched_transactions() == []


def test_a_dispute_decided_and_a_refund_failed_weeks_later_are_found_without_a_message(gateway):
    one, other = top_up(gateway, 60), top_up(gateway, 40)
    gateway.switch(withhold=True)
    reconcile(now=NOW)
    one.refresh_from_db()
    other.refresh_from_db()
    refund = refund_top_up(top_up=other, amount=None, requested_by=None, now=NOW)
    dispute = gateway.dispute(one.payment_intent_id or "")
    assert close() == {}
    assert units(Account.Kind.WALLET) == 0
    later = NOW + 20 * DAY
    gateway.set_clock(later)
    gateway.fail_refund(refund.gateway_refund_id or "")
    gateway.close_dispute(dispute, won=True)
    assert close(later) == {}
    assert units(Account.Kind.WALLET) == 100
    assert (Refund.objects.get().state, Dispute.objects.get().state) == ("failed", "won")


# --- Movements ---------------------------------------------------------------------------------------------


def test_every_movement_has_its_entry_and_its_fee_once(gateway):
    started = top_up(gateway, 200)
    reconcile(now=NOW)
    started.refresh_from_db()
    refund_top_up(top_up=started, amount=Decimal(30), requested_by=None, now=NOW)
    gateway.dispute(started.payment_intent_id or "", 5000)
    gateway.control("fees", currency="eur", amount=300)
    gateway.advance(3 * 86_400)
    payout = gateway.control("payouts", currency="eur", amount=1000)
    gateway.control("payouts", currency="eur", amount=500)
    gateway.control(f"payouts/{payout['id']}/fail")
    for _ in range(2):
        reconcile(now=NOW + 3 * DAY)
    rows = GatewayTransaction.objects.select_related("entry", "fee_entry").order_by("pk")
    matched = [(row.type, row.amount_micros // UNIT, row.entry.kind) for row in rows if row.entry]
    assert sorted(matched) == [
        ("adjustment", -50, "dispute"),
        ("charge", 200, "topup"),
        ("payout", -10, "gateway_payout"),
        ("payout", -5, "gateway_payout"),
        ("payout_failure", 10, "gateway_payout"),
        ("refund", -30, "refund"),
        ("stripe_fee", -3, "gateway_fee"),
    ]
    assert len(matched) == rows.count()
    assert len({row.entry_id for row in rows}) == rows.count(), "no entry has two movements"
    fees = [row.fee_micros for row in rows if row.fee_entry_id]
    assert sorted(fees) == [3_250_000, 20 * UNIT], "of the charge and of the dispute"
    assert units(Account.Kind.GATEWAY_FEES) == Decimal("-26.25")
    assert units(Account.Kind.BANK) == -5
    assert close(NOW + 3 * DAY) == {}


def test_a_pending_refund_has_left_the_gateway_once_its_movement_is_seen(gateway):
    started = top_up(gateway)
    reconcile(now=NOW)
    started.refresh_from_db()
    gateway.switch(refund_outcome="pending")
    refund = refund_top_up(top_up=started, amount=Decimal(30), requested_by=None, now=NOW)
    assert refund.state == "submitted"
    assert close() == {}
    gateway.settle_refund(refund.gateway_refund_id or "")
    assert close() == {}
    refund.refresh_from_db()
    assert refund.state == "succeeded"


@pytest.mark.parametrize("seen_between", [True, False])
def test_a_refund_that_fails_before_it_ever_succeeded_has_both_its_movements(gateway, seen_between):
    started = top_up(gateway)
    reconcile(now=NOW)
    started.refresh_from_db()
    gateway.switch(refund_outcome="pending")
    refund = refund_top_up(top_up=started, amount=Decimal(30), requested_by=None, now=NOW)
    if seen_between:
        reconcile(now=NOW)
    gateway.fail_refund(refund.gateway_refund_id or "")
    assert close() == {}
    assert units(Account.Kind.WALLET) == 100
    assert unmatched_transactions() == []


def test_a_movement_of_an_unknown_kind_is_logged_and_listed_with_the_reason(gateway, caplog):
    fee = gateway.control("fees", currency="gbp", amount=300)
    gateway.change(fee["id"], type="tax_fund")
    report = reconcile(now=NOW)
    assert report.unmatched == 1
    [row] = unmatched_transactions()
    assert (row.transaction_id, row.note) == (fee["id"], "a type we do not know")
    assert "a type we do not know" in caplog.text


def test_a_seeded_gap_is_found_from_both_sides(gateway, caplog):
    """An entry of ours that the gateway knows nothing of, and a movement that is not in our books."""
    started = top_up(gateway)
    reconcile(now=NOW)
    started.refresh_from_db()
    refund = refund_top_up(top_up=started, amount=Decimal(30), requested_by=None, now=NOW)
    gateway.change(_movement_of(gateway, refund), type="tax_fund")
    report = reconcile(now=NOW + timedelta(hours=2))
    assert report.unmatched == 1
    [failure] = report.failures
    assert failure.startswith(f"entry refund:{refund.pk}:paid moved money")
    assert "knows of no such movement" in caplog.text


def _movement_of(gateway: FakeStripe, refund: Refund) -> str:
    return str(gateway.control(f"objects/{refund.gateway_refund_id}")["balance_transaction"])


def test_a_movement_of_another_amount_is_not_its_entry_s(gateway):
    started = top_up(gateway)
    payment = gateway.control("objects/" + (started.checkout_session_id or ""))["payment_intent"]
    charge = gateway.control(f"objects/{gateway.control(f'objects/{payment}')['latest_charge']}")
    gateway.change(charge["balance_transaction"], amount=9900, net=9725)
    reconcile(now=NOW)
    [row] = unmatched_transactions()
    assert "another amount" in row.note
    closes, _ = close_day(now=NOW)
    assert {one.currency: one.difference_micros // UNIT for one in closes}["EUR"] == -1


def test_a_converted_movement_raises_an_alarm_and_waits_for_a_person(gateway, caplog):
    gateway.switch(exchange_rate=1.15)
    top_up(gateway)
    reconcile(now=NOW)
    [row] = unmatched_transactions()
    assert row.note == "converted at 1.15"
    assert "converted" in caplog.text
    reconcile(now=NOW)
    assert unmatched_transactions()[0].note == "converted at 1.15"


def test_money_that_fits_no_top_up_has_its_movement_too_and_leaves_by_a_refund(gateway):
    stray = gateway.stray_payment(amount=1200)
    assert close() == {}
    assert units(Account.Kind.UNMATCHED) == 12
    gateway.refund(stray)
    assert close() == {}
    assert units(Account.Kind.UNMATCHED) == 0
    other = gateway.stray_payment(amount=1300)
    gateway.dispute(other)
    assert close() == {}
    assert units(Account.Kind.UNMATCHED) == 0
    assert {row.entry.kind for row in GatewayTransaction.objects.all() if row.entry} == {"unmatched"}


# --- What goes wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["processing", "canceled"])
def test_a_payment_in_a_wallet_that_has_not_succeeded_freezes_its_organisation(gateway, said, caplog):
    started = top_up(gateway)
    reconcile(now=NOW)
    assert make_organisation().frozen_at is None
    started.refresh_from_db()
    gateway.change(started.payment_intent_id or "", status=said)
    for _ in range(2):
        report = reconcile(now=NOW)
        assert len(report.failures) == 1
    assert make_organisation().frozen_at == NOW
    assert said in caplog.text
    assert AuditRecord.objects.filter(action="organisation.frozen").count() == 1


def test_one_that_cannot_be_followed_is_reported_and_the_others_go_on(gateway, caplog):
    one, other = top_up(gateway), top_up(gateway, 60)
    reconcile(now=NOW)
    one.refresh_from_db()
    other.refresh_from_db()
    wrong = gateway.refund(one.payment_intent_id or "", 2500)
    right = gateway.refund(other.payment_intent_id or "", 1000)
    gateway.change(wrong, currency="usd")
    report = reconcile(now=NOW)
    assert [failure.split(":")[0] for failure in report.failures] == [wrong]
    assert Refund.objects.get().gateway_refund_id == right
    assert wrong in caplog.text
