"""The evidence of rentals: their settled lines, and for every hour what was heard, counted and charged."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from marketplace.evidence import (
    Held,
    HourState,
    HourSum,
    HourTax,
    Known,
    Stretch,
    parts_of,
    passed,
    seconds_by_hour,
    stretches_of,
    sum_of,
)
from marketplace.limits import LIVE_FOR
from marketplace.models import BeatSpan, HeldHours, Rental, Settlement, UpSpan
from marketplace.settlement.formula import HourAmounts, Part, Priced
from marketplace.settlement.seconds import (
    HOUR,
    Billable,
    HourSeconds,
    Span,
    billable,
    gaps_between,
    hour_of,
    second_down,
)
from users.models import Organisation

_EVER = timedelta(days=36_500)


@dataclass(frozen=True, kw_only=True)
class Taxed:
    """What an organisation's hours are taxed with from one time to another (None: until it is decided anew)."""

    valid_from: datetime
    valid_to: datetime | None
    tax: HourTax


@dataclass(frozen=True, kw_only=True)
class Witness:
    """What is known of a rental beside its own row; all oldest first."""

    held: Sequence[Held]
    beats: Sequence[Span]
    ups: Sequence[Span]
    taxed: Sequence[Taxed]


NOTHING = Witness(held=(), beats=(), ups=(), taxed=())


@dataclass(frozen=True, kw_only=True)
class HourLine:
    """One UTC hour of a rental with its proof. `line`: its row of the books, None while it is not settled.

    `amounts` are those of the books where it is settled, else what its seconds come to so far.
    """

    starts_at: datetime
    state: HourState
    billed_seconds: int
    gap_seconds: int
    stretches: Sequence[Stretch]
    sum: HourSum
    amounts: HourAmounts
    tax: HourTax
    line: Settlement | None

    @property
    def ends_at(self) -> datetime:
        """The start of the next hour."""
        return self.starts_at + HOUR

    @property
    def is_equal(self) -> bool:
        """Whether the formula, applied anew to seconds and rates, gives the amounts of the books."""
        return self.amounts == self.sum.amounts


def witnesses_of(rentals: Sequence[Rental], *, since: datetime, now: datetime) -> Mapping[UUID, Witness]:
    """Return what is known of rentals from `since` on. Four queries, whatever their number; none for none."""
    if not rentals:
        return {}
    held = held_of(rentals)
    beats = _beats_of({rental.server_id for rental in rentals}, since, now)
    ups = _ups(since, now)
    taxed = _taxed_of({rental.organisation_id for rental in rentals}, since)
    return {
        rental.pk: Witness(
            held=held[rental.pk], beats=beats[rental.server_id], ups=ups, taxed=taxed[rental.organisation_id]
        )
        for rental in rentals
    }


def held_of(rentals: Sequence[Rental]) -> Mapping[UUID, list[Held]]:
    """Return the hours that money was set aside for, by rental. One query."""
    found: dict[UUID, list[Held]] = defaultdict(list)
    for row in HeldHours.objects.filter(rental__in=rentals).order_by("rental_id", "first_hour"):
        found[row.rental_id].append(
            Held(
                first_hour=row.first_hour,
                hours=row.hours,
                fx_rate=row.fx_rate,
                fx_on=row.fx_on,
                tax_rate_percent=row.tax_rate_percent,
                held_micros=row.held_micros,
                held_at=row.held_at,
            )
        )
    return found


def known_of(rental: Rental, witness: Witness, *, now: datetime) -> Known | None:
    """Return what there is to tell of a rental's hours; None when it was never ready."""
    if rental.ready_at is None or rental.paid_until is None:
        return None
    whole = billable(
        ready_at=rental.ready_at,
        paid_until=rental.paid_until,
        stop_requested_at=rental.stop_requested_at,
        unbilled_from=rental.unbilled_from,
    )
    known_until = min(now, rental.ended_at) if rental.ended_at else now
    any_time = [Span(first=now - _EVER, last=now + _EVER)]
    return Known(
        period=passed(whole, now=now),
        as_of=now,
        gaps=gaps_between(witness.beats, ups=witness.ups, known_until=known_until),
        silences=gaps_between(witness.beats, ups=any_time, known_until=known_until),
        lost=_lost(rental, whole),
        is_stopped=rental.state != Rental.State.RUNNING,
    )


def settled_lines(rental: Rental, *, hours: Iterable[datetime] | None = None) -> dict[datetime, Settlement]:
    """Return a rental's settled hours, or those among `hours`, with their tax decisions. One query."""
    lines = Settlement.objects.filter(rental=rental).select_related("tax_decision").order_by("hour")
    return {line.hour: line for line in (lines if hours is None else lines.filter(hour__in=list(hours)))}


def hour_lines(
    rental: Rental,
    *,
    hours: Iterable[datetime],
    lines: Mapping[datetime, Settlement],
    witness: Witness,
    known: Known,
) -> list[HourLine]:
    """Return some hours of a rental with their proof, in the order given. No query."""
    counted = seconds_by_hour(known)
    return [
        _settled(rental, lines[hour], known)
        if hour in lines
        else _open(rental, hour, counted.get(hour), witness, known)
        for hour in hours
    ]


def open_hours(rental: Rental, witness: Witness, *, now: datetime) -> list[HourLine]:
    """Return the hours that are not settled yet, as they stand, in order. No query."""
    known = known_of(rental, witness, now=now)
    if known is None or rental.fully_settled_at is not None:
        return []
    settled_until = rental.settled_until or known.period.ready_at
    hours = [hour for hour in seconds_by_hour(known) if hour + HOUR > settled_until]
    return hour_lines(rental, hours=hours, lines={}, witness=witness, known=known)


