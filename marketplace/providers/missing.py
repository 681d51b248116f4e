"""What is missing until a company may ask for its review, and until its first hour can be sold. Knows no Django.

>>> missing_fields(Stated(needs_vat_id=False, filled=frozenset(APPLICATION), terms_version="1", self_billing_version="1"))
()
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from marketplace.provider_terms import SELF_BILLING_VERSION, TERMS_VERSION

APPLICATION = (
    "company_name",
    "register_number",
    "vat_id",
    "address",
    "postcode",
    "city",
    "contact_name",
    "contact_email",
    "contact_phone",
    "account_holder",
    "iban",
)
TERMS, SELF_BILLING = "accept_terms", "accept_self_billing"
_NOT_EVERYWHERE = {"vat_id", "postcode"}


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What an application says: the names of its fields that are filled, and the versions agreed to ("" for none)."""

    needs_vat_id: bool
    filled: frozenset[str]
    terms_version: str
    self_billing_version: str


class Next(StrEnum):
    """What stands between a provider and its next sold hour, in the order of doing."""

    APPLICATION = "application"
    REVIEW = "review"
    SUSPENSION = "suspension"
    CLOSURE = "closure"
    TERMS = "terms"
    SERVER = "server"
    VERIFICATION = "verification"
    LISTING = "listing"
    HEARTBEAT = "heartbeat"


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """How many servers there are (without withdrawn ones), and how many of them came how far."""

    servers: int
    verified: int
    listed: int
    selling: int


def missing_fields(stated: Stated) -> tuple[str, ...]:
    """Return the fields of the application that are missing, in the order of the form."""
    fields = [
        name
        for name in APPLICATION
        if name not in stated.filled and (name not in _NOT_EVERYWHERE or (name == "vat_id" and stated.needs_vat_id))
    ]
    return (*fields, *outdated_agreements(stated))


def outdated_agreements(stated: Stated) -> tuple[str, ...]:
    """Return which of the two agreements was not given in the version in force."""
    found = {
        TERMS: stated.terms_version == TERMS_VERSION,
        SELF_BILLING: stated.self_billing_version == SELF_BILLING_VERSION,
    }
    return tuple(name for name, is_agreed in found.items() if not is_agreed)


def next_steps(*, state: str, stated: Stated, fleet: Fleet) -> Sequence[Next]:
    """Return what is missing until an hour can be sold, the first thing to do first; empty while something sells."""
    before_approval = {
        "draft": [Next.APPLICATION, Next.REVIEW],
        "submitted": [Next.REVIEW],
        "suspended": [Next.SUSPENSION],
        "closed": [Next.CLOSURE],
    }
    steps = before_approval.get(state, [])
    if state == "approved" and outdated_agreements(stated):
        steps = [Next.TERMS]
    return (*steps, *_of_the_fleet(fleet))


def _of_the_fleet(fleet: Fleet) -> Sequence[Next]:
    if fleet.selling:
        return ()
    parts = {
        Next.SERVER: fleet.servers,
        Next.VERIFICATION: fleet.verified,
        Next.LISTING: fleet.listed,
        Next.HEARTBEAT: fleet.selling,
    }
    return tuple(step for step, count in parts.items() if not count)
