"""The drawing of a balance: level between changes, inside its frame, zero in sight; and the meter of a wallet."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from billing.balance_chart import HEIGHT, HOUR, WIDTH, Point, balance_chart, meter, round_amounts
from billing.queries.series import Change
from billing.views.balance_history import by_day

START = datetime(2026, 11, 1, tzinfo=UTC)
END = START + timedelta(days=30)
PARTS = re.compile(r"([MHV])([-\d.]+)(?: ([-\d.]+))?")

balances = st.decimals(min_value=-10_000, max_value=1_000_000, places=2)
histories = st.lists(
    st.tuples(st.integers(0, 30 * 24 * 60), balances), min_size=1, max_size=40, unique_by=lambda pair: pair[0]
).map(lambda pairs: [Point(at=START + timedelta(minutes=minutes), balance=value) for minutes, value in sorted(pairs)])


def chart_of(points: list[Point]):
    return balance_chart(points, starts_at=START, ends_at=END)


@given(histories)
def test_a_line_goes_right_in_steps_and_stays_in_its_frame(points):
    chart = chart_of(points)
    if chart is None:
        assert END - points[0].at < HOUR
        return
    (first, x, _), *moves = PARTS.findall(chart.line_path)
    assert first == "M"
    xs = [Decimal(x), *(Decimal(value) for letter, value, _ in moves if letter == "H")]
    ys = [Decimal(value) for letter, value, _ in moves if letter == "V"]
    assert xs == sorted(xs)
    assert xs[-1] == WIDTH
    assert all(0 <= y <= HEIGHT for y in (*ys, Decimal(chart.zero_y), Decimal(chart.last_y)))
    assert [letter for letter, _, _ in moves] == ["H", "V"] * len(ys) + ["H"]


@given(histories)
def test_the_scale_holds_zero_and_every_balance(points):
    chart = chart_of(points)
    if chart is None:
        return
    amounts = [tick.amount for tick in chart.amount_ticks]
    assert 0 in amounts
    assert amounts[0] <= min(point.balance for point in points)
    assert amounts[-1] >= max(point.balance for point in points)
    steps = {upper - lower for lower, upper in pairwise(amounts)}
    assert len(steps) == 1
    assert 2 <= len(amounts) <= 6


@given(st.decimals(min_value=0, max_value=10**9, places=6))
def test_round_amounts_are_few_and_reach(highest):
    amounts = round_amounts(lowest=Decimal(0), highest=highest)
    assert amounts[0] == 0
    assert amounts[-1] >= highest
    assert len(amounts) <= 5


def test_nothing_is_drawn_before_there_is_an_hour_of_it():
    assert balance_chart([], starts_at=START, ends_at=END) is None
    assert chart_of([Point(at=END - timedelta(minutes=59), balance=Decimal(5))]) is None
    assert chart_of([Point(at=END - timedelta(minutes=60), balance=Decimal(5))]) is not None


def test_a_wallet_that_begins_in_the_window_has_no_line_before():
    chart = chart_of([Point(at=START + timedelta(days=15), balance=Decimal(100))])
    assert chart is not None
    assert chart.line_path == "M410 0H820"
    assert chart.area_path == "M410 0H820V230H410Z"
    assert chart.last_y == "0"


def test_a_day_is_shown_with_clocks_and_a_month_with_days():
    point = Point(at=START, balance=Decimal(1))
    day = balance_chart([point], starts_at=START, ends_at=START + timedelta(days=1))
    month = chart_of([point])
    assert day is not None
    assert month is not None
    assert all(tick.is_clock for tick in day.time_ticks)
    assert not any(tick.is_clock for tick in month.time_ticks)
    assert 2 <= len(month.time_ticks) <= 5


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_meter_is_never_fuller_than_the_wallet(posted, held, following):
    drawn = meter(posted_micros=posted, held_micros=min(held, posted), next_micros=following)
    assert 0 <= Decimal(drawn.held_width) <= 100
    assert Decimal(drawn.held_width) + Decimal(drawn.next_width) <= Decimal("100.1")
    assert 0 <= drawn.held_percent <= 100


def test_days_sum_what_their_hours_moved_and_end_with_the_last_balance():
    hours = [
        Change(starts_at=START + n * HOUR, at=START + n * HOUR, in_micros=n, out_micros=1, balance_micros=100 + n)
        for n in (1, 2, 25)
    ]
    newest, oldest = by_day(hours)
    assert (oldest.in_micros, oldest.out_micros, oldest.balance_micros) == (3, 2, 102)
    assert (newest.in_micros, newest.out_micros, newest.balance_micros) == (25, 1, 125)
