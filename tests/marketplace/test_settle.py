"""Settled hours: DESIGN's vectors to the micro, both sides of the books, and never above the hold."""

from datetime import timedelta

import pytest

from marketplace.models import Settlement
from marketplace.settlement.due import settle_due
from tests.marketplace.conftest import NOW, make_running_rental

pytestmark = pytest.mark.django_db


def test_an_hour_of_a_lot(h100, renter):
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=NOW + timedelta(minutes=3), hours=3)
    assert settle_due(until=NOW + timedelta(hours=2), now=NOW + timedelta(hours=2)) == {
        "hours": 1,
        "chunks": 1,
        "above_hold": 0,
    }
    print(Settlement.objects.values())
    assert 0
