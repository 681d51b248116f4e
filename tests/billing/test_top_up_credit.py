"""Payment into wallet: by whichever way it is found, once; and what does not fit is set aside, once."""

import threading
from dataclasses import replace
from decimal import Decimal

import pytest

from billing import ledger
from billing.accounts import open_account
from billing.gateway.errors import GatewayRefused
from billing.ledger import Line
from billing.models import Account, GatewayEvent, JournalEntry, TopUp
from billing.topups.apply_event import apply_due_events
from billing.topups.credit import Credit, credit_top_up
from billing.topups.look import refresh_top_up
from billing.topups.start import start_top_up
from billing.topups.take_event import take_event
from billing.topups.unfinished import retry_created_top_ups
from tests.billing.conftest import NOW, UNIT
from tests.billing.gateway_double import SOON, GatewayDouble, event, install
from tests.billing.test_ledger_race import together
from tests.factories import make_organisation
from users.models import AuditRecord

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway(monkeypatch) -> GatewayDouble:
    double = GatewayDouble()
    install(monkeypatch, double)
    return double


def start(amount: str = "100", currency: str = "EUR", name: str = "Orla Labs B.V.") -> TopUp:
    return start_top_up(
        organisation=make_organisation(name=name),
        currency=currency,
        amount=Decimal(amount),
        created_by=None,
        now=NOW,
        return_url_of=lambda top_up_id: f"https://bourse.example/{top_up_id}/",
        locale="en",
    )


def balance(kind: str, currency: str = "EUR") -> int:
    accounts = Account.objects.filter(kind=kind, currency=currency)
    return sum(ledger.balance_micros(account.pk) for account in accounts)


def test_a_payment_is_credited_with_its_entry_and_its_state(gateway):
    top_up = start()
    payment = gateway.pay(top_up.pk)
    assert credit_top_up(payment=payment, now=SOON) == Credit.CREDITED
    top_up.refresh_from_db()
    entry = JournalEntry.objects.get()
    assert (top_up.state, top_up.paid_at, top_up.credit_entry, top_up.payment_intent_id) == (
        "paid",
        SOON,
        entry,
        payment.id,
    )
    assert (entry.key, entry.kind, entry.reference_type, entry.reference_id, entry.description) == (
        f"topup:{top_up.pk}",
        "topup",
        "top_up",
        str(top_up.pk),
        "Top-up of 100.00 EUR",
    )
    assert (balance("wallet"), balance("gateway")) == (100 * UNIT, -100 * UNIT)
    assert credit_top_up(payment=payment, now=SOON) == Credit.KNOWN


@pytest.mark.parametrize("status", ["processing", "requires_payment_method", "requires_action", "canceled", "new_word"])
def test_what_has_not_succeeded_is_not_credited(gateway, status):
    top_up = start()
    payment = replace(gateway.pay(top_up.pk), status=status)
    assert credit_top_up(payment=payment, now=SOON) == Credit.NOT_PAID
    assert not JournalEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_twenty_threads_by_three_ways_pay_once(gateway):
    """One deposit settled twice within milliseconds, or by webhook and checkout both: failure kinds 1 and 2.

    (getlago/lago-api#3618, saleor/saleor#14648, medusajs/medusa#13301 and #4798)
    """
    top_up = start()
    payment = gateway.pay(top_up.pk)
    for number in range(20):
        take_event(event("payment_intent.succeeded", payment.id, event_id=f"evt_{number}"), now=NOW)
    barrier = threading.Barrier(20)

    def work(number: int) -> object:
        barrier.wait(20)
        if number % 3 == 0:
            return apply_due_events(now=SOON, limit=5)
        if number % 3 == 1:
            return refresh_top_up(TopUp.objects.get(pk=top_up.pk), now=SOON).state
        return credit_top_up(payment=payment, now=SOON)

    results = together(20, work)
    assert not [result for result in results if isinstance(result, Exception)]
    assert results.count(Credit.CREDITED) <= 1
    assert JournalEntry.objects.filter(kind="topup").count() == 1
    assert balance("wallet") == 100 * UNIT


