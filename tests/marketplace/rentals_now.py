"""Rentals for tests of pages, which ask the clock themselves: filled just now, or running for some time already."""

import re
from datetime import datetime, timedelta
from decimal import Decimal

from catalog.models import Gpu
from marketplace.models import BeatSpan, Rental, Server, UpSpan
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.provision import accept_start
from marketplace.rentals.ready import report_ready
from marketplace.rentals.stop import request_stop
from tests.marketplace.conftest import make_listing
from tests.marketplace.on_pages import just_now, placed_by
from tests.marketplace.rental_clock import ACCESS
from users.models import Organisation

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def rented(
    organisation: Organisation, gpu: Gpu, *, at: datetime | None = None, is_sample: bool = False, **values
) -> Rental:
    """Return a rental that was filled just now, or then, of a server of its own."""
    now = at or just_now()
    make_listing(
        gpu=gpu, price=values.get("limit", "2.88"), devices=values.get("gpu_count", 1), now=now, is_sample=is_sample
    )
    return Rental.objects.get(order_id=placed_by(organisation, gpu, now=now, **values).order_id)


def running(organisation: Organisation, gpu: Gpu, *, ago: timedelta, **values) -> Rental:
    """Return a rental that runs for some time already, its machine and the platform without a pause."""
    now = just_now().replace(microsecond=0)
    rental = rented(organisation, gpu, at=now - ago - MINUTE, **values)
    BeatSpan.objects.filter(server=rental.server_id).update(last_beat_at=now)
    Server.objects.filter(pk=rental.server_id).update(last_beat_at=now)
    UpSpan.objects.get_or_create(started_at=rental.filled_at, defaults={"last_seen_at": now})
    accept_start(rental_id=rental.pk, now=now - ago - 2 * SECOND)
    report_ready(rental_id=rental.pk, access=ACCESS, now=now - ago)
    rental.refresh_from_db()
    return rental


def stop_now(rental: Rental) -> Rental:
    """Stop a rental for its renter; its machine confirms it, and its last hour is settled."""
    request_stop(organisation_id=rental.organisation_id, rental_id=rental.pk, now=just_now())
    acknowledge_stop(rental_id=rental.pk, now=just_now())
    rental.refresh_from_db()
    return rental


def sum_after(text: str, words: str) -> Decimal:
    """Return the sum that follows some words: of what runs it grows while a test looks."""
    found = re.search(rf"{re.escape(words)} (\d+\.\d\d)", text)
    assert found is not None, f"{words} in {text}"
    return Decimal(found[1])
