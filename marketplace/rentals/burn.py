"""What a running rental takes from its wallet an hour, tax included; and what comes back when it takes no more.

In the caller's transaction, the rental locked. Lock order: rental, hold, accounts by id.
"""

from datetime import datetime

from billing import holds
from common.money import round_up_to_micros
from marketplace.models import HeldHours, Rental
from marketplace.pricing import Terms, gross_per_hour
from marketplace.settlement.lower import lower_hold


def terms_of(rental: Rental, held: HeldHours) -> Terms:
    """Return what turns the rental's price into its wallet's money in a held hour."""
    return Terms(
        gpu_count=rental.gpu_count,
        hours=rental.hours,
        fx_rate=held.fx_rate,
        tax_rate_percent=held.tax_rate_percent,
    )


def set_burn(rental: Rental, held: HeldHours) -> None:
    """Write on the rental's hold what an hour costs at the rates of a held hour."""
    gross = gross_per_hour(rental.price_usd_per_gpu_hour, terms_of(rental, held))
    holds.set_burn(hold_id=rental.hold_id, burn_micros_per_hour=round_up_to_micros(gross))


def stop_burning(rental: Rental, *, now: datetime) -> None:
    """Nothing burns any more: keep what unsettled seconds can cost, give the rest back, what is owed takes it first.

    A second time changes nothing.
    """
    holds.set_burn(hold_id=rental.hold_id, burn_micros_per_hour=0)
    lower_hold(rental_id=rental.pk, now=now)
