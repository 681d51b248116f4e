"""`/keys/`: a member sees the keys, an owner makes and revokes them; a secret is shown once."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client

from tests.factories import make_member, make_operator, make_organisation
from users.api_keys import MOST_LIVE_KEYS, KeyAlreadyIssued, KeyRefused, issue_key, key_of, revoke_key
from users.models import ApiKey, AuditRecord, Role
from users.views.keys import REFUSALS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_limits")]
PASSWORD = "long-enough-1"
SECRET = re.compile(r"bourse_test_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}")


@pytest.fixture
def owner():
    return make_member()


@pytest.fixture
def confirmed(client, owner) -> Client:
    """An owner who has just given the password again."""
    return sign_in(client, owner, is_confirmed=True)


def sign_in(client: Client, user, *, is_confirmed: bool = False) -> Client:
    client.force_login(user)
    if is_confirmed:
        client.post("/account/confirm/", {"password": PASSWORD})
    return client


def wanted(**values) -> dict[str, object]:
    return {"name": "laptop", "scopes": ["read", "trade"], "lifetime": "90", "key_id": str(uuid4()), **values}


def make_key(owner, **values):
    defaults = {"name": "laptop", "scopes": ["read"], "expires_at": None, "now": datetime.now(UTC)}
    return issue_key(organisation=owner.membership.organisation, created_by=owner, **{**defaults, **values})


def test_an_owner_makes_a_key_and_is_shown_its_secret_on_that_answer_alone(confirmed, owner):
    sent = wanted()
    answer = confirmed.post("/keys/", sent)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "private, no-store"
    [secret] = set(SECRET.findall(answer.content.decode()))
    key = key_of(secret, now=datetime.now(UTC))
    assert (key.name, key.scopes, key.created_by, str(key.pk)) == ("laptop", ["read", "trade"], owner, sent["key_id"])
    assert key.expires_at is not None
    assert timedelta(days=89, hours=23) < key.expires_at - datetime.now(UTC) <= timedelta(days=90)
    after = confirmed.get("/keys/").content.decode()
    assert key.prefix in after
    assert not SECRET.search(after)


def test_sending_the_form_again_makes_no_second_key_and_shows_no_secret(confirmed):
    sent = wanted()
    confirmed.post("/keys/", sent)
    again = confirmed.post("/keys/", sent, follow=True)
    assert again.redirect_chain == [("/keys/", 302)]
    assert "cannot be shown again" in again.content.decode()
    assert not SECRET.search(again.content.decode())
    assert ApiKey.objects.count() == 1


def test_nothing_that_is_stored_holds_the_secret(confirmed):
    [secret] = set(SECRET.findall(confirmed.post("/keys/", wanted()).content.decode()))
    random = secret.split("_")[3]
    assert random not in str(list(ApiKey.objects.values()))
    assert random not in str(list(AuditRecord.objects.values()))
    assert random not in str([session.get_decoded() for session in Session.objects.all()])
    assert cache.get(secret) is None


def test_making_a_key_takes_the_password_again_and_then_goes_on_by_itself(client):
    owner = make_member()
    sign_in(client, owner)
    asked = client.post("/keys/", wanted())
    assert asked.status_code == 302
    assert not ApiKey.objects.exists()
    answer = client.post(asked["Location"], {"password": PASSWORD}, follow=True)
    assert answer.status_code == 200
    assert len(set(SECRET.findall(answer.content.decode()))) == 1
    assert "no-store" in answer["Cache-Control"]
    assert ApiKey.objects.get().created_by == owner


@pytest.mark.parametrize("role", [Role.TRADER, Role.BILLING, Role.VIEWER])
def test_other_members_see_the_keys_but_neither_make_nor_revoke_them(client, owner, role):
    key = make_key(owner).key
    sign_in(client, make_member(role=role), is_confirmed=True)
    page = client.get("/keys/").content.decode()
    assert key.prefix in page
    assert "<form" not in page.partition("<main")[2].partition("</main>")[0]
    assert (
        "<button"
        not in client.get(f"/keys/{key.pk}/revoke/").content.decode().partition("<main")[2].partition("</main>")[0]
    )
    assert client.post("/keys/", wanted()).status_code == 403
    assert client.post(f"/keys/{key.pk}/revoke/").status_code == 403
    assert ApiKey.objects.filter(revoked_at=None).count() == 1


def test_another_organisation_sees_nothing_of_them(client, owner):
    key = make_key(owner).key
    sign_in(client, make_member(organisation=make_organisation(name="Pim & Co")), is_confirmed=True)
    assert key.prefix not in client.get("/keys/").content.decode()
    assert client.get(f"/keys/{key.pk}/revoke/").status_code == 404
    assert client.post(f"/keys/{key.pk}/revoke/").status_code == 404
    key.refresh_from_db()
    assert key.revoked_at is None


def test_who_is_not_signed_in_is_sent_to_sign_in_and_an_operator_has_no_keys(client, owner):
    answer = client.get("/keys/")
    assert (answer.status_code, answer["Location"]) == (302, "/account/login/?next=/keys/")
    client.force_login(make_operator())
    assert client.get("/keys/").status_code == 403


def test_revoking_is_confirmed_first_and_counts_at_once(confirmed, owner):
    issued = make_key(owner)
    asked = confirmed.get(f"/keys/{issued.key.pk}/revoke/")
    assert "cannot be undone" in asked.content.decode()
    assert key_of(issued.secret, now=datetime.now(UTC)) == issued.key, "asking changes nothing"
    done = confirmed.post(f"/keys/{issued.key.pk}/revoke/", follow=True)
    assert "was revoked" in done.content.decode()
    assert "Keys that no longer work" in done.content.decode()
    assert AuditRecord.objects.get(action="key.revoked").actor == owner
    again = confirmed.get(f"/keys/{issued.key.pk}/revoke/").content.decode()
    assert "It was revoked on" in again


def test_the_page_tells_state_scopes_end_and_last_use(confirmed, owner):
    now = datetime.now(UTC)
    make_key(owner, name="in use", scopes=["read", "billing"])
    ApiKey.objects.update(last_used_at=now - timedelta(minutes=12))
    make_key(owner, name="over", now=now - timedelta(days=40), expires_at=now - timedelta(days=10))
    gone = make_key(owner, name="gone").key
    revoke_key(organisation=gone.organisation, key_id=gone.pk, now=now)
    page = confirmed.get("/keys/").content.decode()
    live, _, ended = page.partition("Keys that no longer work")
    assert "in use" in live
    assert "read, billing" in live
    assert "12 min" in live
    assert "no end" in live
    assert owner.email in live
    for name, state in (("over", "expired"), ("gone", "revoked")):
        assert f"<b>{name}</b>" in ended
        assert f"<b>{name}</b>" not in live
        assert state in ended


@pytest.mark.parametrize(
    ("kind", "offered"), [("renter", {"read", "trade", "billing"}), ("provider", {"read", "billing", "provider"})]
)
def test_each_kind_of_organisation_is_offered_its_own_scopes(client, kind, offered):
    owner = make_member(organisation=make_organisation(name=f"A {kind}", kind=kind))
    page = sign_in(client, owner, is_confirmed=True).get("/keys/").content.decode()
    assert set(re.findall(r'name="scopes" value="(\w+)"', page)) == offered


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "", "This field is required."),
        ("name", "x" * 81, "at most 80 characters"),
        ("name", "a\x1bb", "Letters, digits and signs only."),
        ("scopes", [], "Choose at least one scope."),
        ("scopes", ["provider"], "is not one of the available choices"),
        ("lifetime", "31", "is not one of the available choices"),
        ("key_id", "7", "Enter a valid UUID."),
    ],
)
def test_a_mistake_is_told_above_and_at_its_field_and_makes_no_key(confirmed, field, value, said):
    page = confirmed.post("/keys/", wanted(**{field: value})).content.decode()
    assert page.count(said) >= (1 if field == "key_id" else 2)
    assert 'role="alert"' in page
    assert not ApiKey.objects.exists()


def test_the_limit_of_keys_is_told_in_words(confirmed, owner):
    for _ in range(MOST_LIVE_KEYS):
        make_key(owner)
    assert f"{MOST_LIVE_KEYS} keys that work" in confirmed.post("/keys/", wanted()).content.decode()


def test_every_refusal_has_its_words():
    assert set(REFUSALS) == set(KeyRefused.__subclasses__()) - {KeyAlreadyIssued}


def test_the_page_needs_few_queries(confirmed, owner, django_assert_max_num_queries):
    for _ in range(10):
        make_key(owner)
    with django_assert_max_num_queries(12):
        confirmed.get("/keys/")
