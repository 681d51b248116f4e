"""The fields of an application: each checked by itself, in one spelling. What is wrong names its field."""

import re
import unicodedata
from collections.abc import Callable, Mapping

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from stdnum import iban
from stdnum.exceptions import ValidationError as NotAnIban

from billing.tax.territories import MEMBER_STATES, UnknownCountry, vat_country
from billing.tax.vat_ids import NoRegister, OtherCountry, VatIdRefused, parse

MOST_CHARACTERS: Mapping[str, int] = {
    "company_name": 120,
    "register_number": 40,
    "vat_id": 32,
    "address": 200,
    "postcode": 20,
    "city": 100,
    "contact_name": 120,
    "contact_email": 254,
    "contact_phone": 30,
    "account_holder": 120,
    "iban": 42,
}
_PHONE = re.compile(r"\+?[0-9][0-9 ()./-]{4,28}[0-9]", re.ASCII)
_SPACES = re.compile(r"\s+")


class FieldRefused(ValueError):
    """A field of the application is wrong: `field` as in the API, a `code`, and words."""

    def __init__(self, field: str, code: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.code = code


def checked(name: str, text: str, *, country: str) -> str:
    """Return a field's text as it is stored; blank stays blank. Raises FieldRefused."""
    spelled = _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()
    if len(text) > MOST_CHARACTERS[name]:
        raise FieldRefused(name, "too_long", f"At most {MOST_CHARACTERS[name]} characters.")
    if any(unicodedata.category(sign).startswith("C") for sign in spelled):
        raise FieldRefused(name, "invalid", "Letters, digits and signs only.")
    check = _CHECKS.get(name)
    return check(spelled, country) if spelled and check else spelled


def needs_vat_id(country: str) -> bool:
    """Whether companies of this country have VAT numbers that can be checked."""
    try:
        home = vat_country(country)
    except UnknownCountry:
        return False
    return home in MEMBER_STATES or home == "GB"


def hint_of(number: str) -> str:
    """Return what may be seen of a bank account.

    >>> hint_of("NL91ABNA0417164300")
    'NL..4300'
    """
    return f"{number[:2]}..{number[-4:]}"


def _vat_id(text: str, country: str) -> str:
    try:
        return parse(text, country=country).text
    except NoRegister:
        message = "VAT numbers of this country cannot be checked: leave it blank."
        raise FieldRefused("vat_id", "no_register", message) from None
    except OtherCountry:
        raise FieldRefused("vat_id", "other_country", "This VAT number is another country's.") from None
    except VatIdRefused:
        raise FieldRefused("vat_id", "invalid", "Its length or its check digits are wrong.") from None


def _iban(text: str, country: str) -> str:  # an account may be in any country
    try:
        return str(iban.validate(text))
    except NotAnIban:
        raise FieldRefused("iban", "invalid", "This is no IBAN: its length or its check digits are wrong.") from None


def _email(text: str, country: str) -> str:
    try:
        validate_email(text)
    except ValidationError:
        raise FieldRefused("contact_email", "invalid", "This is no e-mail address.") from None
    return text


def _phone(text: str, country: str) -> str:
    if not _PHONE.fullmatch(text):
        raise FieldRefused("contact_phone", "invalid", "Write it with digits, such as +31 20 123 4567.")
    return text


_CHECKS: Mapping[str, Callable[[str, str], str]] = {
    "vat_id": _vat_id,
    "iban": _iban,
    "contact_email": _email,
    "contact_phone": _phone,
}
