"""The proof of an hour: every second is told once, and what is told adds up to what is settled."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from marketplace.evidence import Held, Kind, Known, parts_of, passed, seconds_by_hour, stretches_of, sum_of
from marketplace.settlement.formula import Part, Priced, settle_hour
from marketplace.settlement.seconds import Billable, Span, gaps_between

START = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
EVER = [Span(first=START - 1000 * HOUR, last=START + 1000 * HOUR)]
PRICED = Priced(price=Decimal("4.19"), gpu_count=3, fee_percent=Decimal(10))
moments = st.integers(min_value=0, max_value=4 * 3600 * 1000).map(lambda ms: START + timedelta(milliseconds=ms))
_stretch = st.tuples(st.integers(min_value=1, max_value=400_000), st.integers(min_value=0, max_value=2_400_000))


def in_a_row(stretches: list[tuple[int, int]]) -> list[Span]:
    """Return spans, each so many milliseconds after the one before and so long, as beats and up times are kept."""
    found, at = [], START
    for pause, length in stretches:
        first = at + timedelta(milliseconds=pause)
        at = first + timedelta(milliseconds=length)
        found.append(Span(first=first, last=at))
    return found


spans = st.lists(_stretch, min_size=1, max_size=12).map(in_a_row)


@st.composite
def knowns(draw) -> Known:
    """Draw a rental of up to four hours, whatever was heard of it, told at whatever moment."""
    ready_at, ends_at, now = sorted(draw(st.tuples(moments, moments, moments)))
    if draw(st.booleans()):
        ends_at, now = now, ends_at  # what is paid reaches further than now
    whole = Billable(ready_at=ready_at.replace(microsecond=0), ends_at=ends_at.replace(microsecond=0))
    period = passed(whole, now=now)
    beats, ups = draw(spans), draw(spans)
    ended = max(period.ends_at, period.ready_at)
    is_lost = draw(st.booleans())
    return Known(
        period=period,
        as_of=now,
        gaps=gaps_between(beats, ups=ups, known_until=now),
        silences=gaps_between(beats, ups=EVER, known_until=now),
        lost=Span(first=ended, last=ended + HOUR) if is_lost else None,
        is_stopped=is_lost or draw(st.booleans()),
    )


@given(known=knowns())
def test_an_hour_is_told_second_for_second_from_its_start_to_its_end(known):
    for hour in known.hours:
        told = stretches_of(hour, known)
        assert (told[0].starts_at, told[-1].ends_at) == (hour, hour + HOUR)
        assert sum(part.seconds for part in told) == 3600
        assert all(before.ends_at == after.starts_at for before, after in pairwise(told))
        assert all(before.kind != after.kind for before, after in pairwise(told))
        assert all(part.offset_seconds * SECOND == part.starts_at - hour for part in told)


@given(known=knowns())
def test_what_is_told_adds_up_to_the_seconds_that_are_settled(known):
    counted = seconds_by_hour(known)
    assert set(counted) <= set(known.hours)
    for hour in known.hours:
        told = stretches_of(hour, known)
        billed = sum(part.seconds for part in told if part.is_billed)
        silent = sum(part.seconds for part in told if part.kind == Kind.SILENT)
        found = counted.get(hour)
        assert (billed, silent) == ((found.billed_seconds, found.gap_seconds) if found else (0, 0))


rates = st.sampled_from([Decimal("0.8713837574"), Decimal("0.8695652174"), Decimal(1)])
taxes = st.sampled_from([Decimal(0), Decimal(9), Decimal("25.5")])
parts = st.builds(Part, seconds=st.integers(min_value=0, max_value=1800), fx_rate=rates, held_tax_rate_percent=taxes)


@given(found=st.lists(parts, min_size=1, max_size=2), rate=st.none() | taxes)
def test_parts_of_the_same_rates_are_told_as_one_and_come_to_the_same(found, rate):
    told = sum_of(PRICED, found, tax_rate_percent=rate)
    assert told.amounts == settle_hour(PRICED, found, tax_rate_percent=rate)
    assert sum(part.seconds for part in told.parts) == sum(part.seconds for part in found)
    assert len({(part.fx_rate, part.held_tax_rate_percent) for part in told.parts}) == len(told.parts)
    if not told.is_gross_kept:
        assert told.price_net_micros == told.amounts.net_micros


def test_a_lot_is_one_part_and_each_hour_held_by_itself_another():
    known = Known(
        period=Billable(ready_at=START + 42 * 60 * SECOND, ends_at=START + 3 * HOUR),
        as_of=START + 3 * HOUR,
        gaps=[],
        silences=[],
    )
    second = seconds_by_hour(known)[START + HOUR]

    def held(first_hour: int, hours: int) -> Held:
        return Held(
            first_hour=first_hour,
            hours=hours,
            fx_rate=Decimal(1),
            fx_on=None,
            tax_rate_percent=Decimal(21),
            held_micros=1,
            held_at=START,
        )

    assert [part.seconds for part in parts_of(second, [held(0, 3)])] == [3600]
    assert [part.seconds for part in parts_of(second, [held(0, 1), held(1, 1)])] == [2520, 1080]
