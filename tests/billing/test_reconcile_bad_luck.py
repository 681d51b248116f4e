"""Days on which everything goes wrong at once: each closes with the books and the gateway in agreement."""

import random
from contextlib import suppress
from datetime import datetime
from decimal import Decimal

import pytest

from billing.models import Dispute, Refund, TopUp
from billing.reconcile.transactions import unmatched_transactions
from billing.refunds.request import RefundRefused, request_refund
from billing.refunds.submit import submit_due_refunds
from billing.topups.apply_event import apply_due_events
from tests.billing.conftest import NOW
from tests.billing.gateway_server import FakeStripe, Refused, post_message
from tests.billing.test_reconcile import DAY, close, gateway, top_up
from tests.factories import make_organisation
from users.models import Organisation

__all__ = ["gateway"]
pytestmark = pytest.mark.django_db


def live_a_while(gateway: FakeStripe, client, *, seed: int, days: int) -> None:
    """Payments, refunds, disputes and payouts, with messages lost, doubled and out of order; a close each day."""
    dice = random.Random(seed)
    for day in range(days):
        now = NOW + day * DAY
        gateway.set_clock(now)
        for _ in range(dice.randint(1, 4)):
            top_up(gateway, dice.randint(10, 90), now=now, pay=dice.random() < 0.9)
        _something_goes_back(gateway, dice, now)
        _deliver_badly(gateway, client, dice)
        apply_due_events(now=now)
        submit_due_refunds(now=now)
        assert close(now) == {}, f"seed {seed}, day {day}"
        assert unmatched_transactions() == [], f"seed {seed}, day {day}"
        if make_organisation().frozen_at and dice.random() < 0.5:
            Organisation.objects.update(frozen_at=None)


def _something_goes_back(gateway: FakeStripe, dice: random.Random, now: datetime) -> None:
    gateway.switch(refund_outcome=dice.choice(["succeeded", "succeeded", "pending", "failed"]))
    if dice.random() < 0.3:
        gateway.fault(dice.choice(["fail_before", "fail_after", "drop_after"]), method="POST", path="/v1/refunds")
    with suppress(RefundRefused):
        request_refund(
            organisation=make_organisation(),
            currency="EUR",
            amount=Decimal(dice.randint(1, 60)),
            requested_by=None,
            now=now,
        )
    gateway.control("switches", faults=[])
    paid = list(TopUp.objects.filter(state="paid").order_by("created_at"))
    for one in dice.sample(paid, min(len(paid), 2)):
        with suppress(Refused):
            if dice.random() < 0.5:
                gateway.refund(one.payment_intent_id or "", dice.randint(100, 1000))
            else:
                gateway.dispute(one.payment_intent_id or "", one.amount_micros // 10_000)
    _decide(gateway, dice)


def _decide(gateway: FakeStripe, dice: random.Random) -> None:
    for dispute in Dispute.objects.filter(state="open"):
        if dice.random() < 0.4:
            gateway.close_dispute(dispute.gateway_dispute_id, won=dice.random() < 0.5)
    for refund in Refund.objects.filter(state__in=["submitted", "succeeded"]):
        if dice.random() < 0.2:
            gateway.fail_refund(refund.gateway_refund_id or "")
        elif refund.state == "submitted":
            gateway.settle_refund(refund.gateway_refund_id or "")


def _deliver_badly(gateway: FakeStripe, client, dice: random.Random) -> None:
    messages = [message for message in gateway.messages() if dice.random() > 0.1]
    messages += [message for message in messages if dice.random() < 0.05]
    if dice.random() < 0.5:
        dice.shuffle(messages)
    for message in messages:
        post_message(client, message)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_week_of_bad_luck_closes_at_zero_each_day(gateway, client, seed):
    live_a_while(gateway, client, seed=seed, days=7)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_month_of_bad_luck_closes_at_zero_each_day(gateway, client, seed):
    live_a_while(gateway, client, seed=seed, days=30)
