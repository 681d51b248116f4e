"""The test gateway answers Stripe's own library as Stripe does: objects, refusals, keys, lists, and its faults."""

import ast
import sys
import threading
import time
from pathlib import Path

import pytest
import stripe

import fake_stripe
from tests.billing.gateway_server import (
    BAD_DEBIT,
    CHALLENGED_CARD,
    DECLINED_CARD,
    GOOD_DEBIT,
    PROJECT,
    FakeStripe,
    start_gateway,
    stop_gateway,
)
from tests.fake_stripe.conftest import client_of, new_session


def paid_intent(gateway: FakeStripe, api: stripe.StripeClient, **more) -> str:
    session = new_session(api, **more)
    assert gateway.pay(session.id) == "paid"
    return str(api.v1.checkout.sessions.retrieve(session.id).payment_intent)


def types_of(gateway: FakeStripe) -> list[str]:
    return [message["type"] for message in gateway.messages()]


def test_it_is_a_program_of_its_own_on_the_standard_library():
    for path in sorted((PROJECT / "fake_stripe").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            roots = {name.partition(".")[0] for name in names}
            assert roots <= sys.stdlib_module_names | {"fake_stripe"}, path.name


def test_it_speaks_the_version_of_the_library():
    assert stripe.api_version == fake_stripe.API_VERSION


def test_a_session_is_made_listed_and_found_with_all_that_was_given(api):
    customer = api.v1.customers.create({"email": "orla@example.com", "name": "Orla"})
    made = new_session(
        api,
        customer=customer.id,
        client_reference_id="top-up-1",
        metadata={"top_up_id": "1"},
        payment_intent_data={"metadata": {"top_up_id": "1"}},
        locale="pl",
    )
    found = api.v1.checkout.sessions.retrieve(made.id)
    assert found.to_dict() == made.to_dict()
    assert (found.object, found.mode, found.status, found.payment_status) == (
        "checkout.session",
        "payment",
        "open",
        "unpaid",
    )
    assert (found.amount_total, found.currency, found.customer) == (10_000, "eur", customer.id)
    assert (found.client_reference_id, found.metadata.to_dict(), found.livemode) == (
        "top-up-1",
        {"top_up_id": "1"},
        False,
    )
    assert found.expires_at == found.created + 86_400
    assert [each.id for each in api.v1.checkout.sessions.list({"customer": customer.id}).data] == [made.id]
    assert api.v1.checkout.sessions.list({"status": "complete"}).data == []


def test_what_is_private_to_the_gateway_is_not_shown(gateway, api):
    session = new_session(api)
    gateway.pay(session.id)
    bodies = [*(message["body"] for message in gateway.messages()), str(api.v1.payment_intents.list())]
    assert not any('"_' in body for body in bodies)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"amount": 49}, "amount_too_small"),
        ({"amount": 100_000_000}, "amount_too_large"),
        ({"currency": "jpy"}, None),
        ({"mode": "subscription"}, None),
        ({"success_url": "/back"}, "url_invalid"),
        ({"expires_at": 1}, None),
        ({"customer": "cus_nobody"}, "resource_missing"),
        ({"colour": "red"}, "parameter_unknown"),
        ({"adaptive_pricing": {"colour": "red"}}, "parameter_unknown"),
        ({"locale": "tlh"}, None),
    ],
)
def test_what_stripe_refuses_is_refused(api, wrong, code):
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        new_session(api, **wrong)
    assert refusal.value.code == code
    assert refusal.value.http_status == 400


def test_a_wrong_key_and_an_unknown_address_are_refused(gateway, api):
    with pytest.raises(stripe.AuthenticationError):
        client_of(gateway.url, "sk_test_other").v1.balance.retrieve()
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.v1.prices.list()
    assert refusal.value.http_status == 404
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.v1.payment_intents.retrieve("pi_nothing")
    assert (refusal.value.http_status, refusal.value.code) == (404, "resource_missing")


