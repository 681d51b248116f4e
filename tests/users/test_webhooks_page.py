"""`/account/webhooks/`: a member sees webhooks and what was sent, an owner changes them; a secret is shown once."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import Client

from tests.factories import make_member, make_operator, make_organisation
from users.models import AuditRecord, EventType, Role, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from users.views.webhooks import PER_PAGE, REFUSALS
from users.webhooks.endpoints import EndpointRefused, add_endpoint, switch_off
from users.webhooks.events import emit
from users.webhooks.sending import Fault
from users.webhooks.words import FAULTS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_limits")]
PAGE = "/account/webhooks/"
SECRET = re.compile(r"whsec_[0-9A-Za-z+/]{43}=")
WANTED = {"url": "https://hooks.example.com/bourse", "types": ["order.filled", "balance.low"]}


@pytest.fixture
def owner():
    return make_member()


@pytest.fixture
def organisation(owner):
    return owner.membership.organisation


@pytest.fixture
def confirmed(client, owner) -> Client:
    """An owner who has just given the password again."""
    client.force_login(owner)
    client.post("/account/confirm/", {"password": "long-enough-1"})
    return client


@pytest.fixture
def endpoint(organisation) -> WebhookEndpoint:
    return make_endpoint(organisation)


def make_endpoint(organisation, url="https://told.example.com/hook"):
    now = datetime.now(UTC) - timedelta(days=2)
    types = [EventType.ORDER_FILLED]
    return add_endpoint(organisation=organisation, url=url, types=types, created_by=None, now=now).endpoint


def tell(organisation, subject="0193", **data) -> WebhookEvent:
    now = datetime.now(UTC)
    kind = EventType.ORDER_FILLED
    emit(organisation_id=organisation.pk, type=kind, data={"id": subject, **data}, subject_id=subject, now=now)
    return WebhookEvent.objects.get(subject_id=subject)


def secrets_in(page: str) -> set[str]:
    return set(SECRET.findall(page.replace("&#x2B;", "+").replace("&#x3D;", "=")))


def main_of(answer) -> str:
    return answer.content.decode().partition("<main")[2].partition("</main>")[0]


def test_an_owner_adds_a_webhook_and_is_shown_its_secret_on_that_answer_alone(confirmed, owner):
    answer = confirmed.post(PAGE, WANTED)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "private, no-store")
    assert len(secrets_in(answer.content.decode())) == 1
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.url, endpoint.types, endpoint.created_by) == (WANTED["url"], WANTED["types"], owner)
    for path in (PAGE, f"{PAGE}{endpoint.pk}/"):
        page = confirmed.get(path).content.decode()
        assert WANTED["url"] in page
        assert not secrets_in(page)
    assert AuditRecord.objects.get(action="webhook.added").actor == owner


def test_sending_the_form_again_adds_nothing_and_shows_no_secret(confirmed):
    confirmed.post(PAGE, WANTED)
    again = confirmed.post(PAGE, WANTED).content.decode()
    assert "is there already" in again
    assert not secrets_in(again)
    assert WebhookEndpoint.objects.count() == 1


@pytest.mark.parametrize("path", ["", "{pk}/secret/"])
def test_what_shows_a_secret_takes_the_password_again_and_then_goes_on_by_itself(client, owner, endpoint, path):
    client.force_login(owner)
    asked = client.post(PAGE + path.format(pk=endpoint.pk), WANTED)
    assert asked.status_code == 302
    assert "/account/confirm/" in asked["Location"]
    answer = client.post(asked["Location"], {"password": "long-enough-1"}, follow=True)
    assert len(secrets_in(answer.content.decode())) == 1


@pytest.mark.parametrize(
    ("sent", "field", "said"),
    [
        ({"url": ""}, "url", "This field is required."),
        ({"url": "http://example.com/"}, "url", "Only https"),
        ({"url": "https://127.0.0.1/"}, "url", "Give a host name"),
        ({"url": "https://169.254.169.254/"}, "url", "Give a host name"),
        ({"url": "https://example.com:8443/"}, "url", "Only port 443"),
        ({"url": f"https://example.com/{'x' * 500}"}, "url", "500 characters"),
        ({"types": []}, "types", "Choose at least one event."),
        ({"types": ["price.above"]}, "types", "is not one of the available choices"),
    ],
)
def test_a_mistake_is_told_above_and_at_its_field_and_adds_nothing(confirmed, sent, field, said):
    page = confirmed.post(PAGE, {**WANTED, **sent}).content.decode()
    assert page.count(said) >= 2
    assert 'role="alert"' in page
    assert f'id="id_{field}_error"' in page
    assert not WebhookEndpoint.objects.exists()


def test_an_address_as_typed_cannot_become_part_of_the_page(confirmed):
    page = confirmed.post(PAGE, {**WANTED, "url": 'https://example.com/"><script>'}).content.decode()
    assert "<script>" not in page.partition("<main")[2].replace("<script src=", "")


def test_the_limit_is_told_in_words(confirmed, organisation):
    for number in range(10):
        make_endpoint(organisation, f"https://h{number}.example.com/")
    assert "can have 10 webhooks" in confirmed.post(PAGE, WANTED).content.decode()


@pytest.mark.parametrize("role", [Role.TRADER, Role.BILLING, Role.VIEWER])
def test_other_members_see_all_of_it_but_change_nothing(client, organisation, endpoint, role):
    event = tell(organisation)
    client.force_login(make_member(organisation=organisation, role=role))
    client.post("/account/confirm/", {"password": "long-enough-1"})
    own = f"{PAGE}{endpoint.pk}/"
    for path in (PAGE, own, f"{own}{event.pk}/", f"{own}remove/"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "<form" not in main_of(answer)
    for path in (PAGE, f"{own}secret/", f"{own}test/", f"{own}on/", f"{own}remove/", f"{own}{event.pk}/again/"):
        assert client.post(path, WANTED).status_code == 403
    assert WebhookEndpoint.objects.get() == endpoint
    assert WebhookEvent.objects.count() == 1


def test_another_organisation_finds_nothing(client, organisation, endpoint):
    event = tell(organisation)
    client.force_login(make_member(organisation=make_organisation(name="Pim & Co")))
    client.post("/account/confirm/", {"password": "long-enough-1"})
    assert endpoint.url not in client.get(PAGE).content.decode()
    own = f"{PAGE}{endpoint.pk}/"
    for path in (own, f"{own}{event.pk}/", f"{own}remove/"):
        assert client.get(path).status_code == 404
    for path in ("secret/", "test/", "on/", "remove/", f"{event.pk}/again/"):
        assert client.post(own + path).status_code == 404
    assert WebhookEndpoint.objects.filter(pk=endpoint.pk, encrypted_previous_secret="").exists()


def test_who_is_not_signed_in_is_sent_to_sign_in_and_an_operator_has_none(client):
    assert client.get(PAGE).status_code == 302
    client.force_login(make_operator())
    assert client.get(PAGE).status_code == 403


def test_the_log_tells_what_was_sent_and_what_came_back(confirmed, organisation, endpoint):
    event = tell(organisation, state="filled", note="<b>")
    delivery = event.deliveries.get()
    now = datetime.now(UTC)
    WebhookAttempt.objects.create(delivery=delivery, at=now, status=503, took_ms=31, answer="<script>alert(1)</script>")
    WebhookAttempt.objects.create(delivery=delivery, at=now, took_ms=5000, fault=Fault.TIMEOUT)
    WebhookDelivery.objects.update(tries=2, next_attempt_at=now + timedelta(minutes=1))
    log = main_of(confirmed.get(f"{PAGE}{endpoint.pk}/"))
    assert "order.filled" in log
    assert "no answer" in log
    assert "next try at" in log
    page = main_of(confirmed.get(f"{PAGE}{endpoint.pk}/{event.pk}/"))
    assert f"webhook-id: {event.pk}" in page
    assert "&quot;state&quot;: &quot;filled&quot;" in page
    assert "Answered 503" in page
    assert "after 31 ms" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "No answer within 5 seconds." in page
    assert "<script" not in page


def test_the_log_is_paged_and_a_page_that_is_not_there_is_a_404(confirmed, organisation, endpoint):
    for number in range(PER_PAGE + 1):
        tell(organisation, str(number))
    own = f"{PAGE}{endpoint.pk}/"
    assert main_of(confirmed.get(own)).count("order.filled<span") == PER_PAGE
    assert main_of(confirmed.get(f"{own}?page=2")).count("order.filled<span") == 1
    assert confirmed.get(f"{own}?page=3").status_code == 404
    assert confirmed.get(f"{own}?page=x").status_code == 404


def test_a_test_event_is_sent_from_the_page(confirmed, endpoint):
    own = f"{PAGE}{endpoint.pk}/"
    page = confirmed.post(f"{own}test/", follow=True)
    assert page.redirect_chain == [(own, 302)]
    assert "A test event is sent" in page.content.decode()
    assert "webhook.test" in page.content.decode()
    assert "has not been sent yet" in confirmed.post(f"{own}test/", follow=True).content.decode()
    assert WebhookEvent.objects.get().type == "webhook.test"


def test_a_message_is_sent_again_from_its_page(confirmed, organisation, endpoint):
    event = tell(organisation)
    WebhookDelivery.objects.update(state="given_up", tries=11)
    own = f"{PAGE}{endpoint.pk}/{event.pk}/"
    page = confirmed.post(f"{own}again/", follow=True)
    assert page.redirect_chain == [(own, 302)]
    assert "sent again within seconds" in page.content.decode()
    assert WebhookDelivery.objects.get().state == "waiting"
    for path in (f"{PAGE}{endpoint.pk}/{uuid4()}/", f"{PAGE}{uuid4()}/"):
        assert confirmed.get(path).status_code == 404
    assert confirmed.post(f"{PAGE}{endpoint.pk}/{uuid4()}/again/").status_code == 404


def test_one_that_was_switched_off_says_why_and_is_switched_on_again(confirmed, organisation, endpoint):
    event = tell(organisation)
    switch_off(endpoint, reason=WebhookEndpoint.OffReason.FAILING, now=datetime.now(UTC))
    own = f"{PAGE}{endpoint.pk}/"
    page = main_of(confirmed.get(own))
    assert "For three days it took none of our messages." in page
    assert "Send a test event" not in page
    for path in (f"{own}test/", f"{own}{event.pk}/again/"):
        assert "Switch it on first" in confirmed.post(path, follow=True).content.decode()
    assert "is told what happens from now on" in confirmed.post(f"{own}on/", follow=True).content.decode()
    endpoint.refresh_from_db()
    assert endpoint.switched_off_at is None
    assert "Send a test event" in main_of(confirmed.get(own))


def test_a_replaced_secret_is_shown_once_with_how_long_the_old_one_holds(confirmed, endpoint):
    own = f"{PAGE}{endpoint.pk}/"
    page = confirmed.post(f"{own}secret/").content.decode()
    assert len(secrets_in(page)) == 1
    assert "The secret before this one signs too" in page
    assert not secrets_in(confirmed.get(own).content.decode())


def test_removing_is_confirmed_first(confirmed, endpoint):
    own = f"{PAGE}{endpoint.pk}/"
    assert "cannot be undone" in confirmed.get(f"{own}remove/").content.decode()
    assert WebhookEndpoint.objects.exists(), "asking changes nothing"
    done = confirmed.post(f"{own}remove/", follow=True)
    assert done.redirect_chain == [(PAGE, 302)]
    assert "was removed" in done.content.decode()
    assert not WebhookEndpoint.objects.exists()


def test_the_history_names_what_was_done(confirmed):
    confirmed.post(PAGE, WANTED)
    page = confirmed.get("/account/history/").content.decode()
    assert "Added a webhook" in page
    assert WANTED["url"] in page


def test_an_operator_looks_it_up_without_secrets(client, organisation, endpoint):
    event = tell(organisation)
    delivery = event.deliveries.get()
    WebhookAttempt.objects.create(delivery=delivery, at=datetime.now(UTC), took_ms=1, status=500, answer="it broke")
    client.force_login(make_operator())
    page = client.get(f"/admin/users/webhookendpoint/{endpoint.pk}/change/").content.decode()
    assert endpoint.url in page
    assert endpoint.encrypted_secret not in page
    assert "it broke" in client.get(f"/admin/users/webhookdelivery/{delivery.pk}/change/").content.decode()
    assert client.get("/admin/users/webhookdelivery/", {"q": str(event.pk)}).content.decode().count("order.filled") == 1


def test_the_account_page_leads_here(confirmed):
    assert f'href="{PAGE}"' in confirmed.get("/account/").content.decode()


def test_every_refusal_and_every_fault_has_its_words():
    assert set(REFUSALS) == set(EndpointRefused.__subclasses__())
    assert set(FAULTS) == set(Fault) - {Fault.NONE}


def test_the_pages_need_few_queries(confirmed, organisation, endpoint, django_assert_max_num_queries):
    for number in range(9):
        make_endpoint(organisation, f"https://h{number}.example.com/")
    events = [tell(organisation, str(number)) for number in range(PER_PAGE)]
    for event in events:
        WebhookAttempt.objects.create(delivery=event.deliveries.get(endpoint=endpoint), at=datetime.now(UTC), took_ms=1)
    for path in (PAGE, f"{PAGE}{endpoint.pk}/", f"{PAGE}{endpoint.pk}/{events[0].pk}/"):
        with django_assert_max_num_queries(12):
            assert confirmed.get(path).status_code == 200
