"""A provider's servers: enrolled, verified, withdrawn, and heard of.

Verification, withdrawal and a beat after silence change what a book offers: each locks the book, writes the listing's
terms anew where they changed, and brings the book to rest. Lock order: book, then rows. A second run changes nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F

from marketplace.book import lock_book, write_terms
from marketplace.models import BeatSpan, Device, Listing, Provider, Rental, Server
from marketplace.orders.match import bring_to_rest


class NotApproved(Exception):
    """Only an approved provider enrols and lists servers."""


class ServerBusy(Exception):
    """A server with an open rental cannot be withdrawn."""


class DeviceKnown(Exception):
    """One of the device ids belongs to a server already."""


class NameTaken(Exception):
    """The provider has a server of this name."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a server is. `device_uuids` in the order of their index; sizes in GB, network in Mbit/s."""

    name: str
    gpu_id: int
    device_uuids: Sequence[str]
    country: str
    vcpus: int
    ram_gb: int
    disk_gb: int
    network_mbit_s: int
    interconnect: str
    is_sample: bool = False


def enrol_server(*, provider: Provider, machine: Machine, now: datetime) -> Server:
    """Store a server with its devices, not yet verified. Raises NotApproved, DeviceKnown, NameTaken."""
    if provider.state != Provider.State.APPROVED:
        raise NotApproved
    try:
        return _stored(provider, machine, now)
    except IntegrityError as refused:  # two at once: the database lets one of them in
        if "server_name_once" in str(refused):
            raise NameTaken from refused
        if "marketplace_device_uuid" in str(refused):
            raise DeviceKnown from refused
        raise


def _stored(provider: Provider, machine: Machine, now: datetime) -> Server:
    with transaction.atomic():
        if Device.objects.filter(uuid__in=machine.device_uuids).exists():
            raise DeviceKnown
        server = Server.objects.create(
            provider=provider,
            name=machine.name,
            gpu_id=machine.gpu_id,
            device_count=len(machine.device_uuids),
            country=machine.country,
            vcpus=machine.vcpus,
            ram_gb=machine.ram_gb,
            disk_gb=machine.disk_gb,
            network_mbit_s=machine.network_mbit_s,
            interconnect=machine.interconnect,
            is_sample=machine.is_sample,
            created_at=now,
        )
        Device.objects.bulk_create(
            Device(server=server, index=index, uuid=uuid) for index, uuid in enumerate(machine.device_uuids)
        )
    return server


def verify_server(*, server_id: UUID, now: datetime) -> None:
    """Let a server sell. A second call keeps the first date."""
    _change(server_id, now=now, verified_at=now)


def unverify_server(*, server_id: UUID, now: datetime) -> None:
    """Take a server off sale until it is verified again; running rentals go on."""
    _change(server_id, now=now, verified_at=None)


def withdraw_server(*, server_id: UUID, now: datetime) -> None:
    """Take a server away for good. Raises ServerBusy while a rental is open."""
    with transaction.atomic():
        server = Server.objects.get(pk=server_id)
        lock_book(server.gpu_id, now=now)
        if Rental.objects.filter(server_id=server_id, state__in=Rental.OPEN).exists():
            raise ServerBusy
        _change(server_id, now=now, withdrawn_at=now)


def _change(server_id: UUID, *, now: datetime, **values: datetime | None) -> None:
    (name, value), *_ = values.items()
    with transaction.atomic():
        server = Server.objects.get(pk=server_id)
        lock_book(server.gpu_id, now=now)
        changed = Server.objects.filter(pk=server_id, **{f"{name}__isnull": value is not None}).update(**values)
        if changed and _write_terms_of([server_id], now):
            bring_to_rest(server.gpu_id, now=now)


def beat(*, server_id: UUID, now: datetime) -> None:
    """Note that a server was heard of. One that was silent comes back into its book, which is brought to rest."""
    beat_all(server_ids=[server_id], now=now)


def beat_all(*, server_ids: Collection[UUID], now: datetime) -> None:
    """Note that several servers were heard of at once, as `beat` does for one.

    Those that their books know as heard need no book. Then the others, book by book: all of a book's servers are noted
    before it comes to rest, so that its fills see every one of them. No beat waits for a server's row while it holds
    another's: a row that someone else has is left to the second part.
    """
    with transaction.atomic():
        rows = Server.objects.select_for_update(skip_locked=True, no_key=True)
        noted = list(rows.filter(pk__in=server_ids, is_heard=True))
        _note(noted, now)
    left = set(server_ids) - {server.pk for server in noted}
    books: dict[int, list[UUID]] = defaultdict(list)
    for server_id, gpu_id in Server.objects.filter(pk__in=left).order_by("gpu_id").values_list("pk", "gpu_id"):
        books[gpu_id].append(server_id)
    for gpu_id, its_servers in books.items():
        _return_to_book(gpu_id, its_servers, now)


def _return_to_book(gpu_id: int, server_ids: Sequence[UUID], now: datetime) -> None:
    with transaction.atomic():
        lock_book(gpu_id, now=now)
        servers = Server.objects.select_for_update(no_key=True).filter(pk__in=server_ids).order_by("pk")
        back = [server.pk for server in _note(list(servers), now) if not server.is_heard]
        Server.objects.filter(pk__in=back).update(is_heard=True)
        _write_terms_of(back, now)
        bring_to_rest(gpu_id, now=now)


def _note(servers: Sequence[Server], now: datetime) -> list[Server]:
    """Note a beat of servers whose rows are locked; return those of which it is the newest."""
    due = [server for server in servers if server.last_beat_at is None or server.last_beat_at < now]
    going_on = [server.pk for server in due if server.was_heard(now)]
    BeatSpan.objects.filter(server__in=going_on, last_beat_at=F("server__last_beat_at")).update(last_beat_at=now)
    BeatSpan.objects.bulk_create(
        [BeatSpan(server=server, first_beat_at=now, last_beat_at=now) for server in due if not server.was_heard(now)],
        ignore_conflicts=True,
    )
    Server.objects.filter(pk__in=[server.pk for server in due]).update(last_beat_at=now)
    return due


def _write_terms_of(server_ids: Sequence[UUID], now: datetime) -> int:
    """Write what the listings of servers that have changed offer now; return how many there are."""
    listings = Listing.objects.filter(server__in=server_ids).exclude(state=Listing.State.ENDED).order_by("priority")
    changed = list(listings.values_list("pk", flat=True))
    for listing_id in changed:
        write_terms(listing_id, now=now)
    return len(changed)
