"""Silence of a server: a minute is nothing, up to five minutes are not billed, more ends the rental with its credit."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from billing.models import Account, Hold
from fx.models import Rate
from marketplace.models import BeatSpan, Lease, Rental, Server, Settlement, UpSpan
from marketplace.orders.place import place_order
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.provision import report_failed
from marketplace.rentals.stop import request_stop
from marketplace.servers import beat, beat_all
from marketplace.settlement.due import settle_due
from marketplace.sweep import note_up, sweep
from tests.marketplace.conftest import NOW, make_listing, make_renter, make_server, order_for
from tests.marketplace.rental_clock import beats_all_along, kinds, pass_time, rent, run, up_all_along

pytestmark = pytest.mark.django_db
READY = NOW + timedelta(minutes=2, seconds=30)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def silent(rental: Rental, *, since: datetime, until: datetime, step: timedelta | None = None):
    """Its server alone falls silent for this time."""
    return pass_time(since=since, until=until, silent=(rental.server,), step=step)


def settle(*, at: datetime) -> None:
    sweep(now=at)
    settle_due(until=at, now=at)


def billed(rental: Rental) -> list[tuple[int, int, bool]]:
    """Return each line's hour of the day, billed seconds, and whether it was reversed."""
    lines = Settlement.objects.filter(rental=rental).order_by("hour")
    return [(line.hour.hour, line.billed_seconds, line.reversed_at is not None) for line in lines]


def test_the_worked_example_to_the_micro(h100):
    """4 x 2.88 for three hours in Finland, paid in EUR; beats missing for two minutes; stopped at 12:30:00."""
    Rate.objects.create(day=NOW.date(), currency="USD", units_per_eur=Decimal("1.1476"), origin="ecb", stored_at=NOW)
    renter = make_renter(name="Aalto", currency="EUR", units=100, country="FI", type="consumer")
    rental = rent(h100, renter, hours=3, gpu_count=4, currency="EUR")
    assert rental.hold.remaining_micros == 37_794_362
    run(rental, ready_at=READY)
    at = READY.replace(minute=20, second=10, hour=11)
    pass_time(since=READY, until=at, step=timedelta(minutes=20))
    silent(rental, since=at, until=at + 2 * timedelta(minutes=1) - SECOND)
    pass_time(
        since=at + timedelta(minutes=2), until=at.replace(hour=12, minute=30, second=0), step=timedelta(minutes=5)
    )
    request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=at.replace(hour=12, minute=30, second=0))
    acknowledge_stop(rental_id=rental.pk, now=at.replace(hour=12, minute=30, second=3))
    lines = Settlement.objects.filter(rental=rental).order_by("hour")
    assert [(line.billed_seconds, line.gap_seconds) for line in lines] == [(3330, 0), (3480, 120), (1800, 0)]
    assert [line.net_micros for line in lines] == [9_285_465, 9_703_730, 5_019_170]
    assert [line.tax_micros for line in lines] == [2_367_794, 2_474_451, 1_279_888]
    assert [line.payable_micros for line in lines] == [9_590_400, 10_022_400, 5_184_000]
    hold = Hold.objects.get(pk=rental.hold_id)
    assert (hold.captured_micros, hold.remaining_micros) == (30_130_498, 0)


def test_a_minute_of_silence_is_no_gap(h100, renter):
    rental = run(rent(h100, renter), ready_at=READY)
    quiet_from = READY + timedelta(minutes=10)
    pass_time(since=READY, until=quiet_from)
    silent(rental, since=quiet_from, until=quiet_from + timedelta(seconds=59))
    pass_time(since=quiet_from + timedelta(seconds=60), until=READY + HOUR, step=timedelta(minutes=5))
    sweep(now=READY + HOUR + timedelta(seconds=120))
    assert sum(seconds for _, seconds, _ in billed(rental)) == 3600


def test_a_gap_is_not_billed_and_not_added_to_a_lot(h100, renter):
    rental = run(rent(h100, renter), ready_at=READY)
    quiet_from = READY + timedelta(minutes=10)
    pass_time(since=READY, until=quiet_from)
    silent(rental, since=quiet_from, until=quiet_from + timedelta(minutes=3))
    pass_time(since=quiet_from + timedelta(minutes=3), until=READY + HOUR, step=timedelta(minutes=5))
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason) == ("ending", "time_over")
    sweep(now=READY + HOUR + timedelta(seconds=120))
    assert sum(seconds for _, seconds, _ in billed(rental)) == 3600 - 180


@pytest.mark.parametrize(("seconds", "state"), [(300, "running"), (301, "interrupted")])
def test_five_minutes_are_a_gap_and_more_is_the_end(h100, renter, seconds, state):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    pass_time(since=READY, until=READY + timedelta(minutes=10))
    silent(rental, since=READY + timedelta(minutes=10), until=READY + timedelta(minutes=10, seconds=seconds))
    assert Rental.objects.get(pk=rental.pk).state == state


