"""From a claim to its answer: signed and sent outside any transaction, tried again for three days, then given up."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.core import mail
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from tests.factories import NOW, make_member
from tests.users.webhook_rows import DATA, answering, make_endpoint, status, tell
from users import tasks
from users.models import AuditRecord, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from users.webhooks import deliver, sending
from users.webhooks.deliver import AT_ONCE, CLAIMED_FOR, claim_due, deliver_due, note_answer
from users.webhooks.endpoints import remove_endpoint, replace_secret
from users.webhooks.retries import KEEPS_TRYING_FOR, WAITS, is_dead, wait_after
from users.webhooks.sending import Answer, Fault

pytestmark = pytest.mark.django_db


def test_a_message_reaches_its_receiver_signed_so_that_their_library_verifies_it(receiver):
    shown = make_endpoint(receiver.url)
    now = datetime.now(UTC)
    tell(now=now)
    assert deliver_due(now=now) == 1
    [(path, headers, body)] = receiver.requests
    event = WebhookEvent.objects.get()
    assert path == "/hook"
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == str(event.pk)
    message = Webhook(shown.secret).verify(body, headers)
    assert message == {"type": "order.filled", "timestamp": now.isoformat().replace("+00:00", "Z"), "data": DATA}
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.delivered_at, delivery.tries) == ("delivered", now, 1)
    attempt = delivery.attempts.get()
    assert (attempt.at, attempt.status, attempt.fault, attempt.answer) == (now, 200, "", "thanks")
    assert deliver_due(now=now + timedelta(days=1)) == 0


def test_a_message_that_was_changed_on_the_way_does_not_verify(receiver):
    shown = make_endpoint(receiver.url)
    now = datetime.now(UTC)
    tell(now=now)
    deliver_due(now=now)
    [(_, headers, body)] = receiver.requests
    for changed, signed in ((body.replace(b"filled", b"failed"), headers), (body, {**headers, "webhook-id": "1"})):
        with pytest.raises(WebhookVerificationError):
            Webhook(shown.secret).verify(changed, signed)
    with pytest.raises(WebhookVerificationError):
        Webhook(make_endpoint().secret).verify(body, headers)


def test_while_a_secret_is_replaced_both_verify_and_afterwards_the_new_one_alone(receiver):
    first = make_endpoint(receiver.url)
    now = datetime.now(UTC)
    second = replace_secret(organisation=first.endpoint.organisation, endpoint_id=first.endpoint.pk, now=now)
    tell(now=now)
    deliver_due(now=now)
    [(_, headers, body)] = receiver.requests
    for secret in (first.secret, second.secret):
        Webhook(secret).verify(body, headers)
    WebhookEndpoint.objects.update(previous_secret_until=now)
    tell(subject="0194", now=now)
    deliver_due(now=now)
    _, headers, body = receiver.requests[-1]
    Webhook(second.secret).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(first.secret).verify(body, headers)


def test_no_transaction_is_open_and_no_row_is_locked_while_a_message_is_on_its_way(receiver, monkeypatch):
    make_endpoint(receiver.url)
    tell()
    depth, seen = len(connection.savepoint_ids), []

    def watched(target, **values):
        seen.append(len(connection.savepoint_ids))
        return sending.post(target, **values)

    monkeypatch.setattr(deliver, "post", watched)
    deliver_due(now=NOW)
    assert seen == [0]  # another thread, with a connection of its own that it never opens
    assert len(connection.savepoint_ids) == depth


def test_an_address_that_may_no_longer_be_told_is_sent_nothing(receiver, settings):
    make_endpoint(receiver.url)
    tell()
    settings.WEBHOOKS_ALLOW_LOOPBACK = False
    deliver_due(now=NOW)
    assert receiver.requests == []
    assert WebhookAttempt.objects.get().fault == "address_refused"


def test_without_the_switch_no_address_of_this_machine_is_accepted(settings):
    assert settings.WEBHOOKS_ALLOW_LOOPBACK is False
    with pytest.raises(ValueError, match="not_https"):
        make_endpoint("http://127.0.0.1:8000/")


def test_a_secret_that_cannot_be_read_any_more_is_a_fault_of_that_endpoint_alone(receiver):
    lost = make_endpoint("https://lost.example.com/").endpoint
    WebhookEndpoint.objects.filter(pk=lost.pk).update(encrypted_secret="of another key")
    make_endpoint(receiver.url)
    tell()
    assert deliver_due(now=NOW) == 2
    assert len(receiver.requests) == 1
    assert lost.deliveries.get().attempts.get().fault == "secret_lost"


def test_a_fault_of_ours_in_one_message_does_not_keep_the_others(monkeypatch, caplog):
    def post(target, **_):
        if target.host == "a.example.com":
            raise ZeroDivisionError
        return status(200)

    monkeypatch.setattr(deliver, "post", post)
    for name in "ab":
        make_endpoint(f"https://{name}.example.com/")
    tell()
    deliver_due(now=NOW)
    assert set(WebhookAttempt.objects.values_list("status", "fault")) == {(200, ""), (None, "ours")}
    assert "could not be sent" in caplog.text


def test_a_message_that_is_not_taken_is_tried_again_further_and_further_apart_for_three_days(monkeypatch):
    answering(monkeypatch, status(503))
    endpoint = make_endpoint().endpoint
    tell()
    tried, now = [], NOW
    while WebhookDelivery.objects.get().state == "waiting":
        assert deliver_due(now=now - timedelta(seconds=1)) == 0
        assert deliver_due(now=now) == 1
        tried.append(now)
        now = WebhookDelivery.objects.get().next_attempt_at
    assert [later - earlier for earlier, later in pairwise(tried)] == list(WAITS)
    assert timedelta(days=2, hours=23) < tried[-1] - tried[0] == KEEPS_TRYING_FOR < timedelta(days=3)
    assert WebhookDelivery.objects.get().state == "given_up"
    endpoint.refresh_from_db()
    assert (endpoint.switched_off_at, endpoint.off_reason) == (tried[-1], "failing")
    assert AuditRecord.objects.filter(action="webhook.switched_off", organisation=endpoint.organisation).count() == 1
    assert not tell(subject="0194"), "what happens while it is off is not written down"


def test_the_owners_are_told_when_a_webhook_is_switched_off(monkeypatch, django_capture_on_commit_callbacks):
    answering(monkeypatch, status(410))
    owner = make_member()
    make_endpoint()
    tell()
    with django_capture_on_commit_callbacks(execute=True):
        deliver_due(now=NOW)
    [message] = mail.outbox
    assert message.to == [owner.email]
    assert "was switched off" in message.subject
    assert "https://hooks.example.com/ answered 410" in message.body


def test_an_answer_of_410_switches_the_endpoint_off_at_once_with_all_that_waits_for_it(monkeypatch):
    asked = answering(monkeypatch, status(410))
    endpoint = make_endpoint().endpoint
    WebhookEndpoint.objects.update(failing_since=NOW - timedelta(hours=1))  # so that one message goes ahead
    for subject in "ab":
        tell(subject=subject)
    deliver_due(now=NOW)
    endpoint.refresh_from_db()
    assert (endpoint.switched_off_at, endpoint.off_reason) == (NOW, "gone")
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {"given_up"}
    assert deliver_due(now=NOW + timedelta(hours=1)) == 0
    assert len(asked) == 1


def test_an_endpoint_that_takes_other_messages_stays_on_when_one_is_given_up(monkeypatch):
    answering(monkeypatch, status(400))
    endpoint = make_endpoint().endpoint
    tell()
    WebhookDelivery.objects.update(tries=len(WAITS))
    WebhookEndpoint.objects.update(failing_since=NOW - KEEPS_TRYING_FOR + timedelta(seconds=1))
    deliver_due(now=NOW)
    endpoint.refresh_from_db()
    assert WebhookDelivery.objects.get().state == "given_up"
    assert endpoint.switched_off_at is None


def test_a_message_that_is_taken_ends_the_failing(monkeypatch):
    answering(monkeypatch, status(500), Answer(took_ms=5000, fault=Fault.TIMEOUT), status(200))
    endpoint = make_endpoint().endpoint
    tell()
    for minutes, (state, failing_since) in enumerate([("waiting", NOW), ("waiting", NOW), ("delivered", None)]):
        deliver_due(now=NOW + timedelta(minutes=5 * minutes))
        endpoint.refresh_from_db()
        assert (WebhookDelivery.objects.get().state, endpoint.failing_since) == (state, failing_since)
    assert endpoint.delivered_at == NOW + timedelta(minutes=10)
    assert list(WebhookAttempt.objects.order_by("pk").values_list("status", "fault")) == [
        (500, ""),
        (None, "timeout"),
        (200, ""),
    ]


@given(st.integers(1, 100))
def test_waits_never_grow_shorter_and_end(failures):
    wait, longer = wait_after(failures), wait_after(failures + 1)
    assert (wait is None) == (failures > len(WAITS))
    assert longer is None or (wait is not None and longer >= wait)


def test_what_failed_for_three_days_is_dead():
    assert is_dead(failing_since=NOW - KEEPS_TRYING_FOR, now=NOW)
    assert not is_dead(failing_since=NOW - KEEPS_TRYING_FOR + timedelta(seconds=1), now=NOW)


def test_a_claimed_message_is_not_due_until_its_claim_is_over():
    make_endpoint()
    tell()
    [delivery] = claim_due(now=NOW)
    assert claim_due(now=NOW + timedelta(seconds=119)) == []
    [again] = claim_due(now=NOW + CLAIMED_FOR)
    assert (delivery.pk, again.tries) == (again.pk, 2)


def test_a_late_answer_counts_if_the_message_was_taken_and_decides_nothing_otherwise():
    endpoint = make_endpoint().endpoint
    for subject in "ab":
        tell(subject=subject)
    late = claim_due(now=NOW)
    assert len(claim_due(now=NOW + CLAIMED_FOR)) == 2
    claimed_until = NOW + 2 * CLAIMED_FOR
    note_answer(late[0], status(500), now=NOW + CLAIMED_FOR)
    note_answer(late[1], status(200), now=NOW + CLAIMED_FOR)
    states = dict(WebhookDelivery.objects.values_list("pk", "state"))
    assert states == {late[0].pk: "waiting", late[1].pk: "delivered"}
    assert WebhookDelivery.objects.get(pk=late[0].pk).next_attempt_at == claimed_until
    assert WebhookAttempt.objects.count() == 2
    endpoint.refresh_from_db()
    assert endpoint.failing_since is None


def test_an_endpoint_that_was_removed_meanwhile_takes_its_log_with_it():
    endpoint = make_endpoint().endpoint
    tell()
    [delivery] = claim_due(now=NOW)
    remove_endpoint(organisation=endpoint.organisation, endpoint_id=endpoint.pk, now=NOW)
    note_answer(delivery, status(200), now=NOW)
    assert not WebhookAttempt.objects.exists()
    with pytest.raises(WebhookEndpoint.DoesNotExist):
        remove_endpoint(organisation=endpoint.organisation, endpoint_id=endpoint.pk, now=NOW)


def test_a_busy_or_failing_endpoint_leaves_room_for_the_others():
    busy, failing, quiet = (make_endpoint(f"https://{name}.example.com/").endpoint for name in ("busy", "bad", "quiet"))
    for number in range(60):
        tell(subject=str(number))
    WebhookDelivery.objects.filter(endpoint=quiet, event__subject_id__in=[str(n) for n in range(1, 60)]).delete()
    WebhookEndpoint.objects.filter(pk=failing.pk).update(failing_since=NOW)
    claimed = [delivery.endpoint_id for delivery in claim_due(now=NOW)]
    assert (claimed.count(failing.pk), claimed.count(quiet.pk)) == (1, 1)
    assert 1 < claimed.count(busy.pk) < AT_ONCE


@pytest.mark.django_db(transaction=True)
def test_two_senders_at_once_never_claim_the_same_message():
    for number in range(6):
        make_endpoint(f"https://h{number}.example.com/")
    for number in range(4):
        tell(subject=str(number))

    def claim(_):
        try:
            return [delivery.pk for delivery in claim_due(now=NOW)]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as senders:
        claimed = [pk for pks in senders.map(claim, range(4)) for pk in pks]
    assert len(claimed) == len(set(claimed)) == 24
    assert set(WebhookDelivery.objects.values_list("tries", flat=True)) == {1}


def test_the_tasks_find_their_work_by_themselves(monkeypatch):
    asked = answering(monkeypatch, status(200))
    for number in range(3):
        make_endpoint(f"https://h{number}.example.com/")
    for number in range(20):
        tell(subject=str(number))
    tasks.send_webhooks()
    assert len(asked) == 60
    assert not WebhookDelivery.objects.exclude(state="delivered").exists()
    WebhookEvent.objects.update(occurred_at=NOW - timedelta(days=90))
    tasks.thin_webhook_log()
    assert not WebhookEvent.objects.exists()