def _settled(rental: Rental, line: Settlement, known: Known) -> HourLine:
    tax = HourTax()
    if line.tax_decision is not None and line.tax_rate_percent is not None:
        tax = HourTax(
            rate_percent=line.tax_rate_percent,
            treatment=line.tax_decision.treatment,
            country=line.tax_decision.country_of_tax,
        )
    return HourLine(
        starts_at=line.hour,
        state=HourState.SETTLED if line.reversed_at is None else HourState.REVERSED,
        billed_seconds=line.billed_seconds,
        gap_seconds=line.gap_seconds,
        stretches=stretches_of(line.hour, known),
        sum=sum_of(_priced(rental), _parts(line), tax_rate_percent=line.tax_rate_percent),
        amounts=HourAmounts(
            net_micros=line.net_micros,
            tax_micros=line.tax_micros,
            gross_micros=line.gross_micros,
            usd_net_micros=line.usd_net_micros,
            payable_micros=line.payable_micros,
            fee_micros=line.fee_micros,
        ),
        tax=tax,
        line=line,
    )


def _open(rental: Rental, hour: datetime, seconds: HourSeconds | None, witness: Witness, known: Known) -> HourLine:
    tax = next((row.tax for row in reversed(witness.taxed) if _holds_at(row, hour)), HourTax())
    parts = parts_of(seconds, witness.held) if seconds else []
    found = sum_of(_priced(rental), parts, tax_rate_percent=tax.rate_percent)
    return HourLine(
        starts_at=hour,
        state=_open_state(hour, seconds, known),
        billed_seconds=seconds.billed_seconds if seconds else 0,
        gap_seconds=seconds.gap_seconds if seconds else 0,
        stretches=stretches_of(hour, known),
        sum=found,
        amounts=found.amounts,
        tax=tax,
        line=None,
    )


def _open_state(hour: datetime, seconds: HourSeconds | None, known: Known) -> HourState:
    if seconds is None:
        return HourState.UNBILLED
    is_over = known.is_stopped or hour + HOUR <= known.as_of
    return HourState.WAITING if is_over else HourState.RUNNING


def _parts(line: Settlement) -> list[Part]:
    first = Part(seconds=line.first_seconds, fx_rate=line.fx_rate, held_tax_rate_percent=line.held_tax_rate_percent)
    if line.next_fx_rate is None or line.next_held_tax_rate_percent is None:
        return [first]
    second = Part(
        seconds=line.next_seconds, fx_rate=line.next_fx_rate, held_tax_rate_percent=line.next_held_tax_rate_percent
    )
    return [first, second]


def _priced(rental: Rental) -> Priced:
    return Priced(price=rental.price_usd_per_gpu_hour, gpu_count=rental.gpu_count, fee_percent=rental.fee_percent)


def _lost(rental: Rental, whole: Billable) -> Span | None:
    """Return what an interrupted rental ran without being billed: from billing's end until it was noticed."""
    if rental.unbilled_from is None or rental.ended_at is None or rental.paid_until is None:
        return None
    first = max(whole.ends_at, whole.ready_at)
    last = second_down(min(rental.ended_at, rental.paid_until))
    return Span(first=first, last=last) if first < last else None


def _holds_at(taxed: Taxed, hour: datetime) -> bool:
    return taxed.valid_from <= hour and (taxed.valid_to is None or taxed.valid_to > hour)


def _beats_of(server_ids: Iterable[UUID], since: datetime, until: datetime) -> Mapping[UUID, list[Span]]:
    """Return the spans of beats from the one before `since` on, by server."""
    before = BeatSpan.objects.filter(server=OuterRef("server"), first_beat_at__lte=since).order_by("-first_beat_at")
    spans = BeatSpan.objects.filter(
        server__in=server_ids,
        first_beat_at__lt=until,
        first_beat_at__gte=Coalesce(Subquery(before.values("first_beat_at")[:1]), since),
    )
    found: dict[UUID, list[Span]] = defaultdict(list)
    for span in spans.order_by("server_id", "first_beat_at"):
        found[span.server_id].append(Span(first=span.first_beat_at, last=span.last_beat_at))
    return found


def _ups(since: datetime, now: datetime) -> list[Span]:
    """Return when the platform was up; the present span lasts until now."""
    spans = UpSpan.objects.filter(started_at__lt=now, last_seen_at__gt=since).order_by("started_at")
    return [
        Span(first=span.started_at, last=now if span.last_seen_at >= now - LIVE_FOR else span.last_seen_at)
        for span in spans
    ]


def _taxed_of(organisation_ids: Iterable[int], since: datetime) -> Mapping[int, list[Taxed]]:
    """Return the decisions that hold from the hour of `since` on, by organisation."""
    ids = list(organisation_ids)
    still = Q(tax_decisions__valid_to__isnull=True) | Q(tax_decisions__valid_to__gt=hour_of(since))
    rows = (
        Organisation.objects.filter(still, pk__in=ids, tax_decisions__valid_from__isnull=False)
        .order_by("pk", "tax_decisions__valid_from")
        .values_list(
            "pk",
            "tax_decisions__valid_from",
            "tax_decisions__valid_to",
            "tax_decisions__treatment",
            "tax_decisions__country_of_tax",
            "tax_decisions__rate_percent",
        )
    )
    found: dict[int, list[Taxed]] = defaultdict(list)
    for organisation_id, valid_from, valid_to, treatment, country, rate in rows:
        tax = HourTax() if rate is None else HourTax(rate_percent=rate, treatment=treatment, country=country)
        found[organisation_id].append(Taxed(valid_from=valid_from, valid_to=valid_to, tax=tax))
    return found
