"""The webhook: what the gateway signed is stored once and answered at once; what it means is found out later."""

import json
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
import stripe
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from kombu.exceptions import OperationalError

from billing.models import Account, GatewayEvent, JournalEntry, TopUp
from billing.tasks import apply_gateway_events
from billing.topups import apply_event, take_event
from billing.topups.apply_event import apply_due_events, wait_after
from billing.topups.start import start_top_up
from billing.views.stripe_webhook import MOST_BYTES
from config import wsgi
from tests.billing.conftest import UNIT
from tests.billing.gateway_server import OTHER_SECRET, SECRET, FakeStripe, post_message
from tests.billing.test_ledger_race import together
from tests.factories import make_member, make_organisation

PATH = "/webhooks/stripe/"
NUDGED = "billing.views.stripe_webhook.apply_gateway_events"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nudges(monkeypatch) -> list[dict]:
    """How often a worker was told that there is something to do."""
    sent: list[dict] = []
    monkeypatch.setattr(NUDGED, SimpleNamespace(apply_async=lambda **options: sent.append(options)))
    return sent


def now() -> datetime:
    return datetime.now(UTC)


def start(amount: str = "100") -> TopUp:
    make_member()
    return start_top_up(
        organisation=make_organisation(),
        currency="EUR",
        amount=Decimal(amount),
        created_by=None,
        now=now(),
        return_url_of=lambda top_up_id: f"https://bourse.example/wallet/top-up/{top_up_id}/",
        locale="en",
    )


def body_of(kind: str = "invoice.paid", *, event_id: str = "evt_1", livemode: bool = False, **more) -> str:
    event = {"id": event_id, "object": "event", "type": kind, "livemode": livemode, "data": {"object": {"id": "x_1"}}}
    return json.dumps({**event, **more})


def send(body: str, *, secret: str = SECRET, at: int | None = None, client: Client | None = None):
    header = stripe.WebhookSignature.generate_signature_header(body, secret, at)
    return (client or Client()).post(PATH, body, content_type="application/json", headers={"Stripe-Signature": header})


def wallet_micros() -> int:
    return Account.objects.get(kind="wallet").posted_micros


@pytest.mark.django_db(transaction=True)
def test_a_payment_reaches_the_wallet_by_its_messages(fake_stripe: FakeStripe, nudges):
    top_up = start()
    assert fake_stripe.pay(top_up.checkout_session_id or "") == "paid"
    answers = fake_stripe.deliver(Client(enforce_csrf_checks=True))
    assert {answer.status_code for answer in answers} == {200}
    assert len(nudges) == len(answers) == GatewayEvent.objects.count()
    assert wallet_micros() == 0, "stored is not applied"
    assert apply_due_events(now=now()) == GatewayEvent.objects.filter(attempts=1).count() >= 2
    top_up.refresh_from_db()
    assert (top_up.state, wallet_micros()) == ("paid", 100 * UNIT)
    assert apply_due_events(now=now() + timedelta(days=1)) == 0
    assert not GatewayEvent.objects.filter(applied_at=None).exists()


def test_a_message_is_stored_with_one_insert_and_as_it_came(fake_stripe):
    body = body_of(more="ö", nested={"amount": 1.5})
    with CaptureQueriesContext(connection) as queries:
        assert send(body).status_code == 200
    assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) == 1
    event = GatewayEvent.objects.get()
    assert (event.event_id, event.type, event.object_id, event.is_live) == ("evt_1", "invoice.paid", "x_1", False)
    assert event.payload == json.loads(body)


@pytest.mark.parametrize("kind", ["invoice.paid", "made.up.tomorrow", "customer.deleted", "payout.paid"])
def test_a_type_that_we_do_nothing_with_is_stored_and_ignored(fake_stripe, kind):
    assert send(body_of(kind)).status_code == 200
    assert GatewayEvent.objects.get().applied_at is not None
    assert apply_due_events(now=now()) == 0


@pytest.mark.django_db(transaction=True)
def test_a_message_repeated_by_twenty_at_once_is_one_row_and_twenty_times_200(fake_stripe, nudges):
    """A second delivery that raises for ever (dj-stripe/dj-stripe#1239, #429): failure kind 19."""
    body = body_of("checkout.session.completed")
    results = together(20, lambda _: send(body).status_code)
    assert results == [200] * 20
    assert GatewayEvent.objects.count() == 1
    assert send(body).status_code == 200
    assert len(nudges) == 1


