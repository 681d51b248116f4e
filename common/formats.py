"""Numbers, money, ages and dates as text, by the rules of the reader's language (Babel).

>>> price(Decimal("2.88"), language="en"), price(Decimal("0.30004"), language="en"), price(Decimal("2.8"), language="pl")
('2.88', '0.30', '2,80')
>>> figure(Decimal("4800.000"), language="en"), figure(Decimal("12345.5"), language="en")
('4800', '12,345.5')
>>> whole(Decimal("1307.400"), language="en")
'1307'
"""

from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cache, lru_cache

from babel.core import Locale
from babel.dates import format_date, format_time, format_timedelta
from babel.lists import format_list
from babel.numbers import format_currency, format_decimal
from babel.units import format_unit

# English pages write day before month ("30 November 2026"), so they take the British rules.
_LOCALES = {"en": "en_GB"}
# Polish months have a case: only the long form can follow "from" and "of" in a sentence.
_DAYS = {"en": "d MMM y", "pl": "d MMMM y"}
_GROUP_FROM = 10_000
_NOW = timedelta(minutes=1)
_UNITS = (("duration-hour", 3600), ("duration-minute", 60), ("duration-second", 1))
_LASTING_UNITS = (("duration-day", 86_400), ("duration-hour", 3600), ("duration-minute", 60))


def price(value: Decimal, *, language: str) -> str:
    """Format a price with at least 2 and at most 4 decimals, without its currency."""
    return _number(value, "#,##0.00##", language)


def money(value: Decimal, currency: str, *, language: str) -> str:
    """Format a price with its currency, for a sentence: "8.99 USD", Dutch "US$ 8,99", Polish "8,99 USD".

    English is the house's, with the ISO code behind; other languages follow CLDR. The space does not break.
    """
    return _money(value, currency, "0.00##", language)


def total(value: Decimal, currency: str, *, language: str) -> str:
    """Format a sum of money with its currency and exactly 2 decimals, like `money`."""
    return _money(value, currency, "0.00", language)


def amount(value: Decimal, *, language: str) -> str:
    """Format a sum of money with exactly 2 decimals, without its currency."""
    return _number(value, "#,##0.00", language)


def exact(value: Decimal, *, language: str) -> str:
    """Format a sum of money with all six decimals that the books keep, without its currency: 9.285465."""
    return _number(value, "#,##0.000000", language)


def figure(value: Decimal | int, *, language: str, decimals: int = 2) -> str:
    """Format a specification figure: only the decimals it has, at most `decimals`; groups from 10,000 up."""
    pattern = ("#,##0" if Decimal(value).copy_abs() >= _GROUP_FROM else "0") + (
        "." + "#" * decimals if decimals else ""
    )
    return _number(value, pattern, language)


def whole(value: Decimal, *, language: str) -> str:
    """Format a figure rounded half up to a whole number."""
    return figure(value.to_integral_value(rounding=ROUND_HALF_UP), language=language)


def tenths(value: Decimal, *, language: str) -> str:
    """Format a figure with exactly one decimal, for a column: 16.9.

    >>> tenths(Decimal("74.788"), language="en"), tenths(Decimal(17), language="nl")
    ('74.8', '17,0')
    """
    return _number(value, "#,##0.0", language)


def age(at: datetime, *, now: datetime, language: str, is_short: bool = False) -> str:
    """Say how long ago `at` was: "12 minutes ago", short "12 min ago". Never under a minute, also when clocks differ.

    >>> age(datetime(2026, 11, 30, 14, 2, tzinfo=UTC), now=datetime(2026, 11, 30, 14, 14, 30, tzinfo=UTC), language="en")
    '12 minutes ago'
    """
    return format_timedelta(
        min(at - now, -_NOW),
        add_direction=True,
        threshold=1,
        format="short" if is_short else "long",
        locale=_locale(language),
    )


def day(on: date, *, language: str) -> str:
    """Format a date for a table or sentence: "7 May 2026", Dutch "7 mei 2026", Polish "7 maja 2026"."""
    return format_date(on, _DAYS.get(language, "medium"), locale=_locale(language))


def long_day(on: date, *, language: str) -> str:
    """Format a date with its weekday: "Monday 30 November 2026"."""
    return format_date(on, "EEEE d MMMM y" if language == "en" else "full", locale=_locale(language))


def clock(at: datetime, *, language: str) -> str:
    """Format the time of day in UTC: "14:02 UTC"."""
    return f"{format_time(at.astimezone(UTC), 'HH:mm', locale=_locale(language))} UTC"


def month(text: str, *, language: str) -> str:
    """Format a month written as `YYYY-MM`: "March 2024".

    >>> month("2024-03", language="en")
    'March 2024'
    """
    return format_date(date.fromisoformat(f"{text}-01"), "LLLL y", locale=_locale(language))


def duration(seconds: int, *, language: str) -> str:
    """Format a length of time in its largest unit that divides it: "1 minute", "90 seconds", "2 hours".

    >>> [duration(seconds, language="en") for seconds in (1, 60, 90, 600, 3600)]
    ['1 second', '1 minute', '90 seconds', '10 minutes', '1 hour']
    """
    unit, size = next(pair for pair in _UNITS if seconds % pair[1] == 0)
    return format_unit(seconds // size, unit, locale=_locale(language))


def lasting(seconds: int, *, language: str) -> str:
    """Format how long something lasts, cut down to its two largest units; without the smaller one where that is 0.

    >>> [lasting(seconds, language="en") for seconds in (409_053, 7200, 5400, 59)]
    ['4 days, 17 hrs', '2 hrs', '1 hr, 30 mins', '0 mins']
    """
    locale = _locale(language)
    first = next((n for n, (_, size) in enumerate(_LASTING_UNITS) if seconds >= size), len(_LASTING_UNITS) - 1)
    parts: list[str] = []
    left = seconds
    for unit, size in _LASTING_UNITS[first : first + 2]:
        count, left = divmod(left, size)
        if count or not parts:
            parts.append(format_unit(count, unit, length="short", locale=locale))
    return str(format_list(parts, style="unit-short", locale=locale))


def country(code: str, *, language: str) -> str:
    """Name a country by its two-letter code; a code that is not known stays as it is.

    >>> country("NL", language="en"), country("NL", language="pl"), country("ZZ9", language="en")
    ('Netherlands', 'Holandia', 'ZZ9')
    """
    return str(_locale(language).territories.get(code, code))


# Figures of the catalogue repeat on every page; Babel takes a third of a millisecond for each.
@lru_cache(maxsize=8192)
def _number(value: Decimal | int, pattern: str, language: str) -> str:
    return format_decimal(value, format=pattern, locale=_locale(language))


@lru_cache(maxsize=2048)
def _money(value: Decimal, currency: str, decimals: str, language: str) -> str:
    locale = _locale(language)
    pattern = "#,##0.00\N{NO-BREAK SPACE}¤¤" if language == "en" else locale.currency_formats["standard"].pattern
    return format_currency(
        value, currency, pattern.replace("0.00", decimals), locale=locale, currency_digits=False, group_separator=True
    )


@cache
def _locale(language: str) -> Locale:
    return Locale.parse(_LOCALES.get(language, language), sep="-" if "-" in language else "_")
