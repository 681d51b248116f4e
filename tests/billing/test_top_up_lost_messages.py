"""Messages lost, repeated, reversed, late: the balances are right all the same, over real HTTP to the test gateway."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client

from billing import ledger
from billing.models import Account, GatewayEvent, JournalEntry, TopUp
from billing.reconcile.run import reconcile
from billing.topups.apply_event import apply_due_events
from billing.topups.start import start_top_up
from billing.topups.unfinished import expire_top_ups, retry_created_top_ups
from tests.billing.conftest import UNIT
from tests.billing.gateway_server import BAD_DEBIT, DECLINED_CARD, GOOD_CARD, GOOD_DEBIT, FakeStripe
from tests.factories import make_organisation

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = datetime.now(UTC)  # the webhook and the gateway read the clock themselves


@pytest.fixture
def gateway(fake_stripe, settings) -> FakeStripe:
    """The test gateway; nobody is near a limit."""
    settings.TOP_UPS_PER_HOUR = 1000
    settings.TOP_UP_TIERS = ((0, 0, 1_000_000, 1_000_000),)
    return fake_stripe


def start(amount: int = 100, currency: str = "EUR") -> TopUp:
    return start_top_up(
        organisation=make_organisation(),
        currency=currency,
        amount=Decimal(amount),
        created_by=None,
        now=NOW,
        return_url_of=lambda top_up_id: f"https://bourse.example/wallet/top-up/{top_up_id}/",
        locale="en",
    )


def session_of(top_up: TopUp) -> str:
    return top_up.checkout_session_id or ""


def balance(kind: str = "wallet", currency: str = "EUR") -> int:
    return sum(ledger.balance_micros(account.pk) for account in Account.objects.filter(kind=kind, currency=currency))


def states() -> list[str]:
    return list(TopUp.objects.order_by("pk").values_list("state", flat=True))


def test_with_every_message_of_a_day_lost_the_reconciler_credits_once(gateway):
    paid = [start(amount, currency) for amount, currency in ((100, "EUR"), (20, "USD"), (30, "GBP"), (40, "EUR"))]
    start(50)
    for top_up in paid:
        assert gateway.pay(session_of(top_up), GOOD_CARD) == "paid"
    lost = gateway.messages()
    assert lost
    for number in range(3):
        reconcile(now=NOW + HOUR + number * HOUR)
    assert states() == ["paid"] * 4 + ["open"]
    assert (balance(), balance(currency="USD"), balance(currency="GBP")) == (140 * UNIT, 20 * UNIT, 30 * UNIT)
    assert JournalEntry.objects.filter(kind="topup").count() == 4


def test_messages_that_turn_up_after_the_reconciler_change_nothing(gateway):
    top_up = start()
    gateway.pay(session_of(top_up), GOOD_CARD)
    reconcile(now=NOW + HOUR)
    assert balance() == 100 * UNIT
    gateway.switch(webhook_copies=3, webhook_reversed=True)
    assert {answer.status_code for answer in gateway.deliver(Client())} == {200}
    apply_due_events(now=NOW + timedelta(days=3))
    assert not GatewayEvent.objects.filter(applied_at=None).exists()
    assert (balance(), JournalEntry.objects.filter(kind="topup").count()) == (100 * UNIT, 1)


def test_repeated_and_reversed_messages_credit_once(gateway):
    gateway.switch(webhook_copies=3, webhook_reversed=True)
    top_ups = [start(10 * number) for number in range(1, 6)]
    for top_up in top_ups:
        gateway.pay(session_of(top_up), GOOD_CARD)
    for _ in range(2):
        gateway.deliver(Client())
        apply_due_events(now=NOW + HOUR)
    reconcile(now=NOW + 2 * HOUR)
    assert (balance(), set(states())) == (150 * UNIT, {"paid"})
    assert JournalEntry.objects.filter(kind="topup").count() == 5


def test_a_top_up_whose_answer_was_lost_is_paid_by_its_reconciled_page(gateway, monkeypatch):
    """The gateway made the page, we never heard of it, and it was paid: a time-out is no failure (failure kind 22)."""
    top_up = start()
    TopUp.objects.filter(pk=top_up.pk).update(state="created", checkout_session_id=None, checkout_url="")
    gateway.pay(session_of(top_up), GOOD_CARD)
    gateway.messages()
    assert retry_created_top_ups(now=NOW + timedelta(minutes=1)) == 1
    reconcile(now=NOW + HOUR)
    assert (states(), balance()) == (["paid"], 100 * UNIT)


def test_a_debit_is_credited_when_it_arrives_and_not_when_it_fails(gateway):
    good, bad = start(100), start(50)
    for top_up, account in ((good, GOOD_DEBIT), (bad, BAD_DEBIT)):
        assert gateway.pay(session_of(top_up), account) == "processing"
    gateway.deliver(Client())
    apply_due_events(now=NOW + HOUR)
    assert (states(), balance()) == (["processing", "processing"], 0)
    for top_up, succeeded in ((good, True), (bad, False)):
        top_up.refresh_from_db()
        gateway.settle(top_up.payment_intent_id or "", succeeded=succeeded)
    gateway.deliver(Client())
    apply_due_events(now=NOW + timedelta(days=14))
    assert (states(), balance()) == (["paid", "failed"], 100 * UNIT)


def test_a_declined_card_may_be_followed_by_a_good_one(gateway):
    top_up = start()
    assert gateway.pay(session_of(top_up), DECLINED_CARD) == "declined"
    gateway.deliver(Client())
    apply_due_events(now=NOW + HOUR)
    assert (states(), balance()) == (["open"], 0)
    assert gateway.pay(session_of(top_up), GOOD_CARD) == "paid"
    gateway.deliver(Client())
    apply_due_events(now=NOW + 2 * HOUR)
    assert (states(), balance()) == (["paid"], 100 * UNIT)


def test_a_page_nobody_paid_ends_with_or_without_its_message(gateway):
    told, _untold = start(10), start(20)
    gateway.expire(session_of(told))
    gateway.deliver(Client())
    apply_due_events(now=NOW + HOUR)
    assert states() == ["expired", "open"]
    assert expire_top_ups(now=NOW + 3 * HOUR) == 1
    assert (states(), balance()) == (["expired", "expired"], 0)


def test_money_for_an_unknown_top_up_is_set_aside_once(gateway):
    """Nothing is bound to a purchase, so money is never taken for something gone; what fits nothing waits for a person.

    (pretix/pretix#74: failure kind 23)
    """
    top_up = start()
    gateway.pay(session_of(top_up), GOOD_CARD)
    TopUp.objects.all().delete()  # as if another site of ours had asked for it
    gateway.deliver(Client())
    apply_due_events(now=NOW + HOUR)
    reconcile(now=NOW + 2 * HOUR)
    assert (balance(), balance("unmatched")) == (0, 100 * UNIT)
    assert JournalEntry.objects.filter(kind="unmatched").count() == 1
