"""The European Central Bank's daily file, read with suspicion.

Layout: gesmes:Envelope > Cube > Cube[@time] > Cube[@currency, @rate]; rates are units per 1 EUR, EUR itself is not
listed. The list of currencies changes over the years, so none is fixed here.

>>> sample = b'''<e xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
... <Cube><Cube time="2026-03-13"><Cube currency="USD" rate="1.1476"/></Cube></Cube></e>'''
>>> parse(sample)
DailyRates(day=datetime.date(2026, 3, 13), units_per_eur={'USD': Decimal('1.1476')})
"""

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
MOST_BYTES = 1_000_000
_CUBE = "{http://www.ecb.int/vocabulary/2002-08-01/eurofxref}Cube"
_RATE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,8})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


class FileRejected(ValueError):
    """The body is not a daily file; the message says what was wrong."""


@dataclass(frozen=True)
class DailyRates:
    """One day's rates, units per 1 EUR by currency."""

    day: date
    units_per_eur: dict[str, Decimal]


def parse(body: bytes) -> DailyRates:
    """Return the day and its rates. Raises FileRejected; entities and external references are refused."""
    if len(body) > MOST_BYTES:
        raise FileRejected(f"larger than {MOST_BYTES} bytes")
    try:
        root: Element = fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as why:
        raise FileRejected(f"not well-formed or not harmless XML: {why}") from why
    dated = [cube for cube in root.iter(_CUBE) if "time" in cube.attrib]
    if len(dated) != 1:
        raise FileRejected(f"{len(dated)} dated blocks where one is expected")
    rates: dict[str, Decimal] = {}
    for cube in dated[0].iter(_CUBE):
        if cube is dated[0]:
            continue
        currency, rate = _one_rate(cube)
        if currency in rates:
            raise FileRejected(f"{currency} is listed twice")
        rates[currency] = rate
    if not rates:
        raise FileRejected("no rates")
    return DailyRates(day=_day(dated[0].attrib["time"]), units_per_eur=rates)


def _one_rate(cube: Element) -> tuple[str, Decimal]:
    currency, text = cube.attrib.get("currency", ""), cube.attrib.get("rate", "")
    if not _CURRENCY.fullmatch(currency) or currency == "EUR":
        raise FileRejected(f"{currency!r} is not a foreign currency's code")
    if not _RATE.fullmatch(text) or Decimal(text) == 0:
        raise FileRejected(f"{currency}: {text!r} is not a positive rate with a decimal point")
    return currency, Decimal(text)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise FileRejected(f"{text!r} is not a day") from None
