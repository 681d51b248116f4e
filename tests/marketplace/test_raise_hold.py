"""Hour by hour: an open-ended rental holds its next hour in time, at the rates of then, or ends cleanly without."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from billing import holds
from billing.ledger import InsufficientFunds, KeyReused, UnknownAccount
from billing.models import Account, Hold, HoldMovement
from billing.tax.record import tax_details_changed
from fx.models import Rate
from marketplace.models import HeldHours, Rental, Settlement
from marketplace.rentals import raise_hold as raising
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.raise_hold import raise_due, raise_hold
from marketplace.rentals.stop import request_stop
from marketplace.settlement.due import settle_due
from marketplace.sweep import sweep
from tests.billing.conftest import paid_top_up, refused, wallet_of
from tests.marketplace.conftest import NOW, make_listing, make_renter
from tests.marketplace.rental_clock import kinds, pass_time, rent, run
from users.models import Organisation

pytestmark = pytest.mark.django_db
READY = NOW + timedelta(minutes=2, seconds=30)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def usd_per_eur(value: str, *, on: datetime) -> None:
    Rate.objects.create(day=on.date(), currency="USD", units_per_eur=Decimal(value), origin="ecb", stored_at=on)


def finn(*, micros: int = 100_000_000) -> Organisation:
    """Return a consumer in Finland with this much in EUR."""
    renter = make_renter(name="Aalto", currency="EUR", units=0, country="FI", type="consumer")
    paid_top_up(wallet_of("Aalto", currency="EUR"), micros=micros)
    return renter


def hourly(h100, renter, **values) -> Rental:
    """Return an open-ended rental that runs since READY."""
    return run(rent(h100, renter, hours=None, **values), ready_at=READY)


def test_the_worked_example_to_the_micro(h100):
    day = NOW.replace(hour=0, minute=0)
    usd_per_eur("1.1476", on=day - timedelta(days=1))
    renter, ready_at = finn(), day.replace(hour=15, minute=42)
    rental = rent(h100, renter, hours=None, limit="4.19", currency="EUR", now=day.replace(hour=15, minute=40))
    assert rental.hold.remaining_micros == 4_582_132
    run(rental, ready_at=ready_at)
    pass_time(since=ready_at, until=day.replace(hour=16, minute=32), step=timedelta(minutes=25))
    assert HeldHours.objects.filter(rental=rental).count() == 1, "ten minutes are paid"
    usd_per_eur("1.1500", on=day)
    pass_time(since=day.replace(hour=16, minute=32), until=day.replace(hour=16, minute=32, second=1))
    held = HeldHours.objects.get(rental=rental, first_hour=1)
    assert (held.held_micros, held.fx_rate, held.fx_on) == (4_572_570, Decimal("0.8695652174"), day.date())
    pass_time(since=day.replace(hour=16, minute=32, second=1), until=day.replace(hour=17, minute=10), step=5 * MINUTE)
    now = day.replace(hour=18, minute=5)
    pass_time(since=day.replace(hour=17, minute=10), until=now, step=5 * MINUTE)
    settle_due(until=now, now=now)
    line = Settlement.objects.get(rental=rental, hour=day.replace(hour=16))
    assert (line.first_seconds, line.next_seconds) == (2520, 1080)
    assert (line.net_micros, line.tax_micros) == (3_648_812, 930_447)


@pytest.mark.parametrize(("left", "raised"), [(10 * MINUTE, 0), (10 * MINUTE - timedelta(seconds=1), 1)])
def test_an_hour_is_held_when_less_than_ten_minutes_are_paid(h100, renter, left, raised):
    rental = hourly(h100, renter)
    assert raise_due(now=rental.paid_until - left) == raised


def test_a_held_hour_moves_what_is_paid_and_the_hold(h100, renter):
    rental = hourly(h100, renter)
    hold = Hold.objects.get(pk=rental.hold_id)
    assert (hold.remaining_micros, hold.burn_micros_per_hour) == (3_484_804, 3_484_800)
    assert raise_hold(rental_id=rental.pk, now=rental.paid_until - 5 * MINUTE)
    hold.refresh_from_db()
    assert (hold.placed_micros, hold.remaining_micros) == (2 * 3_484_804, 2 * 3_484_804)
    assert HoldMovement.objects.get(key=f"raise:{rental.pk}:1").amount_micros == 3_484_804
    before = rental.paid_until
    rental.refresh_from_db()
    assert rental.paid_until == before + HOUR
    assert kinds(rental)[-1] == "raised"


def test_a_second_run_finds_the_hour_held(h100, renter):
    rental = hourly(h100, renter)
    now = rental.paid_until - 5 * MINUTE
    assert [raise_due(now=now), raise_due(now=now)] == [1, 0]
    assert not raise_hold(rental_id=rental.pk, now=now)
    assert HeldHours.objects.filter(rental=rental).count() == 2


def test_a_day_is_held_hour_after_hour(h100, renter):
    rental = hourly(h100, renter)
    pass_time(since=READY, until=READY + 24 * HOUR, step=5 * MINUTE)
    held = HeldHours.objects.filter(rental=rental).order_by("first_hour")
    assert [row.first_hour for row in held] == list(range(25))
    assert Rental.objects.get(pk=rental.pk).state == "running"


def test_a_lot_is_never_raised(h100, renter):
    rental = run(rent(h100, renter, hours=1), ready_at=READY)
    assert raise_due(now=rental.paid_until - MINUTE) == 0
    assert not raise_hold(rental_id=rental.pk, now=rental.paid_until - MINUTE)


def test_the_age_of_a_rate_never_stops_what_runs(h100, settings):
    settings.FX_MAX_AGE_DAYS = 5
    usd_per_eur("1.1476", on=NOW - timedelta(days=5))
    rental = hourly(h100, finn(), currency="EUR")
    settings.FX_MAX_AGE_DAYS = 1
    assert raise_due(now=rental.paid_until - MINUTE) == 1


def test_the_tax_of_then_is_held(h100, renter):
    rental = hourly(h100, renter)
    renter.country, renter.type = "FI", "consumer"
    renter.save()
    tax_details_changed(organisation_id=renter.pk, now=READY)  # counts from 11:00
    assert raise_due(now=rental.paid_until - MINUTE) == 1
    first, second = HeldHours.objects.filter(rental=rental).order_by("first_hour")
    assert (first.tax_rate_percent, second.tax_rate_percent) == (Decimal(21), Decimal("25.5"))
    assert Hold.objects.get(pk=rental.hold_id).burn_micros_per_hour == 3_614_400


def test_without_the_money_it_ends_cleanly_at_what_is_paid(h100):
    renter = make_renter(name="Short B.V.", units=4)
    rental = hourly(h100, renter)
    pass_time(since=READY, until=READY + HOUR - timedelta(seconds=10), step=MINUTE)
    assert kinds(rental)[-1] == "raise_refused"
    assert kinds(rental).count("raise_refused") == 1, "each sweep tries; it is told once"
    pass_time(since=READY + HOUR - timedelta(seconds=10), until=READY + HOUR)
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason) == ("ending", "no_money")
    acknowledge_stop(rental_id=rental.pk, now=READY + HOUR + timedelta(seconds=2))
    wallet = Account.objects.get(pk=rental.wallet_id)
    assert (wallet.posted_micros, wallet.held_micros) == (4_000_000 - 3_484_800, 0)


def test_a_top_up_in_the_last_minute_keeps_it_running(h100):
    renter = make_renter(name="Short B.V.", units=4)
    rental = hourly(h100, renter)
    pass_time(since=READY, until=READY + HOUR - MINUTE, step=MINUTE)
    paid_top_up(Account.objects.get(pk=rental.wallet_id), units=4)
    pass_time(since=READY + HOUR - MINUTE, until=READY + HOUR, step=timedelta(seconds=10))
    rental.refresh_from_db()
    assert (rental.state, rental.paid_until) == ("running", READY + 2 * HOUR)


@pytest.mark.parametrize("why", ["no_rate", "not_sold"])
def test_what_else_keeps_an_hour_from_being_held_is_said(h100, renter, monkeypatch, why):
    rental = hourly(h100, renter)
    if why == "no_rate":
        monkeypatch.setattr(raising, "order_rate", raises(raising.FxTooOld("EUR", None)))
    else:
        monkeypatch.setattr(raising, "order_tax_percent", raises(raising.NotSold()))
    pass_time(since=READY, until=READY + HOUR, step=5 * MINUTE)
    rental.refresh_from_db()
    assert (rental.state, rental.end_reason) == ("ending", why)


def test_what_was_stopped_is_not_raised(h100, renter):
    rental = hourly(h100, renter)
    now = rental.paid_until - 5 * MINUTE
    request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=now)
    assert not raise_hold(rental_id=rental.pk, now=now)
    assert HeldHours.objects.filter(rental=rental).count() == 1


def test_what_was_held_for_hours_that_were_not_used_comes_back(h100, renter):
    make_listing(gpu=h100)
    rental = hourly(h100, renter, new_server=False)
    pass_time(since=READY, until=READY + HOUR - 5 * MINUTE, step=5 * MINUTE)
    assert HeldHours.objects.filter(rental=rental).count() == 2
    asked_at = READY + HOUR - 5 * MINUTE + timedelta(seconds=30)
    pass_time(since=READY + HOUR - 5 * MINUTE, until=asked_at)
    request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=asked_at)
    sweep(now=asked_at + 2 * MINUTE)
    wallet = Account.objects.get(pk=rental.wallet_id)
    seconds = sum(Settlement.objects.filter(rental=rental).values_list("billed_seconds", flat=True))
    assert seconds == (asked_at - READY).total_seconds()
    assert wallet.held_micros == 0


def test_the_door_raises_a_hold_once_for_each_key():
    wallet = wallet_of("ana", units=10)
    hold_id = holds.place_hold(key="h", account_id=wallet.pk, amount_micros=4_000_000)
    for _ in range(2):
        assert holds.raise_hold(key="more", hold_id=hold_id, amount_micros=5_000_000) == 5_000_000
    hold = Hold.objects.get(pk=hold_id)
    assert (hold.placed_micros, hold.remaining_micros) == (9_000_000, 9_000_000)
    with refused(KeyReused):
        holds.raise_hold(key="more", hold_id=hold_id, amount_micros=1)
    with refused(InsufficientFunds):
        holds.raise_hold(key="still more", hold_id=hold_id, amount_micros=1_000_001)
    with refused(UnknownAccount):
        holds.raise_hold(key="nothing", hold_id=hold_id + 999, amount_micros=1)
    holds.release(key="r", hold_id=hold_id)
    assert Account.objects.get(pk=wallet.pk).held_micros == 0


def raises(error: Exception):
    def refuse(*_args, **_values):
        raise error

    return refuse
