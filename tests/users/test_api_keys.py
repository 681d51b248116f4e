"""API keys: what is stored, what is refused, and what a call with a key is answered."""

import json
import re
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from uuid import uuid4

import pytest
from django.core.serializers import serialize
from django.http import Http404
from django.test import RequestFactory
from django.urls import path
from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.request import Request
from rest_framework.response import Response

from tests.factories import make_member, make_organisation
from users.api.idempotent import idempotent
from users.api.view import OrganisationView
from users.api_keys import (
    MOST_LIVE_KEYS,
    AlreadyExpired,
    KeyAlreadyIssued,
    KeyExpired,
    KeyRevoked,
    NoScope,
    ScopeNotOpen,
    TooManyKeys,
    UnknownKey,
    is_well_formed,
    issue_key,
    key_of,
    note_use,
    revoke_key,
)
from users.models import ApiKey, AuditRecord, Organisation, Scope

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Notes(OrganisationView):
    """A call as other modules write theirs."""

    scopes = {"GET": Scope.READ, "POST": Scope.BILLING}

    def get(self, request: Request, organisation_id: int | None = None) -> Response:
        """List the notes of the organisation."""
        if organisation_id is not None and organisation_id != self.organisation.pk:
            raise Http404
        return Response({"organisation": self.organisation.name, "key": self.api_key.name})

    @idempotent
    def post(self, request: Request) -> Response:
        """Write a note."""
        return Response({"id": str(self.object_id)}, status=HTTPStatus.CREATED)


def make_key(*, organisation=None, scopes=("read",), now=NOW, **values):
    defaults = {"name": "laptop", "created_by": None, "expires_at": None}
    return issue_key(organisation=organisation or make_organisation(), scopes=scopes, now=now, **{**defaults, **values})


def call(secret: str | None, *, method: str = "GET", header: str | None = None, **kwargs):
    sent = header or (f"Bearer {secret}" if secret else None)
    headers = {"Authorization": sent} if sent else {}
    request = RequestFactory().generic(method, "/api/v1/notes/", headers=headers)
    response = Notes.as_view()(request, **kwargs)
    return response.render() if hasattr(response, "render") else response


def problem_of(response) -> tuple[int, str]:
    document = json.loads(response.content)
    assert response["Content-Type"] == "application/problem+json"
    return response.status_code, document["errors"][0]["code"]


@pytest.mark.django_db
def test_a_key_is_named_by_eight_characters_and_nothing_else_of_it_is_stored():
    issued = make_key(scopes=["billing", "read"])
    assert re.fullmatch(r"bourse_test_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}", issued.secret)
    stored = serialize("json", [*ApiKey.objects.all(), *AuditRecord.objects.all()])
    _, _, name, random, checksum = issued.secret.split("_")
    assert name in stored
    assert random not in stored
    assert checksum not in stored
    assert issued.secret not in repr(issued)
    assert issued.key.scopes == ["read", "billing"], "in the order of the scopes, whatever the order they came in"


@pytest.mark.django_db
def test_a_key_opens_its_organisation_until_it_is_revoked():
    issued = make_key()
    found = key_of(issued.secret, now=NOW)
    assert (found.pk, found.organisation) == (issued.key.pk, issued.key.organisation)
    assert revoke_key(organisation=issued.key.organisation, key_id=issued.key.pk, now=NOW)
    with pytest.raises(KeyRevoked):
        key_of(issued.secret, now=NOW)


@pytest.mark.django_db
def test_revoking_again_changes_and_records_nothing():
    issued, member = make_key(), make_member()
    values = {"organisation": issued.key.organisation, "key_id": issued.key.pk, "revoked_by": member}
    assert revoke_key(**values, now=NOW)
    assert not revoke_key(**values, now=NOW + HOUR)
    issued.key.refresh_from_db()
    assert issued.key.revoked_at == NOW
    recorded = AuditRecord.objects.order_by("pk").values_list("action", "actor", "subject_id")
    assert list(recorded) == [
        ("key.issued", None, str(issued.key.pk)),
        ("key.revoked", member.pk, str(issued.key.pk)),
    ]


@pytest.mark.django_db
def test_a_key_of_another_organisation_cannot_be_revoked():
    issued = make_key()
    with pytest.raises(ApiKey.DoesNotExist):
        revoke_key(organisation=make_organisation(name="Pim & Co"), key_id=issued.key.pk, now=NOW)
    assert key_of(issued.secret, now=NOW) == issued.key


