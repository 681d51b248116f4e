"""What our calls to the gateway refuse: keys, modes, signatures, and settings that do not fit."""

import os
import subprocess
import sys

import pytest
import stripe

from billing.gateway import client, reading
from billing.gateway.errors import (
    BadSignature,
    WrongMode,
)
from billing.gateway.keys import fault_of_keys, mode_of
from common.money import UnknownCurrency
from tests.billing.gateway_server import (
    PROJECT,
    SECRET,
)


@pytest.mark.parametrize("body", ["[]", "{}", "not json", '{"id": "evt_1", "type": "x", "livemode": false, "data": 1}'])
def test_a_signed_text_that_is_no_event_is_refused(settings, body):
    settings.STRIPE_WEBHOOK_SECRETS = [SECRET]
    with pytest.raises(BadSignature):
        client.verify_event(body.encode(), stripe.WebhookSignature.generate_signature_header(body, SECRET))


def test_a_live_message_is_refused_by_a_test_site_and_the_other_way_round(fake_stripe, settings):
    live = fake_stripe.signed(fake_stripe.emit("balance.available", {"object": "balance"}, livemode=True))
    test = fake_stripe.signed(fake_stripe.emit("balance.available", {"object": "balance"}))
    with pytest.raises(WrongMode):
        client.verify_event(live["body"].encode(), live["signature"])
    settings.STRIPE_SECRET_KEY = "sk_live_1"
    assert client.verify_event(live["body"].encode(), live["signature"]).is_live
    with pytest.raises(WrongMode):
        client.verify_event(test["body"].encode(), test["signature"])


def test_values_the_gateway_adds_later_are_read_as_they_are(fake_stripe):
    event_id = fake_stripe.emit("tax_fund.moved", {"id": "tf_1", "object": "tax_fund"})
    message = fake_stripe.signed(event_id)
    assert client.verify_event(message["body"].encode(), message["signature"]).type == "tax_fund.moved"
    move = stripe.BalanceTransaction.construct_from(
        {
            "id": "txn_1",
            "object": "balance_transaction",
            "type": "tax_fund",
            "amount": 5,
            "fee": 0,
            "currency": "eur",
            "source": None,
            "created": 1_790_000_000,
            "exchange_rate": None,
        },
        "sk_test_1",
    )
    assert reading.transaction_of(move).type == "tax_fund"


def test_a_yen_payment_is_not_read_as_money_of_ours():
    intent = stripe.PaymentIntent.construct_from(
        {"id": "pi_1", "object": "payment_intent", "currency": "jpy", "amount": 100}, "sk_test_1"
    )
    with pytest.raises(UnknownCurrency):
        reading.payment_of(intent)


def test_the_version_is_the_one_our_reading_was_written_for():
    assert stripe.api_version == client.API_VERSION, "read the changelog, then move the constant"


@pytest.mark.parametrize(
    ("key", "secrets", "is_local", "is_refused"),
    [
        ("", [], False, False),
        ("sk_test_1", [], True, False),
        ("sk_test_1", ["whsec_1"], False, False),
        ("rk_live_1", ["whsec_1"], False, False),
        ("sk_live_1", ["whsec_1"], True, True),
        ("rk_live_1", ["whsec_1"], True, True),
        ("sk_live_1", [], False, True),
        ("pk_live_1", ["whsec_1"], False, True),
        ("whsec_1", ["whsec_1"], True, True),
    ],
)
def test_which_keys_the_site_starts_with(key, secrets, is_local, is_refused):
    assert bool(fault_of_keys(key, secrets, is_local=is_local)) == is_refused
    assert mode_of(key) == ("off" if not key else "live" if "k_live" in key and key[0] in "sr" else "test")


@pytest.mark.parametrize("environment", ["demo", "test"])
def test_a_live_key_stops_the_start_of_a_demo_and_of_the_suite(environment):
    env = {**os.environ, "BOURSE_ENV": environment, "STRIPE_SECRET_KEY": "sk_live_1", "STRIPE_WEBHOOK_SECRETS": "whsec"}
    command = [sys.executable, "-c", "import config.settings"]
    answer = subprocess.run(command, env=env, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert answer.returncode != 0
    assert "ImproperlyConfigured" in answer.stderr
    assert "real money would move" in answer.stderr
