"""Money that fits nothing is settled by a person: once, through the ledger's door, with a reason in the record.

I9 lets money wait ten days on a clearing account; `LATER` is after that, and the books are asked again then.
"""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection

from billing import ledger
from billing.checks import run_checks
from billing.gateway import client as gateway_client
from billing.gateway.errors import GatewayUnavailable
from billing.models import Account, GatewayCustomer, GatewayTransaction, JournalEntry, TopUp
from billing.reconcile.attention import top_ups_and_waiting, waiting_payments
from billing.reconcile.by_hand import AlreadyExplained, Meant, explain_movement
from billing.reconcile.close import close_day
from billing.reconcile.run import reconcile
from billing.reconcile.transactions import unmatched_transactions
from billing.refunds.follow import follow_refund
from billing.topups.credit import Credit, credit_top_up
from billing.topups.settle_by_hand import (
    Elsewhere,
    NothingWaits,
    NotProven,
    ReasonMissing,
    clear_set_aside,
    credit_set_aside,
)
from billing.topups.start import start_top_up
from tests.billing.conftest import NOW, UNIT, refused
from tests.billing.gateway_double import SOON, GatewayDouble, install
from tests.billing.test_ledger_race import together
from tests.factories import make_member, make_operator, make_organisation
from users.models import AuditRecord, User

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=12)
TOP_UPS = "/operator/top-ups/"


@pytest.fixture
def gateway(monkeypatch) -> GatewayDouble:
    double = GatewayDouble()
    install(monkeypatch, double)
    return double


@pytest.fixture
def operator() -> User:
    return make_operator()


def start(name: str = "Orla Labs B.V.", amount: int = 100) -> TopUp:
    return start_top_up(
        organisation=make_organisation(name=name),
        currency="EUR",
        amount=Decimal(amount),
        created_by=None,
        now=NOW,
        return_url_of=lambda top_up_id: f"https://bourse.example/{top_up_id}/",
        locale="en",
    )


def quarantined(gateway: GatewayDouble, micros: int = 99 * UNIT):
    """A top-up of 100 of which another amount was paid; the payment."""
    top_up = start()
    payment = replace(gateway.pay(top_up.pk), received_micros=micros, amount_micros=micros)
    gateway.payments[payment.id] = payment
    assert credit_top_up(payment=payment, now=SOON) == Credit.QUARANTINED
    return top_up, payment


def balance(kind: str, currency: str = "EUR") -> int:
    accounts = Account.objects.filter(kind=kind, currency=currency)
    return sum(ledger.balance_micros(account.pk) for account in accounts)


def breaches(at=LATER) -> list[str]:
    return [check.name for check in run_checks(now=at) if not check.ok]


def test_money_that_waits_more_than_ten_days_breaks_a_rule_until_it_is_settled(gateway, operator):
    _, payment = quarantined(gateway)
    assert breaches() == ["I9 clearing accounts return to zero"]
    assert [(each.payment_id, each.open_micros) for each in waiting_payments()] == [(payment.id, 99 * UNIT)]
    credit_set_aside(payment=payment, operator=operator, reason="the bank took 1 EUR", now=SOON)
    assert breaches() == []
    assert (waiting_payments(), top_ups_and_waiting()) == ([], (1, 0))


def test_a_proven_payment_is_credited_to_who_paid_it_with_what_was_paid(gateway, operator):
    top_up, payment = quarantined(gateway)
    credited = credit_set_aside(payment=payment, operator=operator, reason=" the bank took 1 EUR ", now=SOON)
    assert (credited.pk, credited.state, credited.amount_micros) == (top_up.pk, "paid", 99 * UNIT)
    assert (balance("wallet"), balance("unmatched"), balance("gateway")) == (99 * UNIT, 0, -99 * UNIT)
    [line] = AuditRecord.objects.filter(action="top_up.credited_by_hand")
    assert (line.actor, line.reason, line.organisation) == (operator, "the bank took 1 EUR", credited.organisation)
    assert (line.before["amount_micros"], line.after["amount_micros"]) == (100 * UNIT, 99 * UNIT)


