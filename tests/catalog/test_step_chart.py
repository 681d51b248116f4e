"""Steps are drawn from what was recorded and nothing else: no invented level, no bridged gap, nothing outside."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.step_chart import (
    CHART_HEIGHT,
    CHART_WIDTH,
    DAY,
    HOUR,
    LABEL_HEIGHT,
    SPARK_BOTTOM,
    SPARK_TOP,
    SPARK_WIDTH,
    Point,
    round_prices,
    runs,
    sparkline,
    step_chart,
)

START = datetime(2026, 11, 1, tzinfo=UTC)
MONTH_HOURS = 30 * 24
PARTS = re.compile(r"([MHVZ])([-\d.]*)(?: ([-\d.]+))?")


def point(hour: int, price: Decimal | str, *, p75: Decimal | str | None = None, span: timedelta = HOUR) -> Point:
    at = START + hour * HOUR
    price = Decimal(price)
    top = price if p75 is None else Decimal(p75)
    middle = (price + top) / 2
    return Point(at=at, stands_from=at, stands_until=at + span, min=price, p25=middle, median=middle, p75=top, offers=3)


def month_of(points: list[Point]):
    return sparkline(points, starts_at=START, ends_at=START + MONTH_HOURS * HOUR)


def chart_of(points: list[Point]):
    return step_chart(points, starts_at=START, ends_at=START + MONTH_HOURS * HOUR)


def corners(path: str) -> list[list[tuple[Decimal, Decimal]]]:
    """Return the corners of each piece of a path, as absolute coordinates."""
    pieces: list[list[tuple[Decimal, Decimal]]] = []
    x = y = Decimal(0)
    for letter, first, second in PARTS.findall(path):
        if letter == "M":
            x, y = Decimal(first), Decimal(second)
            pieces.append([])
        elif letter == "H":
            x = Decimal(first)
        elif letter == "V":
            y = Decimal(first)
        pieces[-1].append((x, y))
    return pieces


prices = st.decimals(min_value="0.01", max_value="99", places=4)
histories = st.dictionaries(st.integers(0, MONTH_HOURS - 1), st.tuples(prices, prices), min_size=1, max_size=40).map(
    lambda found: [point(hour, min(pair), p75=max(pair)) for hour, pair in sorted(found.items())]
)


@given(histories)
def test_every_level_of_a_line_is_a_recorded_price(points):
    spark = month_of(points)
    lowest, highest = min(p.min for p in points), max(p.min for p in points)
    height = SPARK_BOTTOM - SPARK_TOP
    span = highest - lowest
    recorded = [
        Decimal(SPARK_TOP + SPARK_BOTTOM) / 2 if not span else SPARK_BOTTOM - (p.min - lowest) / span * height
        for p in points
    ]
    for piece in corners(spark.path):
        for _, y in piece:
            assert any(abs(y - level) <= Decimal("0.05") for level in recorded)


@given(histories)
def test_a_line_covers_the_recorded_spans_and_no_hour_without_one(points):
    pieces = corners(month_of(points).path)
    found = list(runs(points))
    assert len(pieces) == len(found)
    for piece, run in zip(pieces, found, strict=True):
        for (x, _), at in ((piece[0], run[0].at), (piece[-1], run[-1].stands_until)):
            share = Decimal((at - START) // HOUR) / MONTH_HOURS
            assert abs(x - share * SPARK_WIDTH) <= Decimal("0.05")


@given(histories)
def test_everything_stays_within_the_view_box(points):
    chart = chart_of(points)
    for path in (chart.lowest_path, chart.median_path, chart.band_path):
        for piece in corners(path):
            for x, y in piece:
                assert 0 <= x <= CHART_WIDTH
                assert 0 <= y <= CHART_HEIGHT
    spark = month_of(points)
    for x, y in [*chain(*corners(spark.path)), (Decimal(spark.dot_x), Decimal(spark.dot_y))]:
        assert 0 <= x <= SPARK_WIDTH
        assert SPARK_TOP <= y <= SPARK_BOTTOM


@given(histories)
def test_a_point_before_the_window_begins_at_its_edge(points):
    spark = sparkline(points, starts_at=START + DAY, ends_at=START + 31 * DAY)
    assert all(0 <= x <= SPARK_WIDTH for piece in corners(spark.path) for x, _ in piece)


@given(prices, prices)
def test_round_prices_hold_the_whole_range_and_are_few(one, other):
    lowest, highest = sorted((one, other))
    found = round_prices(lowest=lowest, highest=highest)
    assert found[0] <= lowest
    assert highest <= found[-1]
    assert found[0] >= 0
    assert 3 <= len(found) <= 7
    assert len({later - earlier for earlier, later in pairwise(found)}) == 1


def test_a_price_holds_until_the_next_and_jumps_there():
    assert month_of([point(0, "2"), point(1, "2"), point(2, "3"), point(3, "2")]).path == "M0 21H0.3V3H0.4V21H0.5"


def test_a_missing_hour_is_a_gap_and_is_never_bridged():
    assert month_of([point(0, "2"), point(240, "3")]).path == "M0 21H0.1M30.7 3H30.8"


def test_a_point_that_stands_for_its_day_joins_the_next_day_and_not_the_one_after():
    days = [
        Point(
            at=START + day * DAY + 23 * HOUR,
            stands_from=START + day * DAY,
            stands_until=START + (day + 1) * DAY,
            min=Decimal(2),
            p25=Decimal(2),
            median=Decimal(2),
            p75=Decimal(2),
            offers=1,
        )
        for day in (0, 1, 3)
    ]
    assert [len(run) for run in runs(days)] == [2, 1]


def test_the_last_point_has_the_dot():
    spark = month_of([point(0, "2"), point(MONTH_HOURS - 1, "3")])
    assert (spark.dot_x, spark.dot_y) == ("92", "3")
    assert (spark.lowest, spark.highest, spark.last) == (Decimal(2), Decimal(3), Decimal(3))


def test_one_price_all_along_is_a_level_line_without_a_band():
    chart = chart_of([point(0, "2"), point(1, "2")])
    assert chart.lowest_path.count("V") == 0
    assert (chart.median_path, chart.band_path) == ("", "")


def test_the_band_goes_along_its_upper_edge_and_back_along_the_lower():
    (piece,) = corners(chart_of([point(0, "2", p75="4"), point(1, "3", p75="4")]).band_path)
    assert piece[0][1] == piece[1][1] == 0
    assert piece[-1][0] == piece[0][0] == 0


def test_the_scale_starts_at_a_round_price_below_and_says_which():
    chart = chart_of([point(0, "2.88", p75="3.99"), point(1, "2.90", p75="3.99")])
    assert chart.starts_at_price == Decimal("2.5")
    assert [tick.y for tick in chart.price_ticks][::3] == ["230", "0"]


def test_labels_of_two_close_lines_do_not_overlap():
    chart = chart_of([point(0, "2.00", p75="2.01"), point(1, "2.00", p75="9.00"), point(2, "2.00", p75="2.01")])
    assert Decimal(chart.lowest_label_y) - Decimal(chart.median_label_y) >= LABEL_HEIGHT


@pytest.mark.parametrize(("days", "is_clock"), [(1, True), (2, False), (7, False), (365, False)])
def test_time_ticks_are_few_and_at_whole_days_or_hours(days, is_clock):
    starts_at = START + 5 * HOUR
    chart = step_chart([point(5, "2"), point(6, "2")], starts_at=starts_at, ends_at=starts_at + days * DAY)
    assert 2 <= len(chart.time_ticks) <= 6
    for tick in chart.time_ticks:
        assert tick.is_clock is is_clock
        assert tick.at.minute == 0
        assert is_clock or tick.at.hour == 0


def test_nothing_recorded_is_nothing_to_draw():
    with pytest.raises(ValueError, match="no points"):
        sparkline([], starts_at=START, ends_at=START + DAY)
    with pytest.raises(ValueError, match="no points"):
        step_chart([], starts_at=START, ends_at=START + DAY)
