"""Events: written down once with what caused them, for who asked; sent again or tried out on demand; kept for thirty days."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

from tests.factories import NOW, make_organisation
from tests.users.webhook_rows import DATA, answering, make_endpoint, status, tell
from users.models import AuditRecord, EventType, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from users.webhooks.deliver import claim_due, deliver_due
from users.webhooks.endpoints import remove_endpoint, replace_secret, switch_off, switch_on
from users.webhooks.events import emit
from users.webhooks.log import KEPT_FOR, deliveries_of, thin_log
from users.webhooks.replay import EndpointOff, StillWaiting, send_again, send_test

pytestmark = pytest.mark.django_db


def test_an_event_is_written_for_each_endpoint_that_asked_for_its_type():
    both = make_endpoint("https://a.example.com/", types=[EventType.ORDER_FILLED, EventType.RENTAL_RUNNING]).endpoint
    one = make_endpoint("https://b.example.com/").endpoint
    other = make_endpoint("https://c.example.com/", types=[EventType.BALANCE_LOW]).endpoint
    assert tell()
    event = WebhookEvent.objects.get()
    assert (event.type, event.subject_id, event.data, event.occurred_at) == ("order.filled", "0193", DATA, NOW)
    told = {delivery.endpoint_id: delivery for delivery in event.deliveries.all()}
    assert set(told) == {both.pk, one.pk}
    assert not other.deliveries.exists()
    assert {(each.state, each.tries, each.next_attempt_at) for each in told.values()} == {("waiting", 0, NOW)}


def test_nothing_is_written_where_nobody_asks():
    make_endpoint(types=[EventType.BALANCE_LOW])
    make_endpoint(organisation=make_organisation(name="Pim & Co"))
    off = make_endpoint("https://off.example.com/").endpoint
    WebhookEndpoint.objects.filter(pk=off.pk).update(switched_off_at=NOW)
    assert not tell()
    assert not WebhookEvent.objects.exists()


def test_the_same_event_is_written_once_and_another_key_is_another_event():
    make_endpoint()
    assert tell(key="1")
    assert not tell(key="1", data={"id": "0193", "state": "something else"})
    assert WebhookEvent.objects.get().data == DATA
    assert tell(key="2")
    assert tell(subject="0194")
    assert WebhookDelivery.objects.count() == 3


def test_an_event_is_rolled_back_with_what_caused_it():
    make_endpoint()
    with transaction.atomic():
        tell()
        transaction.set_rollback(True)
    assert not WebhookEvent.objects.exists()


def test_telling_takes_one_statement(django_assert_num_queries):
    organisation = make_organisation()
    make_endpoint()
    with django_assert_num_queries(1):
        emit(organisation_id=organisation.pk, type=EventType.ORDER_FILLED, data=DATA, subject_id="0193", now=NOW)


@pytest.mark.django_db(transaction=True)
def test_an_event_that_meets_a_removal_waits_for_it_and_is_then_told_nobody():
    endpoint = make_endpoint().endpoint
    removed, may_commit = Event(), Event()

    def remove():
        try:
            with transaction.atomic():
                remove_endpoint(organisation=endpoint.organisation, endpoint_id=endpoint.pk, now=NOW)
                removed.set()
                assert may_commit.wait(10)
        finally:
            connection.close()

    def write():
        try:
            return tell()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        removing = pool.submit(remove)
        assert removed.wait(10)
        writing = pool.submit(write)
        while not writing.done() and not someone_waits_for_a_lock():
            pass
        may_commit.set()
        removing.result()
        assert writing.result() is False
    assert not WebhookEvent.objects.exists()


def someone_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')"
        )
        return cursor.fetchone()[0]


def test_a_message_is_sent_again_under_the_same_id_with_all_its_tries_ahead(receiver):
    endpoint = make_endpoint(receiver.url).endpoint
    tell()
    deliver_due(now=NOW)
    event = WebhookEvent.objects.get()
    later = NOW + timedelta(days=1)
    send_again(organisation=endpoint.organisation, endpoint_id=endpoint.pk, event_id=event.pk, now=later)
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.tries, delivery.delivered_at) == ("waiting", 0, None)
    deliver_due(now=later)
    first, second = receiver.requests
    assert first[1]["webhook-id"] == second[1]["webhook-id"]
    assert first[2] == second[2]
    assert int(second[1]["webhook-timestamp"]) - int(first[1]["webhook-timestamp"]) == 86400
    assert delivery.attempts.count() == 2


def test_a_test_event_goes_to_its_endpoint_alone_and_is_tried_once(monkeypatch):
    asked = answering(monkeypatch, status(500))
    endpoint = make_endpoint("https://a.example.com/", types=[EventType.BALANCE_LOW]).endpoint
    make_endpoint("https://b.example.com/")
    own: dict[str, Any] = {"organisation": endpoint.organisation, "endpoint_id": endpoint.pk}
    event = send_test(**own, now=NOW)
    with pytest.raises(StillWaiting):
        send_test(**own, now=NOW)
    deliver_due(now=NOW)
    assert asked == ["a.example.com"]
    assert (event.type, event.deliveries.get().state) == ("webhook.test", "given_up")
    endpoint.refresh_from_db()
    assert endpoint.switched_off_at is None
    send_test(**own, now=NOW + timedelta(seconds=1))


def test_an_endpoint_that_is_off_is_sent_nothing_until_it_is_switched_on():
    endpoint = make_endpoint().endpoint
    own: dict[str, Any] = {"organisation": endpoint.organisation, "endpoint_id": endpoint.pk}
    tell()
    switch_off(endpoint, reason=WebhookEndpoint.OffReason.FAILING, now=NOW)
    assert not switch_off(endpoint, reason=WebhookEndpoint.OffReason.GONE, now=NOW)
    event = WebhookEvent.objects.get()
    for send in (lambda: send_test(**own, now=NOW), lambda: send_again(**own, event_id=event.pk, now=NOW)):
        with pytest.raises(EndpointOff):
            send()
    assert switch_on(**own, now=NOW)
    assert not switch_on(**own, now=NOW)
    assert tell(subject="0194")
    send_again(**own, event_id=event.pk, now=NOW)
    assert len(claim_due(now=NOW)) == 2
    actions = AuditRecord.objects.filter(subject_id=str(endpoint.pk)).order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["webhook.added", "webhook.switched_off", "webhook.switched_on"]


def test_another_organisations_endpoint_is_not_there():
    endpoint = make_endpoint().endpoint
    tell()
    event = WebhookEvent.objects.get()
    foreign: dict[str, Any] = {
        "organisation": make_organisation(name="Pim & Co"),
        "endpoint_id": endpoint.pk,
        "now": NOW,
    }
    for act in (
        lambda: remove_endpoint(**foreign),
        lambda: replace_secret(**foreign),
        lambda: switch_on(**foreign),
        lambda: send_test(**foreign),
        lambda: send_again(**foreign, event_id=event.pk),
    ):
        with pytest.raises(WebhookEndpoint.DoesNotExist):
            act()
    with pytest.raises(WebhookDelivery.DoesNotExist):
        send_again(organisation=endpoint.organisation, endpoint_id=endpoint.pk, event_id=uuid4(), now=NOW)


def test_messages_older_than_thirty_days_go_unless_they_wait_to_be_sent():
    endpoint = make_endpoint().endpoint
    for subject, age in (("old", KEPT_FOR + timedelta(seconds=1)), ("waiting", 2 * KEPT_FOR), ("young", KEPT_FOR)):
        tell(subject=subject, now=NOW - age)
    WebhookDelivery.objects.exclude(event__subject_id="waiting").update(state="delivered")
    WebhookAttempt.objects.create(delivery=endpoint.deliveries.get(event__subject_id="old"), at=NOW, took_ms=1)
    assert thin_log(now=NOW) == 1
    assert set(WebhookEvent.objects.values_list("subject_id", flat=True)) == {"waiting", "young"}
    assert thin_log(now=NOW) == 0


def test_the_log_needs_two_queries_however_long_it_is(django_assert_num_queries):
    endpoint = make_endpoint().endpoint
    for number in range(5):
        tell(subject=str(number))
    for delivery in endpoint.deliveries.all():
        WebhookAttempt.objects.create(delivery=delivery, at=NOW, took_ms=1)
    with django_assert_num_queries(2):
        assert [json.dumps([a.took_ms for a in each.attempts.all()]) for each in deliveries_of(endpoint)] == ["[1]"] * 5
