"""Rentals whose every sum is known beforehand: the vectors of the rules."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from catalog.models import Gpu
from fx.models import Rate
from marketplace.models import BeatSpan, Rental
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.raise_hold import raise_hold
from marketplace.rentals.stop import request_stop
from tests.marketplace.conftest import NOW, make_renter
from tests.marketplace.rental_clock import beats_all_along, rent, run, up_all_along
from users.models import Organisation

READY = datetime(2026, 11, 30, 10, 4, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def finnish_renter() -> Organisation:
    """Return a private person in Finland (25.5 % VAT) with 1,000 EUR; a euro is 1.1476 USD."""
    _rate(NOW.date(), "1.1476")
    return make_renter(name="Aino Virtanen", currency="EUR", type="consumer", country="FI")


def stopped_lot(gpu: Gpu, renter: Organisation) -> Rental:
    """Return four GPUs for three hours at 2.88: silent for two minutes, stopped after two and a half hours, settled."""
    rental = run(rent(gpu, renter, gpu_count=4, hours=3, currency="EUR"), ready_at=READY)
    stop_at = READY.replace(hour=12, minute=30, second=0)
    beats_all_along(rental.server, since=READY, until=READY.replace(hour=11, minute=20, second=10))
    BeatSpan.objects.create(
        server=rental.server,
        first_beat_at=READY.replace(hour=11, minute=22, second=10),
        last_beat_at=stop_at + HOUR,
    )
    return _stop(rental, stop_at)


def raised_rental(gpu: Gpu, renter: Organisation) -> Rental:
    """Return one GPU at 4.19, open-ended from 15:42 on; its second hour is held at 1.1500; stopped at 17:00, settled."""
    ready_at = datetime(2026, 11, 30, 15, 42, tzinfo=UTC)
    rental = rent(gpu, renter, now=ready_at - timedelta(minutes=2), hours=None, limit="4.19", currency="EUR")
    rental = run(rental, ready_at=ready_at)
    _rate(NOW.date(), "1.1500")
    raise_hold(rental_id=rental.pk, now=ready_at + timedelta(minutes=51))
    beats_all_along(rental.server, since=ready_at, until=ready_at + 2 * HOUR)
    return _stop(rental, ready_at.replace(hour=17, minute=0))


def _stop(rental: Rental, at: datetime) -> Rental:
    assert rental.ready_at is not None
    up_all_along(since=rental.ready_at, until=at + HOUR)
    request_stop(organisation_id=rental.organisation_id, rental_id=rental.pk, now=at)
    acknowledge_stop(rental_id=rental.pk, now=at + timedelta(seconds=5))
    rental.refresh_from_db()
    return rental


def _rate(day, usd_per_eur: str) -> None:
    Rate.objects.update_or_create(
        day=day,
        currency="USD",
        defaults={"units_per_eur": Decimal(usd_per_eur), "origin": "ecb", "stored_at": NOW - HOUR},
    )
