"""A new organisation with its first person."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from django.conf import settings
from django.db import transaction

from users.audit import record
from users.models import Membership, Organisation, Role, User


class Refusal(StrEnum):
    """Why an organisation cannot be opened."""

    PROVIDER_NOT_A_BUSINESS = "provider_not_a_business"
    NO_CONSUMERS = "no_consumers"
    NO_CONSUMERS_FROM_THERE = "no_consumers_from_there"


class SignUpRefused(Exception):
    """The organisation may not be opened; `reason` says why."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.value)
        self.reason = reason


def open_organisation(*, user: User, name: str, kind: str, type: str, country: str, now: datetime) -> Membership:  # noqa: A002
    """Store an organisation and the person as its owner.

    Steps: check the rules, insert the organisation, insert the membership, record; all or nothing, no lock. A second
    run for the same person fails on the one membership a person may have and leaves nothing behind.

    Raises SignUpRefused, and IntegrityError for a person who acts for an organisation already.
    """
    reason = refusal(kind=kind, type=type, country=country, consumer_countries=consumer_countries())
    if reason is not None:
        raise SignUpRefused(reason)
    with transaction.atomic():
        organisation = Organisation.objects.create(name=name, kind=kind, type=type, country=country)
        membership = Membership.objects.create(user=user, organisation=organisation, role=Role.OWNER, joined_at=now)
        after = {"name": name, "kind": kind, "type": type, "country": country}
        record(at=now, action="organisation.opened", actor=user, organisation=organisation, after=after)
    return membership


def consumer_countries() -> frozenset[str]:
    """Return where we sell to consumers: where we may charge their country's tax; nowhere while that is off."""
    return frozenset(settings.B2C_COUNTRIES) if settings.B2C_ENABLED else frozenset()


def refusal(*, kind: str, type: str, country: str, consumer_countries: Collection[str]) -> Refusal | None:  # noqa: A002
    """Return why such an organisation cannot be opened, None where it can.

    >>> refusal(kind="renter", type="consumer", country="NL", consumer_countries={"NL"})
    >>> refusal(kind="renter", type="consumer", country="GB", consumer_countries={"NL"}).value
    'no_consumers_from_there'
    """
    if type == Organisation.Type.BUSINESS:
        return None
    if kind == Organisation.Kind.PROVIDER:
        return Refusal.PROVIDER_NOT_A_BUSINESS
    if not consumer_countries:
        return Refusal.NO_CONSUMERS
    return None if country in consumer_countries else Refusal.NO_CONSUMERS_FROM_THERE
