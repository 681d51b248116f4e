"""Starting a top-up: what is refused leaves nothing, and what is cut off goes on as the same one."""

import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from uuid6 import uuid7

from billing.gateway.errors import GatewayRefused, GatewayUnavailable
from billing.models import Account, GatewayCustomer, TopUp
from billing.topups.start import (
    AmountRefused,
    CurrencyRefused,
    NotARenter,
    OtherTopUp,
    TooManyTopUps,
    TopUpsOff,
    start_top_up,
)
from billing.topups.unfinished import expire_top_ups, retry_created_top_ups
from tests.billing.conftest import NOW, UNIT
from tests.billing.gateway_double import GatewayDouble, install
from tests.billing.test_ledger_race import together
from tests.factories import make_member, make_organisation

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway(monkeypatch) -> GatewayDouble:
    double = GatewayDouble()
    install(monkeypatch, double)
    return double


def start(amount: str | Decimal = "100", **values) -> TopUp:
    whole = {
        "organisation": make_organisation(),
        "currency": "EUR",
        "created_by": None,
        "now": NOW,
        "return_url_of": lambda top_up_id: f"https://bourse.example/wallet/top-up/{top_up_id}/",
        "locale": "en",
    }
    return start_top_up(amount=Decimal(amount), **{**whole, **values})


def test_a_top_up_is_a_row_and_a_page_where_it_is_paid(gateway):
    owner = make_member()
    top_up = start("100.00", created_by=owner, locale="nl")
    assert (top_up.state, top_up.amount_micros, top_up.currency) == ("open", 100 * UNIT, "EUR")
    assert top_up.checkout_url == "https://pay.example/c"
    assert top_up.gateway_request == {
        "return_url": f"https://bourse.example/wallet/top-up/{top_up.pk}/",
        "locale": "nl",
    }
    session = gateway.session_of(top_up.pk)
    assert (session.amount_micros, session.currency, session.expires_at) == (
        100 * UNIT,
        "EUR",
        NOW + timedelta(hours=2),
    )
    assert session.customer_id == GatewayCustomer.objects.get().customer_id
    wallet = Account.objects.get(kind="wallet")
    assert (top_up.wallet, wallet.posted_micros) == (wallet, 0)


@pytest.mark.parametrize(
    ("amount", "code"),
    [
        ("0", "below_minimum"),
        ("-1", "below_minimum"),
        ("9.99", "below_minimum"),
        ("10.001", "too_fine"),
        ("0.001", "too_fine"),
        ("NaN", "invalid"),
        ("Infinity", "invalid"),
        ("-Infinity", "invalid"),
        ("sNaN", "invalid"),
        ("1e12", "above_limit"),
        ("-1e12", "above_limit"),
        ("1e400", "above_limit"),
        ("1e-400", "too_fine"),
        ("250.01", "above_limit"),
    ],
)
def test_a_bad_amount_is_refused_by_its_name_and_nothing_is_written(gateway, amount, code):
    """What is finer than a cent is refused at the edge, not rounded: failure kind 8 (killbill/killbill#161, #494)."""
    with pytest.raises(AmountRefused) as refusal:
        start(amount)
    assert (refusal.value.field, refusal.value.code) == ("amount", code)
    assert refusal.value.message
    assert (TopUp.objects.count(), Account.objects.count(), gateway.calls) == (0, 0, [])


@pytest.mark.parametrize("currency", ["JPY", "eur", "", "EURO", "BTC"])
def test_another_currency_is_refused(gateway, currency):
    """One without cents would be off by a hundred: failure kind 9 (killbill/killbill-admin-ui#242)."""
    with pytest.raises(CurrencyRefused) as refusal:
        start(currency=currency)
    assert (refusal.value.field, refusal.value.code) == ("currency", "unknown_currency")
    assert (TopUp.objects.count(), gateway.calls) == (0, [])


def test_an_amount_reaches_the_gateway_to_the_cent_in_every_currency(gateway):
    organisation = make_organisation()
    for currency, amount in (("EUR", "10.01"), ("USD", "99.99"), ("GBP", "12.34")):
        top_up = start(amount, currency=currency, organisation=organisation)
        assert gateway.session_of(top_up.pk).amount_micros == Decimal(amount) * UNIT
        assert top_up.wallet.currency == currency


def test_providers_pay_nothing_in(gateway):
    with pytest.raises(NotARenter):
        start(organisation=make_organisation(name="Racks", kind="provider"))
    assert TopUp.objects.count() == 0


def test_a_frozen_organisation_may_pay_what_it_owes(gateway):
    assert start(organisation=make_organisation(frozen_at=NOW)).state == "open"