def test_a_card_is_paid_at_once_with_a_fee(gateway, api):
    session = new_session(api)
    assert gateway.pay(session.id) == "paid"
    session = api.v1.checkout.sessions.retrieve(
        session.id, {"expand": ["payment_intent.latest_charge.balance_transaction"]}
    )
    intent = session.payment_intent
    assert (session.status, session.payment_status, session.url) == ("complete", "paid", None)
    assert (intent.status, intent.amount_received) == ("succeeded", 10_000)
    assert (intent.latest_charge.status, intent.latest_charge.paid) == ("succeeded", True)
    booked = intent.latest_charge.balance_transaction
    assert (booked.type, booked.amount, booked.fee, booked.net) == ("charge", 10_000, 175, 9_825)
    assert types_of(gateway) == [
        "payment_intent.created",
        "charge.succeeded",
        "payment_intent.succeeded",
        "checkout.session.completed",
    ]
    assert gateway.pay(session.id) == "paid", "paying twice pays once"
    assert len(api.v1.charges.list().data) == 1


def test_a_declined_card_can_be_followed_by_another(gateway, api):
    session = new_session(api)
    assert gateway.pay(session.id, DECLINED_CARD) == "declined"
    intent = api.v1.payment_intents.retrieve(str(api.v1.checkout.sessions.retrieve(session.id).payment_intent))
    assert intent.status == "requires_payment_method"
    assert intent.last_payment_error is not None
    assert intent.last_payment_error.code == "card_declined"
    assert api.v1.checkout.sessions.retrieve(session.id).status == "open"
    assert types_of(gateway) == ["payment_intent.created", "charge.failed", "payment_intent.payment_failed"]
    assert gateway.pay(session.id) == "paid"
    assert api.v1.payment_intents.retrieve(intent.id).status == "succeeded", "the same intent"


def test_a_challenge_holds_the_payment_until_it_is_answered(gateway, api):
    session = new_session(api)
    assert gateway.pay(session.id, CHALLENGED_CARD) == "challenge"
    intent_id = str(api.v1.checkout.sessions.retrieve(session.id).payment_intent)
    assert api.v1.payment_intents.retrieve(intent_id).status == "requires_action"
    assert gateway.pay(session.id, CHALLENGED_CARD, answer="no") == "declined"
    error = api.v1.payment_intents.retrieve(intent_id).last_payment_error
    assert error is not None
    assert error.code == "payment_intent_authentication_failure"
    assert gateway.pay(session.id, CHALLENGED_CARD, answer="yes") == "paid"
    assert types_of(gateway).count("payment_intent.requires_action") == 3


@pytest.mark.parametrize("switch", ["declined", "challenge"])
def test_every_card_can_be_made_to_decline_or_to_ask(gateway, api, switch):
    gateway.switch(card=switch)
    assert gateway.pay(new_session(api).id) == switch


@pytest.mark.parametrize(
    ("account", "status", "last"),
    [
        (GOOD_DEBIT, "succeeded", "checkout.session.async_payment_succeeded"),
        (BAD_DEBIT, "requires_payment_method", "checkout.session.async_payment_failed"),
    ],
)
def test_a_bank_debit_completes_unpaid_and_settles_by_itself_in_time(gateway, api, account, status, last):
    gateway.switch(settle_seconds=60)
    session = new_session(api)
    assert gateway.pay(session.id, account) == "processing"
    session = api.v1.checkout.sessions.retrieve(session.id)
    assert (session.status, session.payment_status) == ("complete", "unpaid")
    assert types_of(gateway)[-2:] == ["payment_intent.processing", "checkout.session.completed"]
    assert api.v1.balance_transactions.list().data == []
    gateway.advance(61)
    assert api.v1.payment_intents.retrieve(str(session.payment_intent)).status == status
    assert types_of(gateway)[-1] == last


def test_a_session_ends_when_its_time_is_over(gateway, api):
    session = new_session(api, expires_at=int(time.time()) + 1800)
    gateway.advance(1801)
    assert api.v1.checkout.sessions.retrieve(session.id).status == "expired"
    assert types_of(gateway) == ["checkout.session.expired"]
    with pytest.raises(Exception, match="expired"):
        gateway.pay(session.id)


