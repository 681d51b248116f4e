"""What the market's drawings are made of: nothing is lost, nothing points the wrong way, sizes stay in their boxes."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from marketplace.axes import round_figures
from marketplace.depth_chart import BOTTOM, TOP, WIDTH, depth_chart, totals
from marketplace.ladder import ladder
from marketplace.levels import Book, Level, bid_levels
from marketplace.trade_chart import Trade, trade_chart

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
prices = st.decimals(min_value="0.05", max_value="90", places=4)
gpu_counts = st.integers(min_value=1, max_value=5000)
sides = st.dictionaries(prices, gpu_counts, max_size=30)


def side(found: dict, *, reverse: bool = False) -> list[Level]:
    return [Level(price=price, gpu_count=found[price], orders=1) for price in sorted(found, reverse=reverse)]


def book_of(bids: dict, asks: dict) -> Book:
    return Book(bids=side(bids, reverse=True), asks=side(asks))


def points(path: str) -> list[tuple[float, float]]:
    x, y, found = 0.0, 0.0, []
    for command, first, second in re.findall(r"([MHV])([-\d.]+)(?: ([-\d.]+))?", path):
        if command == "M":
            x, y = float(first), float(second)
        elif command == "H":
            x = float(first)
        else:
            y = float(first)
        found.append((x, y))
    return found


@given(bids=sides, asks=sides)
def test_the_drawing_stays_in_its_box_and_totals_only_grow(bids, asks):
    chart = depth_chart(book_of(bids, asks))
    if not bids and not asks:
        assert chart is None
        return
    assert chart is not None
    for drawn, goes_right in ((chart.asks, True), (chart.bids, False)):
        if drawn is None:
            continue
        found = points(drawn.line)
        assert all(-0.1 <= x <= float(WIDTH) + 0.1 for x, _ in found)
        assert all(float(TOP) - 0.1 <= y <= float(BOTTOM) for _, y in found)
        heights = [y for _, y in found]
        assert heights == sorted(heights, reverse=True), "a running total never falls"
        xs = [x for x, _ in found]
        assert xs == sorted(xs, reverse=not goes_right)


@given(bids=sides, asks=sides)
def test_every_gpu_is_drawn_or_said_to_be_left_out(bids, asks):
    chart = depth_chart(book_of(bids, asks))
    for drawn, found in ((chart and chart.bids, bids), (chart and chart.asks, asks)):
        assert (drawn.total + drawn.beyond if drawn else 0) == sum(found.values())


def test_a_strange_price_does_not_flatten_the_rest():
    asks = {Decimal("2.88"): 5, Decimal("2.95"): 8, Decimal(900): 1}
    chart = depth_chart(book_of({Decimal("2.80"): 4}, asks))
    assert chart is not None
    assert chart.asks is not None
    assert (chart.asks.farthest, chart.asks.total, chart.asks.beyond) == (Decimal("2.95"), 13, 1)


@given(bids=sides, asks=sides, rungs=st.integers(min_value=1, max_value=12))
def test_the_ladder_puts_the_best_of_both_sides_in_the_middle_and_counts_the_rest(bids, asks, rungs):
    shown = ladder(book_of(bids, asks), best_ask=min(asks, default=None), yours={}, most_rungs=rungs)
    assert [rung.price for rung in shown.asks] == sorted(asks)[:rungs][::-1]
    assert [rung.price for rung in shown.bids] == sorted(bids, reverse=True)[:rungs]
    assert all(1 <= rung.width <= 100 for rung in (*shown.asks, *shown.bids))
    assert sum(rung.gpu_count for rung in shown.asks) + shown.asks_beyond == sum(asks.values())
    assert sum(rung.gpu_count for rung in shown.bids) + shown.bids_beyond == sum(bids.values())
    assert [rung.is_best for rung in shown.asks] == [False] * (len(shown.asks) - 1) + [True] * bool(asks)


def test_a_bid_at_or_above_an_offer_is_called_crossed():
    for bid, is_crossed in (("2.80", False), ("2.88", True), ("3.00", True)):
        shown = ladder(book_of({Decimal(bid): 8}, {Decimal("2.88"): 4}), best_ask=None, yours={})
        assert shown.is_crossed is is_crossed


def test_a_price_is_written_as_one_would_type_it():
    shown = ladder(
        book_of({}, {Decimal("2.8800"): 1, Decimal("2.8850"): 1, Decimal("3.0000"): 1}), best_ask=None, yours={}
    )
    assert [rung.as_typed for rung in shown.asks] == ["3.00", "2.885", "2.88"]


@given(st.lists(st.tuples(prices, gpu_counts), max_size=30))
def test_bids_of_one_price_are_one_level(wanted):
    levels = bid_levels(wanted)
    assert [level.price for level in levels] == sorted({price for price, _ in wanted}, reverse=True)
    assert sum(level.gpu_count for level in levels) == sum(gpus for _, gpus in wanted)
    assert sum(level.orders for level in levels) == len(wanted)
    assert [total.total for total in totals(levels)][-1:] == [sum(gpus for _, gpus in wanted)] * bool(wanted)


@given(low=prices, span=prices, most=st.integers(min_value=2, max_value=8))
def test_the_figures_of_an_axis_are_few_evenly_spaced_and_inside(low, span, most):
    figures = round_figures(low, low + span, most=most)
    assert len(figures) <= most
    assert all(low <= figure <= low + span for figure in figures)
    assert len({after - before for before, after in pairwise(figures)}) <= 1


def trades(*hours_ago: float, price: str = "2.88") -> list[Trade]:
    return [
        Trade(price=Decimal(price), gpu_count=1 + index, traded_at=NOW - timedelta(hours=hours))
        for index, hours in enumerate(hours_ago)
    ]


def test_a_day_is_drawn_or_a_week_where_a_day_has_too_few():
    assert trade_chart([], now=NOW) is None
    assert trade_chart(trades(1), now=NOW) is None
    assert trade_chart(trades(200, 300), now=NOW) is None
    day, week = trade_chart(trades(1, 5, 30), now=NOW), trade_chart(trades(1, 30, 100), now=NOW)
    assert day is not None
    assert week is not None
    assert (day.is_day, day.trades, len(day.dots)) == (True, 2, 2)
    assert (week.is_day, week.trades, len(week.dots)) == (False, 3, 3)


@given(st.lists(st.tuples(prices, gpu_counts, st.integers(min_value=1, max_value=80_000)), min_size=2, max_size=40))
def test_trades_run_from_left_to_right_and_stay_in_their_box(found):
    newest_first = [
        Trade(price=price, gpu_count=gpus, traded_at=NOW - timedelta(seconds=seconds))
        for price, gpus, seconds in sorted(found, key=lambda each: each[2])
    ]
    chart = trade_chart(newest_first, now=NOW)
    assert chart is not None
    xs = [float(dot.x) for dot in chart.dots]
    assert xs == sorted(xs)
    assert all(0 <= float(dot.x) <= 640 and 15.9 <= float(dot.y) <= 160.1 for dot in chart.dots)
    assert all(2.5 <= float(dot.radius) <= 7 for dot in chart.dots)
    assert (chart.lowest, chart.highest) == (min(p for p, _, _ in found), max(p for p, _, _ in found))
