"""A request for a refund that is sent again is the same refund, wherever the first run was cut off."""

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from billing import ledger
from billing.models import Refund
from billing.refunds.request import refund_top_up, request_refund
from tests.billing.conftest import NOW, UNIT, paid_top_up, wallet_of
from tests.billing.stub_gateway import stub
from users.models import Organisation

__all__ = ["stub"]
pytestmark = pytest.mark.django_db


def test_one_request_is_one_refund_over_several_payments(stub):
    wallet = wallet_of("dee")
    for _ in range(2):
        paid_top_up(wallet, units=30, paid_at=NOW)
    asked: dict[str, Any] = {
        "organisation": Organisation.objects.get(accounts=wallet),
        "currency": "EUR",
        "amount": Decimal(40),
        "requested_by": None,
        "now": NOW,
    }
    first = request_refund(**asked, request_id=uuid4())
    again = request_refund(**asked, request_id=first[0].request_id)
    assert [refund.pk for refund in again] == [refund.pk for refund in first]
    assert Refund.objects.count() == 2
    assert ledger.balance_micros(wallet.pk) == 20 * UNIT


def test_a_request_about_one_payment_is_one_refund(stub):
    wallet = wallet_of("dee")
    top_up = paid_top_up(wallet, units=30, paid_at=NOW)
    asked: dict[str, Any] = {"top_up": top_up, "amount": Decimal(10), "requested_by": None, "now": NOW}
    first = refund_top_up(**asked, request_id=uuid4())
    assert refund_top_up(**asked, request_id=first.request_id).pk == first.pk
    assert refund_top_up(**asked, request_id=uuid4()).pk != first.pk
    assert ledger.balance_micros(wallet.pk) == 10 * UNIT