def test_refunds_take_what_is_left_and_no_more(gateway, api):
    intent = paid_intent(gateway, api)
    first = api.v1.refunds.create({"payment_intent": intent, "amount": 4_000, "metadata": {"refund_id": "1"}})
    assert (first.status, first.amount, first.payment_intent) == ("succeeded", 4_000, intent)
    with pytest.raises(stripe.InvalidRequestError, match="greater than unrefunded"):
        api.v1.refunds.create({"payment_intent": intent, "amount": 6_001})
    assert api.v1.refunds.create({"payment_intent": intent}).amount == 6_000
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.v1.refunds.create({"payment_intent": intent, "amount": 1})
    assert refusal.value.code == "charge_already_refunded"
    assert api.v1.charges.list().data[0].refunded
    assert [row.type for row in api.v1.balance_transactions.list().data] == ["refund", "refund", "charge"]


def test_a_refund_may_be_pending_and_may_fail_after_all(gateway, api):
    intent = paid_intent(gateway, api)
    gateway.switch(refund_outcome="pending")
    refund = api.v1.refunds.create({"payment_intent": intent, "amount": 4_000})
    assert refund.status == "pending"
    gateway.settle_refund(refund.id)
    assert api.v1.refunds.retrieve(refund.id).status == "succeeded"
    gateway.fail_refund(refund.id, "lost_or_stolen_card")
    refund = api.v1.refunds.retrieve(refund.id, {"expand": ["failure_balance_transaction"]})
    assert (refund.status, refund.failure_reason) == ("failed", "lost_or_stolen_card")
    assert refund.failure_balance_transaction.amount == 4_000
    assert api.v1.charges.list().data[0].amount_refunded == 0
    assert types_of(gateway)[-5:] == [
        "refund.created",
        "charge.refunded",
        "refund.updated",
        "refund.updated",
        "refund.failed",
    ]


def test_a_dispute_takes_the_money_and_a_fee_and_gives_back_what_was_won(gateway, api):
    intent = paid_intent(gateway, api)
    dispute_id = gateway.dispute(intent, 12_000)
    dispute = api.v1.disputes.retrieve(dispute_id)
    assert (dispute.status, dispute.amount, dispute.payment_intent) == ("needs_response", 12_000, intent)
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.v1.refunds.create({"payment_intent": intent, "amount": 1})
    assert refusal.value.code == "charge_disputed"
    gateway.close_dispute(dispute_id, won=True)
    assert api.v1.disputes.retrieve(dispute_id).status == "won"
    rows = api.v1.balance_transactions.list({"source": dispute_id}).data
    assert [(row.type, row.amount, row.fee) for row in rows] == [
        ("adjustment", 12_000, 0),
        ("adjustment", -12_000, 2_000),
    ]
    assert types_of(gateway)[-4:] == [
        "charge.dispute.created",
        "charge.dispute.funds_withdrawn",
        "charge.dispute.closed",
        "charge.dispute.funds_reinstated",
    ]


def test_a_payout_takes_what_is_released_and_may_come_back(gateway, api):
    paid_intent(gateway, api)
    assert api.v1.balance.retrieve().pending[0].amount == 9_825
    gateway.advance(2 * 86_400)
    payout = gateway.control("payouts", currency="eur")
    assert payout["amount"] == 9_825
    assert {part.amount for part in api.v1.balance.retrieve().available} == {0}
    gateway.control(f"payouts/{payout['id']}/fail")
    assert api.v1.payouts.retrieve(payout["id"]).status == "failed"
    assert api.v1.balance.retrieve().available[0].amount == 9_825


def test_a_key_used_again_gives_the_same_answer_for_a_day(gateway, api):
    first = new_session(api, key="once")
    again = new_session(api, key="once")
    assert again.id == first.id
    assert again.last_response is not None
    assert again.last_response.headers["Idempotent-Replayed"] == "true"
    with pytest.raises(stripe.IdempotencyError):
        new_session(api, key="once", amount=20_000)
    gateway.advance(86_401)
    assert new_session(api, key="once").id != first.id


