"""An open-ended rental is paid hour by hour: when less than ten minutes are paid, one more hour is set aside.

Steps, in one transaction: lock the rental, look whether it still needs an hour, raise its hold by an hour at the latest
exchange rate (whatever its age) and the tax of now, write the held hour with these rates, move `paid_until`, write its
event and its burn. Rates and tax are read before. Without the money nothing is written but one event per hour that says
so, and each sweep tries again until `paid_until`. Lock order: rental, hold, account. A second run finds the hour held.
"""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import F, Sum

from billing import holds
from billing.ledger import InsufficientFunds
from marketplace.limits import RAISE_BEFORE
from marketplace.models import HeldHours, Rental, RentalEvent
from marketplace.pricing import hold_micros
from marketplace.rates import FxTooOld, order_rate
from marketplace.rentals.burn import set_burn, terms_of
from marketplace.rentals.changes import lock_rental, note
from marketplace.rentals.one_by_one import one_by_one
from marketplace.rentals.ready import paid_to
from marketplace.rentals.states import whole_second_before
from marketplace.tax import NotSold, order_tax_percent

TIME_OVER = "time_over"
LEASE_OVER = "lease_over"
NO_MONEY = "no_money"
NO_RATE = "no_rate"
NOT_SOLD = "not_sold"
PLATFORM_DOWN = "platform_down"


@dataclass(frozen=True, kw_only=True)
class _Rates:
    """What the next hour is held at."""

    fx_rate: Decimal
    fx_on: date | None
    tax_rate_percent: Decimal


def raise_due(*, now: datetime) -> int:
    """Hold one more hour for every open-ended rental that is soon paid no longer; return how many got one."""
    due = Rental.objects.filter(
        state=Rental.State.RUNNING,
        hours__isnull=True,
        paid_until__gt=now,
        paid_until__lt=now + RAISE_BEFORE,
        lease_until__gt=F("paid_until"),
    ).order_by("paid_until", "fill__sequence")
    return one_by_one(due.values_list("pk", flat=True), lambda rental_id: raise_hold(rental_id=rental_id, now=now))


def raise_hold(*, rental_id: UUID, now: datetime) -> bool:
    """Hold one more hour for a rental that needs one; return whether it got one."""
    rental = Rental.objects.get(pk=rental_id)
    try:
        rates = _rates(rental, now)
        with transaction.atomic():
            rental = lock_rental(rental_id)
            if not _is_due(rental, now):
                return False
            _hold_an_hour(rental, rates, now)
    except InsufficientFunds:
        _refused(rental_id, NO_MONEY, now)
    except FxTooOld:
        _refused(rental_id, NO_RATE, now)
    except NotSold:
        _refused(rental_id, NOT_SOLD, now)
    else:
        return True
    return False


def why_over(rental: Rental) -> str:
    """Return why a rental is paid no longer than to its `paid_until`, as the name of a reason."""
    if rental.hours is not None:
        return TIME_OVER
    if rental.paid_until == whole_second_before(rental.lease_until):
        return LEASE_OVER
    refused = rental.events.filter(kind="raise_refused", detail__first_hour=_held_hours(rental)).last()
    return PLATFORM_DOWN if refused is None else str(refused.detail["reason"])


def _rates(rental: Rental, now: datetime) -> _Rates:
    rate = order_rate(rental.currency, now=now, may_be_old=True)
    tax = order_tax_percent(rental.organisation_id, now=now)
    return _Rates(fx_rate=rate.rate, fx_on=rate.on, tax_rate_percent=tax)


def _is_due(rental: Rental, now: datetime) -> bool:
    return (
        rental.state == Rental.State.RUNNING
        and rental.hours is None
        and rental.paid_until is not None
        and now < rental.paid_until < now + RAISE_BEFORE
        and rental.paid_until < whole_second_before(rental.lease_until)
    )


def _hold_an_hour(rental: Rental, rates: _Rates, now: datetime) -> None:
    assert rental.ready_at is not None  # the database holds it for whatever runs
    first_hour = _held_hours(rental)
    held = HeldHours(
        rental=rental,
        first_hour=first_hour,
        hours=1,
        fx_rate=rates.fx_rate,
        fx_on=rates.fx_on,
        tax_rate_percent=rates.tax_rate_percent,
        held_at=now,
    )
    held.held_micros = hold_micros(rental.price_usd_per_gpu_hour, terms_of(rental, held))
    holds.raise_hold(key=f"raise:{rental.pk}:{first_hour}", hold_id=rental.hold_id, amount_micros=held.held_micros)
    held.save(force_insert=True)
    paid_until = paid_to(rental, ready_at=rental.ready_at, held_hours=first_hour + 1)
    Rental.objects.filter(pk=rental.pk).update(paid_until=paid_until)
    note(
        rental_id=rental.pk,
        kind="raised",
        at=now,
        detail={"first_hour": first_hour, "held_micros": held.held_micros, "paid_until": paid_until.isoformat()},
    )
    set_burn(rental, held)


def _refused(rental_id: UUID, reason: str, now: datetime) -> None:
    """Write once for each hour why it was not held; the latest reason counts."""
    with transaction.atomic():
        rental = lock_rental(rental_id)
        said = {"first_hour": _held_hours(rental), "reason": reason}
        known = RentalEvent.objects.filter(rental=rental, kind="raise_refused", detail__contains=said)
        if _is_due(rental, now) and not known.exists():
            note(rental_id=rental_id, kind="raise_refused", at=now, detail=said)


def _held_hours(rental: Rental) -> int:
    held = rental.held_hours.aggregate(hours=Sum("hours"))["hours"]
    return int(held or 0)