@pytest.mark.django_db
def test_a_key_ends_at_its_expiry_to_the_moment():
    issued = make_key(expires_at=NOW + HOUR)
    assert key_of(issued.secret, now=NOW + HOUR - timedelta(microseconds=1)) == issued.key
    with pytest.raises(KeyExpired):
        key_of(issued.secret, now=NOW + HOUR)


@pytest.mark.django_db
def test_a_typing_error_is_refused_without_asking_the_database(django_assert_num_queries):
    secret = make_key().secret
    at = secret.index("_", 14) + 5
    mistyped = secret[:at] + ("a" if secret[at] != "a" else "b") + secret[at + 1 :]
    with django_assert_num_queries(0), pytest.raises(UnknownKey):
        key_of(mistyped, now=NOW)


@given(st.text(max_size=80))
def test_no_other_text_is_a_key(text):
    assert not is_well_formed(text)
    assert not is_well_formed(f"bourse_test_{text}")


@pytest.mark.django_db
def test_a_well_formed_key_that_nobody_issued_is_unknown():
    issued = make_key()
    ApiKey.objects.filter(pk=issued.key.pk).update(key_sha256="0" * 64)
    with pytest.raises(UnknownKey):
        key_of(issued.secret, now=NOW)
    ApiKey.objects.all().delete()
    with pytest.raises(UnknownKey):
        key_of(issued.secret, now=NOW)


@pytest.mark.django_db
def test_a_key_of_another_environment_is_refused(settings, django_assert_num_queries):
    secret = make_key().secret
    settings.ENVIRONMENT = "production"
    with django_assert_num_queries(0), pytest.raises(UnknownKey):
        key_of(secret, now=NOW)
    assert make_key().secret.startswith("bourse_live_")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "scopes", "refused"),
    [
        ("renter", ["read", "trade", "billing"], None),
        ("renter", ["read", "provider"], ScopeNotOpen),
        ("provider", ["read", "billing", "provider"], None),
        ("provider", ["trade"], ScopeNotOpen),
        ("renter", [], NoScope),
        ("renter", ["root"], ScopeNotOpen),
    ],
)
def test_a_renter_lists_no_servers_and_a_provider_rents_none(kind, scopes, refused):
    organisation = make_organisation(name=f"A {kind}", kind=kind)
    if refused is None:
        assert make_key(organisation=organisation, scopes=scopes).key.scopes == scopes
    else:
        with pytest.raises(refused):
            make_key(organisation=organisation, scopes=scopes)
        assert not ApiKey.objects.exists()


@pytest.mark.django_db
def test_a_key_that_would_be_over_before_it_began_is_refused():
    with pytest.raises(AlreadyExpired):
        make_key(expires_at=NOW)


@pytest.mark.django_db
def test_the_same_id_is_issued_once():
    key_id = uuid4()
    make_key(key_id=key_id)
    with pytest.raises(KeyAlreadyIssued):
        make_key(key_id=key_id)
    assert ApiKey.objects.count() == 1


@pytest.mark.django_db
def test_an_organisation_has_so_many_keys_that_work_and_no_more():
    first = make_key(expires_at=NOW + HOUR)
    for _ in range(MOST_LIVE_KEYS - 1):
        make_key()
    with pytest.raises(TooManyKeys):
        make_key()
    assert make_key(organisation=make_organisation(name="Pim & Co")), "another organisation is not concerned"
    assert make_key(now=first.key.expires_at), "one that has ended makes room"


@pytest.mark.django_db
def test_the_last_use_is_written_once_a_minute(django_assert_num_queries):
    secret = make_key().secret
    note_use(key_of(secret, now=NOW), now=NOW)
    with django_assert_num_queries(1):
        note_use(key_of(secret, now=NOW), now=NOW + timedelta(seconds=59))
    assert key_of(secret, now=NOW).last_used_at == NOW
    note_use(key_of(secret, now=NOW), now=NOW + timedelta(seconds=60))
    assert key_of(secret, now=NOW).last_used_at == NOW + timedelta(seconds=60)