def test_a_refusal_that_began_is_kept_and_one_of_the_form_is_not(gateway, api):
    intent = paid_intent(gateway, api)
    wish = {"payment_intent": intent, "amount": 10_001}
    for _ in range(2):
        with pytest.raises(stripe.InvalidRequestError, match="greater than unrefunded"):
            api.v1.refunds.create(wish, {"idempotency_key": "too much"})
    with pytest.raises(stripe.InvalidRequestError):
        new_session(api, key="form", amount=1)
    assert new_session(api, key="form").id, "nothing was kept for a form that was wrong"


def test_one_key_from_many_threads_at_once_makes_one_object(gateway, api):
    found = []
    threads = [threading.Thread(target=lambda: found.append(new_session(api, key="race").id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_faults_strike_the_calls_they_name_as_often_as_they_say(gateway, api):
    gateway.fault("fail_kept", method="POST", path="/v1/refunds")
    gateway.fault("rate_limit", path="/v1/balance")
    intent = paid_intent(gateway, api)
    for _ in range(2):
        with pytest.raises(stripe.APIError):
            api.v1.refunds.create({"payment_intent": intent, "amount": 100}, {"idempotency_key": "lost"})
    assert len(api.v1.refunds.list({"payment_intent": intent}).data) == 1, "done once, and answered 500 for good"
    with pytest.raises(stripe.RateLimitError):
        api.v1.balance.retrieve()
    assert api.v1.balance.retrieve().object == "balance"


def test_lists_are_paged_both_ways_and_narrowed_by_time(gateway, api):
    made = [api.v1.customers.create({"name": str(number)}).id for number in range(5)][::-1]
    page = api.v1.customers.list({"limit": 2})
    assert ([row.id for row in page.data], page.has_more) == (made[:2], True)
    assert [row.id for row in page.auto_paging_iter()] == made
    page = api.v1.customers.list({"limit": 2, "ending_before": made[4]})
    assert ([row.id for row in page.data], page.has_more) == (made[2:4], True)
    gateway.advance(100)
    late = api.v1.customers.create({"name": "late"})
    assert [row.id for row in api.v1.customers.list({"created": {"gte": late.created}}).data] == [late.id]
    assert len(api.v1.customers.list({"created": {"lt": late.created}}).data) == 5
    with pytest.raises(stripe.InvalidRequestError):
        api.v1.customers.list({"limit": 101})


def test_events_are_kept_and_carry_the_object_as_it_was(gateway, api):
    session = new_session(api)
    gateway.pay(session.id)
    event = api.v1.events.list({"type": "payment_intent.created"}).data[0]
    assert event.data.object["status"] == "requires_payment_method"
    assert event.api_version == fake_stripe.API_VERSION
    assert api.v1.events.retrieve(event.id).to_dict() == event.to_dict()


@pytest.mark.parametrize("signal_name", ["terminate", "kill"])
def test_its_state_survives_a_stop_and_a_kill(tmp_path: Path, signal_name):
    state = ["--state", str(tmp_path / "state.sqlite")]
    process, url = start_gateway(*state)
    try:
        session = new_session(client_of(url), key="before")
        FakeStripe(url=url).pay(session.id)
        FakeStripe(url=url).switch(refund_outcome="pending")
        getattr(process, signal_name)()
    finally:
        stop_gateway(process)
    process, url = start_gateway(*state)
    try:
        api = client_of(url)
        assert api.v1.checkout.sessions.retrieve(session.id).payment_status == "paid"
        assert new_session(api, key="before").id == session.id
        assert api.v1.refunds.create({"payment_intent": api.v1.payment_intents.list().data[0].id}).status == "pending"
        assert "checkout.session.completed" in types_of(FakeStripe(url=url)), "messages still wait"
    finally:
        stop_gateway(process)