def test_a_second_run_credits_nothing_and_says_so(gateway, operator):
    _, payment = quarantined(gateway)
    credit_set_aside(payment=payment, operator=operator, reason="as told", now=SOON)
    with refused(NothingWaits):
        credit_set_aside(payment=payment, operator=operator, reason="as told", now=SOON)
    assert credit_top_up(payment=payment, now=SOON) == Credit.KNOWN
    assert balance("wallet") == 99 * UNIT


def test_a_payment_for_no_top_up_of_ours_gets_one_when_its_customer_is_ours(gateway, operator):
    start()
    customer = GatewayCustomer.objects.get()
    stray = gateway.stray_payment(customer_id=customer.customer_id)
    credit_top_up(payment=stray, now=SOON)
    credited = credit_set_aside(payment=stray, operator=operator, reason="paid by an old link", now=SOON)
    assert (credited.organisation, credited.payment_intent_id) == (customer.organisation, stray.id)
    assert (balance("wallet"), balance("unmatched"), breaches()) == (12 * UNIT, 0, [])


def test_what_is_credited_by_hand_can_be_refunded_like_any_payment(gateway, operator):
    _, payment = quarantined(gateway)
    credit_set_aside(payment=payment, operator=operator, reason="as told", now=SOON)
    follow_refund(gateway.refund(payment, amount_micros=99 * UNIT), now=SOON)
    assert (balance("wallet"), balance("gateway"), breaches()) == (0, 0, [])


def test_a_payment_that_proves_nobody_is_not_credited(gateway, operator):
    start()
    stray = gateway.stray_payment(customer_id="cus_unknown")
    credit_top_up(payment=stray, now=SOON)
    for payment, why in [
        (stray, "customer"),
        (replace(stray, customer_id=None), "customer"),
        (replace(stray, status="canceled"), "status"),
        (replace(stray, customer_id=GatewayCustomer.objects.get().customer_id, received_micros=UNIT), "amount"),
    ]:
        with refused(NotProven):
            credit_set_aside(payment=payment, operator=operator, reason="hope", now=SOON)
        with pytest.raises(NotProven, match=why):
            credit_set_aside(payment=payment, operator=operator, reason="hope", now=SOON)
    assert (balance("wallet"), balance("unmatched")) == (0, 12 * UNIT)
    assert not AuditRecord.objects.filter(action="top_up.credited_by_hand").exists()


def test_a_payment_of_another_organisation_than_its_top_up_s_is_not_credited(gateway, operator):
    start("Second B.V.")
    other = GatewayCustomer.objects.get().customer_id
    top_up = start()
    payment = gateway.pay(top_up.pk, customer_id=other)
    credit_top_up(payment=payment, now=SOON)
    with pytest.raises(NotProven, match="organisation"):
        credit_set_aside(payment=payment, operator=operator, reason="hope", now=SOON)


def test_a_payment_that_went_back_in_part_is_not_credited_whole(gateway, operator):
    _, payment = quarantined(gateway)
    follow_refund(gateway.refund(payment, amount_micros=9 * UNIT), now=SOON)
    with pytest.raises(NotProven, match="amount"):
        credit_set_aside(payment=payment, operator=operator, reason="hope", now=SOON)
    clear_set_aside(
        payment_id=payment.id, elsewhere=Elsewhere.PAID_BACK, operator=operator, reason="the rest by bank", now=SOON
    )
    assert (balance("unmatched"), balance("bank"), breaches()) == (0, 90 * UNIT, [])


@pytest.mark.parametrize(("elsewhere", "account"), [(Elsewhere.PAID_BACK, "bank"), (Elsewhere.OURS, "losses")])
def test_money_that_no_wallet_gets_leaves_with_its_reason_and_its_top_up_waits_no_longer(
    gateway, operator, elsewhere, account
):
    top_up, payment = quarantined(gateway)
    clear_set_aside(payment_id=payment.id, elsewhere=elsewhere, operator=operator, reason="agreed by mail", now=SOON)
    top_up.refresh_from_db()
    assert (top_up.state, top_up.settled_at, top_ups_and_waiting()) == ("quarantined", SOON, (1, 0))
    assert (balance("unmatched"), balance(account), balance("wallet")) == (0, 99 * UNIT, 0)
    [line] = AuditRecord.objects.filter(action=f"payment.{elsewhere.value}")
    assert (line.reason, line.subject_id, line.organisation) == ("agreed by mail", payment.id, top_up.organisation)
    with refused(NothingWaits):
        clear_set_aside(payment_id=payment.id, elsewhere=elsewhere, operator=operator, reason="again", now=SOON)
    assert breaches() == []


