"""Quotas: of a key, of its organisation, of an address; in real Redis."""

import json
from datetime import UTC, datetime
from http import HTTPStatus
from ipaddress import IPv4Address
from secrets import randbits, token_hex
from threading import Thread

import pytest
from django.db import connection
from django.test import RequestFactory
from redis import Redis, RedisError
from rest_framework.request import Request
from rest_framework.response import Response

from tests.factories import make_organisation
from users.api import throttling
from users.api.throttling import CountedView, counted_address, spend
from users.api.view import OrganisationView
from users.api_keys import issue_key
from users.models import Organisation, Scope

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
ESTIMATE = {"params_b": 7, "task": "full"}


class Notes(OrganisationView):
    """A keyed call."""

    scopes = {"GET": Scope.READ, "POST": Scope.READ}

    def get(self, request: Request) -> Response:
        return Response({})

    def post(self, request: Request) -> Response:
        return Response({}, status=HTTPStatus.CREATED)


class Anyone(CountedView):
    """A call without a key."""

    def post(self, request: Request) -> Response:
        return Response({})


@pytest.fixture(autouse=True)
def counters(settings):
    """Return this database's counters of organisations, which the run before may have left (ids begin anew)."""
    redis = Redis.from_url(settings.REDIS_URL)
    pattern = f"quota:organisation:{settings.DATABASES['default']['NAME']}:*"

    def forget() -> int:
        found = list(redis.scan_iter(pattern))
        assert all(0 < redis.pttl(counter) <= 60_000 for counter in found), "each one ends by itself"
        return redis.delete(*found) if found else 0

    forget()
    return forget


@pytest.fixture
def address() -> str:
    """Return an address that nobody has called from."""
    return str(IPv4Address(randbits(32)))


def make_secret(organisation: Organisation | None = None) -> str:
    issued = issue_key(
        organisation=organisation or make_organisation(name=f"Orla {token_hex(4)}"),
        name="laptop",
        scopes=["read"],
        created_by=None,
        expires_at=None,
        now=NOW,
    )
    return issued.secret


def call(secret: str, method: str = "GET"):
    request = RequestFactory().generic(method, "/api/v1/notes/", headers={"Authorization": f"Bearer {secret}"})
    return Notes.as_view()(request)


def post(address: str, forwarded: str = ""):
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    return Anyone.as_view()(RequestFactory().post("/api/v1/x/", REMOTE_ADDR=address, headers=headers))


def quotas(settings, **limits: int) -> None:
    settings.QUOTAS_PER_MINUTE = {"key": 100, "organisation": 100, "address": 100, **limits}


@pytest.mark.django_db
def test_one_request_more_than_the_quota_is_told_when_to_come_back(settings):
    quotas(settings, key=3)
    secret = make_secret()
    assert [call(secret).status_code for _ in range(3)] == [200, 200, 200]
    refused = call(secret)
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert refused["Content-Type"] == "application/problem+json"
    assert json.loads(refused.content)["errors"][0]["code"] == "too_many_requests"
    assert refused["RateLimit"].startswith('"key";r=0;t=')
    assert refused["Cache-Control"] == "private, no-store"


@pytest.mark.django_db
def test_every_answer_tells_where_the_caller_stands(settings):
    quotas(settings, key=3, organisation=5)
    answer = call(make_secret())
    assert answer["RateLimit-Policy"] == '"key";q=3;w=60, "organisation";q=5;w=60'
    assert answer["RateLimit"] == '"key";r=2;t=60, "organisation";r=4;t=60'


@pytest.mark.django_db
def test_another_key_and_another_organisation_are_unaffected(settings):
    quotas(settings, key=1)
    organisation = make_organisation()
    first, second, other = make_secret(organisation), make_secret(organisation), make_secret()
    assert [call(first).status_code, call(first).status_code] == [200, 429]
    assert [call(second).status_code, call(other).status_code] == [200, 200]


@pytest.mark.django_db
def test_keys_of_one_organisation_share_its_quota(settings):
    quotas(settings, organisation=2)
    organisation = make_organisation()
    first, second, other = make_secret(organisation), make_secret(organisation), make_secret()
    assert [call(first).status_code, call(second).status_code, call(second).status_code] == [200, 200, 429]
    assert call(other).status_code == 200


@pytest.mark.django_db
def test_a_refused_request_counts_for_nobody(settings):
    quotas(settings, key=1, organisation=3)
    organisation = make_organisation()
    wild, calm = make_secret(organisation), make_secret(organisation)
    assert [call(wild).status_code for _ in range(5)] == [200, 429, 429, 429, 429]
    assert '"organisation";r=1;' in call(calm)["RateLimit"]


@pytest.mark.django_db
def test_a_quota_is_new_after_its_window(settings, counters):
    quotas(settings, organisation=1)
    secret = make_secret()
    assert [call(secret).status_code, call(secret).status_code] == [200, 429]
    assert counters() == 1  # as Redis does when the time has passed
    assert call(secret).status_code == 200


def test_requests_at_once_never_exceed_the_quota(settings):
    quotas(settings, key=20)
    passed: list[bool] = []
    subject = token_hex(8)

    def take() -> None:
        passed.extend(spend({"key": subject})[0] for _ in range(10))

    threads = [Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(passed), sum(passed)) == (40, 20)


def test_calls_without_a_key_are_counted_by_address(settings, address):
    quotas(settings, address=1)
    assert [post(address).status_code, post(address).status_code] == [200, 429]
    assert post(str(IPv4Address(randbits(32)))).status_code == 200


def test_an_address_that_the_sender_wrote_is_not_believed(settings, address):
    quotas(settings, address=1)
    assert post(address, forwarded="203.0.113.1").status_code == 200
    assert post(address, forwarded="203.0.113.2").status_code == 429


def test_behind_one_proxy_the_address_it_wrote_counts_and_none_before_it(settings, address):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    quotas(settings, address=1)
    assert post("10.0.0.1", forwarded=f"203.0.113.1, {address}").status_code == 200
    assert post("10.0.0.1", forwarded=f"203.0.113.2, {address}").status_code == 429
    assert post(address, forwarded=str(IPv4Address(randbits(32)))).status_code == 200


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        (None, ""),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(address, counted):
    assert counted_address(address) == counted


@pytest.mark.django_db
def test_the_public_call_that_works_is_under_a_quota(client, settings, address):
    quotas(settings, address=1)
    first, second = (
        client.post("/api/v1/sizing/estimate/", ESTIMATE, content_type="application/json", REMOTE_ADDR=address)
        for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (200, 429)
    assert first["RateLimit"] == '"address";r=0;t=60'


class _Gone:
    def __call__(self, **_values: object) -> None:
        raise RedisError


@pytest.mark.django_db
def test_without_redis_reading_goes_on_and_nothing_is_changed(monkeypatch):
    secret = make_secret()
    monkeypatch.setattr(throttling, "_spend_script", _Gone)
    assert call(secret).status_code == 200
    assert not call(secret).has_header("RateLimit")
    assert post("10.0.0.1").status_code == 200
    refused = call(secret, "POST")
    assert refused.status_code == 503
    assert json.loads(refused.content)["errors"][0]["code"] == "quotas_unknown"
    assert connection.is_usable()