def test_without_a_gateway_top_ups_are_off(gateway):
    gateway.on = False
    with pytest.raises(TopUpsOff):
        start()
    assert TopUp.objects.count() == 0
    assert (retry_created_top_ups(now=NOW), expire_top_ups(now=NOW)) == (0, 0)


def test_the_limits_count_every_wallet_and_what_still_waits(gateway):
    organisation = make_organisation()
    start("200", organisation=organisation)
    with pytest.raises(AmountRefused, match=r"50\.00.USD"):
        start("50.01", organisation=organisation, currency="USD")
    start("50", organisation=organisation, currency="USD")
    with pytest.raises(AmountRefused):
        start("10", organisation=organisation, now=NOW + timedelta(hours=23))
    start("250", organisation=organisation, now=NOW + timedelta(hours=25))
    with pytest.raises(AmountRefused):
        start("10", organisation=organisation, now=NOW + timedelta(hours=50))
    start("10", organisation=make_organisation(name="another"))


def test_what_failed_or_expired_does_not_count(gateway):
    organisation = make_organisation()
    for state in ("failed", "expired"):
        top_up = start("250", organisation=organisation)
        TopUp.objects.filter(pk=top_up.pk).update(state=state)
    assert start("250", organisation=organisation).state == "open"


def test_five_may_be_started_in_an_hour_and_the_sixth_says_when(gateway, settings):
    organisation = make_organisation()
    for minute in range(5):
        start("10", organisation=organisation, now=NOW + timedelta(minutes=minute))
    with pytest.raises(TooManyTopUps) as refusal:
        start("10", organisation=organisation, now=NOW + timedelta(minutes=10))
    assert refusal.value.wait_seconds == 50 * 60 + 1
    start("10", organisation=organisation, now=NOW + timedelta(minutes=60, seconds=1))


def test_age_and_clean_payments_raise_the_limit(gateway, books, settings):
    settings.TOP_UP_TIERS = [(0, 0, 250, 500), (7, 1, 1000, 2500)]
    ana = books.ana.owner
    with pytest.raises(AmountRefused):
        start("251", organisation=ana)
    old_enough = ana.created_at + timedelta(days=8)
    start("1000", organisation=ana, now=old_enough)  # the payment of 100 is a week old and was not disputed


def test_two_at_once_do_not_pass_a_limit_together(transactional_db, gateway):
    organisation, barrier = make_organisation(), threading.Barrier(4)

    def work(number: int) -> TopUp:
        barrier.wait(10)
        return start("100", organisation=organisation)

    results = together(4, work)
    assert sum(isinstance(result, TopUp) for result in results) == 2
    assert sum(isinstance(result, AmountRefused) for result in results) == 2, results


def test_the_row_is_committed_before_the_gateway_is_called(transactional_db, gateway, monkeypatch):
    seen = []
    ask = gateway.create_checkout

    def look_first(**asked):
        seen.extend(together(1, lambda _: TopUp.objects.values_list("pk", "state", "gateway_key").get()))
        return ask(**asked)

    monkeypatch.setattr("billing.gateway.client.create_checkout", look_first)
    top_up = start()
    assert seen == [(top_up.pk, "created", top_up.gateway_key)]


def test_no_answer_is_not_no_payment_page_and_the_retry_asks_the_very_same(gateway):
    """A time-out told as a failure and tried as a new payment: failure kind 22 (killbill/killbill#338, #643)."""
    top_up_id = uuid7()
    cut_off(gateway, answers_lost=1, top_up_id=top_up_id)  # of the customer
    cut_off(gateway, answers_lost=1, top_up_id=top_up_id)  # of the page
    assert TopUp.objects.get().state == "created"
    again = start(top_up_id=top_up_id)
    assert (again.pk, again.state) == (top_up_id, "open")
    assert (len(gateway.sessions), TopUp.objects.count()) == (1, 1)


def cut_off(gateway: GatewayDouble, *problems: Exception, answers_lost: int = 0, **values) -> None:
    """Start a top-up whose page is asked for without an answer."""
    gateway.breaks, gateway.answers_lost = list(problems), answers_lost
    with pytest.raises(GatewayUnavailable):
        start(**values)
    gateway.answers_lost = 0


def test_beat_finishes_what_was_cut_off_with_the_same_key(gateway):
    cut_off(gateway, GatewayUnavailable("down"))
    assert retry_created_top_ups(now=NOW + timedelta(seconds=10)) == 0, "the request may still be waiting"
    gateway.breaks = [GatewayUnavailable("still down")]
    assert retry_created_top_ups(now=NOW + timedelta(minutes=1)) == 0
    gateway.answers_lost = 2  # of the customer, then of the page
    assert retry_created_top_ups(now=NOW + timedelta(minutes=2)) == 0
    assert retry_created_top_ups(now=NOW + timedelta(minutes=3)) == 0
    assert retry_created_top_ups(now=NOW + timedelta(minutes=4)) == 1
    assert retry_created_top_ups(now=NOW + timedelta(minutes=5)) == 0
    assert (TopUp.objects.get().state, len(gateway.sessions)) == ("open", 1)


