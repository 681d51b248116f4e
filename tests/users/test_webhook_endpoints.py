"""Endpoints: ten at most, each address once, with a secret that nobody can read in the database."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from tests.factories import NOW, make_member, make_organisation
from tests.users.webhook_rows import make_endpoint
from users.models import AuditRecord, WebhookEndpoint
from users.webhooks.endpoints import (
    MOST_ENDPOINTS,
    OVERLAP,
    NoMember,
    TooManyEndpoints,
    UrlTaken,
    replace_secret,
)

pytestmark = pytest.mark.django_db


def test_what_is_stored_does_not_hold_a_secret_that_anybody_could_read():
    first = make_endpoint()
    second = replace_secret(organisation=first.endpoint.organisation, endpoint_id=first.endpoint.pk, now=NOW)
    stored = f"{list(WebhookEndpoint.objects.values())} {list(AuditRecord.objects.values())}"
    for secret in (first.secret, second.secret):
        assert secret.startswith("whsec_")
        assert secret.removeprefix("whsec_") not in stored
        assert secret not in repr(first)
    assert first.secret != second.secret
    assert second.endpoint.previous_secret_until == NOW + OVERLAP


def test_an_address_is_added_once_and_ten_are_the_limit():
    organisation = make_organisation()
    for number in range(MOST_ENDPOINTS):
        make_endpoint(f"https://h{number}.example.com/")
    with pytest.raises(UrlTaken):
        make_endpoint("https://h3.example.com/")
    with pytest.raises(TooManyEndpoints):
        make_endpoint()
    assert organisation.webhook_endpoints.count() == MOST_ENDPOINTS
    make_endpoint(organisation=make_organisation(name="Pim & Co"))


def test_who_has_left_adds_nothing():
    stranger = make_member(organisation=make_organisation(name="Pim & Co"))
    with pytest.raises(NoMember):
        make_endpoint(created_by=stranger)


@pytest.mark.django_db(transaction=True)
def test_two_at_once_do_not_pass_the_limit_together():
    organisation = make_organisation()
    for number in range(MOST_ENDPOINTS - 1):
        make_endpoint(f"https://h{number}.example.com/")

    def add(number):
        try:
            make_endpoint(f"https://late{number}.example.com/", organisation=organisation)
        except TooManyEndpoints:
            return 0
        finally:
            connection.close()
        return 1

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(add, range(4))) == 1
    assert organisation.webhook_endpoints.count() == MOST_ENDPOINTS
