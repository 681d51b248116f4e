"""A small exchange: providers with live servers, a renter with money, and the books checked after every test."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count

import pytest
from django.db import connection

from billing import holds
from billing.checks import run_checks
from billing.tax.record import decide_for
from catalog.models import Gpu
from marketplace.checks import run_checks as run_market_checks
from marketplace.listings import Offered, list_server
from marketplace.models import BeatSpan, HeldHours, Listing, Provider, Rental, RentalEvent, Server
from marketplace.orders.instruction import Instruction
from marketplace.orders.place import place_order
from marketplace.pricing import Terms, hold_micros
from marketplace.servers import Machine, beat, enrol_server, verify_server
from tests.billing.conftest import wallet_of
from tests.factories import make_gpu, make_organisation
from users.models import Organisation

NOW = datetime(2026, 11, 30, 10, 2, tzinfo=UTC)
_numbers = count(1)


@pytest.fixture(autouse=True)
def books_and_market_hold(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test that touched the database every invariant of the ledger and of the exchange holds."""
    marker = request.node.get_closest_marker("django_db")
    if marker is not None:
        request.getfixturevalue("transactional_db" if marker.kwargs.get("transaction") else "db")
    yield
    if marker is not None and not request.node.get_closest_marker("broken_books"):
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        checks = [*run_checks(now=NOW), *run_market_checks(now=NOW)]
        assert [check for check in checks if not check.ok] == []


def make_provider(*, name: str = "Noord Compute B.V.", **values) -> Provider:
    """Return an approved provider, the same one for the same name."""
    organisation = make_organisation(name=name, kind="provider")
    defaults = {"state": "approved", "approved_at": NOW - timedelta(days=30), "created_at": NOW - timedelta(days=40)}
    return Provider.objects.get_or_create(organisation=organisation, defaults={**defaults, **values})[0]


def make_server(
    *, gpu: Gpu, devices: int = 8, provider: Provider | None = None, now: datetime = NOW, **values
) -> Server:
    """Return a verified server that was heard of just now."""
    number = next(_numbers)
    machine = Machine(
        name=values.pop("name", f"server-{number}"),
        gpu_id=gpu.pk,
        device_uuids=[f"GPU-{number}-{index}" for index in range(devices)],
        **{
            "country": "NL",
            "vcpus": 64,
            "ram_gb": 512,
            "disk_gb": 2000,
            "network_mbit_s": 10_000,
            "interconnect": "nvlink",
            **values,
        },
    )
    server = enrol_server(provider=provider or make_provider(), machine=machine, now=now)
    verify_server(server_id=server.pk, now=now)
    beat(server_id=server.pk, now=now)
    return server


def make_listing(*, gpu: Gpu, price: str = "2.88", devices: int = 8, now: datetime = NOW, **values) -> Listing:
    """Return a live listing of a new server."""
    terms = {name: values.pop(name) for name in ("min_gpus", "max_hours", "available_until") if name in values}
    server = make_server(gpu=gpu, devices=devices, now=now, **values)
    return list_server(server=server, offered=Offered(price=Decimal(price), **terms), now=now)


def make_renter(*, name: str = "Orla Labs B.V.", units: int = 1000, currency: str = "USD", **values) -> Organisation:
    """Return a renter with that much money in one wallet and its tax decided."""
    organisation = make_organisation(name=name, **values)
    wallet_of(name, currency=currency, units=units)
    decide_for(organisation=organisation, now=NOW - timedelta(days=1))
    return organisation


def order_for(gpu: Gpu, **values) -> Instruction:
    """Return an instruction: one device of one server for an hour at the best offer, unless told otherwise."""
    defaults = {"gpu_count": 1, "hours": 1, "limit": Decimal("2.88"), "currency": "USD"}
    merged = {**defaults, **values}
    merged["limit"] = Decimal(merged["limit"])
    return Instruction(gpu_id=gpu.pk, **merged)


@pytest.fixture
def h100(db) -> Gpu:
    """The GPU most tests trade."""
    return make_gpu(slug="h100-sxm")


@pytest.fixture
def renter(db) -> Organisation:
    """A Dutch business with 1,000 USD."""
    return make_renter()


def make_running_rental(
    *,
    renter: Organisation,
    gpu: Gpu,
    ready_at: datetime,
    price: str = "2.88",
    gpu_count: int = 1,
    hours: int | None = 1,
    currency: str = "USD",
    filled_at: datetime = NOW,
    listing: Listing | None = None,
    beats: Sequence[tuple[datetime, datetime]] | None = None,
) -> Rental:
    """Return a rental that runs since `ready_at`, on a server of its own heard of without a pause unless `beats` says."""
    listing = listing or make_listing(gpu=gpu, price=price, devices=gpu_count, now=filled_at)
    instruction = order_for(gpu, gpu_count=gpu_count, hours=hours, limit=price, currency=currency, confirm_price=True)
    placed = place_order(organisation_id=renter.pk, instruction=instruction, now=filled_at)
    rental = Rental.objects.get(order_id=placed.order_id)
    Rental.objects.filter(pk=rental.pk).update(
        state=Rental.State.RUNNING, ready_at=ready_at, paid_until=ready_at + timedelta(hours=hours or 1)
    )
    for kind in (Rental.State.PROVISIONING, Rental.State.RUNNING):
        RentalEvent.objects.create(rental=rental, kind=kind, at=ready_at)
    BeatSpan.objects.filter(server_id=listing.server_id).delete()
    for first, last in beats or [(filled_at, filled_at + timedelta(days=60))]:
        BeatSpan.objects.create(server_id=listing.server_id, first_beat_at=first, last_beat_at=last)
    rental.refresh_from_db()
    return rental


def hold_one_more_hour(rental: Rental, *, fx_rate: str = "1", tax_rate_percent: str = "21", now: datetime) -> None:
    """Hold the next hour of an open-ended rental, at these rates."""
    first_hour = (rental.paid_until - rental.ready_at) // timedelta(hours=1)
    held = hold_micros(
        rental.price_usd_per_gpu_hour,
        Terms(
            gpu_count=rental.gpu_count, hours=1, fx_rate=Decimal(fx_rate), tax_rate_percent=Decimal(tax_rate_percent)
        ),
    )
    holds.raise_hold(key=f"raise:{rental.pk}:{first_hour}", hold_id=rental.hold_id, amount_micros=held)
    HeldHours.objects.create(
        rental=rental,
        first_hour=first_hour,
        hours=1,
        fx_rate=Decimal(fx_rate),
        tax_rate_percent=Decimal(tax_rate_percent),
        held_micros=held,
        held_at=now,
    )
    rental.paid_until += timedelta(hours=1)
    Rental.objects.filter(pk=rental.pk).update(paid_until=rental.paid_until)


def end_rental(rental: Rental, *, stop_at: datetime, state: str = "ended") -> None:
    """End a rental at a request to stop: its leases are closed, its hold is left to the settlement."""
    asked_at = stop_at if state == "ended" else None
    Rental.objects.filter(pk=rental.pk).update(
        state=state, stop_requested_at=asked_at, ended_at=stop_at, end_reason="stopped"
    )
    for kind in ("ending", "ended") if state == "ended" else (state,):
        RentalEvent.objects.create(rental=rental, kind=kind, at=stop_at)
    with connection.cursor() as cursor:
        cursor.execute("SELECT marketplace_close_leases(%s::uuid, %s::timestamptz)", [rental.pk, stop_at])
