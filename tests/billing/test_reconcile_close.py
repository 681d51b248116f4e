"""The reconciler at the edges: what waits for a person, and the close of a day."""

import json
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from billing import ledger, tasks
from billing.gateway.errors import GatewayOff, GatewayUnavailable
from billing.ledger import Line
from billing.models import (
    Account,
    GatewayEvent,
    GatewayTransaction,
)
from billing.reconcile.close import close_day, last_closes
from billing.reconcile.retry import retry_event
from billing.reconcile.run import reconcile
from billing.refunds.request import refund_top_up
from billing.topups.apply_event import apply_due_events
from tests.billing.conftest import NOW, UNIT
from tests.billing.test_reconcile import DAY, close, gateway, top_up, units
from tests.factories import make_operator
from users.models import AuditRecord

__all__ = ["gateway"]
pytestmark = pytest.mark.django_db


def test_without_an_answer_the_next_run_goes_on_where_this_one_ended(gateway):
    top_up(gateway)
    gateway.fault("fail_before", times=1, path="/v1/refunds")
    with pytest.raises(GatewayUnavailable):
        reconcile(now=NOW)
    assert units(Account.Kind.WALLET) == 100
    assert GatewayTransaction.objects.count() == 0
    assert close() == {}


def test_after_a_long_stop_it_begins_where_it_ended(gateway):
    top_up(gateway)
    reconcile(now=NOW)
    gateway.set_clock(NOW + DAY)
    top_up(gateway, 60, now=NOW + DAY)
    assert close(NOW + 30 * DAY) == {}
    assert units(Account.Kind.WALLET) == 160


def test_a_difference_is_logged_as_an_error_and_written_down(gateway, caplog):
    top_up(gateway)
    reconcile(now=NOW)
    gateway.control("fees", currency="usd", amount=300)
    assert close() == {}
    bank, gateway_account = (
        Account.objects.get_or_create(kind=kind, currency="EUR", entries_only=True)[0]
        for kind in (Account.Kind.BANK, Account.Kind.GATEWAY)
    )
    lines = [Line(bank.pk, -7 * UNIT), Line(gateway_account.pk, 7 * UNIT)]
    ledger.post(key="by hand", kind="gateway_payout", lines=lines, effective_at=NOW)
    later = NOW + timedelta(hours=3)
    closes, report = close_day(now=later)
    assert {one.currency: one.difference_micros // UNIT for one in closes} == {"EUR": 7, "USD": 0, "GBP": 0}
    assert len(report.failures) == 1
    assert "Daily close" in caplog.text
    assert [(one.currency, one.difference_micros // UNIT, one.at) for one in last_closes()] == [
        ("EUR", 7, later),
        ("GBP", 0, later),
        ("USD", 0, later),
    ]
    assert AuditRecord.objects.filter(action="gateway.closed").count() == 6


def test_a_message_is_tried_again_when_an_operator_says_so(gateway, client):
    started = top_up(gateway)
    gateway.fault("fail_before", times=50, method="GET")
    gateway.deliver(client)
    assert apply_due_events(now=NOW) == 0
    gateway.control("switches", faults=[])
    waiting = GatewayEvent.objects.filter(applied_at=None)
    assert apply_due_events(now=NOW) == 0, "not due yet"
    operator = make_operator()
    for event in waiting:
        assert retry_event(event_pk=event.pk, operator=operator, ip_address="10.0.0.1", now=NOW)
    apply_due_events(now=NOW)
    started.refresh_from_db()
    assert started.state == "paid"
    [applied] = GatewayEvent.objects.filter(type="checkout.session.completed")
    assert not retry_event(event_pk=applied.pk, operator=operator, ip_address=None, now=NOW)
    written = AuditRecord.objects.filter(action="gateway_event.retried").latest("pk")
    assert (written.actor, written.subject_type) == (operator, "gateway_event")


def test_the_command_prints_what_was_found_and_exits_1_on_failures(gateway, settings):
    started = top_up(gateway, now=datetime.now(NOW.tzinfo))
    gateway.set_clock(datetime.now(NOW.tzinfo))
    out = StringIO()
    call_command("reconcile", "--close", stdout=out)
    printed = json.loads(out.getvalue())
    assert printed["report"]["failures"] == []
    assert {one["currency"]: one["difference"] for one in printed["close"]} == {
        "EUR": "0.00",
        "USD": "0.00",
        "GBP": "0.00",
    }
    started.refresh_from_db()
    gateway.change(started.payment_intent_id or "", status="canceled")
    with pytest.raises(SystemExit):
        call_command("reconcile", stdout=StringIO())
    settings.FAKE_STRIPE_URL = ""
    with pytest.raises(CommandError, match="off"):
        call_command("reconcile", stdout=StringIO())


def test_the_tasks_do_their_work_and_nothing_without_a_gateway(gateway, settings):
    gateway.set_clock(datetime.now(NOW.tzinfo))
    started = top_up(gateway, now=datetime.now(NOW.tzinfo))
    tasks.reconcile_with_gateway()
    started.refresh_from_db()
    assert started.state == "paid"
    gateway.fault("drop_after", method="POST", path="/v1/refunds")
    refund = refund_top_up(top_up=started, amount=None, requested_by=None, now=datetime.now(NOW.tzinfo))
    assert refund.state == "requested"
    tasks.submit_due_refunds()
    tasks.pay_open_receivables()
    tasks.close_day()
    refund.refresh_from_db()
    assert refund.state == "succeeded"
    assert {one.difference_micros for one in last_closes()} == {0}
    settings.FAKE_STRIPE_URL = ""
    for task in (tasks.reconcile_with_gateway, tasks.submit_due_refunds, tasks.close_day):
        task()


def test_without_a_gateway_nothing_is_asked(settings):
    settings.STRIPE_SECRET_KEY = settings.FAKE_STRIPE_URL = ""
    with pytest.raises(GatewayOff):
        reconcile(now=NOW)
