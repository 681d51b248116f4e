"""The demo fleet starts and stops machines within seconds; only the flaky one has bad luck."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from marketplace.models import Rental, Server
from marketplace.orders.place import place_order
from marketplace.rentals.stop import request_stop
from marketplace.rentals.sweep import sweep_rentals
from marketplace.sample_market.agents import Luck, luck_of, play_agents, servers_that_beat
from marketplace.sample_market.fleet import play_fleet
from marketplace.sample_market.rows import FLAKY
from marketplace.sweep import note_up
from tests.marketplace.conftest import NOW, make_listing, order_for

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


@pytest.fixture
def rent(h100, renter):
    """Rent one device of a sample server of that name."""

    def rented(name: str, *, luck: Luck | None = None) -> Rental:
        make_listing(gpu=h100, name=name, is_sample=True)
        for _ in range(60):
            placed = place_order(organisation_id=renter.pk, instruction=order_for(h100, hours=3), now=NOW)
            rental = Rental.objects.get(order_id=placed.order_id)
            if luck is None or luck_of(rental.pk) is luck:
                return rental
            request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=NOW)
        raise AssertionError("no rental had this luck")

    return rented


def play(rental: Rental, *, until: int, step: int = 2, start: int = 0) -> Rental:
    """Let the fleet, its beats and the sweep run from `start` to `until` seconds after the fill."""
    for second in range(start, until, step):
        now = NOW + second * SECOND
        note_up(now=now)
        play_agents(now=now)
        if second % 20 == 0:
            play_fleet(now=now)
            sweep_rentals(now=now)
    rental.refresh_from_db()
    return rental


def test_a_rental_runs_within_ten_seconds(rent):
    rental = play(rent("steady"), until=10)
    assert rental.state == Rental.State.RUNNING
    assert rental.ready_at is not None
    assert rental.ready_at <= NOW + 10 * SECOND
    assert rental.access["ssh_host"] == "steady.demo-fleet.example"


def test_a_stop_is_acknowledged_at_once(rent, renter):
    rental = play(rent("steady"), until=40)
    request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=NOW + 40 * SECOND)
    rental = play(rental, start=40, until=44)
    assert (rental.state, rental.end_reason) == (Rental.State.ENDED, "stopped")


def test_the_flaky_server_fails_a_start(rent):
    assert play(rent(FLAKY, luck=Luck.DOES_NOT_START), until=10).state == Rental.State.FAILED


def test_the_flaky_server_falls_silent_and_comes_back(rent):
    rental = play(rent(FLAKY, luck=Luck.FALLS_SILENT), until=600, step=4)
    assert rental.state == Rental.State.RUNNING
    assert rental.server.beat_spans.count() == 2


def test_the_flaky_server_loses_a_rental(rent):
    rental = play(rent(FLAKY, luck=Luck.IS_LOST), until=720, step=4)
    assert rental.state == Rental.State.INTERRUPTED
    assert Rental.objects.get(pk=rental.pk).hold.captured_micros == 0


def test_other_servers_beat_always(rent):
    rental = play(rent("steady"), until=10)
    assert servers_that_beat(now=NOW + timedelta(minutes=4)) == [rental.server_id]
    assert Server.objects.count() == 1
    assert {luck_of(uuid4()) for _ in range(200)} == set(Luck)
    assert rental.price_usd_per_gpu_hour == Decimal("2.8800")
