"""Which countries there are, which of them share the Union's VAT, and when a day begins there.

A country is its ISO 3166 code. VAT numbers use the same letters except Greece's, which are EL.

>>> is_in_union("GR"), is_in_union("MC"), is_in_union("GB"), vat_prefix("GR"), vat_prefix("MC")
(True, True, False, 'EL', 'FR')
>>> local_date("EE", datetime(2025, 6, 30, 21, tzinfo=UTC)), local_date("IE", datetime(2025, 6, 30, 21, tzinfo=UTC))
(datetime.date(2025, 7, 1), datetime.date(2025, 6, 30))
"""

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from users.countries import countries

COUNTRIES = frozenset(code for code, _ in countries("en"))
# The member states, and the clock by which the first day of a rate begins there.
_UNION_ZONES = {
    "AT": "Europe/Vienna", "BE": "Europe/Brussels", "BG": "Europe/Sofia", "CY": "Asia/Nicosia", "CZ": "Europe/Prague",
    "DE": "Europe/Berlin", "DK": "Europe/Copenhagen", "EE": "Europe/Tallinn", "ES": "Europe/Madrid", "FI": "Europe/Helsinki",
    "FR": "Europe/Paris", "GR": "Europe/Athens", "HR": "Europe/Zagreb", "HU": "Europe/Budapest", "IE": "Europe/Dublin",
    "IT": "Europe/Rome", "LT": "Europe/Vilnius", "LU": "Europe/Luxembourg", "LV": "Europe/Riga", "MT": "Europe/Malta",
    "NL": "Europe/Amsterdam", "PL": "Europe/Warsaw", "PT": "Europe/Lisbon", "RO": "Europe/Bucharest",
    "SE": "Europe/Stockholm", "SI": "Europe/Ljubljana", "SK": "Europe/Bratislava",
}  # fmt: skip
MEMBER_STATES = frozenset(_UNION_ZONES)
# Other states whose rates we keep.
_ZONES = {**_UNION_ZONES, "GB": "Europe/London", "NO": "Europe/Oslo", "CH": "Europe/Zurich"}
# Supplies to Monaco are treated as supplies to France (Directive 2006/112/EC, article 7).
_TREATED_AS = {"MC": "FR"}


class UnknownCountry(LookupError):
    """No such country; nothing is decided for it, and no rate is made up."""

    def __init__(self, country: str) -> None:
        super().__init__(f"{country!r} is not a country we know.")
        self.country = country


def vat_country(country: str) -> str:
    """Return the country whose VAT holds there. Raises UnknownCountry."""
    if country not in COUNTRIES:
        raise UnknownCountry(country)
    return _TREATED_AS.get(country, country)


def is_in_union(country: str) -> bool:
    """Whether the Union's VAT holds there; parts with rules of their own are `special_areas`. Raises UnknownCountry."""
    return vat_country(country) in MEMBER_STATES


def vat_prefix(country: str) -> str:
    """Return the two letters that VAT numbers of a country begin with. Raises UnknownCountry."""
    country = vat_country(country)
    return "EL" if country == "GR" else country


def country_of_prefix(prefix: str) -> str:
    """Return the country of a VAT number's letters: EL is Greece, XI (Northern Ireland) is Great Britain for services."""
    return {"EL": "GR", "XI": "GB"}.get(prefix, prefix)


def local_date(country: str, at: datetime) -> date:
    """Return the date on the wall there. Raises UnknownCountry where we keep no clock."""
    return at.astimezone(_zone(country)).date()


def day_starts_at(country: str, on: date) -> datetime:
    """Return the instant, in UTC, at which a day begins there. Raises UnknownCountry where we keep no clock."""
    return datetime.combine(on, time.min, tzinfo=_zone(country)).astimezone(UTC)


def _zone(country: str) -> ZoneInfo:
    try:
        return ZoneInfo(_ZONES[country])
    except KeyError:
        raise UnknownCountry(country) from None