def test_what_goes_back_after_it_was_cleared_waits_again_and_is_cleared_again(gateway, operator):
    _, payment = quarantined(gateway)
    settled = {"payment_id": payment.id, "operator": operator, "reason": "as told", "now": SOON}
    clear_set_aside(elsewhere=Elsewhere.OURS, **settled)
    follow_refund(gateway.refund(payment, amount_micros=99 * UNIT), now=SOON)
    assert [each.open_micros for each in waiting_payments()] == [-99 * UNIT]
    clear_set_aside(elsewhere=Elsewhere.OURS, **settled)
    assert (balance("losses"), breaches()) == (0, [])


def test_no_decision_without_a_reason_and_none_about_what_was_never_set_aside(gateway, operator):
    _, payment = quarantined(gateway)
    with refused(ReasonMissing):
        credit_set_aside(payment=payment, operator=operator, reason="  ", now=SOON)
    with refused(ReasonMissing):
        clear_set_aside(payment_id=payment.id, elsewhere=Elsewhere.OURS, operator=operator, reason="", now=SOON)
    with refused(NothingWaits):
        clear_set_aside(payment_id="pi_none", elsewhere=Elsewhere.OURS, operator=operator, reason="x", now=SOON)
    assert balance("unmatched") == 99 * UNIT


@pytest.mark.django_db(transaction=True)
def test_two_operators_at_once_settle_a_payment_once(gateway, operator):
    _, payment = quarantined(gateway)

    def work(number: int) -> str:
        try:
            if number % 2:
                credit_set_aside(payment=payment, operator=operator, reason="mine", now=SOON)
            else:
                clear_set_aside(
                    payment_id=payment.id, elsewhere=Elsewhere.OURS, operator=operator, reason="mine", now=SOON
                )
        except NothingWaits:
            return "late"
        finally:
            connection.close()
        return "done"

    assert sorted(map(str, together(6, work))) == ["done", *["late"] * 5]
    assert balance("unmatched") == 0
    assert balance("wallet") + balance("losses") == 99 * UNIT


# --- Over real HTTP to the test gateway: the books, its movements and its balance agree --------------------


def test_a_credited_payment_keeps_its_movement_and_the_day_closes_at_zero(fake_stripe, settings, operator):
    settings.TOP_UP_TIERS = ((0, 0, 1_000_000, 1_000_000),)
    fake_stripe.set_clock(NOW)
    start()
    customer = GatewayCustomer.objects.get().customer_id
    stray = fake_stripe.stray_payment(amount=1200, customer=customer)
    reconcile(now=NOW)
    [waiting] = waiting_payments()
    assert waiting.payment_id == stray
    top_up = credit_set_aside(payment=gateway_client.get_payment(stray), operator=operator, reason="his", now=NOW)
    closes, report = close_day(now=NOW + timedelta(hours=2))
    assert (report.failures, report.unmatched) == ([], 0)
    assert all(close.difference_micros == 0 for close in closes)
    assert GatewayTransaction.objects.get(source_id__startswith="ch_").entry_id == top_up.credit_entry_id


