"""The tax an order is made with: the stored decision of its hour, decided now for a first purchase."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from billing.tax.record import NotDecided, decide_for, decision_at
from billing.tax.seller import SellerUnknown
from users.models import Organisation


class NotSold(Exception):
    """Nothing is sold to this organisation: its tax waits for a person, cannot be decided, or we may not sell there."""


@dataclass(frozen=True, kw_only=True)
class OrderTax:
    """The rate in per cent with its reason: the treatment's name and the country of tax."""

    rate_percent: Decimal
    treatment: str
    country: str


def order_tax_percent(organisation_id: int, *, now: datetime) -> Decimal:
    """Return the rate in per cent. One query once a decision is stored. Raises NotSold."""
    return order_tax(organisation_id, now=now).rate_percent


def order_tax(organisation_id: int, *, now: datetime) -> OrderTax:
    """Return the tax of an order placed now. One query once a decision is stored. Raises NotSold."""
    return stored_order_tax(organisation_id, now=now) or _decide(organisation_id, now)


def stored_order_tax(organisation_id: int, *, now: datetime) -> OrderTax | None:
    """Return what is stored for this hour, None before the first decision. One query. Raises NotSold."""
    try:
        return _order_tax(decision_at(organisation_id, now))
    except NotDecided:
        return None


def _decide(organisation_id: int, now: datetime) -> OrderTax:
    try:
        return _order_tax(decide_for(organisation=Organisation.objects.get(pk=organisation_id), now=now))
    except (LookupError, SellerUnknown) as undecided:
        raise NotSold from undecided


def _order_tax(decision: Any) -> OrderTax:
    if decision.rate_percent is None:
        raise NotSold
    return OrderTax(rate_percent=decision.rate_percent, treatment=decision.treatment, country=decision.country_of_tax)
