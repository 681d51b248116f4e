"""Lines for tests about wallets: keyword-only, each an entry of the door's."""

from datetime import datetime
from itertools import count

from billing import holds, ledger
from billing.accounts import open_account
from billing.ledger import Line, Reference
from billing.models import Account
from tests.billing.conftest import NOW, UNIT

_numbers = count(1)


def book(
    wallet: Account,
    micros: int,
    *,
    at: datetime = NOW,
    kind: str = "",
    reference: Reference | None = None,
    description: str = "",
) -> int:
    """Move money of a wallet: above zero a credit we grant, below it a settled hour. Return the entry."""
    kind = kind or ("credit" if micros > 0 else "rental_hour")
    other = open_account(kind=Account.Kind.LOSSES if micros > 0 else Account.Kind.REVENUE, currency=wallet.currency)
    return ledger.post(
        key=f"line:{next(_numbers)}",
        kind=kind,
        lines=[Line(wallet.pk, micros), Line(other.pk, -micros)],
        effective_at=at,
        reference=reference,
        description=description,
    )


def run_rental(wallet: Account, *, held_units: int, burn_micros_per_hour: int) -> int:
    """Hold money for a rental that runs; return the hold."""
    hold = holds.place_hold(key=f"rental:{next(_numbers)}", account_id=wallet.pk, amount_micros=held_units * UNIT)
    holds.set_burn(hold_id=hold, burn_micros_per_hour=burn_micros_per_hour)
    return hold
