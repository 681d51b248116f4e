"""VAT numbers: one spelling, the check digits, and whose they are. Whether one is in force only the registers know.

>>> parse("nl 0044.95445-B01", country="NL").text, parse("GR094259216", country="GR").text
('NL004495445B01', 'EL094259216')
>>> parse("094259216", country="GR").country, parse("XI 980 7806 84", country="GB").is_in_union
('GR', False)
"""

import re
import unicodedata
from dataclasses import dataclass

from stdnum.eu import vat as union
from stdnum.exceptions import ValidationError
from stdnum.gb import vat as great_britain

from billing.tax.territories import MEMBER_STATES, country_of_prefix, vat_country, vat_prefix

MOST_CHARACTERS = 32
_SEPARATORS = re.compile(r"[\s.\-/_]+")
_SPELLING = re.compile(r"[A-Z0-9+*]{4,16}", re.ASCII)
_PREFIXES = {vat_prefix(country) for country in MEMBER_STATES} | {"GB", "XI"}


class VatIdRefused(ValueError):
    """The text is not a VAT number that this country gives out."""


class WrongForm(VatIdRefused):
    """Its length, letters or check digits are not those of the country's numbers."""


class OtherCountry(VatIdRefused):
    """It begins with another country's letters."""


class NoRegister(VatIdRefused):
    """Numbers of this country are not VAT numbers that can be checked; they are business numbers."""


@dataclass(frozen=True, kw_only=True)
class VatId:
    """A VAT number with right check digits."""

    prefix: str
    number: str

    @property
    def text(self) -> str:
        """The number as it is written: its letters, then the rest."""
        return self.prefix + self.number

    @property
    def country(self) -> str:
        """The country that gave it out, for services."""
        return country_of_prefix(self.prefix)

    @property
    def is_in_union(self) -> bool:
        """Whether it can stand for reverse charge, and VIES knows it. XI numbers are for goods alone: they do not."""
        return self.country in MEMBER_STATES


def parse(text: str, *, country: str) -> VatId:
    """Return the number of somebody in `country`; its letters may be left out. Raises VatIdRefused or UnknownCountry."""
    home = vat_country(country)
    if home not in MEMBER_STATES and home != "GB":
        raise NoRegister(f"{country} has no VAT numbers that can be checked")
    spelling = _SEPARATORS.sub("", unicodedata.normalize("NFKC", text[:MOST_CHARACTERS])).upper()
    if not _SPELLING.fullmatch(spelling) or len(text) > MOST_CHARACTERS:
        raise WrongForm("not written like a VAT number")
    if home == "GR" and spelling.startswith("GR"):
        spelling = "EL" + spelling[2:]
    allowed = ("GB", "XI") if home == "GB" else (vat_prefix(home),)
    prefix = next((each for each in allowed if spelling.startswith(each)), allowed[0])
    found = _checked(prefix, spelling.removeprefix(prefix))
    if found is not None:
        return found
    if spelling[:2] in _PREFIXES - set(allowed):
        raise OtherCountry(f"{spelling[:2]} is not {allowed[0]}")
    raise WrongForm("length or check digits are wrong")


def read_stored(text: str) -> VatId:
    """Return a number as `VatId.text` wrote it."""
    return VatId(prefix=text[:2], number=text[2:])


def _checked(prefix: str, number: str) -> VatId | None:
    try:
        if prefix in ("GB", "XI"):
            return VatId(prefix=prefix, number=great_britain.validate(number))
        return VatId(prefix=prefix, number=union.validate(prefix + number)[2:])
    except (ValidationError, ValueError):
        return None