@pytest.mark.django_db(transaction=True)
def test_credit_and_the_retry_of_a_cut_off_start_pay_once(gateway):
    """The row may be paid before it knows its page: the answer of the first call was lost, the payer was quick."""
    top_up = start()
    TopUp.objects.filter(pk=top_up.pk).update(state="created", checkout_session_id=None, checkout_url="")
    payment = gateway.pay(top_up.pk)
    barrier = threading.Barrier(8)

    def work(number: int) -> object:
        barrier.wait(10)
        if number % 2:
            return retry_created_top_ups(now=SOON)
        return credit_top_up(payment=payment, now=SOON)

    results = together(8, work)
    assert not [result for result in results if isinstance(result, Exception)], results
    assert results.count(Credit.CREDITED) == 1
    top_up.refresh_from_db()
    assert (top_up.state, balance("wallet")) == ("paid", 100 * UNIT)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"received_micros": 99 * UNIT}, "amount"),
        ({"amount_micros": 1000 * UNIT, "received_micros": 1000 * UNIT}, "amount"),
        ({"currency": "USD"}, "currency"),
        ({"customer_id": "cus_of_another"}, "customer"),
        ({"customer_id": None}, "customer"),
    ],
)
def test_a_payment_that_does_not_fit_is_quarantined_and_its_money_set_aside(gateway, change, reason):
    """A payment in EUR credited as USD at face value (fullstackhero/dotnet-starter-kit#1325): failure kind 11."""
    top_up = start()
    payment = replace(gateway.pay(top_up.pk), **change)
    assert credit_top_up(payment=payment, now=SOON) == Credit.QUARANTINED
    assert credit_top_up(payment=payment, now=SOON) == Credit.KNOWN
    top_up.refresh_from_db()
    assert (top_up.state, top_up.failure_reason) == ("quarantined", f"differs: {reason}")
    assert (balance("wallet"), balance("wallet", "USD")) == (0, 0)
    assert balance("unmatched", payment.currency) == payment.received_micros
    assert balance("gateway", payment.currency) == -payment.received_micros
    record = AuditRecord.objects.get()
    assert (record.action, record.subject_id, record.after["payment"]) == (
        "top_up.quarantined",
        str(top_up.pk),
        payment.id,
    )


def test_a_payment_that_lost_its_metadata_is_known_by_its_page_and_quarantined(gateway):
    top_up = start()
    payment = gateway.pay(top_up.pk, top_up_id="")
    take_event(event("checkout.session.completed", top_up.checkout_session_id or ""), now=NOW)
    assert apply_due_events(now=SOON) == 1
    top_up.refresh_from_db()
    assert (top_up.state, top_up.failure_reason) == ("quarantined", "differs: metadata")
    assert balance("unmatched") == payment.received_micros


def test_a_payment_that_names_another_top_up_pays_neither(gateway):
    mine, other = start("100"), start("100", name="another")
    payment = gateway.pay(mine.pk, top_up_id=str(other.pk))
    take_event(event("checkout.session.completed", mine.checkout_session_id or ""), now=NOW)
    take_event(event("payment_intent.succeeded", payment.id), now=NOW)
    assert apply_due_events(now=SOON) == 2
    assert set(TopUp.objects.values_list("state", flat=True)) == {"quarantined", "open"}
    assert (balance("wallet"), balance("unmatched")) == (0, 100 * UNIT)


@pytest.mark.parametrize("top_up_id", ["", "nonsense", "01a22d95-d2c7-7d04-bf6c-0f8ad5c90993", "0" * 36])
def test_money_that_no_top_up_waits_for_is_set_aside_once(gateway, top_up_id):
    payment = gateway.stray_payment(top_up_id=top_up_id)
    assert credit_top_up(payment=payment, now=SOON) == Credit.UNMATCHED
    assert credit_top_up(payment=payment, now=SOON) == Credit.KNOWN
    entry = JournalEntry.objects.get()
    assert (entry.kind, entry.reference_type, entry.reference_id) == ("unmatched", "payment", payment.id)
    assert (balance("unmatched"), balance("gateway")) == (12 * UNIT, -12 * UNIT)


@pytest.mark.django_db(transaction=True)
def test_stray_money_found_by_eight_at_once_is_set_aside_once(gateway):
    payment, barrier = gateway.stray_payment(), threading.Barrier(8)

    def work(_number: int) -> Credit:
        barrier.wait(10)
        return credit_top_up(payment=payment, now=SOON)

    results = together(8, work)
    assert set(results) <= {Credit.UNMATCHED, Credit.KNOWN}, results
    assert (JournalEntry.objects.count(), balance("unmatched")) == (1, 12 * UNIT)