def test_a_body_that_was_read_and_written_again_is_refused(fake_stripe):
    """Only the raw body is signed; one that was parsed first is not (stripe/stripe-python#424)."""
    body = body_of()
    header = stripe.WebhookSignature.generate_signature_header(body, SECRET)
    again = json.dumps(json.loads(body), indent=1)
    answer = Client().post(PATH, again, content_type="application/json", headers={"Stripe-Signature": header})
    assert answer.status_code == 400
    assert not GatewayEvent.objects.exists()


@pytest.mark.parametrize("header", [None, "", "t=1", "v1=00", "t=x,v1=y", "nonsense", "t=99999999999,v1=00"])
def test_without_a_good_signature_nothing_is_stored(fake_stripe, header):
    headers = {} if header is None else {"Stripe-Signature": header}
    assert Client().post(PATH, body_of(), content_type="application/json", headers=headers).status_code == 400
    assert not GatewayEvent.objects.exists()


def test_another_secret_is_refused_until_it_is_one_of_ours(fake_stripe, settings):
    assert send(body_of(), secret=OTHER_SECRET).status_code == 400
    settings.STRIPE_WEBHOOK_SECRETS = [SECRET, OTHER_SECRET]
    assert send(body_of(event_id="evt_1"), secret=OTHER_SECRET).status_code == 200
    assert send(body_of(event_id="evt_2"), secret=SECRET).status_code == 200


@pytest.mark.parametrize(("age_seconds", "status"), [(0, 200), (290, 200), (310, 400)])
def test_a_message_older_than_five_minutes_is_refused(fake_stripe, age_seconds, status):
    assert send(body_of(), at=int(time.time()) - age_seconds).status_code == status
    assert GatewayEvent.objects.count() == (status == 200)


def test_a_live_message_is_refused_where_only_tests_are_expected(fake_stripe, caplog):
    assert send(body_of(livemode=True)).status_code == 400
    assert not GatewayEvent.objects.exists()
    assert "live" in caplog.text


@pytest.mark.parametrize(
    "body", ["", "[]", "null", "{}", '{"id": 1}', "{", '"x"', body_of(data=[]), body_of(data={"object": None})]
)
def test_signed_nonsense_is_refused(fake_stripe, body):
    assert send(body).status_code == 400
    assert not GatewayEvent.objects.exists()


@pytest.mark.parametrize("body", [body_of(note="\x00"), body_of(note="\ud800"), body_of(event_id="e" * 101)])
def test_what_no_row_can_hold_is_refused_and_not_an_error_of_ours(fake_stripe, body):
    assert send(body).status_code == 400
    assert not GatewayEvent.objects.exists()


def test_a_body_over_the_limit_is_refused_before_it_is_read(fake_stripe):
    assert send(body_of(note="x" * MOST_BYTES)).status_code == 413
    assert send(body_of(note="x" * (MOST_BYTES - 1000))).status_code == 200


@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options"])
def test_only_post_is_answered(fake_stripe, method):
    assert getattr(Client(), method)(PATH).status_code == 405


def test_the_address_carries_no_language(fake_stripe):
    assert Client().post(f"/nl{PATH}").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_without_a_broker_the_message_is_stored_all_the_same(fake_stripe, monkeypatch):
    def refuse(**_options):
        raise OperationalError("no broker")

    monkeypatch.setattr(NUDGED, SimpleNamespace(apply_async=refuse))
    top_up = start()
    fake_stripe.pay(top_up.checkout_session_id or "")
    assert {answer.status_code for answer in fake_stripe.deliver(Client())} == {200}
    apply_gateway_events()  # beat's next tick
    assert wallet_micros() == 100 * UNIT


