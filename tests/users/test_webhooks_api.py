"""`/api/v1/webhooks/`: endpoints, their secrets, what was sent, by an organisation's keys."""

import json
from datetime import UTC, datetime

import pytest
from django.test import Client

from tests.factories import make_member, make_organisation
from users.api_keys import issue_key
from users.models import AuditRecord, EventType, Scope, WebhookDelivery, WebhookEndpoint
from users.webhooks import deliver
from users.webhooks.deliver import deliver_due
from users.webhooks.endpoints import MOST_ENDPOINTS, add_endpoint, switch_off
from users.webhooks.events import emit
from users.webhooks.sending import Answer, Fault

pytestmark = pytest.mark.django_db
URL = "/api/v1/webhooks/"
BODY = {"url": "https://hooks.example.com/bourse", "types": ["order.filled", "rental.ended"]}


@pytest.fixture
def owner():
    return make_member()


@pytest.fixture
def calls(client, owner):
    """Ask as a key that may read and trade."""
    return calls_of(client, owner, Scope.READ, Scope.TRADE)


def calls_of(client: Client, owner, *scopes: Scope):
    secret = issue_key(
        organisation=owner.membership.organisation,
        name="program",
        scopes=scopes,
        created_by=owner,
        expires_at=None,
        now=datetime.now(UTC),
    ).secret

    def ask(method: str, path: str = URL, body=None):
        return client.generic(
            method,
            path,
            "" if body is None else json.dumps(body),
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )

    return ask


def make_endpoint(organisation, url="https://hooks.example.com/x"):
    return add_endpoint(
        organisation=organisation, url=url, types=[EventType.ORDER_FILLED], created_by=None, now=datetime.now(UTC)
    ).endpoint


def tell(organisation, subject="0193"):
    emit(
        organisation_id=organisation.pk,
        type=EventType.ORDER_FILLED,
        data={"id": subject},
        subject_id=subject,
        now=datetime.now(UTC),
    )


def codes(answer) -> list[tuple[str | None, str]]:
    return [(error["field"], error["code"]) for error in answer.json()["errors"]]


def test_an_endpoint_is_added_and_its_secret_is_told_in_that_answer_alone(calls, owner):
    answer = calls("POST", URL, BODY)
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "private, no-store"
    made = answer.json()
    assert made["secret"].startswith("whsec_")
    assert (made["url"], made["types"], made["state"]) == (BODY["url"], BODY["types"], "on")
    listed = calls("GET").json()
    assert listed == {"results": [{name: value for name, value in made.items() if name != "secret"}]}
    assert calls("GET", f"{URL}{made['id']}/").json() == listed["results"][0]
    endpoint = WebhookEndpoint.objects.get()
    assert (str(endpoint.pk), endpoint.created_by) == (made["id"], owner)
    assert AuditRecord.objects.get(action="webhook.added").actor == owner


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("url", "required"), ("types", "required")]),
        ({**BODY, "url": "http://hooks.example.com/"}, [("url", "not_https")]),
        ({**BODY, "url": "http://169.254.169.254/latest/"}, [("url", "not_https")]),
        ({**BODY, "url": "https://169.254.169.254/latest/"}, [("url", "not_a_name")]),
        ({**BODY, "url": "https://[::ffff:127.0.0.1]/"}, [("url", "not_a_name")]),
        ({**BODY, "url": "https://localhost/"}, [("url", "local_name")]),
        ({**BODY, "url": "https://example.com:8443/"}, [("url", "other_port")]),
        ({**BODY, "url": "hooks.example.com"}, [("url", "invalid")]),
        ({**BODY, "url": 7}, [("url", "invalid")]),
        ({**BODY, "url": f"https://example.com/{'x' * 500}"}, [("url", "max_length")]),
        ({**BODY, "types": []}, [("types", "min_length")]),
        ({**BODY, "types": ["order.lost"]}, [("types.0", "invalid_choice")]),
        ({**BODY, "types": "order.filled"}, [("types", "not_a_list")]),
        ({**BODY, "secret": "whsec_mine"}, [("secret", "unknown_field")]),
    ],
)
def test_a_body_that_cannot_be_is_refused_with_the_field_named(calls, body, expected):
    answer = calls("POST", URL, body)
    assert (answer.status_code, codes(answer)) == (400, expected)
    assert not WebhookEndpoint.objects.exists()


