"""Countries by their ISO 3166 code, named in the language of the page."""

import unicodedata
from functools import cache

from babel import Locale

# Two-letter codes that the locale data names and ISO 3166 does not assign to a country.
_NOT_A_COUNTRY = frozenset(["AC", "CP", "CQ", "DG", "EA", "EU", "EZ", "IC", "QO", "TA", "UN", "XA", "XB", "XK", "ZZ"])


@cache
def countries(language: str) -> tuple[tuple[str, str], ...]:
    """Return (code, name) of every country, in the order of the names in that language."""
    found = [(str(code), name) for code, name in Locale.parse(language).territories.items() if _is_a_country(str(code))]
    return tuple(sorted(found, key=lambda each: _sort_key(each[1])))


def _is_a_country(code: str) -> bool:
    return len(code) == 2 and code.isalpha() and code not in _NOT_A_COUNTRY


def _sort_key(name: str) -> tuple[str, str]:
    """Return letters without their marks first, so that "Ł" stands with "L" and "Å" with "A"."""
    plain = unicodedata.normalize("NFKD", name.replace("Ł", "L").replace("ł", "l"))
    return "".join(mark for mark in plain if not unicodedata.combining(mark)).casefold(), name
