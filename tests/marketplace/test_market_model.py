"""A state machine over all that moves a book, against a plain model in Python; every invariant after each step.

The model knows nothing of rows, locks and sequences: lists of servers and orders, and loops. What it says is open,
rented, free, held and offered is what the database says, whatever came before.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from billing.checks import run_checks as run_ledger_checks
from billing.models import Account
from catalog.models import BestAsk
from marketplace.checks import run_checks
from marketplace.listings import Offered, change_terms, list_server, pause, resume
from marketplace.matching import Filters
from marketplace.models import Lease, Listing, Order, Rental
from marketplace.orders.close import cancel_order, expire_orders
from marketplace.orders.place import NotEnoughMoney, OrganisationFrozen, place_order
from marketplace.pricing import Terms, hold_micros
from marketplace.rentals.fail_unstarted import fail_start
from marketplace.servers import beat
from marketplace.sweep import confirm_best_asks
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_renter, make_server, order_for
from users.models import Organisation

PRICES = st.sampled_from([Decimal("2.0000"), Decimal("2.0100"), Decimal("2.0101"), Decimal("2.0500")])
WISHES = st.sampled_from([frozenset(), frozenset({"NL"}), frozenset({"PL"}), frozenset({"NL", "PL"})])
RENTERS = ("rich", "poor")
FUNDS = {"rich": 100_000, "poor": 25}


@dataclass
class ModelServer:
    """`came`: its place among equal prices; `heard`: as the book last found it."""

    listing: Listing
    country: str
    devices: list[int]
    price: Decimal
    min_gpus: int
    came: int
    last_beat_at: datetime
    is_active: bool = True
    heard: bool = True
    taken: set[int] = field(default_factory=set)

    @property
    def free(self) -> list[int]:
        return [device for device in self.devices if device not in self.taken]


@dataclass
class ModelOrder:
    renter: str
    limit: Decimal
    gpu_count: int
    servers: int
    hours: int
    countries: frozenset[str]
    came: int
    expires_at: datetime
    used: list[ModelServer] = field(default_factory=list)

    @property
    def wanted(self) -> int:
        return self.servers - len(self.used)


@dataclass
class ModelRental:
    renter: str
    server: ModelServer
    devices: list[int]
    held: int


def held_for(price: Decimal, gpu_count: int, hours: int) -> int:
    terms = Terms(gpu_count=gpu_count, hours=hours, fx_rate=Decimal(1), tax_rate_percent=Decimal(21))
    return hold_micros(price, terms)


class Market(RuleBasedStateMachine):
    servers = Bundle("servers")
    orders = Bundle("orders")

    def __init__(self):
        super().__init__()
        self.example = transaction.atomic()  # each example starts from the same rows
        self.example.__enter__()
        self.began = False

    @initialize(target=servers)
    def begin(self):
        self.gpu = make_gpu()
        self.renters = {name: make_renter(name=name, units=FUNDS[name]) for name in RENTERS}
        self.now = NOW
        self.places = count(1)
        self.model_servers: list[ModelServer] = []
        self.open: dict[UUID, ModelOrder] = {}
        self.rentals: dict[UUID, ModelRental] = {}
        self.began = True
        offers = [("2.0100", 4, "NL"), ("2.0100", 2, "PL"), ("2.0500", 3, "NL"), ("2.0100", 1, "NL")]
        return multiple(*(self.list_one(devices, Decimal(price), 1, country) for price, devices, country in offers))

    # what happens

    @rule(
        target=servers,
        devices=st.integers(1, 4),
        price=PRICES,
        min_gpus=st.integers(1, 2),
        country=st.sampled_from(["NL", "PL"]),
    )
    def list_one(self, devices, price, min_gpus, country):
        self.tick()
        server = make_server(gpu=self.gpu, devices=devices, country=country, now=self.now)
        offered = Offered(price=price, min_gpus=min(min_gpus, devices))
        known = ModelServer(
            listing=list_server(server=server, offered=offered, now=self.now),
            country=country,
            devices=list(server.devices.order_by("index").values_list("pk", flat=True)),
            price=price,
            min_gpus=offered.min_gpus,
            came=next(self.places),
            last_beat_at=self.now,
        )
        self.model_servers.append(known)
        self.rest()
        return known

    @rule(server=servers, price=PRICES)
    def reprice(self, server, price):
        self.tick()
        offered = Offered(price=price, min_gpus=server.min_gpus)
        provider_id = server.listing.server.provider_id
        change_terms(provider_id=provider_id, listing_id=server.listing.pk, offered=offered, now=self.now)
        self.fall_silent()
        if price != server.price:
            server.price, server.came = price, next(self.places)
            self.rest()

    @rule(server=servers)
    def pause_or_resume(self, server):
        self.tick()
        change = pause if server.is_active else resume
        change(provider_id=server.listing.server.provider_id, listing_id=server.listing.pk, now=self.now)
        server.is_active = not server.is_active
        self.fall_silent()
        if server.is_active:
            self.rest()

    @rule(server=servers)
    def one_beats(self, server):
        self.tick()
        beat(server_id=server.listing.server_id, now=self.now)
        server.last_beat_at = self.now
        if not server.heard:
            self.fall_silent()
            server.heard = True
            self.rest()

    @rule(seconds=st.integers(1, 90), all_beat=st.booleans())
    def time_passes(self, seconds, all_beat):
        self.now += timedelta(seconds=seconds)
        for server in self.model_servers if all_beat else []:
            self.one_beats(server)

    @rule(
        target=orders,
        renter=st.sampled_from(RENTERS),
        limit=PRICES,
        gpu_count=st.integers(1, 3),
        servers=st.integers(1, 3),
        hours=st.integers(1, 3),
        countries=WISHES,
        time_in_force=st.sampled_from(["gtc", "gtc", "gtc", "ioc", "fok"]),
        lasts=st.integers(30, 300),
    )
    def place(self, renter, limit, gpu_count, servers, hours, countries, time_in_force, lasts):
        self.tick()
        heard = [server.heard for server in self.model_servers]
        self.fall_silent()
        expires_at = self.now + timedelta(seconds=lasts)
        order = ModelOrder(renter, limit, gpu_count, servers, hours, countries, next(self.places), expires_at)
        takes = self.best(order)[:servers]
        if time_in_force == "fok" and len(takes) < servers:
            takes = []
        rests = time_in_force == "gtc" and len(takes) < servers
        needed = sum(held_for(taken.price, gpu_count, hours) for taken in takes)
        needed += held_for(limit, gpu_count, hours) * (servers - len(takes)) if rests else 0
        instruction = order_for(
            self.gpu,
            limit=limit,
            gpu_count=gpu_count,
            server_count=servers,
            hours=hours,
            filters=Filters(countries=countries),
            time_in_force=time_in_force,
            expires_at=expires_at if time_in_force == "gtc" else None,
            confirm_price=True,
        )
        if needed > self.available(renter):
            with pytest.raises(NotEnoughMoney) as refused, transaction.atomic():
                place_order(organisation_id=self.renters[renter].pk, instruction=instruction, now=self.now)
            assert (refused.value.needed_micros, refused.value.available_micros) == (needed, self.available(renter))
            for server, was_heard in zip(self.model_servers, heard, strict=True):
                server.heard = was_heard  # what is refused leaves no trace
            return multiple()
        placed = place_order(organisation_id=self.renters[renter].pk, instruction=instruction, now=self.now)
        assert placed.held_micros == needed
        self.fill(order, takes, placed.order_id)
        if not rests:
            return multiple()
        self.open[placed.order_id] = order
        return placed.order_id

    @rule(renter=st.sampled_from(RENTERS), gpu_count=st.integers(1, 2), servers=st.integers(1, 2))
    def take(self, renter, gpu_count, servers):
        self.place(renter, Decimal("2.0500"), gpu_count, servers, 1, frozenset(), "ioc", 60)

    @rule(target=orders, limit=PRICES, gpu_count=st.integers(1, 2), servers=st.integers(1, 3))
    def bid(self, limit, gpu_count, servers):
        return self.place("rich", limit, gpu_count, servers, 1, frozenset(), "gtc", 300)

    @rule(order_id=consumes(orders))
    def cancel(self, order_id):
        self.tick()
        organisation_id = Order.objects.values_list("organisation_id", flat=True).get(pk=order_id)
        after = cancel_order(organisation_id=organisation_id, order_id=order_id, now=self.now)
        self.fall_silent()
        if self.open.pop(order_id, None) is not None:
            assert after.state == "cancelled"
        assert after.state not in Order.RESTING

    @rule()
    def sweep_books(self):
        self.tick()
        expire_orders(now=self.now)
        confirm_best_asks(now=self.now)
        self.rest()

    @rule(renter=st.sampled_from(RENTERS))
    def freeze_for_a_while(self, renter):
        self.tick()
        organisation = Organisation.objects.filter(pk=self.renters[renter].pk)
        organisation.update(frozen_at=self.now)
        instruction = order_for(self.gpu, confirm_price=True)
        with pytest.raises(OrganisationFrozen), transaction.atomic():
            place_order(organisation_id=self.renters[renter].pk, instruction=instruction, now=self.now)
        confirm_best_asks(now=self.now)
        organisation.update(frozen_at=None)
        self.open = {pk: order for pk, order in self.open.items() if order.renter != renter}
        self.rest()

    @rule(which=st.integers(0, 30))
    def a_rental_fails(self, which):
        if not self.rentals:
            return
        self.tick()
        rental_id = sorted(self.rentals)[which % len(self.rentals)]
        assert fail_start(rental_id=rental_id, reason="image_pull_failed", now=self.now)
        rental = self.rentals.pop(rental_id)
        rental.server.taken -= set(rental.devices)
        self.rest()

    # the model

    def tick(self):
        self.now += timedelta(seconds=1)

    def fall_silent(self):
        """Whoever takes the book's lock finds out who is silent."""
        for server in self.model_servers:
            if server.last_beat_at < self.now - timedelta(seconds=60):
                server.heard = False

    def best(self, order: ModelOrder) -> list[ModelServer]:
        fitting = [
            server
            for server in self.model_servers
            if server.is_active
            and server.heard
            and server.price <= order.limit
            and len(server.free) >= order.gpu_count >= server.min_gpus
            and (not order.countries or server.country in order.countries)
            and server not in order.used
        ]
        return sorted(fitting, key=lambda server: (server.price, server.came))

    def rest(self):
        """Close what is over, then fill by limit and age until nothing fits."""
        self.fall_silent()
        self.open = {pk: order for pk, order in self.open.items() if order.expires_at > self.now}
        for pk, order in sorted(self.open.items(), key=lambda item: (-item[1].limit, item[1].came)):
            self.fill(order, self.best(order)[: order.wanted], pk)
            if not order.wanted:
                del self.open[pk]

    def fill(self, order: ModelOrder, takes: list[ModelServer], order_id: UUID):
        made = Rental.objects.filter(order_id=order_id, state="pending").exclude(pk__in=set(self.rentals))
        assert len(made) == len(takes), "as many fills as the model takes"
        for server, rental in zip(takes, made.order_by("fill__sequence"), strict=True):
            price = server.price if server.came < order.came else order.limit
            devices = server.free[: order.gpu_count]
            written = (rental.listing_id, rental.price_usd_per_gpu_hour, rental.device_ids)
            assert written == (server.listing.pk, price, devices)
            server.taken |= set(devices)
            order.used.append(server)
            held = held_for(price, order.gpu_count, order.hours)
            self.rentals[rental.pk] = ModelRental(order.renter, server, devices, held)

    def held(self, renter: str) -> int:
        orders = [order for order in self.open.values() if order.renter == renter]
        resting = sum(held_for(order.limit, order.gpu_count, order.hours) * order.wanted for order in orders)
        return resting + sum(rental.held for rental in self.rentals.values() if rental.renter == renter)

    def available(self, renter: str) -> int:
        return FUNDS[renter] * 1_000_000 - self.held(renter)

    def best_ask(self) -> tuple[Decimal, int] | None:
        """As of the last time that somebody held the book's lock."""
        offers = [server for server in self.model_servers if server.is_active and server.heard and server.min_gpus == 1]
        prices = [server.price for server in offers if server.free]
        return (min(prices), sum(len(server.free) for server in offers)) if prices else None

    # what must be the same

    @invariant()
    def the_rows_say_what_the_model_says(self):
        if not self.began:
            return
        resting = {order.pk: order.open_servers for order in Order.objects.filter(state__in=Order.RESTING)}
        assert resting == {pk: order.wanted for pk, order in self.open.items()}
        assert set(Rental.objects.filter(state="pending").values_list("pk", flat=True)) == set(self.rentals)
        leased = Lease.objects.filter(closed_sequence__isnull=True).values_list("device_id", flat=True)
        assert set(leased) == {device for server in self.model_servers for device in server.taken}
        for name, renter in self.renters.items():
            assert Account.objects.get(owner=renter, kind="wallet").held_micros == self.held(name)
        row = BestAsk.objects.filter(gpu=self.gpu).first()
        assert (row and (row.price_usd_per_gpu_hour, row.devices_available)) == self.best_ask()

    @invariant()
    def every_invariant_holds(self):
        if self.began:
            assert [check for check in run_checks(now=self.now) if not check.ok] == []

    def teardown(self):
        try:
            assert all(check.ok for check in run_ledger_checks(now=NOW))
        finally:
            transaction.set_rollback(True)
            self.example.__exit__(None, None, None)


def run_it(*, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Market,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.django_db
def test_a_book_and_a_plain_model_never_differ():
    run_it(examples=12, steps=25)


@pytest.mark.long
@pytest.mark.django_db
@pytest.mark.timeout(3600)
def test_a_book_and_a_plain_model_never_differ_in_long_runs():
    run_it(examples=300, steps=60)