def test_every_type_of_the_contract_can_be_asked_for(calls):
    types = ["order.filled", "order.expired", "rental.running", "rental.ended", "balance.low", "price.below"]
    answer = calls("POST", URL, {**BODY, "types": [*types, *types]})
    assert (answer.status_code, answer.json()["types"]) == (201, types)


def test_the_same_address_again_and_the_eleventh_are_conflicts(calls, owner):
    organisation = owner.membership.organisation
    calls("POST", URL, BODY)
    again = calls("POST", URL, BODY)
    assert (again.status_code, codes(again)) == (409, [(None, "url_taken")])
    for number in range(MOST_ENDPOINTS - 1):
        make_endpoint(organisation, f"https://h{number}.example.com/")
    full = calls("POST", URL, {**BODY, "url": "https://one.too.many.example.com/"})
    assert (full.status_code, codes(full)) == (409, [(None, "too_many_webhooks")])
    assert "10" in full.json()["detail"]


def test_a_secret_is_replaced_with_a_day_of_overlap(calls):
    made = calls("POST", URL, BODY).json()
    answer = calls("POST", f"{URL}{made['id']}/secret/")
    assert answer.status_code == 200
    replaced = answer.json()
    assert replaced["secret"] != made["secret"]
    assert replaced["previous_secret_until"] is not None
    assert "secret" not in calls("GET", f"{URL}{made['id']}/").json()


def test_an_endpoint_is_removed_once(calls, owner):
    made = calls("POST", URL, BODY).json()
    gone = calls("DELETE", f"{URL}{made['id']}/")
    assert (gone.status_code, gone.content) == (204, b"")
    assert calls("DELETE", f"{URL}{made['id']}/").status_code == 404
    assert calls("GET").json() == {"results": []}
    record = AuditRecord.objects.get(action="webhook.removed")
    assert (record.actor, record.before["url"]) == (owner, BODY["url"])


def test_messages_and_what_was_answered_can_be_read_and_sent_again(calls, owner, monkeypatch):
    answers = iter([Answer(status=500, took_ms=31, text="<oops>"), Answer(took_ms=5000, fault=Fault.TIMEOUT)])
    monkeypatch.setattr(deliver, "post", lambda *_, **__: next(answers))
    organisation = owner.membership.organisation
    endpoint = make_endpoint(organisation)
    path = f"{URL}{endpoint.pk}/deliveries/"
    for subject in ("a", "b"):
        tell(organisation, subject)
    deliver_due(now=datetime.now(UTC))
    page = calls("GET", path).json()
    assert [each["data"] for each in page["results"]] == [{"id": "b"}, {"id": "a"}]
    told = page["results"][1]
    assert (told["type"], told["state"], told["delivered_at"]) == ("order.filled", "waiting", None)
    assert told["next_attempt_at"] is not None
    [attempt] = told["attempts"]
    assert {name: attempt[name] for name in ("status", "took_ms", "fault", "answer")} == {
        "status": 500,
        "took_ms": 31,
        "fault": None,
        "answer": "<oops>",
    }
    assert page["results"][0]["attempts"][0]["fault"] == "timeout"
    first = calls("GET", f"{path}?limit=1").json()
    assert [each["id"] for each in calls("GET", first["next"]).json()["results"]] == [told["id"]]
    WebhookDelivery.objects.update(state="given_up")
    again = calls("POST", f"{path}{told['id']}/again/")
    assert (again.status_code, again.json()["state"]) == (202, "waiting")
    assert WebhookDelivery.objects.get(event_id=told["id"]).tries == 0