@pytest.mark.parametrize("swept", ["in time", "after the beats came again"])
def test_when_the_sweep_looks_makes_no_difference(h100, renter, swept):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    quiet_from = READY + timedelta(minutes=10)
    pass_time(since=READY, until=quiet_from)
    until = quiet_from + timedelta(seconds=330)
    if swept == "in time":
        silent(rental, since=quiet_from, until=until)
    up_all_along(since=quiet_from, until=until)
    beat(server_id=rental.server_id, now=until)
    sweep(now=until)
    rental.refresh_from_db()
    assert rental.state == "interrupted"
    assert rental.events.get(kind="interrupted").detail["last_beat_at"] == quiet_from.isoformat()
    assert billed(rental) == []


def test_the_credit_is_the_hour_of_the_last_beat_and_the_line_before_it(h100, renter):
    rental = run(rent(h100, renter, hours=5), ready_at=READY)
    wallet = Account.objects.get(pk=rental.wallet_id)
    quiet_from = READY.replace(hour=13, minute=20, second=0)
    pass_time(since=READY, until=quiet_from, step=timedelta(minutes=30))
    settle(at=quiet_from)
    assert [hour for hour, _, _ in billed(rental)] == [10, 11, 12]
    silent(rental, since=quiet_from, until=quiet_from + timedelta(minutes=5, seconds=10))
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason, rental.unbilled_from) == (
        "interrupted",
        "server_lost",
        quiet_from.replace(minute=0),
    )
    assert billed(rental) == [(10, 3330, False), (11, 3600, False), (12, 3600, True)]
    paid = sum(Settlement.objects.filter(reversed_at=None).values_list("gross_micros", flat=True))
    wallet.refresh_from_db()
    assert (wallet.posted_micros, wallet.held_micros) == (1_000_000_000 - paid, 0)
    earned = sum(Settlement.objects.filter(reversed_at=None).values_list("payable_micros", flat=True))
    assert Account.objects.get(kind="payable").posted_micros == earned
    assert not Lease.objects.filter(rental=rental, closed_sequence=None).exists()


def test_the_credit_is_the_same_when_the_hour_before_was_not_settled_yet(h100, renter):
    rental = run(rent(h100, renter, hours=5), ready_at=READY)
    quiet_from = READY.replace(hour=12, minute=1, second=0)
    pass_time(since=READY, until=quiet_from, step=timedelta(minutes=30))
    silent(rental, since=quiet_from, until=quiet_from + timedelta(minutes=5, seconds=1))
    assert billed(rental) == [(10, 3330, False), (11, 3600, True)]


def test_the_hour_of_the_last_beat_may_be_settled_already(h100, renter):
    """Silent from 10:58 on with the platform down for long: seen at 13:05, when the hours up to 11 were settled."""
    rental = run(rent(h100, renter, hours=5), ready_at=READY)
    quiet_from = READY.replace(hour=10, minute=58, second=0)
    pass_time(since=READY, until=quiet_from, step=timedelta(minutes=30))
    back_at = READY.replace(hour=13, minute=0, second=0)
    note_up(now=back_at)
    settle_due(until=back_at, now=back_at)
    assert [hour for hour, _, _ in billed(rental)] == [10, 11]
    silent(rental, since=back_at, until=back_at + timedelta(minutes=5, seconds=30))
    assert Rental.objects.get(pk=rental.pk).state == "interrupted"
    assert billed(rental) == [(10, billed(rental)[0][1], True), (11, 3600, True)]
    assert Account.objects.get(pk=rental.wallet_id).posted_micros == 1_000_000_000


def test_a_first_hour_has_nothing_before_it(h100, renter):
    rental = run(rent(h100, renter, hours=5), ready_at=READY)
    pass_time(since=READY, until=READY + timedelta(minutes=3))
    silent(rental, since=READY + timedelta(minutes=3), until=READY + timedelta(minutes=9))
    assert Rental.objects.get(pk=rental.pk).state == "interrupted"
    assert billed(rental) == []
    assert Account.objects.get(pk=rental.wallet_id).available_micros == 1_000_000_000


