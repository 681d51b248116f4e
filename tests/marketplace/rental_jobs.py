"""What can be done to rentals, by name, for workers that are killed while they do it. A refusal is an answer, too."""

from datetime import datetime
from typing import Any

from marketplace.models import Rental
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.provision import accept_start, report_failed
from marketplace.rentals.ready import report_ready
from marketplace.rentals.states import RentalStateRefused
from marketplace.rentals.stop import request_stop
from marketplace.settlement.due import settle_due
from marketplace.sweep import sweep
from tests.marketplace.rental_clock import ACCESS


def do(name: str, *subject: Any) -> None:
    """Do one of the things below."""
    try:
        _JOBS[name](*subject)
    except RentalStateRefused:
        return


def _settle(now: datetime) -> None:
    sweep(now=now)
    settle_due(until=now, now=now)


def _ready(rental_id: Any, now: datetime) -> None:
    if Rental.objects.filter(pk=rental_id, state=Rental.State.PENDING).exists():
        accept_start(rental_id=rental_id, now=now)
    report_ready(rental_id=rental_id, access=ACCESS, now=now)


def _stop(rental_id: Any, now: datetime) -> None:
    renter = Rental.objects.values_list("organisation", flat=True).get(pk=rental_id)
    request_stop(organisation_id=renter, rental_id=rental_id, now=now)


_JOBS = {
    "sweep": lambda now: sweep(now=now),
    "settle": _settle,
    "accept": lambda rental_id, now: accept_start(rental_id=rental_id, now=now),
    "ready": _ready,
    "stop": _stop,
    "ack": lambda rental_id, now: acknowledge_stop(rental_id=rental_id, now=now),
    "fail": lambda rental_id, now: report_failed(rental_id=rental_id, reason="host_lost", now=now),
}