@pytest.mark.django_db(transaction=True)
def test_a_worker_or_gateway_that_is_down_delays_and_loses_nothing(fake_stripe):
    top_up = start()
    fake_stripe.pay(top_up.checkout_session_id or "")
    fake_stripe.deliver(Client())
    at = now() + timedelta(days=2)  # nobody worked for two days
    waiting = GatewayEvent.objects.filter(applied_at=None).count()
    fake_stripe.fault("fail_before", method="GET")
    assert apply_due_events(now=at) == 0
    event = GatewayEvent.objects.filter(applied_at=None).earliest("next_attempt_at", "-attempts")
    tried = GatewayEvent.objects.get(attempts=1)
    assert tried.next_attempt_at == at + wait_after(1)
    assert "GatewayUnavailable" in tried.last_error
    assert event.attempts == 0, "the others are not kept by it"
    assert apply_due_events(now=at + timedelta(seconds=1)) == waiting - 1, "the first is not yet due again"
    assert apply_due_events(now=at + timedelta(seconds=6)) == 1
    assert wallet_micros() == 100 * UNIT
    assert JournalEntry.objects.filter(kind="topup").count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_error_of_ours_keeps_the_event_and_its_replay_credits(fake_stripe, monkeypatch):
    """A failure swallowed with 200 and the credit lost (helixml/helix#3240): failure kind 20."""
    top_up = start()
    fake_stripe.pay(top_up.checkout_session_id or "")
    fake_stripe.deliver(Client())
    with monkeypatch.context() as broken:
        broken.setattr(apply_event, "follow_checkout", lambda *_, **__: 1 / 0)
        broken.setattr(apply_event, "follow_payment", lambda *_, **__: 1 / 0)
        for attempt in range(4):
            assert apply_due_events(now=now() + attempt * timedelta(hours=2)) == 0
    events = GatewayEvent.objects.filter(applied_at=None)
    assert {(event.attempts, event.last_error) for event in events} == {(4, "ZeroDivisionError('division by zero')")}
    assert wallet_micros() == 0
    assert apply_due_events(now=now() + timedelta(days=1)) == len(events)
    assert wallet_micros() == 100 * UNIT


def test_one_bad_event_does_not_stop_the_others(fake_stripe):
    assert send(body_of("payment_intent.succeeded", event_id="evt_gone")).status_code == 200
    top_up = start()
    fake_stripe.pay(top_up.checkout_session_id or "")
    fake_stripe.deliver(Client())
    apply_due_events(now=now())
    assert wallet_micros() == 100 * UNIT
    left = GatewayEvent.objects.get(applied_at=None)
    assert (left.event_id, left.attempts) == ("evt_gone", 1)
    assert "NoSuchObject" in left.last_error


@pytest.mark.django_db(transaction=True)
def test_eight_workers_apply_each_event_once_between_them(fake_stripe):
    """A slow worker, a retry, and a second allocation (frappe/press#1175)."""
    top_up = start()
    fake_stripe.pay(top_up.checkout_session_id or "")
    fake_stripe.switch(webhook_copies=3)
    fake_stripe.deliver(Client())
    at = now()
    applied = together(8, lambda _: apply_due_events(now=at))
    assert (
        sum(one for one in applied if isinstance(one, int))
        == GatewayEvent.objects.filter(type__in=take_event.APPLIED_TYPES).count()
    ), applied
    assert (wallet_micros(), JournalEntry.objects.filter(kind="topup").count()) == (100 * UNIT, 1)


def test_a_web_process_tells_workers_by_our_broker_and_never_waits_for_it(settings):
    assert callable(wsgi.application)
    [configured] = together(1, lambda _: apply_gateway_events.app.conf)  # web servers answer in threads
    assert configured.broker_url == settings.CELERY_BROKER_URL  # type: ignore[attr-defined]  # Celery's own
    assert settings.CELERY_BROKER_TRANSPORT_OPTIONS == {"max_retries": 0, "socket_connect_timeout": 0.5}


def test_waits_grow_and_have_an_end():
    waits = [wait_after(attempts) for attempts in range(1, 30)]
    assert waits == sorted(waits)
    assert waits[-1] == timedelta(hours=1)


def post_twice(client: Client, message: dict) -> list[int]:
    return [post_message(client, message).status_code for _ in range(2)]


@pytest.mark.django_db(transaction=True)
def test_the_same_signed_bytes_twice_are_one_event(fake_stripe):
    top_up = start()
    fake_stripe.pay(top_up.checkout_session_id or "")
    for message in fake_stripe.messages():
        assert post_twice(Client(), message) == [200, 200]
        assert GatewayEvent.objects.filter(event_id=message["event_id"]).count() == 1