def test_a_second_payment_for_a_paid_top_up_is_set_aside(gateway):
    """Two payments of one order, both taken (saleor/saleor#19220, pretix/pretix#343)."""
    top_up = start()
    first = gateway.pay(top_up.pk)
    credit_top_up(payment=first, now=SOON)
    second = replace(first, id="pi_second")
    assert credit_top_up(payment=second, now=SOON) == Credit.UNMATCHED
    assert credit_top_up(payment=first, now=SOON) == Credit.KNOWN
    top_up.refresh_from_db()
    assert (top_up.state, top_up.payment_intent_id) == ("paid", first.id)
    assert (balance("wallet"), balance("unmatched")) == (100 * UNIT, 100 * UNIT)


def test_a_quarantined_top_up_is_credited_by_nothing_that_comes_later(gateway):
    top_up = start()
    wrong = replace(gateway.pay(top_up.pk), received_micros=UNIT)
    credit_top_up(payment=wrong, now=SOON)
    right = replace(wrong, received_micros=100 * UNIT)
    assert credit_top_up(payment=right, now=SOON) == Credit.KNOWN, "its money was set aside already"
    assert credit_top_up(payment=replace(right, id="pi_other"), now=SOON) == Credit.UNMATCHED
    top_up.refresh_from_db()
    assert (top_up.state, balance("wallet")) == ("quarantined", 0)


def test_a_top_up_pays_what_is_owed_first_and_says_both(gateway):
    top_up = start("50")
    owner_id = top_up.organisation_id
    receivable = open_account(kind=Account.Kind.RECEIVABLE, currency="EUR", owner_id=owner_id)
    losses = open_account(kind=Account.Kind.LOSSES, currency="EUR")
    lines = [Line(receivable.pk, -35_500_000), Line(losses.pk, 35_500_000)]
    ledger.post(key="owed", kind="x", lines=lines, effective_at=NOW)
    assert credit_top_up(payment=gateway.pay(top_up.pk), now=SOON) == Credit.CREDITED
    assert (balance("receivable"), balance("wallet"), balance("gateway")) == (0, 14_500_000, -50 * UNIT)
    entry = JournalEntry.objects.get(kind="topup")
    assert entry.description == ("Top-up of 50.00 EUR: 35.500000 EUR paid what was owed, 14.500000 EUR into the wallet")
    again = start("20")
    credit_top_up(payment=gateway.pay(again.pk), now=SOON)
    assert balance("wallet") == 34_500_000


def test_a_top_up_that_is_owed_whole_leaves_the_wallet_as_it_was(gateway):
    top_up = start("50")
    receivable = open_account(kind=Account.Kind.RECEIVABLE, currency="EUR", owner_id=top_up.organisation_id)
    losses = open_account(kind=Account.Kind.LOSSES, currency="EUR")
    lines = [Line(receivable.pk, -80 * UNIT), Line(losses.pk, 80 * UNIT)]
    ledger.post(key="owed", kind="x", lines=lines, effective_at=NOW)
    credit_top_up(payment=gateway.pay(top_up.pk), now=SOON)
    assert (balance("receivable"), balance("wallet")) == (-30 * UNIT, 0)


@pytest.mark.django_db(transaction=True)
def test_two_top_ups_at_once_pay_a_debt_once(gateway):
    top_ups = [start("50"), start("50")]
    receivable = open_account(kind=Account.Kind.RECEIVABLE, currency="EUR", owner_id=top_ups[0].organisation_id)
    losses = open_account(kind=Account.Kind.LOSSES, currency="EUR")
    lines = [Line(receivable.pk, -60 * UNIT), Line(losses.pk, 60 * UNIT)]
    ledger.post(key="owed", kind="x", lines=lines, effective_at=NOW)
    payments, barrier = [gateway.pay(top_up.pk) for top_up in top_ups], threading.Barrier(2)

    def work(number: int) -> Credit:
        barrier.wait(10)
        return credit_top_up(payment=payments[number], now=SOON)

    assert together(2, work) == [Credit.CREDITED] * 2
    assert (balance("receivable"), balance("wallet")) == (0, 40 * UNIT)


def test_money_in_a_currency_that_no_account_holds_is_told_and_let_go(gateway, caplog):
    """A currency without cents taken for one with (Paymenter/Paymenter#1258): failure kind 9. It never gets that far."""
    take_event(event("payment_intent.succeeded", "pi_jpy"), now=NOW)
    gateway.breaks = [GatewayRefused(code="currency_not_held", message="JPY is not a wallet's currency.")]
    assert apply_due_events(now=SOON) == 0
    kept = GatewayEvent.objects.get()
    assert kept.applied_at == SOON
    assert "JPY" in kept.last_error
    assert "JPY" in caplog.text
    assert not JournalEntry.objects.exists()
