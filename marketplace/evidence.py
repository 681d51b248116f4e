"""What proves an hour of a rental: what each of its seconds was, what it comes to, and by which rates. Pure.

Seconds and sums are those of the settlement's own rules (`marketplace/settlement/seconds.py`, `formula.py`): an hour
that is settled can be held against them, one that is not yet is told as it stands.

>>> at = datetime.fromisoformat
>>> known = Known(
...     period=Billable(ready_at=at("2026-11-30T10:04:30Z"), ends_at=at("2026-11-30T12:30:00Z")),
...     as_of=at("2026-11-30T13:00:00Z"),
...     gaps=[Span(first=at("2026-11-30T11:20:10Z"), last=at("2026-11-30T11:22:10Z"))],
...     silences=[Span(first=at("2026-11-30T11:20:10Z"), last=at("2026-11-30T11:22:10Z"))],
... )
>>> [(part.kind.value, part.seconds) for part in stretches_of(at("2026-11-30T11:00:00Z"), known)]
[('heard', 1210), ('silent', 120), ('heard', 2270)]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise

from marketplace.settlement.formula import HourAmounts, Part, Priced, settle_hour
from marketplace.settlement.seconds import HOUR, Billable, HourSeconds, Span, hour_of, hours_of, second_down

_SECOND = timedelta(seconds=1)


class Kind(StrEnum):
    """What a stretch of an hour was. Billed are `heard` and `unseen`."""

    BEFORE = "before"  # not ready
    HEARD = "heard"  # beats came
    SILENT = "silent"  # a gap
    UNSEEN = "unseen"  # no beats, and the platform itself was not up to hear any: no gap
    LOST = "lost"  # interrupted: not billed, whatever was heard
    AFTER = "after"  # stopped, or what was paid was over
    AHEAD = "ahead"  # has not come yet


BILLED = (Kind.HEARD, Kind.UNSEEN)


class HourState(StrEnum):
    """How far an hour is on its way to a line of the books."""

    RUNNING = "running"
    WAITING = "waiting"
    SETTLED = "settled"
    REVERSED = "reversed"
    UNBILLED = "unbilled"


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A part of an hour in which nothing changed. `offset_seconds`: from the hour's start."""

    kind: Kind
    starts_at: datetime
    ends_at: datetime
    offset_seconds: int

    @property
    def seconds(self) -> int:
        """How long it is."""
        return (self.ends_at - self.starts_at) // _SECOND

    @property
    def is_billed(self) -> bool:
        """Whether its seconds are paid for."""
        return self.kind in BILLED


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of a rental that was ready.

    `period`: what may be billed, as far as it has passed. `gaps` are the `silences` in which we were up ourselves.
    `lost`: of an interrupted rental, what came after billing's end until it was noticed. `is_stopped`: nothing follows.
    """

    period: Billable
    as_of: datetime
    gaps: Sequence[Span]
    silences: Sequence[Span]
    lost: Span | None = None
    is_stopped: bool = False

    @property
    def hours(self) -> Sequence[datetime]:
        """The starts of the UTC hours there is something to tell about, in order."""
        last = self.period.ends_at if self.lost is None else self.lost.last
        first = hour_of(self.period.ready_at)
        count = max(0, -((first - last) // HOUR)) if last > self.period.ready_at else 0
        return [first + number * HOUR for number in range(count)]


@dataclass(frozen=True, kw_only=True)
class Held:
    """Hours of a rental that money was set aside for, and at which rates. `first_hour` counts from readiness."""

    first_hour: int
    hours: int
    fx_rate: Decimal
    fx_on: date | None
    tax_rate_percent: Decimal
    held_micros: int
    held_at: datetime


@dataclass(frozen=True, kw_only=True)
class HourTax:
    """The tax decision at the start of an hour; `rate_percent` None: none was there, so the held rates were taken."""

    rate_percent: Decimal | None = None
    treatment: str = ""
    country: str = ""


@dataclass(frozen=True, kw_only=True)
class TaxedPart:
    """A part of an hour with the rate of tax that comes on top of it: the decided one, but no more than was held."""

    part: Part
    rate_percent: Decimal


@dataclass(frozen=True, kw_only=True)
class HourSum:
    """What an hour comes to, step by step: the net of price and seconds, what comes on top, then what is charged.

    `is_gross_kept`: the rate of tax is above one it was held at, so the tax is taken out of the gross instead.
    """

    taxed: Sequence[TaxedPart]
    price_net_micros: int
    amounts: HourAmounts
    is_gross_kept: bool

    @property
    def parts(self) -> Sequence[Part]:
        """Its billed seconds by held hour."""
        return [each.part for each in self.taxed]

    @property
    def added_rate(self) -> Decimal | None:
        """The one rate that comes on top of the net; None where its parts have different ones."""
        rates = {each.rate_percent for each in self.taxed}
        return rates.pop() if len(rates) == 1 else None


def stretches_of(hour: datetime, known: Known) -> list[Stretch]:
    """Return what an hour was, second for second, from its start to its end; neighbours differ in kind."""
    edges = sorted({hour, hour + HOUR, *(edge for edge in _edges(known) if hour < edge < hour + HOUR)})
    found: list[Stretch] = []
    for starts_at, ends_at in pairwise(edges):
        kind = _kind(starts_at, known)
        if found and found[-1].kind == kind:
            starts_at = found.pop().starts_at  # the same goes on
        offset = (starts_at - hour) // _SECOND
        found.append(Stretch(kind=kind, starts_at=starts_at, ends_at=ends_at, offset_seconds=offset))
    return found


def parts_of(seconds: HourSeconds, held: Sequence[Held]) -> list[Part]:
    """Return an hour's billed seconds by the held hours they lie in; one lot is one part."""
    parts: list[Part] = []
    for row in held:
        within = range(row.first_hour, row.first_hour + row.hours)
        if touched := [number for number in seconds.by_held_hour if number in within]:
            parts.append(
                Part(
                    seconds=sum(seconds.by_held_hour[number] for number in touched),
                    fx_rate=row.fx_rate,
                    held_tax_rate_percent=row.tax_rate_percent,
                )
            )
    return parts