@pytest.mark.django_db
def test_a_call_with_a_key_is_answered_for_its_organisation_and_never_kept():
    response = call(make_key().secret)
    assert response.status_code == 200
    assert response.data == {"organisation": "Orla Labs B.V.", "key": "laptop"}
    assert response["Cache-Control"] == "private, no-store"
    assert ApiKey.objects.get().last_used_at is not None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        (None, 'Bearer realm="GPU Bourse API"'),
        ("Basic b3JsYTpsYWJz", 'Bearer realm="GPU Bourse API", error="invalid_token"'),
        ("Bearer", 'Bearer realm="GPU Bourse API", error="invalid_token"'),
        ("Bearer a b", 'Bearer realm="GPU Bourse API", error="invalid_token"'),
        ("Bearer bourse_test_x", 'Bearer realm="GPU Bourse API", error="invalid_token"'),
        ("Bearer \xff\xfe", 'Bearer realm="GPU Bourse API", error="invalid_token"'),
    ],
)
def test_a_call_without_a_good_key_is_refused_with_a_challenge(header, challenge):
    response = call(None, header=header)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == challenge
    assert response["Cache-Control"] == "private, no-store"
    assert problem_of(response)[1] in ("not_authenticated", "unknown_key")


@pytest.mark.django_db
def test_a_key_that_was_one_is_told_what_became_of_it():
    now = datetime.now(UTC)
    revoked = make_key(now=now)
    revoke_key(organisation=revoked.key.organisation, key_id=revoked.key.pk, now=now)
    assert problem_of(call(revoked.secret)) == (401, "key_revoked")
    expired = make_key(now=now - 2 * HOUR, expires_at=now - HOUR)
    assert problem_of(call(expired.secret)) == (401, "key_expired")


@pytest.mark.django_db
def test_a_call_beyond_the_keys_scopes_is_refused_with_the_scope_it_needs():
    response = call(make_key(scopes=["read"]).secret, method="POST")
    assert response.status_code == 403
    assert json.loads(response.content)["scope"] == "billing"
    assert "billing" in json.loads(response.content)["detail"]
    assert 'error="insufficient_scope", scope="billing"' in response["WWW-Authenticate"]


@pytest.mark.django_db
def test_one_scope_does_not_hold_another():
    assert problem_of(call(make_key(scopes=["billing"]).secret)) == (403, "scope_missing")


@pytest.mark.django_db
def test_a_method_that_the_call_does_not_have_is_405_for_those_with_a_key_and_401_for_others():
    assert problem_of(call(make_key().secret, method="DELETE")) == (405, "method_not_allowed")
    assert problem_of(call(None, method="DELETE")) == (401, "not_authenticated")


@pytest.mark.django_db
def test_an_object_of_another_organisation_is_not_there():
    other = make_organisation(name="Pim & Co")
    assert problem_of(call(make_key().secret, organisation_id=other.pk)) == (404, "not_found")


@pytest.mark.django_db
def test_a_frozen_organisation_may_still_read():
    secret = make_key().secret
    Organisation.objects.update(frozen_at=NOW)
    assert call(secret).status_code == 200


def test_a_method_without_a_scope_cannot_be_written():
    with pytest.raises(TypeError, match="no scope for post"):

        class Open(OrganisationView):
            scopes = {"GET": Scope.READ}

            def post(self, request: Request) -> Response:
                return Response()


def test_the_description_tells_scheme_scope_header_and_refusals(monkeypatch):
    monkeypatch.setattr(
        EndpointEnumerator,
        "get_api_endpoints",
        lambda self, *args, **kwargs: [("/api/v1/notes/", "", method, Notes.as_view()) for method in ("GET", "POST")],
    )
    generator = SchemaGenerator(patterns=[path("api/v1/notes/", Notes.as_view())])
    document = generator.get_schema(request=None, public=True)
    [scheme] = document["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    reading, writing = document["paths"]["/api/v1/notes/"]["get"], document["paths"]["/api/v1/notes/"]["post"]
    assert reading["security"] == [{"key": []}]
    assert reading["description"] == "List the notes of the organisation. Needs a key with the scope `read`."
    assert {"401", "403", "429"} <= set(reading["responses"])
    assert {"401", "403", "409", "422", "429", "503"} <= set(writing["responses"])
    assert "422" not in reading["responses"]
    [header] = [each for each in writing["parameters"] if each["in"] == "header"]
    assert (header["name"], header["required"]) == ("Idempotency-Key", True)
