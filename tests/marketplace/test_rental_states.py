"""A rental goes only the ways that are listed, each with an event; what does not fit is refused and changes nothing."""

from datetime import timedelta
from itertools import product

import pytest

from billing.models import Hold
from marketplace.limits import START_WITHIN
from marketplace.models import Lease, Rental, RentalEvent, Strike, UpSpan
from marketplace.rentals.changes import move
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.interrupt import interrupt
from marketplace.rentals.provision import accept_start, report_failed
from marketplace.rentals.ready import report_ready
from marketplace.rentals.states import TRANSITIONS, HistoryBroken, RentalStateRefused, RentalUnknown, may_move, replayed
from marketplace.rentals.stop import request_stop
from marketplace.sweep import sweep
from tests.marketplace.conftest import NOW, make_listing
from tests.marketplace.rental_clock import ACCESS, kinds, pass_time, rent, run, up_all_along

pytestmark = pytest.mark.django_db
READY = NOW + timedelta(minutes=2, seconds=30)
STATES = list(TRANSITIONS)


def bring_to(state, h100, renter):
    """Return a rental that went to a state by the flows themselves."""
    rental = rent(h100, renter, hours=3)
    if state == "pending":
        return rental
    accept_start(rental_id=rental.pk, now=NOW + timedelta(seconds=1))
    if state in ("running", "ending", "ended", "interrupted"):
        run(rental, ready_at=READY)
    if state in ("ending", "ended"):
        request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=READY + timedelta(minutes=30))
    if state == "ended":
        acknowledge_stop(rental_id=rental.pk, now=READY + timedelta(minutes=30, seconds=5))
    if state == "failed":
        report_failed(rental_id=rental.pk, reason="image_pull_failed", now=NOW + timedelta(seconds=9))
    if state == "interrupted":
        interrupt(rental_id=rental.pk, reason="server_lost", now=READY + timedelta(minutes=9))
    rental.refresh_from_db()
    assert rental.state == state
    return rental


def test_the_table_of_ways():
    ways = {(before, after) for before, afters in TRANSITIONS.items() for after in afters}
    assert ways == {
        ("pending", "provisioning"),
        ("pending", "failed"),
        ("pending", "ended"),
        ("provisioning", "running"),
        ("provisioning", "failed"),
        ("provisioning", "ending"),
        ("provisioning", "ended"),
        ("running", "ending"),
        ("running", "interrupted"),
        ("ending", "ended"),
    }
    assert set(TRANSITIONS) == set(Rental.State.values)


@pytest.mark.parametrize(("before", "after"), [pair for pair in product(STATES, STATES) if not may_move(*pair)])
def test_no_other_way_is_ever_written(before, after):
    with pytest.raises(ValueError, match="No way leads"):
        move(
            rental_id=Rental().pk,
            from_states=(Rental.State(before),),
            to_state=Rental.State(after),
            at=NOW,
        )


@pytest.mark.parametrize("state", STATES)
def test_the_events_rebuild_the_state(h100, renter, state):
    assert replayed(kinds(bring_to(state, h100, renter))) == state


@pytest.mark.parametrize(
    "story", [[], ["running"], ["pending", "running"], ["pending", "failed", "ended"], ["pending", "pending"]]
)
def test_a_history_with_a_step_missing_is_noticed(story):
    with pytest.raises(HistoryBroken):
        replayed(story)


REPORTS = {
    "accept": (lambda pk, now: accept_start(rental_id=pk, now=now), {"pending"}, {"provisioning"}),
    "ready": (lambda pk, now: report_ready(rental_id=pk, access=ACCESS, now=now), {"provisioning"}, {"running"}),
    "failed": (
        lambda pk, now: report_failed(rental_id=pk, reason="gpu_fell_off_the_bus", now=now),
        {"pending", "provisioning", "running"},
        {"failed", "interrupted"},
    ),
    "stopped": (lambda pk, now: acknowledge_stop(rental_id=pk, now=now), {"ending"}, {"ended"}),
}