def test_after_an_hour_the_page_is_looked_for_and_never_made_a_second_time(gateway):
    start("10")  # the organisation has its customer from now on
    cut_off(gateway, GatewayUnavailable("down"), amount="20")
    cut_off(gateway, answers_lost=1, amount="30")
    gateway.forget_keys()
    paid = gateway.pay(TopUp.objects.get(amount_micros=30 * UNIT).pk)
    assert retry_created_top_ups(now=NOW + timedelta(hours=25)) == 2
    states = dict(TopUp.objects.values_list("amount_micros", "state"))
    assert states == {10 * UNIT: "open", 20 * UNIT: "expired", 30 * UNIT: "paid"}
    assert len(gateway.sessions) == 2
    assert TopUp.objects.get(state="paid").payment_intent_id == paid.id


def test_a_key_used_with_other_values_leads_to_the_page_it_made(gateway):
    start("10")
    cut_off(gateway, answers_lost=1, amount="20")
    TopUp.objects.filter(state="created").update(gateway_request={"return_url": "https://old.example/", "locale": "pl"})
    assert retry_created_top_ups(now=NOW + timedelta(minutes=1)) == 1
    assert (set(TopUp.objects.values_list("state", flat=True)), len(gateway.sessions)) == ({"open"}, 2)


def test_a_gateway_that_is_away_keeps_no_worker(gateway):
    for number in range(6):
        cut_off(gateway, GatewayUnavailable("down"), organisation=make_organisation(name=f"org {number}"))
    gateway.calls.clear()
    gateway.breaks = [GatewayUnavailable("still down")] * 6
    assert retry_created_top_ups(now=NOW + timedelta(minutes=1)) == 0
    assert len(gateway.calls) == 3
    gateway.breaks = []
    assert retry_created_top_ups(now=NOW + timedelta(minutes=2)) == 6


def test_a_gateway_that_cannot_be_asked_settles_nothing(gateway):
    cut_off(gateway, GatewayUnavailable("down"))
    gateway.breaks = [GatewayUnavailable("down")]
    assert retry_created_top_ups(now=NOW + timedelta(hours=2)) == 0
    assert TopUp.objects.get().state == "created"


def test_a_refusal_of_the_gateway_ends_the_row(gateway):
    gateway.breaks = [GatewayRefused(code="account_invalid", message="no")]
    with pytest.raises(GatewayRefused):
        start()
    top_up = TopUp.objects.get()
    assert (top_up.state, top_up.failure_reason) == ("failed", "account_invalid")
    assert retry_created_top_ups(now=NOW + timedelta(minutes=5)) == 0


def test_an_id_is_of_one_top_up(gateway):
    top_up = start("10")
    assert start("10", top_up_id=top_up.pk).pk == top_up.pk
    for other in ({"amount": "11"}, {"currency": "USD"}, {"organisation": make_organisation(name="thief")}):
        with pytest.raises(OtherTopUp):
            start(**{"amount": "10", "top_up_id": top_up.pk, **other})  # type: ignore[arg-type]  # a call's arguments
    assert (TopUp.objects.count(), len(gateway.sessions)) == (1, 1)


def test_an_organisation_has_one_customer_at_the_gateway(gateway):
    start("10")
    start("20")
    assert gateway.calls.count("create_customer") == 1


def test_a_page_that_was_not_paid_is_closed_and_then_expired(gateway):
    top_up = start()
    over = NOW + timedelta(hours=2, minutes=6)
    assert expire_top_ups(now=NOW + timedelta(hours=2)) == 0
    gateway.breaks = [GatewayUnavailable("down")]
    assert expire_top_ups(now=over) == 0
    assert TopUp.objects.get().state == "open"
    assert expire_top_ups(now=over) == 1
    assert gateway.session_of(top_up.pk).status == "expired"
    assert TopUp.objects.get().state == "expired"
    assert expire_top_ups(now=over) == 0


def test_a_payment_of_the_last_moment_is_credited_by_the_expiry(gateway):
    top_up = start()
    gateway.pay(top_up.pk)
    assert expire_top_ups(now=NOW + timedelta(hours=3)) == 1
    assert TopUp.objects.get().state == "paid"
    assert Account.objects.get(kind="wallet").posted_micros == 100 * UNIT


def test_a_bank_debit_outlives_its_page(gateway):
    top_up = start()
    gateway.debit(top_up.pk)
    assert expire_top_ups(now=NOW + timedelta(hours=3)) == 1
    assert expire_top_ups(now=NOW + timedelta(hours=4)) == 0
    assert TopUp.objects.get().state == "processing"
