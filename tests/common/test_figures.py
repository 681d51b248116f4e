"""How figures, prices, ages and missing values are printed."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from common import formats
from common.templatetags import figures

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
PRICES = st.decimals(min_value="0.0001", max_value="9999", places=6, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2.88", "2.88"),
        ("2.8", "2.80"),
        ("3", "3.00"),
        ("0.8633", "0.8633"),
        ("2.880000", "2.88"),
        ("1.23456", "1.2346"),
    ],
)
def test_a_price_has_two_to_four_decimals(value, text):
    assert figures.price(Decimal(value)) == text


@given(PRICES)
def test_a_price_in_a_column_reads_the_same_as_in_a_sentence(value):
    in_column = figures.price_in_column(value).replace('<span class="tail">', "").replace("</span>", "")
    assert in_column == figures.price(value)


@given(PRICES)
def test_what_hangs_behind_a_price_is_at_most_two_digits(value):
    shown, _, tail = figures.price_in_column(value).partition('<span class="tail">')
    assert len(shown.rpartition(".")[2]) == 2
    assert len(tail.removesuffix("</span>")) <= 2


@pytest.mark.parametrize(
    ("value", "text"),
    [("8000", "8000"), ("9999", "9999"), ("10066", "10,066"), ("1.25", "1.25"), ("94.000", "94"), ("1307.4", "1307.4")],
)
def test_a_figure_is_grouped_from_ten_thousand_and_keeps_its_decimals(value, text):
    assert figures.figure(Decimal(value)) == text


@pytest.mark.parametrize(("value", "text"), [("1307.4", "1307"), ("1307.5", "1308"), ("2516.6", "2517"), ("0.5", "1")])
def test_tflops_are_whole(value, text):
    assert figures.whole(Decimal(value)) == text


@pytest.mark.parametrize("show", [figures.price, figures.figure, figures.whole, figures.yes_no, figures.known])
def test_a_missing_value_is_said_in_words_and_is_never_zero(show):
    text = show(None)
    assert "n/p" in text
    assert "not published" in text
    assert "0" not in text


def test_zero_is_a_value():
    assert figures.figure(0) == "0"


def test_a_unit_stands_only_behind_a_figure():
    assert figures.figure(Decimal(700), "W") == '700 <span class="unit">W</span>'
    assert "W" not in figures.figure(None, "W")


@pytest.mark.parametrize(
    ("passed", "text"),
    [
        (timedelta(minutes=12), "12 minutes ago"),
        (timedelta(seconds=5), "1 minute ago"),
        (-timedelta(minutes=5), "1 minute ago"),
        (timedelta(hours=3), "3 hours ago"),
        (timedelta(days=2), "2 days ago"),
    ],
)
def test_an_age_is_in_words_and_never_under_a_minute(passed, text):
    assert figures.age(NOW - passed, NOW) == text


def test_dates_are_written_day_first():
    assert figures.day(date(2026, 5, 7)) == "7 May 2026"
    assert figures.long_day(NOW) == "Monday 30 November 2026"
    assert figures.clock(NOW) == "14:02 UTC"
    assert figures.month("2024-03") == "March 2024"


def test_numbers_follow_the_language_of_the_page():
    with translation.override("pl"):
        assert figures.price(Decimal("2.88")) == "2,88"
    assert formats.price(Decimal("2.88"), language="pt-br") == "2,88"


def test_a_bar_shows_the_share_of_the_largest_and_nothing_for_a_missing_value():
    assert 'x="50" width="50"' in figures.bar(Decimal(40), Decimal(80))
    assert figures.bar(None, Decimal(80)) == ""
    assert figures.bar(Decimal(1), None) == ""


@pytest.mark.parametrize(
    ("freshness", "shape"), [("fresh", "dot"), ("warned", "dot half"), ("old", "dot ring"), ("list", "dot ring")]
)
def test_the_dot_has_a_shape_per_age(freshness, shape):
    assert figures.dot(freshness) == f'<span class="{shape}"></span>'