@pytest.mark.parametrize(("report", "state"), list(product(REPORTS, STATES)))
def test_a_server_s_report_is_taken_once_and_only_where_it_fits(h100, renter, report, state):
    tell, fits, known = REPORTS[report]
    rental = bring_to(state, h100, renter)
    before, now = (kinds(rental), Hold.objects.get(pk=rental.hold_id).remaining_micros), READY + timedelta(minutes=31)
    if report == "ready":
        now = READY
    if state in fits:
        assert tell(rental.pk, now)
        assert len(kinds(rental)) == len(before[0]) + 1
        assert not tell(rental.pk, now), "told twice is told once"
    elif state in known:
        assert not tell(rental.pk, now)
    else:
        with pytest.raises(RentalStateRefused) as refused:
            tell(rental.pk, now)
        assert refused.value.state == state
    if state not in fits:
        rental.refresh_from_db()
        assert rental.state == state
        assert (kinds(rental), Hold.objects.get(pk=rental.hold_id).remaining_micros) == before


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_on_no_rental_says_so(db, report):
    with pytest.raises(RentalUnknown):
        REPORTS[report][0](Rental().pk, NOW)


def test_ten_minutes_without_the_probe_fail_free_of_charge_with_a_strike(h100, renter):
    rental = rent(h100, renter, hours=3, gpu_count=4)
    accept_start(rental_id=rental.pk, now=NOW + timedelta(minutes=1))
    pass_time(since=NOW, until=NOW + START_WITHIN - timedelta(seconds=1))
    rental.refresh_from_db()
    assert rental.state == "provisioning"
    counts = pass_time(since=NOW + START_WITHIN - timedelta(seconds=1), until=NOW + START_WITHIN)
    assert counts["rentals_failed"] == 1
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason, rental.ended_at) == ("failed", "not_started_in_time", NOW + START_WITHIN)
    hold = Hold.objects.get(pk=rental.hold_id)
    assert (hold.captured_micros, hold.remaining_micros, hold.burn_micros_per_hour) == (0, 0, 0)
    assert not Lease.objects.filter(rental=rental, closed_sequence=None).exists()
    strike = Strike.objects.get()
    assert (strike.rental, strike.server, strike.provider_id) == (rental, rental.server, rental.server.provider_id)
    assert sweep(now=NOW + START_WITHIN)["rentals_failed"] == 0


def test_ready_at_the_last_moment_is_in_time_and_a_second_later_is_not(h100, renter):
    in_time, late = rent(h100, renter), rent(h100, renter)
    for rental in (in_time, late):
        accept_start(rental_id=rental.pk, now=NOW + timedelta(minutes=1))
    assert report_ready(rental_id=in_time.pk, access=ACCESS, now=NOW + START_WITHIN)
    with pytest.raises(RentalStateRefused):
        report_ready(rental_id=late.pk, access=ACCESS, now=NOW + START_WITHIN + timedelta(milliseconds=1))
    late.refresh_from_db()
    assert (late.state, late.ready_at) == ("failed", None)


def test_while_the_platform_was_down_nobody_could_be_ready_and_nobody_is_struck(h100, renter):
    rental = rent(h100, renter)
    UpSpan.objects.all().delete()
    up_all_along(since=NOW, until=NOW + timedelta(minutes=2))
    sweep(now=NOW + timedelta(minutes=30))
    rental.refresh_from_db()
    assert rental.state == "failed"
    assert not Strike.objects.exists()


def test_the_devices_of_a_failed_start_go_to_whoever_waits(h100, renter):
    make_listing(gpu=h100, devices=1)
    first = rent(h100, renter, new_server=False)
    with pytest.raises(Rental.DoesNotExist):
        rent(h100, renter, new_server=False)  # rests
    pass_time(since=NOW, until=NOW + START_WITHIN)
    second = Rental.objects.exclude(pk=first.pk).get()
    assert (second.state, second.device_ids) == ("pending", first.device_ids)


@pytest.mark.parametrize("reason", ["", "Not a name", "x" * 41, "drop table;"])
def test_a_reason_is_a_short_name(h100, renter, reason):
    rental = rent(h100, renter)
    with pytest.raises(ValueError, match="reason"):
        report_failed(rental_id=rental.pk, reason=reason, now=NOW)
    assert RentalEvent.objects.filter(rental=rental).count() == 1
