"""Template filters for figures: every number, price, age and date of a page passes through here.

A missing value becomes "n/p" with the full words for screen readers; it is never 0 and never blank.
"""

from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _

from common import formats
from common.money import from_micros
from common.shown_currency import current

register = template.Library()

FRESHNESS_SHAPES = {"fresh": "", "warned": " half"}


@register.filter
def price(value: Decimal | None) -> str:
    """Format a USD price in the page's currency with 2 to 4 decimals: 2.88."""
    return not_published() if value is None else formats.price(current().of(value), language=_language())


@register.filter
def price_usd(value: Decimal) -> str:
    """Format a price that stays in USD whatever the page's currency."""
    return formats.price(value, language=_language())


@register.filter
def rate_exact(value: Decimal) -> str:
    """Format an exchange rate with all the decimals it is stored with: 0.8713837574."""
    return formats.figure(value, language=_language(), decimals=10)


@register.filter
def per_currency(value_per_usd: Decimal) -> Decimal:
    """Turn a figure per USD into one per unit of the page's currency."""
    return value_per_usd / current().units_per_usd


@register.filter
def rate(value: Decimal) -> str:
    """Format an exchange rate with 4 decimals: 0.8714."""
    return formats.figure(value, language=_language(), decimals=4)


@register.filter
def price_in_column(value: Decimal) -> SafeString:
    """Format a USD price in the page's currency for a column: the third and fourth decimal, if any, hang small behind, so that all line up."""
    value = current().of(value)
    text = formats.price(value, language=_language())
    shown = len(formats.amount(value, language=_language()))
    tail = format_html('<span class="tail">{}</span>', text[shown:]) if text[shown:] else ""
    return format_html("{}{}", text[:shown], tail)


@register.filter
def amount(value: Decimal) -> str:
    """Format a sum of USD in the page's currency with exactly 2 decimals: 552.96."""
    return formats.amount(current().of(value), language=_language())


@register.filter
def money(value: Decimal) -> str:
    """Format a USD price in the page's currency, with it, for a sentence: 2.88 USD, Dutch US$ 2,88."""
    return formats.money(current().of(value), current().code, language=_language())


@register.filter
def total(value: Decimal) -> str:
    """Format a sum of USD in the page's currency, with it and exactly 2 decimals: 552.96 USD, Dutch US$ 552,96."""
    return formats.total(current().of(value), current().code, language=_language())


@register.filter
def figure(value: Decimal | int | None, unit: str = "") -> str:
    """Format a specification figure with the decimals it has, and its unit where there is a figure: 8000 GB/s."""
    if value is None:
        return not_published()
    text = formats.figure(value, language=_language())
    return format_html('{} <span class="unit">{}</span>', text, unit) if unit else text


@register.filter
def whole(value: Decimal | None) -> str:
    """Format a figure as a whole number: 1307."""
    return not_published() if value is None else formats.whole(value, language=_language())


@register.filter
def one_decimal(value: Decimal | None) -> str:
    """Format a ratio with at most one decimal: 3.2."""
    return not_published() if value is None else formats.figure(value, language=_language(), decimals=1)


@register.filter
def tenths(value: Decimal | float) -> str:
    """Format a figure with exactly one decimal: 16.9."""
    return formats.tenths(Decimal(str(value)), language=_language())


@register.filter
def known(value: object) -> object:
    """Return a text as it is, or "n/p" when it is blank or unknown."""
    return not_published() if value in (None, "") else value


@register.filter
def yes_no(value: bool | None) -> str:
    """Say yes or no; unknown is "n/p"."""
    if value is None:
        return not_published()
    return _("yes") if value else _("no")


@register.filter
def age(at: datetime, now: datetime) -> str:
    """Say how long ago: 12 minutes ago."""
    return formats.age(at, now=now, language=_language())


@register.filter
def short_age(at: datetime, now: datetime) -> str:
    """Say how long ago, where room is short: 12 min ago."""
    return formats.age(at, now=now, language=_language(), is_short=True)