@pytest.mark.parametrize(
    ("meant", "account"), [(Meant.FEE, "gateway_fees"), (Meant.TRANSFER, "bank"), (Meant.OURS, "losses")]
)
def test_a_movement_of_an_unknown_kind_is_explained_and_the_day_closes_at_zero(fake_stripe, operator, meant, account):
    fake_stripe.set_clock(NOW)
    fee = fake_stripe.control("fees", currency="gbp", amount=300)
    fake_stripe.change(fee["id"], type="tax_fund")
    reconcile(now=NOW)
    [movement] = unmatched_transactions()
    entry_id = explain_movement(movement_pk=movement.pk, meant=meant, operator=operator, reason="tax", now=NOW)
    assert unmatched_transactions() == []
    assert balance(account, "GBP") == movement.amount_micros
    closes, report = close_day(now=NOW + timedelta(hours=2))
    assert (report.failures, [close.difference_micros for close in closes]) == ([], [0, 0, 0])
    [line] = AuditRecord.objects.filter(action="movement.explained")
    assert (line.reason, line.subject_id, line.actor) == ("tax", movement.transaction_id, operator)
    with refused(AlreadyExplained):
        explain_movement(movement_pk=movement.pk, meant=meant, operator=operator, reason="again", now=NOW)
    assert JournalEntry.objects.get(pk=entry_id).description == "Explained by hand"
    assert breaches() == []


def test_a_movement_is_not_explained_without_a_reason(operator):
    row = GatewayTransaction.objects.create(
        transaction_id="txn_1", type="tax_fund", currency="EUR", amount_micros=-UNIT, happened_at=NOW, seen_at=NOW
    )
    with refused(ReasonMissing):
        explain_movement(movement_pk=row.pk, meant=Meant.FEE, operator=operator, reason=" ", now=NOW)
    with refused(AlreadyExplained):
        explain_movement(movement_pk=row.pk + 1, meant=Meant.FEE, operator=operator, reason="x", now=NOW)


# --- The page ----------------------------------------------------------------------------------------------


def post(client, payment_id: str, **data):
    return client.post(f"/operator/payments/{payment_id}/settle/", data, follow=True).text


def test_an_operator_settles_from_the_page(gateway, client, operator):
    _, payment = quarantined(gateway)
    client.force_login(operator)
    page = client.get(TOP_UPS).text
    assert payment.id in page
    assert "99.00 EUR" in page
    assert "Credited to Orla Labs B.V., and written down." in post(
        client, payment.id, decision="credit", reason="the bank took 1 EUR"
    )
    assert balance("wallet") == 99 * UNIT
    assert "None: no money waits for a decision." in client.get(TOP_UPS).text
    assert "Nothing of this payment waits any more" in post(client, payment.id, decision="credit", reason="twice")


def test_what_is_wrong_is_said_and_nothing_is_credited(gateway, client, operator):
    _, payment = quarantined(gateway)
    client.force_login(operator)
    for data in ({}, {"decision": "credit"}, {"decision": "made-up", "reason": "x"}, {"reason": "x"}):
        assert "Choose what happened and give a reason; nothing was changed." in post(client, payment.id, **data)
    gateway.breaks = [GatewayUnavailable("timed out")]
    assert "does not answer just now" in post(client, payment.id, decision="credit", reason="x")
    assert "does not know this payment" in post(client, "pi_unknown", decision="credit", reason="x")
    gateway.payments[payment.id] = replace(payment, customer_id=None)
    assert "names no customer of ours" in post(client, payment.id, decision="credit", reason="x")
    assert (balance("wallet"), balance("unmatched")) == (0, 99 * UNIT)


def test_an_operator_explains_a_movement_from_the_page(client, operator):
    row = GatewayTransaction.objects.create(
        transaction_id="txn_1", type="tax_fund", currency="EUR", amount_micros=-UNIT, happened_at=NOW, seen_at=NOW
    )
    client.force_login(operator)
    address = f"/operator/movements/{row.pk}/settle/"
    assert "nothing was changed" in client.post(address, {"decision": "fee"}, follow=True).text
    assert "nothing was changed" in client.post(address, {"decision": "x", "reason": "y"}, follow=True).text
    assert "Posted, and written down." in client.post(address, {"decision": "fee", "reason": "y"}, follow=True).text
    assert "has its entry already" in client.post(address, {"decision": "fee", "reason": "y"}, follow=True).text
    GatewayTransaction.objects.filter(pk=row.pk).update(entry=None)
    client.force_login(make_member())
    assert client.post(address, {"decision": "fee", "reason": "y"}).status_code == 403
    GatewayTransaction.objects.filter(pk=row.pk).update(entry=JournalEntry.objects.get())
