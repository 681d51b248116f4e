"""An organisation's rentals and how each stands: what it has cost, what it uses now, what stopping it would give back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from marketplace.evidence import Held, Known
from marketplace.limits import RAISE_BEFORE
from marketplace.models import Rental, RentalEvent, RunwayAlert, Settlement
from marketplace.pricing import Terms, hold_micros
from marketplace.queries.evidence import (
    NOTHING,
    HourLine,
    Witness,
    held_of,
    hour_lines,
    known_of,
    open_hours,
    settled_lines,
    witnesses_of,
)
from marketplace.settlement.seconds import second_down
from users.models import Organisation

LINES_IN_A_LIST = 24


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a rental stands at a moment, in micros of its wallet, tax included.

    `charged_micros` is settled and stays; `open` are the hours that are not settled yet, as far as they have passed;
    `held` are the hours that money was set aside for, told as long as it has something open.
    """

    rental: Rental
    charged_micros: int
    open: Sequence[HourLine]
    held: Sequence[Held]

    @property
    def open_micros(self) -> int:
        """What was used and is not settled yet."""
        return sum(hour.amounts.gross_micros for hour in self.open)

    @property
    def open_seconds(self) -> int:
        """The billed seconds that are not settled yet."""
        return sum(hour.billed_seconds for hour in self.open)

    @property
    def cost_micros(self) -> int:
        """What it comes to if it stops now."""
        return self.charged_micros + self.open_micros

    @property
    def held_micros(self) -> int:
        """What is set aside for it."""
        return self.rental.hold.remaining_micros

    @property
    def back_micros(self) -> int:
        """What of the hold comes back if it stops now."""
        return max(0, self.held_micros - self.open_micros)

    @property
    def burn_micros_per_hour(self) -> int:
        """What it takes an hour; 0 unless it runs."""
        return self.rental.hold.burn_micros_per_hour

    @property
    def may_stop(self) -> bool:
        """Whether a request to stop would change anything."""
        return self.rental.state in (*Rental.STARTING, Rental.State.RUNNING)

    @property
    def next_hold_micros(self) -> int | None:
        """What one more hour of an open-ended rental sets aside, at the rates of its latest hour."""
        rental = self.rental
        if rental.hours is not None or not self.held:
            return None
        rates = self.held[-1]
        terms = Terms(
            gpu_count=rental.gpu_count, hours=1, fx_rate=rates.fx_rate, tax_rate_percent=rates.tax_rate_percent
        )
        return hold_micros(rental.price_usd_per_gpu_hour, terms)

    @property
    def raises_at(self) -> datetime | None:
        """From when on its next hour is set aside; None where none follows."""
        rental = self.rental
        if rental.state != Rental.State.RUNNING or rental.hours is not None or rental.paid_until is None:
            return None
        return None if rental.paid_until >= second_down(rental.lease_until) else rental.paid_until - RAISE_BEFORE


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The evidence of a rental: hours in order, what was known for them, and how it stands."""

    standing: Standing
    hours: Sequence[HourLine]
    witness: Witness
    known: Known | None


def rentals_of(organisation: Organisation) -> QuerySet[Rental, Any]:
    """Return an organisation's rentals, newest first, with `charged`, `credited` (micros) and `settled_hours`."""
    rentals = Rental.objects.filter(organisation=organisation).select_related("gpu", "server", "hold")
    return with_charges(rentals).order_by("-filled_at", "-pk")


def with_charges(rentals: QuerySet[Rental]) -> QuerySet[Rental, Any]:
    """Add what is settled and stays, what was taken back, and the number of settled hours."""
    lines = Settlement.objects.filter(rental=OuterRef("pk")).order_by().values("rental")
    stays, back = Q(reversed_at__isnull=True), Q(reversed_at__isnull=False)
    added: QuerySet[Rental, Any] = rentals.annotate(
        charged=_or_zero(lines.annotate(found=Sum("gross_micros", filter=stays)).values("found")),
        credited=_or_zero(lines.annotate(found=Sum("gross_micros", filter=back)).values("found")),
        settled_hours=_or_zero(lines.annotate(found=Count("pk")).values("found")),
    )
    return added