@register.filter
def day(on: date) -> str:
    """Format a date: 7 May 2026."""
    return formats.day(on, language=_language())


@register.filter
def long_day(on: date) -> str:
    """Format a date with its weekday: Monday 30 November 2026."""
    return formats.long_day(on, language=_language())


@register.filter
def clock(at: datetime) -> str:
    """Format the time of day: 14:02 UTC."""
    return formats.clock(at, language=_language())


@register.filter
def month(text: str) -> str:
    """Format a month: March 2024. Blank is "n/p"."""
    return formats.month(text, language=_language()) if text else not_published()


@register.filter
def duration(seconds: Decimal | int) -> str:
    """Format a length of time in its largest whole unit: 10 minutes."""
    return formats.duration(int(seconds), language=_language())


@register.filter
def lasting(seconds: int) -> str:
    """Format how long something lasts in its two largest units: 4 days, 17 hrs."""
    return formats.lasting(seconds, language=_language())


@register.filter
def cents(micros: int) -> str:
    """Format money that has moved with 2 decimals, without its currency: 11.65."""
    return formats.amount(from_micros(micros), language=_language())


@register.filter
def cents_left(micros: int) -> str:
    """Format money that is there with 2 decimals, rounded down: never more than there is."""
    return formats.amount(_in_cents(micros, ROUND_FLOOR), language=_language())


@register.filter
def exact(micros: int) -> str:
    """Format money to the micro, as the books keep it, without its currency: 9.285465."""
    return formats.exact(from_micros(micros), language=_language())


@register.filter
def sum_in(micros: int, currency: str) -> str:
    """Format money that has moved with its currency, for a sentence: 1,000.00 EUR, Dutch € 1.000,00."""
    return formats.total(from_micros(micros), currency, language=_language())


@register.filter
def sum_left_in(micros: int, currency: str) -> str:
    """Format money that is there with its currency, rounded down."""
    return formats.total(_in_cents(micros, ROUND_FLOOR), currency, language=_language())


@register.filter
def sum_owed_in(micros: int, currency: str) -> str:
    """Format money that is owed with its currency, rounded up: what pays it."""
    return formats.total(_in_cents(micros, ROUND_CEILING), currency, language=_language())


def _in_cents(micros: int, rounding: str) -> Decimal:
    return from_micros(micros).quantize(Decimal("0.01"), rounding=rounding)


@register.filter
def country(code: str) -> str:
    """Name a country: Netherlands."""
    return formats.country(code, language=_language())


@register.simple_tag
def bar(value: Decimal | None, largest: Decimal | None) -> SafeString:
    """Draw the share of the column's largest value, under a figure. Sizes are attributes, so a strict CSP holds."""
    if value is None or not largest:
        return SafeString("")
    width = max(1, round(100 * value / largest))
    return format_html(
        '<svg class="bar" viewBox="0 0 100 2" preserveAspectRatio="none" aria-hidden="true">'
        '<rect x="{}" width="{}" height="2"/></svg>',
        100 - width,
        width,
    )


@register.simple_tag
def dot(freshness: str) -> SafeString:
    """Draw the age of a price: filled under 2 hours, half under 12, a ring from there. Words must follow it."""
    return format_html('<span class="dot{}"></span>', FRESHNESS_SHAPES.get(freshness, " ring"))


@register.simple_tag
def np() -> SafeString:
    """Print "n/p" with its full words."""
    return not_published()


def not_published() -> SafeString:
    """Return "n/p" for the eye and "not published" for the ear."""
    return _not_published_in(_language())


@cache
def _not_published_in(language: str) -> SafeString:
    with override(language):
        words, short = _("not published"), _("n/p")
    return format_html(
        '<span class="np" title="{}"><span aria-hidden="true">{}</span><span class="vh">{}</span></span>',
        words,
        short,
        words,
    )


def _language() -> str:
    return get_language() or "en"
