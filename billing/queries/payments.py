"""Top-ups and refunds of an organisation, as its pages list them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Sum

from billing.accounts import WALLET_CURRENCIES
from billing.models import Dispute, Refund, TopUp
from billing.refunds.allocation import Payment, most_refundable_micros
from common.money import from_minor_units
from users.models import Organisation

UNFINISHED = (TopUp.State.CREATED, TopUp.State.OPEN, TopUp.State.PROCESSING)
NEWS_FOR = timedelta(hours=24)


@dataclass(frozen=True, kw_only=True)
class Refundable:
    """What can go back in one currency. `payments` are those with something left, oldest first."""

    currency: str
    payments: Sequence[Payment]
    most_micros: int


def top_ups_by_id(organisation: Organisation, ids: Collection[str], *, now: datetime) -> dict[str, TopUp]:
    """Return the top-ups of these ids, and those of the last day that are still on their way. One query."""
    wanted = Q(pk__in=ids) | Q(state__in=UNFINISHED, created_at__gt=now - NEWS_FOR)
    rows = TopUp.objects.filter(wanted, organisation=organisation).order_by("-created_at")
    return {str(row.pk): row for row in rows}


def recent_top_ups(organisation: Organisation, *, limit: int) -> Sequence[TopUp]:
    """Return the newest top-ups, whatever became of them."""
    return list(TopUp.objects.filter(organisation=organisation).order_by("-created_at", "-pk")[:limit])


def recent_refunds(organisation: Organisation, *, limit: int) -> Sequence[Refund]:
    """Return the newest refunds with the payments they go back to."""
    refunds = Refund.objects.filter(top_up__organisation=organisation).select_related("top_up", "requested_by")
    return list(refunds.order_by("-requested_at", "-pk")[:limit])


def refundable_by_currency(organisation: Organisation, available_micros: Mapping[str, int]) -> Sequence[Refundable]:
    """Return what can go back in each currency, given what its wallet has available. One query.

    Whether it may go back now (frozen, owing, disputed) is the flow's to say.
    """
    paid = TopUp.objects.filter(
        organisation=organisation, state=TopUp.State.PAID, payment_intent_id__isnull=False
    ).annotate(disputed_micros=Sum("disputes__amount_micros", filter=~Q(disputes__state=Dispute.State.WON)))
    rows = list(paid.order_by("paid_at", "pk"))
    return [
        _refundable(currency, [row for row in rows if row.currency == currency], available_micros.get(currency, 0))
        for currency in WALLET_CURRENCIES
    ]


def has_open_dispute(organisation: Organisation) -> bool:
    """Whether a payment of the organisation is disputed and not decided: nothing goes back until then."""
    return Dispute.objects.filter(top_up__organisation=organisation, state=Dispute.State.OPEN).exists()


def _refundable(currency: str, rows: Sequence[Any], available_micros: int) -> Refundable:
    payments = [
        Payment(
            top_up_id=row.pk,
            paid_at=row.paid_at,
            amount_micros=row.amount_micros,
            refunded_micros=row.refunded_micros,
            disputed_micros=int(row.disputed_micros or 0),
        )
        for row in rows
    ]
    step_micros = from_minor_units(1, currency=currency)
    most_micros = most_refundable_micros(payments, available_micros=available_micros, step_micros=step_micros)
    left = [payment for payment in payments if payment.refundable_micros]
    return Refundable(currency=currency, payments=left, most_micros=most_micros)