def rentals_to_list(organisation: Organisation) -> QuerySet[Rental, Any]:
    """Return the same with the events and the latest settled lines of each. Three queries."""
    lines = Settlement.objects.select_related("tax_decision").order_by("-hour")
    return rentals_of(organisation).prefetch_related(
        _events(), Prefetch("settlements", queryset=lines[:LINES_IN_A_LIST], to_attr="latest_lines")
    )


def rental_in_full(organisation: Organisation) -> QuerySet[Rental, Any]:
    """Return the same with what else a rental's page tells: its order and its events."""
    return (
        rentals_of(organisation)
        .select_related("order", "wallet", "server__provider__organisation")
        .prefetch_related(_events())
    )


def standings_of(rentals: Sequence[Rental], *, now: datetime) -> list[Standing]:
    """Return how rentals stand, in the order given. Four queries where one of them still has something open."""
    witnesses = _witnesses(rentals, now=now)
    return [_standing(rental, witnesses.get(rental.pk, NOTHING), now) for rental in rentals]


def proof_of(rental: Rental, *, now: datetime, hours: Sequence[datetime] | None = None) -> Proof:
    """Return the proof of a rental's hours, all or those given, and how it stands. Five queries, or one."""
    if rental.ready_at is None:
        witness = Witness(held=held_of([rental])[rental.pk], beats=(), ups=(), taxed=())
        return Proof(standing=_standing(rental, witness, now), hours=(), witness=witness, known=None)
    told = told_hours(rental, now=now) if hours is None else hours
    since = rental.ready_at if hours is None else min([*hours[:1], rental.settled_until or rental.ready_at])
    witness = witnesses_of([rental], since=max(since, rental.ready_at), now=now)[rental.pk]
    known = known_of(rental, witness, now=now)
    lines = settled_lines(rental, hours=hours)
    proven = [] if known is None else hour_lines(rental, hours=told, lines=lines, witness=witness, known=known)
    return Proof(standing=_standing(rental, witness, now), hours=proven, witness=witness, known=known)


def told_hours(rental: Rental, *, now: datetime) -> Sequence[datetime]:
    """Return the starts of the UTC hours there is something to tell about, in order. No query."""
    known = known_of(rental, NOTHING, now=now)
    return () if known is None else known.hours


def ends_at(rental: Rental) -> datetime:
    """Return when a rental ended, or ends at the latest."""
    if rental.ended_at is not None:
        return rental.ended_at
    if rental.stop_requested_at is not None:
        return rental.stop_requested_at
    if rental.hours is not None and rental.paid_until is not None:
        return rental.paid_until
    return rental.lease_until


def open_alerts(organisation: Organisation) -> list[RunwayAlert]:
    """Return the nearest level that each wallet's money has fallen under. One query."""
    alerts = RunwayAlert.objects.filter(organisation=organisation, cleared_at__isnull=True)
    return list(alerts.order_by("currency", "level_seconds").distinct("currency"))


def _witnesses(rentals: Sequence[Rental], *, now: datetime) -> Mapping[UUID, Witness]:
    moving = [rental for rental in rentals if rental.ready_at is not None and rental.fully_settled_at is None]
    since = min((rental.settled_until or rental.ready_at or now for rental in moving), default=now)
    return witnesses_of(moving, since=since, now=now)


def _standing(rental: Any, witness: Witness, now: datetime) -> Standing:
    return Standing(
        rental=rental,
        charged_micros=int(rental.charged),
        open=open_hours(rental, witness, now=now),
        held=witness.held,
    )


def _events() -> Prefetch[str, QuerySet[RentalEvent], str]:
    return Prefetch("events", queryset=RentalEvent.objects.order_by("at", "pk"))


def _or_zero(figure: QuerySet[Settlement, Any]) -> Coalesce:
    return Coalesce(Subquery(figure), Value(0))
