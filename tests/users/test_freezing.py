"""Freezing: once, on record, with a mail to the owners; lifted by an operator."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection, transaction

from tests.factories import NOW, make_member, make_operator
from users.freezing import freeze, unfreeze
from users.models import AuditRecord, Organisation, Role

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=2)


@pytest.fixture
def organisation():
    make_member(email="owner@example.com")
    make_member(email="second.owner@example.com")
    make_member(email="viewer@example.com", role=Role.VIEWER)
    away = make_member(email="away@example.com")
    away.is_active = False
    away.save()
    return away.membership.organisation


def test_a_freeze_is_written_down_and_told_to_every_owner(organisation, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        assert freeze(organisation_id=organisation.pk, reason="A payment of 50.00 EUR was disputed", now=NOW)
    organisation.refresh_from_db()
    assert organisation.frozen_at == NOW
    line = AuditRecord.objects.get()
    assert (line.action, line.at, line.actor, line.organisation) == ("organisation.frozen", NOW, None, organisation)
    assert (line.reason, line.before, line.after) == (
        "A payment of 50.00 EUR was disputed",
        {"frozen": False},
        {"frozen": True},
    )
    assert [message.to for message in mail.outbox] == [["owner@example.com"], ["second.owner@example.com"]]
    assert "A payment of 50.00 EUR was disputed" in mail.outbox[0].body
    assert "is frozen" in mail.outbox[0].subject


def test_a_second_run_keeps_the_first_time_and_says_nothing(organisation, django_capture_on_commit_callbacks):
    freeze(organisation_id=organisation.pk, reason="first", now=NOW)
    with django_capture_on_commit_callbacks(execute=True):
        assert not freeze(organisation_id=organisation.pk, reason="second", now=LATER)
    organisation.refresh_from_db()
    assert organisation.frozen_at == NOW
    assert AuditRecord.objects.count() == 1
    assert mail.outbox == []


def test_an_operator_lifts_it_with_a_reason(organisation, django_capture_on_commit_callbacks):
    operator = make_operator()
    freeze(organisation_id=organisation.pk, reason="dispute", now=NOW)
    with django_capture_on_commit_callbacks(execute=True):
        assert unfreeze(organisation_id=organisation.pk, operator=operator, reason="Paid", now=LATER)
        assert not unfreeze(organisation_id=organisation.pk, operator=operator, reason="Paid", now=LATER)
    organisation.refresh_from_db()
    assert organisation.frozen_at is None
    line = AuditRecord.objects.latest("pk")
    assert (line.action, line.actor, line.reason) == ("organisation.unfrozen", operator, "Paid")
    assert AuditRecord.objects.count() == 2
    assert len(mail.outbox) == 2
    assert "no longer frozen" in mail.outbox[0].subject


def test_a_freeze_that_is_rolled_back_is_never_announced(organisation, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True) as waiting, transaction.atomic():
        freeze(organisation_id=organisation.pk, reason="dispute", now=NOW)
        transaction.set_rollback(True)
    organisation.refresh_from_db()
    assert organisation.frozen_at is None
    assert waiting == []


def test_a_mail_server_that_is_down_does_not_stop_a_freeze(
    organisation, monkeypatch, django_capture_on_commit_callbacks
):
    def down(*args):
        raise ConnectionRefusedError

    monkeypatch.setattr("users.mails.EmailMessage.send", down)
    with django_capture_on_commit_callbacks(execute=True):
        assert freeze(organisation_id=organisation.pk, reason="dispute", now=NOW)
    organisation.refresh_from_db()
    assert organisation.frozen_at == NOW


def test_an_organisation_that_does_not_exist_is_not_frozen():
    assert not freeze(organisation_id=10**9, reason="dispute", now=NOW)
    assert not AuditRecord.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_freezes_at_once_one_counts():
    organisation = make_member().membership.organisation
    barrier = threading.Barrier(2)

    def work(number: int) -> bool:
        try:
            barrier.wait(10)
            return freeze(organisation_id=organisation.pk, reason=f"dispute {number}", now=NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(work, range(2))) == [False, True]
    assert Organisation.objects.get(pk=organisation.pk).frozen_at == NOW
    assert AuditRecord.objects.count() == 1