def test_time_when_the_platform_was_down_is_no_gap_and_no_interruption(h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    down_from, back_at = READY + timedelta(minutes=10), READY + timedelta(minutes=50)
    pass_time(since=READY, until=down_from, step=timedelta(minutes=5))
    sweep(now=back_at)
    assert UpSpan.objects.count() == 2
    beat(server_id=rental.server_id, now=back_at + timedelta(seconds=5))
    sweep(now=back_at + timedelta(seconds=10))
    assert Rental.objects.get(pk=rental.pk).state == "running"
    pass_time(since=back_at + timedelta(seconds=10), until=READY + 3 * HOUR, step=timedelta(minutes=20))
    sweep(now=READY + 3 * HOUR + timedelta(seconds=120))
    assert sum(seconds for _, seconds, _ in billed(rental)) >= 3 * 3600 - 5


def test_silence_counts_again_once_the_platform_is_back(h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    down_from, back_at = READY + timedelta(minutes=10), READY + timedelta(minutes=50)
    pass_time(since=READY, until=down_from, step=timedelta(minutes=5))
    note_up(now=back_at)
    silent(rental, since=back_at, until=back_at + timedelta(minutes=5))
    assert Rental.objects.get(pk=rental.pk).state == "running"
    silent(rental, since=back_at + timedelta(minutes=5), until=back_at + timedelta(minutes=5, seconds=1))
    assert Rental.objects.get(pk=rental.pk).state == "interrupted"


def test_a_stop_while_the_network_is_split_bills_to_the_request_less_the_silence(h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    quiet_from = READY + timedelta(minutes=30)
    pass_time(since=READY, until=quiet_from)
    silent(rental, since=quiet_from, until=quiet_from + timedelta(minutes=3))
    request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=quiet_from + timedelta(minutes=4))
    silent(rental, since=quiet_from + timedelta(minutes=3), until=quiet_from + timedelta(minutes=7))
    rental.refresh_from_db()
    assert (rental.state, rental.stop_requested_at) == ("ended", quiet_from + timedelta(minutes=4))
    assert billed(rental) == [(10, 1800, False)]


def test_a_stop_after_the_machine_was_lost_is_an_interruption(h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    pass_time(since=READY, until=READY + timedelta(minutes=30))
    asked_at = READY + timedelta(minutes=35, seconds=1)
    up_all_along(since=READY + timedelta(minutes=30), until=asked_at)
    assert request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=asked_at).state == "interrupted"
    assert billed(rental) == []


def test_what_is_paid_no_longer_is_over_and_not_lost(h100, renter):
    rental = run(rent(h100, renter, hours=1), ready_at=READY)
    quiet_from = READY + HOUR - timedelta(minutes=4)
    pass_time(since=READY, until=quiet_from, step=timedelta(minutes=5))
    silent(rental, since=quiet_from, until=quiet_from + timedelta(minutes=9))
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason) == ("ended", "time_over")
    assert sum(seconds for _, seconds, _ in billed(rental)) == 3600 - 240


def test_a_server_that_says_it_lost_the_machine_interrupts(h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    pass_time(since=READY, until=READY + timedelta(minutes=30))
    assert report_failed(rental_id=rental.pk, reason="host_lost", now=READY + timedelta(minutes=30))
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason, kinds(rental)[-1]) == ("interrupted", "host_lost", "interrupted")
    assert billed(rental) == []


def test_one_silent_server_takes_nothing_from_another(h100, renter):
    lost, fine = rent(h100, renter, hours=3), rent(h100, renter, hours=3, gpu_count=8)
    assert lost.server_id != fine.server_id
    run(lost, ready_at=READY)
    run(fine, ready_at=READY)
    silent(lost, since=READY, until=READY + timedelta(minutes=6))
    assert set(Rental.objects.values_list("pk", "state")) == {(lost.pk, "interrupted"), (fine.pk, "running")}


def spans(server: Server) -> list[tuple[float, float]]:
    """Return a server's spans, in seconds from NOW."""
    found = BeatSpan.objects.filter(server=server).order_by("first_beat_at")
    return [((one.first_beat_at - NOW).total_seconds(), (one.last_beat_at - NOW).total_seconds()) for one in found]


def test_beats_within_a_minute_are_one_span(h100):
    server = make_server(gpu=h100)
    for seconds in (20, 40, 100, 161, 181):
        beat(server_id=server.pk, now=NOW + timedelta(seconds=seconds))
    assert spans(server) == [(0, 100), (161, 181)]
    assert Server.objects.get(pk=server.pk).last_beat_at == NOW + timedelta(seconds=181)


def test_a_beat_that_comes_late_or_twice_changes_nothing(h100):
    server = make_server(gpu=h100)
    for seconds in (40, 20, 40, 0):
        beat(server_id=server.pk, now=NOW + timedelta(seconds=seconds))
    assert spans(server) == [(0, 40)]


def test_servers_that_beat_together_are_noted_as_one_by_one(h100):
    first, second = make_server(gpu=h100), make_server(gpu=h100)
    beats_all_along(first, since=NOW, until=NOW + timedelta(seconds=30))
    beat_all(server_ids=[first.pk, second.pk], now=NOW + timedelta(seconds=75))
    assert (spans(first), spans(second)) == ([(0, 75)], [(0, 0), (75, 75)])


def test_devices_that_were_lost_are_for_rent_once_their_server_beats_again(h100, renter):
    make_listing(gpu=h100, devices=1)
    rental = run(rent(h100, renter, new_server=False, hours=3), ready_at=READY)
    silent(rental, since=READY, until=READY + timedelta(minutes=6))
    now = READY + timedelta(minutes=6)
    placed = place_order(organisation_id=renter.pk, instruction=order_for(h100), now=now)
    assert placed.state == "open"
    beat(server_id=rental.server_id, now=now + timedelta(minutes=1))
    assert Rental.objects.get(order_id=placed.order_id).device_ids == rental.device_ids