def test_a_test_event_is_sent_on_demand_and_not_while_one_waits(calls, owner):
    endpoint = make_endpoint(owner.membership.organisation)
    sent = calls("POST", f"{URL}{endpoint.pk}/test/")
    assert sent.status_code == 202
    [told] = calls("GET", f"{URL}{endpoint.pk}/deliveries/").json()["results"]
    assert (told["id"], told["type"]) == (sent.json()["id"], "webhook.test")
    again = calls("POST", f"{URL}{endpoint.pk}/test/")
    assert (again.status_code, codes(again)) == (409, [(None, "still_waiting")])


def test_one_that_is_off_says_so_and_is_sent_nothing(calls, owner):
    endpoint = make_endpoint(owner.membership.organisation)
    switch_off(endpoint, reason=WebhookEndpoint.OffReason.GONE, now=datetime.now(UTC))
    told = calls("GET", f"{URL}{endpoint.pk}/").json()
    assert (told["state"], told["off_reason"]) == ("off", "gone")
    refused = calls("POST", f"{URL}{endpoint.pk}/test/")
    assert (refused.status_code, codes(refused)) == (409, [(None, "endpoint_off")])


def test_reading_takes_the_scope_read_and_changing_takes_trade(client, owner):
    endpoint = make_endpoint(owner.membership.organisation)
    tell(owner.membership.organisation)
    event_id = endpoint.deliveries.get().event_id
    reader = calls_of(client, owner, Scope.READ, Scope.BILLING)
    trader = calls_of(client, owner, Scope.TRADE)
    own = f"{URL}{endpoint.pk}/"
    for path in (URL, own, f"{own}deliveries/"):
        assert reader("GET", path).status_code == 200
        assert trader("GET", path).status_code == 403
    for method, path in (
        ("POST", URL),
        ("POST", f"{own}secret/"),
        ("POST", f"{own}test/"),
        ("POST", f"{own}deliveries/{event_id}/again/"),
        ("DELETE", own),
    ):
        refused = reader(method, path, BODY if path == URL else None)
        assert (refused.status_code, refused.json()["scope"]) == (403, "trade"), path
    assert WebhookEndpoint.objects.count() == 1
    assert trader("DELETE", own).status_code == 204


def test_an_endpoint_of_another_organisation_is_not_there(calls):
    other = make_organisation(name="Pim & Co")
    endpoint = make_endpoint(other)
    tell(other)
    event_id = endpoint.deliveries.get().event_id
    own = f"{URL}{endpoint.pk}/"
    for method, path in (
        ("GET", own),
        ("DELETE", own),
        ("POST", f"{own}secret/"),
        ("POST", f"{own}test/"),
        ("GET", f"{own}deliveries/"),
        ("POST", f"{own}deliveries/{event_id}/again/"),
    ):
        assert calls(method, path).status_code == 404, path
    assert calls("GET").json() == {"results": []}
    assert WebhookEndpoint.objects.filter(pk=endpoint.pk, encrypted_previous_secret="").exists()


def test_a_message_of_another_endpoint_is_not_there(calls, owner):
    organisation = owner.membership.organisation
    first = make_endpoint(organisation)
    tell(organisation)
    event_id = first.deliveries.get().event_id
    second = make_endpoint(organisation, "https://second.example.com/")
    assert calls("POST", f"{URL}{second.pk}/deliveries/{event_id}/again/").status_code == 404


@pytest.mark.parametrize(("method", "path"), [("GET", "?x=1"), ("POST", "?x=1")])
def test_a_parameter_that_is_not_there_is_refused(calls, method, path):
    answer = calls(method, f"{URL}{path}", BODY if method == "POST" else None)
    assert (answer.status_code, codes(answer)) == (400, [("x", "unknown_parameter")])
