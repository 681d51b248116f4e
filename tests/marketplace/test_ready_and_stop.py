"""From the probe to the stop: nothing is billed before the one or after the other, and the money follows at once."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line
from billing.models import Account, Hold
from marketplace.models import HeldHours, Lease, Rental, Settlement, UpSpan
from marketplace.orders.place import place_order
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.provision import accept_start
from marketplace.rentals.ready import report_ready
from marketplace.rentals.states import RentalUnknown, whole_second_after, whole_second_before
from marketplace.rentals.stop import request_stop
from marketplace.sweep import sweep
from tests.factories import make_organisation
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for
from tests.marketplace.rental_clock import ACCESS, beats_all_along, kinds, pass_time, rent, run, up_all_along
from users.freezing import freeze

pytestmark = pytest.mark.django_db
READY = NOW + timedelta(minutes=2, seconds=30)
HOUR = timedelta(hours=1)


def stop(rental: Rental, *, at: datetime) -> Rental:
    return request_stop(organisation_id=rental.organisation_id, rental_id=rental.pk, now=at)


def money_of(rental: Rental) -> tuple[int, int, int]:
    """Return what is held for it, what was captured, and what it burns."""
    hold = Hold.objects.get(pk=rental.hold_id)
    return hold.remaining_micros, hold.captured_micros, hold.burn_micros_per_hour


def owe(wallet: Account, *, units: int) -> None:
    """Let an organisation owe us: a payment of these units was taken back when the wallet had nothing."""
    receivable = open_account(kind=Account.Kind.RECEIVABLE, currency=wallet.currency, owner_id=wallet.owner_id)
    losses = open_account(kind=Account.Kind.LOSSES, currency=wallet.currency)
    micros = int(Decimal(units) * 1_000_000)
    ledger.post(
        key=f"owed:{wallet.pk}",
        kind="claw_back",
        lines=[Line(receivable.pk, -micros), Line(losses.pk, micros)],
        effective_at=NOW,
    )


def test_a_lot_is_paid_for_all_its_hours_from_the_probe_on(h100, renter):
    rental = rent(h100, renter, hours=3, gpu_count=4)
    assert money_of(rental) == (41_817_608, 0, 0)
    accept_start(rental_id=rental.pk, now=NOW + timedelta(seconds=3))
    report_ready(rental_id=rental.pk, access=ACCESS, now=READY)
    rental.refresh_from_db()
    assert (rental.ready_at, rental.paid_until, rental.access) == (READY, READY + 3 * HOUR, ACCESS)
    assert money_of(rental) == (41_817_608, 0, 13_939_200)  # 4 x 2.88 x 1.21 an hour


def test_an_open_ended_rental_is_paid_for_one_hour(h100, renter):
    rental = run(rent(h100, renter, hours=None), ready_at=READY)
    assert rental.paid_until == READY + HOUR


def test_ready_counts_from_the_next_whole_second(h100, renter):
    rental = run(rent(h100, renter), ready_at=READY + timedelta(milliseconds=1))
    assert rental.ready_at == READY + timedelta(seconds=1)
    assert whole_second_after(READY) == whole_second_before(READY) == READY


def test_billing_ends_with_the_request_in_whole_seconds(h100, renter):
    rental = run(rent(h100, renter, hours=3, gpu_count=4), ready_at=READY)
    asked_at = READY + timedelta(minutes=37, milliseconds=900)
    beats_all_along(rental.server, since=READY, until=asked_at)
    rental = stop(rental, at=asked_at)
    assert (rental.state, rental.stop_requested_at, rental.ended_at) == ("ending", READY + timedelta(minutes=37), None)
    # 2,220 seconds at most, and two micros for the one UTC hour they touch
    assert money_of(rental) == (8_595_840 + 2, 0, 0)
    assert Lease.objects.filter(rental=rental, closed_sequence=None).count() == 4, "the machine is not free yet"


def test_a_second_request_changes_nothing(h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    first = stop(rental, at=READY + timedelta(minutes=10))
    again = stop(rental, at=READY + timedelta(minutes=11))
    assert (again.state, again.stop_requested_at) == ("ending", first.stop_requested_at)
    acknowledge_stop(rental_id=rental.pk, now=READY + timedelta(minutes=11))
    before = kinds(rental)
    assert stop(rental, at=READY + timedelta(minutes=12)).state == "ended"
    assert kinds(rental) == before == ["pending", "provisioning", "running", "ending", "ended"]


def test_the_server_s_word_ends_it_settles_it_and_frees_the_machine(h100, renter):
    listing = make_listing(gpu=h100, devices=1)
    rental = run(rent(h100, renter, new_server=False, hours=3), ready_at=READY)
    waiting = order_for(h100, hours=1)
    place_order(organisation_id=renter.pk, instruction=waiting, now=READY + timedelta(minutes=5))
    pass_time(since=READY, until=READY + timedelta(minutes=30))
    stop(rental, at=READY + timedelta(minutes=30))
    acknowledge_stop(rental_id=rental.pk, now=READY + timedelta(minutes=30, seconds=4))
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason) == ("ended", "stopped")
    line = Settlement.objects.get(rental=rental)
    assert (line.billed_seconds, line.gross_micros) == (1800, 1_742_400)
    assert money_of(rental) == (0, 1_742_400, 0)
    assert Rental.objects.exclude(pk=rental.pk).get().listing == listing, "who waited has it in the same moment"


def test_without_a_word_it_counts_as_stopped_after_two_minutes(h100, renter):
    rental = run(rent(h100, renter, hours=3), ready_at=READY)
    pass_time(since=READY, until=READY + timedelta(minutes=10))
    asked_at = READY + timedelta(minutes=10)
    stop(rental, at=asked_at)
    pass_time(since=asked_at, until=asked_at + timedelta(seconds=119))
    assert Rental.objects.get(pk=rental.pk).state == "ending"
    pass_time(since=asked_at + timedelta(seconds=119), until=asked_at + timedelta(seconds=120))
    rental.refresh_from_db()
    assert (rental.state, rental.ended_at) == ("ended", asked_at + timedelta(seconds=120))
    assert Settlement.objects.get(rental=rental).billed_seconds == 600


def test_a_lot_ends_after_its_hours(h100, renter):
    rental = run(rent(h100, renter, hours=1), ready_at=READY)
    pass_time(since=READY, until=READY + HOUR - timedelta(seconds=1), step=timedelta(minutes=5))
    assert Rental.objects.get(pk=rental.pk).state == "running"
    pass_time(since=READY + HOUR - timedelta(seconds=1), until=READY + HOUR)
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason, rental.stop_requested_at) == ("ending", "time_over", None)
    assert rental.events.get(kind="ending").at == READY + HOUR
    acknowledge_stop(rental_id=rental.pk, now=READY + HOUR + timedelta(seconds=3))
    assert sum(Settlement.objects.values_list("billed_seconds", flat=True)) == 3600


def test_a_server_may_say_that_time_is_over_before_we_notice(h100, renter):
    rental = run(rent(h100, renter, hours=1), ready_at=READY)
    pass_time(since=READY, until=READY + HOUR - timedelta(seconds=1), step=timedelta(minutes=5))
    assert acknowledge_stop(rental_id=rental.pk, now=READY + HOUR + timedelta(seconds=1))
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason) == ("ended", "time_over")


def test_what_was_paid_no_longer_when_the_platform_was_down_ended_then(h100, renter):
    rental = run(rent(h100, renter, hours=None), ready_at=READY)
    pass_time(since=READY, until=READY + timedelta(minutes=20))
    sweep(now=READY + timedelta(hours=4))
    rental.refresh_from_db()
    assert (rental.state, rental.ended_at, rental.end_reason) == ("ended", READY + HOUR, "platform_down")
    assert sum(Settlement.objects.values_list("billed_seconds", flat=True)) == 3600
    assert kinds(rental)[-2:] == ["ending", "ended"]


def test_a_stop_after_what_is_paid_bills_to_what_is_paid(h100, renter):
    rental = run(rent(h100, renter, hours=1), ready_at=READY)
    beats_all_along(rental.server, since=READY, until=READY + 2 * HOUR)
    rental = stop(rental, at=READY + HOUR + timedelta(seconds=30))
    assert (rental.state, rental.stop_requested_at, rental.end_reason) == ("ending", None, "time_over")
    sweep(now=READY + HOUR + timedelta(seconds=120))
    assert sum(Settlement.objects.values_list("billed_seconds", flat=True)) == 3600


@pytest.mark.parametrize("asked_after", [timedelta(seconds=1), timedelta(minutes=3)])
def test_what_never_ran_costs_nothing_when_it_is_stopped(h100, renter, asked_after):
    pending, taken_on = rent(h100, renter, hours=3), rent(h100, renter, hours=3)
    accept_start(rental_id=taken_on.pk, now=NOW)
    assert stop(pending, at=NOW + asked_after).state == "ended"
    assert stop(taken_on, at=NOW + asked_after).state == "ending", "its server is at work on it"
    assert money_of(taken_on) == money_of(pending) == (0, 0, 0)
    sweep(now=NOW + asked_after + timedelta(seconds=120))
    taken_on.refresh_from_db()
    assert (taken_on.state, taken_on.ready_at) == ("ended", None)
    assert not Settlement.objects.exists()


def test_somebody_else_s_rental_is_unknown(h100, renter):
    rental = run(rent(h100, renter), ready_at=READY)
    stranger = make_organisation(name="Elsewhere B.V.")
    with pytest.raises(RentalUnknown):
        request_stop(organisation_id=stranger.pk, rental_id=rental.pk, now=READY)
    assert Rental.objects.get(pk=rental.pk).state == "running"


def test_the_rentals_of_a_frozen_organisation_stop(h100):
    frozen, other = make_renter(name="Frozen B.V."), make_renter(name="Other B.V.")
    running, starting, theirs = rent(h100, frozen, hours=3), rent(h100, frozen), rent(h100, other)
    run(running, ready_at=READY)
    accept_start(rental_id=starting.pk, now=READY)
    freeze(organisation_id=frozen.pk, reason="A payment was disputed", now=READY + timedelta(minutes=1))
    counts = pass_time(since=READY, until=READY + timedelta(minutes=2))
    assert counts["rentals_of_frozen_stopped"] == 2
    states = dict(Rental.objects.values_list("pk", "state"))
    assert (states[running.pk], states[starting.pk], states[theirs.pk]) == ("ending", "ending", "pending")
    assert set(Rental.objects.filter(organisation=frozen).values_list("end_reason", flat=True)) == {"frozen"}


def test_money_that_comes_free_pays_what_is_owed_first(h100, renter):
    rental = run(rent(h100, renter, hours=3, gpu_count=4), ready_at=READY)
    wallet = Account.objects.get(pk=rental.wallet_id)
    owe(wallet, units=20)
    pass_time(since=READY, until=READY + timedelta(minutes=30))
    before = Account.objects.get(pk=wallet.pk).available_micros
    stop(rental, at=READY + timedelta(minutes=30))
    freed = 41_817_608 - (6_969_600 + 2)
    assert Account.objects.get(kind="receivable").posted_micros == 0
    assert Account.objects.get(pk=wallet.pk).available_micros == before + freed - 20_000_000


def test_the_time_of_the_lease_is_over_for_an_open_ended_rental(h100, renter):
    make_listing(gpu=h100, max_hours=1)
    rental = rent(h100, renter, new_server=False, hours=None)
    assert rental.lease_until == NOW + HOUR + timedelta(minutes=10)
    run(rental, ready_at=READY)
    pass_time(since=READY, until=READY + HOUR, step=timedelta(minutes=1))
    rental.refresh_from_db()
    assert rental.paid_until == rental.lease_until, "a second hour is held, and reaches to the end of the lease"
    assert HeldHours.objects.filter(rental=rental).count() == 2
    pass_time(since=READY + HOUR, until=rental.lease_until, step=timedelta(minutes=1))
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason) == ("ending", "lease_over")
    sweep(now=rental.lease_until + timedelta(seconds=120))
    lines = Settlement.objects.filter(rental=rental)
    assert sum(line.billed_seconds for line in lines) == (rental.lease_until - READY).total_seconds()
    assert money_of(rental)[0] == 0


def test_up_time_is_needed_to_judge(h100, renter):
    """The helper that these tests live by: a second span of up time begins after a minute of none."""
    up_all_along(since=NOW, until=NOW + timedelta(minutes=1))
    up_all_along(since=NOW + timedelta(minutes=1), until=NOW + timedelta(minutes=2))
    up_all_along(since=NOW + timedelta(minutes=9), until=NOW + timedelta(minutes=10))
    assert UpSpan.objects.count() == 2
