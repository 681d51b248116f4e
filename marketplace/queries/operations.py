"""What an operator sees of all rentals: by state, what is late or silent, what was lost, and how settling goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, DateTimeField, ExpressionWrapper, F, Min, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Least, TruncHour

from marketplace.limits import LIVE_FOR, START_WITHIN
from marketplace.models import Rental, Settlement
from marketplace.queries.rentals import with_charges

DUE_AFTER = timedelta(hours=1, minutes=5)
LOOKS_BACK = timedelta(days=7)
SETTLED_WITHIN = timedelta(hours=24)
MOST_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class SettledHour:
    """What was settled of one UTC hour in one currency. Amounts in micros; what providers earned is in USD."""

    hour: datetime
    currency: str
    lines: int
    reversed_lines: int
    billed_seconds: int
    net_micros: int
    tax_micros: int
    gross_micros: int
    payable_micros: int
    fee_micros: int


@dataclass(frozen=True, kw_only=True)
class Due:
    """Rentals with an hour that is due and not settled: how many, and the oldest such hour."""

    rentals: int
    oldest_hour: datetime | None


def rentals_by_state() -> Mapping[str, int]:
    """Return the number of rentals in each state. One query."""
    counts = dict(Rental.objects.order_by().values_list("state").annotate(Count("pk")))
    return {state: counts.get(state, 0) for state in Rental.State.values}


def all_rentals(state: str = "") -> QuerySet[Rental, Any]:
    """Return every organisation's rentals, or those in one state, newest first, with what they were charged."""
    rentals = _with_names(Rental.objects.all())
    return with_charges(rentals.filter(state=state) if state else rentals).order_by("-filled_at", "-pk")


def overdue_starts(*, now: datetime) -> QuerySet[Rental]:
    """Return what should have been ready or failed by now: the sweep has not come to it."""
    overdue = Rental.objects.filter(state__in=Rental.STARTING, filled_at__lte=now - START_WITHIN)
    return _with_names(overdue).order_by("filled_at")[:MOST_SHOWN]


def silent_now(*, now: datetime) -> QuerySet[Rental]:
    """Return the running rentals whose machine has not been heard of for a minute, the longest silence first."""
    silent = Rental.objects.filter(state=Rental.State.RUNNING, server__last_beat_at__lt=now - LIVE_FOR)
    return _with_names(silent).order_by("server__last_beat_at")[:MOST_SHOWN]


def failed_and_lost(*, now: datetime) -> QuerySet[Rental, Any]:
    """Return what failed to start or was interrupted in the last 7 days, newest first, with what was given back."""
    over = Rental.objects.filter(
        state__in=(Rental.State.FAILED, Rental.State.INTERRUPTED), ended_at__gt=now - LOOKS_BACK
    )
    return with_charges(_with_names(over)).order_by("-ended_at")[:MOST_SHOWN]


def settled_by_hour(*, now: datetime) -> list[SettledHour]:
    """Return what is settled of the hours of the last day, newest first, by currency. One query."""
    rows = (
        Settlement.objects.filter(hour__gt=now - SETTLED_WITHIN)
        .order_by()
        .values("hour", "rental__currency")
        .annotate(
            lines=Count("pk"),
            reversed_lines=Count("pk", filter=Q(reversed_at__isnull=False)),
            seconds=Sum("billed_seconds"),
            net=Sum("net_micros"),
            tax=Sum("tax_micros"),
            gross=Sum("gross_micros"),
            payable=Sum("payable_micros"),
            fee=Sum("fee_micros"),
        )
        .order_by("-hour", "rental__currency")
    )
    return [
        SettledHour(
            hour=row["hour"],
            currency=row["rental__currency"],
            lines=row["lines"],
            reversed_lines=row["reversed_lines"],
            billed_seconds=row["seconds"],
            net_micros=int(row["net"]),
            tax_micros=int(row["tax"]),
            gross_micros=int(row["gross"]),
            payable_micros=int(row["payable"]),
            fee_micros=int(row["fee"]),
        )
        for row in rows
    ]


def totals_of(hours: Sequence[SettledHour]) -> list[SettledHour]:
    """Return the sum of settled hours in each currency; its `hour` is the newest of them."""
    return [
        SettledHour(
            hour=max(row.hour for row in rows),
            currency=currency,
            lines=sum(row.lines for row in rows),
            reversed_lines=sum(row.reversed_lines for row in rows),
            billed_seconds=sum(row.billed_seconds for row in rows),
            net_micros=sum(row.net_micros for row in rows),
            tax_micros=sum(row.tax_micros for row in rows),
            gross_micros=sum(row.gross_micros for row in rows),
            payable_micros=sum(row.payable_micros for row in rows),
            fee_micros=sum(row.fee_micros for row in rows),
        )
        for currency in sorted({row.currency for row in hours})
        if (rows := [row for row in hours if row.currency == currency])
    ]


def due(*, now: datetime) -> Due:
    """Return how much is due and not settled. One query."""
    found = _due_rentals(now).aggregate(rentals=Count("pk"), oldest_hour=Min("next_hour"))
    return Due(rentals=found["rentals"], oldest_hour=found["oldest_hour"])


def due_rentals(*, now: datetime) -> QuerySet[Rental, Any]:
    """Return the rentals whose next hour (`next_hour`) has been due the longest (`due_at`)."""
    return _with_names(_due_rentals(now))[:MOST_SHOWN]


def _due_rentals(now: datetime) -> QuerySet[Rental, Any]:
    """Return what the settlement would take now, by its own rule (`marketplace_settle`), the longest wait first."""
    next_hour = Coalesce("settled_until", TruncHour("ready_at", tzinfo=UTC))
    after = ExpressionWrapper(F("next_hour") + Value(DUE_AFTER), output_field=DateTimeField())
    waiting: QuerySet[Rental, Any] = (
        Rental.objects.filter(ready_at__isnull=False, fully_settled_at__isnull=True)
        .exclude(state=Rental.State.INTERRUPTED, unbilled_from__isnull=True)
        .annotate(next_hour=next_hour, billed_until=Least("stop_requested_at", "paid_until"))
        .annotate(due_at=Least(after, F("ended_at")))
        .filter(Q(ended_at__isnull=False) | Q(billed_until__gt=Coalesce("settled_until", "ready_at")))
        .filter(due_at__lte=now)
        .order_by("due_at", "pk")
    )
    return waiting


def _with_names(rentals: QuerySet[Rental, Any]) -> QuerySet[Rental, Any]:
    return rentals.select_related("organisation", "gpu", "hold", "server__provider__organisation")
