"""Our calls to the gateway, made to the test gateway over real HTTP: what they give, and what goes wrong with them."""

import json
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import stripe

from billing.gateway import client, reading
from billing.gateway.errors import (
    BadSignature,
    GatewayOff,
    GatewayRefused,
    GatewayUnavailable,
    KeyConflict,
    NoSuchObject,
)
from tests.billing.gateway_server import (
    BAD_DEBIT,
    CHALLENGED_CARD,
    DECLINED_CARD,
    GOOD_DEBIT,
    OTHER_SECRET,
    SECRET,
    FakeStripe,
)

UNIT = 1_000_000
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
# What may happen to a call so that nobody knows whether it took effect, and how often asking again helps.
LOST_ANSWERS = ["fail_before", "fail_after", "drop_before", "drop_after", "rate_limit"]


def make_checkout(*, key: str = "key-1", units: int = 100, currency: str = "EUR", top_up_id: str = "top-up-1"):
    return client.create_checkout(
        top_up_id=top_up_id,
        amount_micros=units * UNIT,
        currency=currency,
        customer_id=client.create_customer(organisation_id=7, email="orla@example.com", name="Orla", key="customer-7"),
        success_url="https://bourse.example/wallet/top-up/1/",
        cancel_url="https://bourse.example/wallet/",
        expires_at=datetime.fromtimestamp(int(time.time()) // 3600 * 3600, UTC) + timedelta(hours=2),
        locale="nl",
        key=key,
    )


def paid_checkout(gateway: FakeStripe, *, units: int = 100, **more):
    session = make_checkout(units=units, **more)
    gateway.pay(session.id)
    return client.get_checkout(session.id)


def test_without_a_key_payments_are_off_and_nothing_is_asked(settings):
    settings.STRIPE_SECRET_KEY = settings.FAKE_STRIPE_URL = ""
    assert not client.is_on()
    assert not client.is_test()
    with pytest.raises(GatewayOff):
        client.get_checkout("cs_1")
    with pytest.raises(GatewayOff):
        next(client.payments_since(LONG_AGO))


def test_the_test_gateway_is_said_to_be_one_and_a_key_ends_that(fake_stripe, settings):
    assert client.is_on()
    assert client.is_test()
    settings.STRIPE_SECRET_KEY = "rk_live_1"
    assert client.is_on()
    assert not client.is_test()


def test_a_session_carries_our_amount_our_ids_and_its_page(fake_stripe):
    session = make_checkout(units=1234, currency="GBP")
    assert session.amount_micros == 1_234_000_000
    assert session.currency == "GBP"
    assert session.top_up_id == "top-up-1"
    assert (session.status, session.payment_status, session.payment_intent_id) == ("open", "unpaid", None)
    assert (session.url or "").startswith(fake_stripe.url)
    assert session.expires_at > datetime.now(UTC)
    assert client.get_checkout(session.id) == session


def test_a_paid_session_leads_to_a_payment_of_the_same_top_up(fake_stripe):
    session = paid_checkout(fake_stripe)
    assert (session.status, session.payment_status, session.url) == ("complete", "paid", None)
    payment = client.get_payment(session.payment_intent_id or "")
    assert (payment.status, payment.amount_micros, payment.received_micros) == ("succeeded", 100 * UNIT, 100 * UNIT)
    assert (payment.top_up_id, payment.customer_id, payment.currency) == ("top-up-1", session.customer_id, "EUR")


def test_a_declined_card_leaves_the_session_open_and_says_why(fake_stripe):
    session = make_checkout()
    assert fake_stripe.pay(session.id, DECLINED_CARD) == "declined"
    session = client.get_checkout(session.id)
    assert (session.status, session.payment_status) == ("open", "unpaid")
    payment = client.get_payment(session.payment_intent_id or "")
    assert (payment.status, payment.failure_reason) == ("requires_payment_method", "generic_decline")
    assert payment.received_micros == 0
    assert fake_stripe.pay(session.id, CHALLENGED_CARD, answer="yes") == "paid", "another card works on the same page"
    assert client.get_payment(payment.id).status == "succeeded"


@pytest.mark.parametrize(
    ("account", "arrives", "end"), [(GOOD_DEBIT, True, "paid"), (BAD_DEBIT, False, "unpaid")], ids=["good", "bad"]
)
def test_a_bank_debit_completes_unpaid_and_is_decided_later(fake_stripe, account, arrives, end):
    session = make_checkout()
    assert fake_stripe.pay(session.id, account) == "processing"
    session = client.get_checkout(session.id)
    assert (session.status, session.payment_status) == ("complete", "unpaid")
    assert client.get_payment(session.payment_intent_id or "").status == "processing"
    fake_stripe.settle(session.payment_intent_id, succeeded=arrives)
    assert client.get_checkout(session.id).payment_status == end
    assert (client.get_payment(session.payment_intent_id or "").received_micros > 0) == arrives


def test_an_expired_session_cannot_be_paid_or_expired_again(fake_stripe):
    session = client.expire_checkout(make_checkout().id)
    assert (session.status, session.url) == ("expired", None)
    with pytest.raises(GatewayRefused):
        client.expire_checkout(session.id)


def test_the_same_key_gives_the_same_object_and_other_values_conflict(fake_stripe):
    first = make_checkout(key="once")
    assert make_checkout(key="once").id == first.id
    with pytest.raises(KeyConflict):
        make_checkout(key="once", units=200)
    assert len(list(client.checkouts_since(LONG_AGO))) == 1


@pytest.mark.parametrize("fault", LOST_ANSWERS)
def test_a_lost_answer_is_unavailable_and_the_same_key_makes_one_session(fake_stripe, fault):
    fake_stripe.fault(fault, method="POST", path="/v1/checkout/")
    with pytest.raises(GatewayUnavailable):
        make_checkout()
    session = make_checkout()
    assert [each.id for each in client.checkouts_since(LONG_AGO)] == [session.id]


@pytest.mark.parametrize("fault", LOST_ANSWERS)
def test_a_lost_answer_to_a_refund_is_one_refund_in_the_end(fake_stripe, fault):
    session = paid_checkout(fake_stripe)
    wish = {"payment_intent_id": session.payment_intent_id, "amount_micros": 40 * UNIT, "currency": "EUR"}
    fake_stripe.fault(fault, method="POST", path="/v1/refunds")
    with pytest.raises(GatewayUnavailable):
        client.create_refund(**wish, refund_id="refund-1", key="refund-1")
    client.create_refund(**wish, refund_id="refund-1", key="refund-1")
    assert [(each.refund_id, each.amount_micros) for each in client.refunds_since(LONG_AGO)] == [
        ("refund-1", 40 * UNIT)
    ]


def test_a_stored_500_stays_and_the_object_is_found_by_its_metadata(fake_stripe):
    fake_stripe.fault("fail_kept", method="POST", path="/v1/checkout/")
    for _ in range(2):
        with pytest.raises(GatewayUnavailable):
            make_checkout()
    assert [each.top_up_id for each in client.checkouts_since(LONG_AGO)] == ["top-up-1"]


def test_a_timeout_is_unavailable_and_the_same_key_finds_what_was_made(fake_stripe, settings):
    client.create_customer(organisation_id=7, email="orla@example.com", name="Orla", key="customer-7")
    settings.STRIPE_TIMEOUT_SECONDS = 0.3
    fake_stripe.fault("slow", method="POST", path="/v1/checkout/", seconds=0.8)
    with pytest.raises(GatewayUnavailable):
        make_checkout()
    settings.STRIPE_TIMEOUT_SECONDS = 10.0
    session = make_checkout()
    assert [each.id for each in client.checkouts_since(LONG_AGO)] == [session.id]


def test_a_gateway_that_is_not_there_is_unavailable(fake_stripe, settings):
    settings.FAKE_STRIPE_URL = "http://localhost:9"
    with pytest.raises(GatewayUnavailable):
        client.get_payment("pi_1")


def test_a_key_that_is_refused_is_unavailable_not_a_refusal_of_the_payment(fake_stripe, settings):
    settings.FAKE_STRIPE_KEY = "sk_test_wrong"
    with pytest.raises(GatewayUnavailable):
        client.get_payment("pi_1")


def test_what_the_gateway_refuses_carries_its_code(fake_stripe):
    with pytest.raises(GatewayRefused) as refusal:
        client.create_checkout(
            top_up_id="1",
            amount_micros=400_000,
            currency="EUR",
            customer_id=client.create_customer(organisation_id=1, email="a@example.com", name="A", key="c"),
            success_url="https://bourse.example/",
            cancel_url="https://bourse.example/",
            expires_at=datetime.now(UTC) + timedelta(hours=1),
            locale="en",
            key="k",
        )
    assert refusal.value.code == "amount_too_small"


def test_an_unknown_object_is_said_to_be_one(fake_stripe):
    for ask in (client.get_checkout, client.get_payment, client.get_refund, client.get_dispute):
        with pytest.raises(NoSuchObject):
            ask("nothing_1")


@pytest.mark.parametrize("currency", ["JPY", "eur", "PLN"])
def test_only_the_wallets_currencies_are_asked_for(fake_stripe, currency):
    with pytest.raises(GatewayRefused):
        make_checkout(currency=currency)
    assert list(client.checkouts_since(LONG_AGO)) == []


def test_a_payment_in_another_currency_is_left_out_of_lists_and_the_rest_is_read(fake_stripe, monkeypatch, caplog):
    paid_checkout(fake_stripe, key="a", currency="USD", top_up_id="other business")
    paid_checkout(fake_stripe, key="b", top_up_id="ours")
    monkeypatch.setattr(reading, "CURRENCIES", ("EUR",))
    assert [payment.top_up_id for payment in client.payments_since(LONG_AGO)] == ["ours"]
    assert "USD" in caplog.text


def test_more_than_a_refund_may_take_is_refused(fake_stripe):
    session = paid_checkout(fake_stripe)
    wish = {"payment_intent_id": session.payment_intent_id, "currency": "EUR"}
    client.create_refund(**wish, amount_micros=60 * UNIT, refund_id="a", key="a")
    with pytest.raises(GatewayRefused):
        client.create_refund(**wish, amount_micros=41 * UNIT, refund_id="b", key="b")
    refund = client.create_refund(**wish, amount_micros=40 * UNIT, refund_id="c", key="c")
    assert client.get_refund(refund.id) == refund
    assert (refund.status, refund.payment_intent_id) == ("succeeded", session.payment_intent_id)


def test_a_refund_may_fail_after_it_succeeded_and_says_why(fake_stripe):
    session = paid_checkout(fake_stripe)
    refund_id = fake_stripe.refund(session.payment_intent_id, 4000)
    assert client.get_refund(refund_id).refund_id == "", "made at the gateway"
    fake_stripe.fail_refund(refund_id)
    refund = client.get_refund(refund_id)
    assert (refund.status, refund.failure_reason) == ("failed", "expired_or_canceled_card")


def test_a_dispute_may_exceed_its_payment_and_is_won_or_lost(fake_stripe):
    session = paid_checkout(fake_stripe)
    dispute_id = fake_stripe.dispute(session.payment_intent_id, 10_500)
    dispute = client.get_dispute(dispute_id)
    assert (dispute.amount_micros, dispute.payment_intent_id) == (105 * UNIT, session.payment_intent_id)
    assert not dispute.is_won
    assert not dispute.is_lost
    assert not dispute.is_inquiry
    fake_stripe.close_dispute(dispute_id, won=True)
    assert client.get_dispute(dispute_id).is_won
    assert [each.id for each in client.disputes_since(LONG_AGO)] == [dispute_id]


def test_every_movement_of_the_balance_adds_up_to_it(fake_stripe):
    session = paid_checkout(fake_stripe)
    refund_id = fake_stripe.refund(session.payment_intent_id, 4000)
    fake_stripe.fail_refund(refund_id)
    fake_stripe.dispute(session.payment_intent_id, 6000)
    fake_stripe.control("fees", currency="eur", amount=200)
    moves = list(client.balance_transactions_since(LONG_AGO))
    assert [(move.type, move.amount_micros // UNIT, move.fee_micros) for move in reversed(moves)] == [
        ("charge", 100, 1_750_000),
        ("refund", -40, 0),
        ("refund_failure", 40, 0),
        ("adjustment", -60, 20 * UNIT),
        ("stripe_fee", -2, 0),
    ]
    assert sum(move.amount_micros - move.fee_micros for move in moves) == client.get_balances()["EUR"]
    assert {move.exchange_rate for move in moves} == {None}
    assert moves[0].source_id == ""
    assert moves[3].source_id == refund_id


def test_a_conversion_by_the_gateway_is_seen(fake_stripe):
    fake_stripe.switch(exchange_rate=1.08)
    paid_checkout(fake_stripe)
    assert next(client.balance_transactions_since(LONG_AGO)).exchange_rate == Decimal("1.08")


def test_lists_are_read_to_their_end_page_by_page_and_from_the_time_asked_for(fake_stripe, monkeypatch):
    monkeypatch.setattr(client, "_PAGE", 2)
    made = [make_checkout(key=f"key-{number}").id for number in range(5)]
    assert [each.id for each in client.checkouts_since(LONG_AGO)] == made[::-1]
    assert list(client.checkouts_since(datetime.now(UTC) + timedelta(hours=1))) == []


def test_a_signed_message_is_read_and_any_of_our_secrets_will_do(fake_stripe, settings):
    paid_checkout(fake_stripe)
    message = fake_stripe.messages()[-1]
    settings.STRIPE_WEBHOOK_SECRETS = [OTHER_SECRET, SECRET]
    event = client.verify_event(message["body"].encode(), message["signature"])
    assert (event.id, event.type) == (message["event_id"], "checkout.session.completed")
    assert event.object_id.startswith("cs_test_")
    assert not event.is_live
    assert event.payload == json.loads(message["body"])


def test_while_a_secret_is_replaced_messages_carry_both_signatures(fake_stripe, settings):
    fake_stripe.switch(webhook_secrets=[SECRET, OTHER_SECRET])
    message = fake_stripe.signed(fake_stripe.emit("balance.available", {"object": "balance"}))
    for secret in (SECRET, OTHER_SECRET):
        settings.STRIPE_WEBHOOK_SECRETS = [secret]
        assert client.verify_event(message["body"].encode(), message["signature"]).object_id == ""


def test_what_is_not_signed_by_us_now_is_refused(fake_stripe, settings):
    message = fake_stripe.signed(fake_stripe.emit("balance.available", {"object": "balance"}))
    body, signature = message["body"], message["signature"]
    old = stripe.WebhookSignature.generate_signature_header(body, SECRET, timestamp=int(time.time()) - 301)
    reserialised = json.dumps(json.loads(body))
    for raw, header in (
        (reserialised.encode(), signature),
        (body.encode(), old),
        (body.encode(), ""),
        (body.encode(), "t=x,v1=y"),
        (body.encode(), signature.replace("v1=", "v0=")),
        (b"\xff\xfe", signature),
    ):
        with pytest.raises(BadSignature):
            client.verify_event(raw, header)
    settings.STRIPE_WEBHOOK_SECRETS = [OTHER_SECRET]
    with pytest.raises(BadSignature):
        client.verify_event(body.encode(), signature)
    settings.STRIPE_WEBHOOK_SECRETS = []
    with pytest.raises(BadSignature):
        client.verify_event(body.encode(), signature)
