"""A provider's own hand on its servers and listings. Only an approved one enrols, lists, changes and resumes.

Each flow holds the provider's row from the check to the commit, so that a suspension and a new listing never pass each
other. Lock order: provider, book, rows.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from marketplace import listings
from marketplace.listings import ListingUnknown, Offered
from marketplace.models import Listing, Provider, Server
from marketplace.servers import Machine, NotApproved, enrol_server, withdraw_server
from users.audit import record
from users.countries import countries
from users.models import User

MOST_DEVICES = 64
DEVICE_ID = r"[A-Za-z0-9][A-Za-z0-9-]{5,59}"
_DEVICE_ID = re.compile(DEVICE_ID, re.ASCII)


class ServerUnknown(LookupError):
    """The provider has no such server, or has withdrawn it."""


class MachineRefused(ValueError):
    """Something said of a server is wrong: `field` as in the API, a `code`, and words."""

    def __init__(self, field: str, code: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.code = code


def add_server(
    *, organisation_id: int, machine: Machine, by: User | None, now: datetime, ip_address: str | None = None
) -> Server:
    """Store a server of an approved provider, not yet verified, and write it down.

    A second run finds its device ids known. Raises NotApproved, MachineRefused, DeviceKnown, NameTaken.
    """
    check_devices(machine.device_uuids)
    if machine.country not in {code for code, _ in countries("en")}:
        raise MachineRefused("country", "unknown", "This is no country's ISO 3166 code.")
    with transaction.atomic():
        provider = approved_provider(organisation_id)
        server = enrol_server(provider=provider, machine=machine, now=now)
        _write_down(server, action="server.added", by=by, now=now, ip_address=ip_address)
    return server


def take_server_away(
    *, organisation_id: int, server_id: UUID, by: User | None, now: datetime, ip_address: str | None = None
) -> None:
    """Withdraw a server for good and end its listing. Raises ServerUnknown (as on a second run), ServerBusy."""
    with transaction.atomic():
        server = _own_server(organisation_id, server_id)
        withdraw_server(server_id=server_id, now=now)
        listing = Listing.objects.filter(server=server).exclude(state=Listing.State.ENDED).first()
        if listing is not None:
            listings.end_listing(provider_id=organisation_id, listing_id=listing.pk, now=now)
        _write_down(server, action="server.withdrawn", by=by, now=now, ip_address=ip_address)


def put_up(
    *, organisation_id: int, server_id: UUID, offered: Offered, now: datetime, listing_id: UUID | None = None
) -> Listing:
    """Put a provider's server up for rent. Raises NotApproved, ServerUnknown, TermsRefused, AlreadyListed."""
    with transaction.atomic():
        approved_provider(organisation_id)
        server = _own_server(organisation_id, server_id)
        return listings.list_server(server=server, offered=offered, now=now, listing_id=listing_id)


def change_offer(*, organisation_id: int, listing_id: UUID, offered: Offered, now: datetime) -> Listing:
    """Change a listing's terms for what is not sold yet. Raises NotApproved, ListingUnknown, TermsRefused."""
    with transaction.atomic():
        approved_provider(organisation_id)
        return listings.change_terms(provider_id=organisation_id, listing_id=listing_id, offered=offered, now=now)


def pause_offer(*, organisation_id: int, listing_id: UUID, now: datetime) -> Listing:
    """Sell nothing more for now; open to suspended providers too. Raises ListingUnknown."""
    return _own_listing(listings.pause, organisation_id, listing_id, now)


def resume_offer(*, organisation_id: int, listing_id: UUID, now: datetime) -> Listing:
    """Sell again. Raises NotApproved, ListingUnknown."""
    with transaction.atomic():
        approved_provider(organisation_id)
        return _own_listing(listings.resume, organisation_id, listing_id, now)


def approved_provider(organisation_id: int) -> Provider:
    """Return the provider, locked until the commit. Raises NotApproved."""
    found = (
        Provider.objects.select_for_update(no_key=True, of=["self"])
        .select_related("organisation")
        .filter(pk=organisation_id, state=Provider.State.APPROVED)
        .first()
    )
    if found is None:
        raise NotApproved
    return found


def check_devices(device_uuids: Sequence[str]) -> None:
    """Raise MachineRefused on `device_uuids`: none, too many, misspelt, or one of them twice."""
    if not 1 <= len(device_uuids) <= MOST_DEVICES:
        raise MachineRefused("device_uuids", "out_of_range", f"Between 1 and {MOST_DEVICES} device ids.")
    wrong = [text for text in device_uuids if not _DEVICE_ID.fullmatch(text)]
    if wrong:
        raise MachineRefused("device_uuids", "invalid", f"This is no device id: {wrong[0][:60]}")
    if len(set(device_uuids)) < len(device_uuids):
        raise MachineRefused("device_uuids", "repeated", "A device id stands there twice.")


def _own_server(organisation_id: int, server_id: UUID) -> Server:
    server = (
        Server.objects.select_related("provider__organisation")
        .filter(pk=server_id, provider_id=organisation_id, withdrawn_at=None)
        .first()
    )
    if server is None:
        raise ServerUnknown
    return server


def _own_listing(change: Callable[..., Listing], organisation_id: int, listing_id: UUID, now: datetime) -> Listing:
    found = Listing.objects.filter(pk=listing_id, server__provider_id=organisation_id, server__withdrawn_at=None)
    if not found.exists():
        raise ListingUnknown
    return change(provider_id=organisation_id, listing_id=listing_id, now=now)


def _write_down(server: Server, *, action: str, by: User | None, now: datetime, ip_address: str | None) -> None:
    record(
        at=now,
        action=action,
        actor=by,
        organisation=server.provider.organisation,
        subject_type="server",
        subject_id=server.pk,
        after={"name": server.name, "devices": server.device_count},
        ip_address=ip_address,
    )