def sum_of(priced: Priced, parts: Sequence[Part], *, tax_rate_percent: Decimal | None) -> HourSum:
    """Return what an hour's parts come to, those of the same rates as one, those without a second left out."""
    rate = tax_rate_percent
    used = _by_rates(parts)
    return HourSum(
        taxed=[TaxedPart(part=part, rate_percent=_added_rate(part, rate)) for part in used],
        price_net_micros=settle_hour(priced, used, tax_rate_percent=None).net_micros,
        amounts=settle_hour(priced, used, tax_rate_percent=rate),
        is_gross_kept=rate is not None and any(part.held_tax_rate_percent < rate for part in used),
    )


def seconds_by_hour(known: Known) -> dict[datetime, HourSeconds]:
    """Return the seconds of every hour that billing touches."""
    return {each.hour: each for each in hours_of(known.period, gaps=known.gaps)}


def passed(period: Billable, *, now: datetime) -> Billable:
    """Return a rental's billable time as far as it has passed."""
    return Billable(ready_at=period.ready_at, ends_at=min(period.ends_at, second_down(now)))


def _by_rates(parts: Sequence[Part]) -> list[Part]:
    seconds: dict[tuple[Decimal, Decimal], int] = {}
    for part in parts:
        rates = (part.fx_rate, part.held_tax_rate_percent)
        seconds[rates] = seconds.get(rates, 0) + part.seconds
    return [
        Part(seconds=found, fx_rate=fx_rate, held_tax_rate_percent=held)
        for (fx_rate, held), found in seconds.items()
        if found
    ]


def _added_rate(part: Part, rate: Decimal | None) -> Decimal:
    return part.held_tax_rate_percent if rate is None else min(rate, part.held_tax_rate_percent)


def _edges(known: Known) -> Iterator[datetime]:
    yield from (known.period.ready_at, known.period.ends_at, second_down(known.as_of))
    for span in (*known.gaps, *known.silences, *([known.lost] if known.lost else [])):
        yield from (span.first, span.last)


def _kind(at: datetime, known: Known) -> Kind:
    if at < known.period.ready_at:
        return Kind.BEFORE
    if at < known.period.ends_at:
        if _lies_in(at, known.gaps):
            return Kind.SILENT
        return Kind.UNSEEN if _lies_in(at, known.silences) else Kind.HEARD
    if known.lost is not None and _lies_in(at, [known.lost]):
        return Kind.LOST
    return Kind.AFTER if known.is_stopped or at < second_down(known.as_of) else Kind.AHEAD


def _lies_in(at: datetime, spans: Sequence[Span]) -> bool:
    return any(span.first <= at < span.last for span in spans)
