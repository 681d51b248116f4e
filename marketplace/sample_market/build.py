"""Build the sample market: servers, listings, and the days before the opening.

Steps, book by book in one transaction each: enrol and verify the servers, list them, play the plan.
A book is there whole or not at all, so a run that was cut off is completed by the next, and a second run adds nothing.
Lock order inside a book: as the exchange's own functions, all under that book's lock.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from catalog.models import Gpu
from marketplace.listings import Offered, list_server
from marketplace.models import Listing, Provider, Server
from marketplace.sample_market.give_back import give_back
from marketplace.sample_market.history import Stage, play
from marketplace.sample_market.people import sample_provider_of, sample_renters
from marketplace.sample_market.plan import ENDS_EARLIER, HISTORY, BookPlan, plan_book
from marketplace.sample_market.rows import SampleServer, sample_books
from marketplace.servers import Machine, enrol_server, verify_server
from users.models import Membership


def build_sample_market(*, now: datetime, have_renters_money: bool = True) -> int:
    """Build the books that are missing and return how many. Call it once the sample people are there.

    Without money for the renters nothing is traded and nothing rests; prices move all the same.
    """
    renters = sample_renters()
    give_back(renters, filled_before=now, now=now)  # what they held when the last demo was stopped
    missing = _missing_books()
    if not missing:
        return 0
    providers = sample_provider_of()
    gpu_ids = dict(Gpu.objects.filter(slug__in=missing).values_list("slug", "pk"))
    for slug, servers in missing.items():
        _build(
            plan_book(servers),
            gpu_id=gpu_ids[slug],
            providers=providers,
            renters=renters if have_renters_money else [],
            now=now - ENDS_EARLIER.get(slug, timedelta(0)),
        )
    return len(missing)


def _missing_books() -> dict[str, list[SampleServer]]:
    built = set(Listing.objects.filter(server__is_sample=True).values_list("gpu__slug", flat=True))
    return {slug: servers for slug, servers in sample_books().items() if slug not in built}


def _build(
    book: BookPlan,
    *,
    gpu_id: int,
    providers: Mapping[str, Provider],
    renters: Sequence[Membership],
    now: datetime,
) -> None:
    began_at = now - HISTORY
    with transaction.atomic():
        listings = {}
        for row in book.servers:
            server = _enrol(row, provider=providers[row.provider], gpu_id=gpu_id, now=began_at)
            offered = Offered(price=book.prices[row.name], min_gpus=row.min_gpus, max_hours=row.max_hours)
            listings[row.name] = list_server(server=server, offered=offered, now=began_at)
        play(book, Stage(gpu_id=gpu_id, listings=listings, renters=renters, opening_at=now))


def _enrol(row: SampleServer, *, provider: Provider, gpu_id: int, now: datetime) -> Server:
    machine = Machine(
        name=row.name,
        gpu_id=gpu_id,
        device_uuids=row.device_uuids,
        country=row.country,
        vcpus=row.vcpus,
        ram_gb=row.ram_gb,
        disk_gb=row.disk_gb,
        network_mbit_s=row.network_mbit_s,
        interconnect=row.interconnect,
        is_sample=True,
    )
    server = enrol_server(provider=provider, machine=machine, now=now)
    verify_server(server_id=server.pk, now=now)
    return server
