"""How figures, prices, ages and missing values are printed."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from common import formats
from common.shown_currency import ShownCurrency, shown_in
from common.templatetags import figures

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
NO_BREAK = "\N{NO-BREAK SPACE}"
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


@pytest.mark.parametrize(
    ("language", "usd", "eur", "gbp"),
    [
        ("en", "8.99 USD", "12,345.50 EUR", "0.8633 GBP"),
        ("nl", "US$ 8,99", "€ 12.345,50", "£ 0,8633"),
        ("pl", "8,99 USD", "12 345,50 €", "0,8633 GBP"),
    ],
)
def test_money_in_a_sentence_is_written_as_the_language_does_and_never_breaks(language, usd, eur, gbp):
    for value, currency, expected in (("8.99", "USD", usd), ("12345.5", "EUR", eur), ("0.8633", "GBP", gbp)):
        text = formats.money(Decimal(value), currency, language=language)
        assert text == expected.replace(" ", NO_BREAK)


@pytest.mark.parametrize(
    ("language", "words"), [("en", "from 8.99 USD"), ("nl", "vanaf US$ 8,99"), ("pl", "od 8,99 USD")]
)
def test_a_price_from_is_in_the_style_of_the_house(language, words):
    with translation.override(language):
        text = translation.gettext("from %(price)s") % {"price": figures.money(Decimal("8.99"))}
    assert text.replace(NO_BREAK, " ") == words


def test_money_is_in_the_currency_of_the_page_and_a_total_has_two_decimals():
    euros = ShownCurrency(code="EUR", units_per_usd=Decimal("0.5"))
    with translation.override("nl"), shown_in(euros):
        assert figures.money(Decimal("17.2504")) == f"€{NO_BREAK}8,6252"
        assert figures.total(Decimal("17.2504")) == f"€{NO_BREAK}8,63"


@pytest.mark.parametrize(
    ("language", "grouped", "plain"),
    [("en", "12,345.5", "4800"), ("nl", "12.345,5", "4800"), ("pl", "12 345,5", "4800")],
)
def test_large_figures_are_grouped_as_the_language_does(language, grouped, plain):
    assert formats.figure(Decimal("12345.5"), language=language) == grouped.replace(" ", NO_BREAK)
    assert formats.figure(4800, language=language) == plain


@pytest.mark.parametrize(
    ("language", "short", "long"),
    [
        ("en", "7 May 2026", "Monday 30 November 2026"),
        ("nl", "7 mei 2026", "maandag 30 november 2026"),
        ("pl", "7 maja 2026", "poniedziałek, 30 listopada 2026"),
    ],
)
def test_dates_follow_the_language(language, short, long):
    assert formats.day(date(2026, 5, 7), language=language) == short
    assert formats.long_day(NOW, language=language) == long


@pytest.mark.parametrize(
    ("minutes", "polish", "dutch"),
    [
        (1, "1 minutę temu", "1 minuut geleden"),
        (2, "2 minuty temu", "2 minuten geleden"),
        (5, "5 minut temu", "5 minuten geleden"),
        (12, "12 minut temu", "12 minuten geleden"),
        (22, "22 minuty temu", "22 minuten geleden"),
        (25, "25 minut temu", "25 minuten geleden"),
    ],
)
def test_an_age_counts_as_the_language_does(minutes, polish, dutch):
    for language, text in (("pl", polish), ("nl", dutch)):
        assert formats.age(NOW - timedelta(minutes=minutes), now=NOW, language=language) == text


@pytest.mark.parametrize(("seconds", "text"), [(1, "1 sekunda"), (120, "2 minuty"), (18_000, "5 godzin")])
def test_a_length_of_time_counts_in_polish(seconds, text):
    assert formats.duration(seconds, language="pl") == text


def test_a_bar_shows_the_share_of_the_largest_and_nothing_for_a_missing_value():
    assert 'x="50" width="50"' in figures.bar(Decimal(40), Decimal(80))
    assert figures.bar(None, Decimal(80)) == ""
    assert figures.bar(Decimal(1), None) == ""


@pytest.mark.parametrize(
    ("freshness", "shape"), [("fresh", "dot"), ("warned", "dot half"), ("old", "dot ring"), ("list", "dot ring")]
)
def test_the_dot_has_a_shape_per_age(freshness, shape):
    assert figures.dot(freshness) == f'<span class="{shape}"></span>'
