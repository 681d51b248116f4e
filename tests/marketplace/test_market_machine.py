"""A state machine over the book: listings, beats, orders and time, with every invariant checked after each step."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from billing.checks import run_checks
from billing.models import Account, Hold
from catalog.models import BestAsk
from marketplace import checks
from marketplace.book import live_asks
from marketplace.listings import Offered, change_terms, list_server, pause, resume
from marketplace.matching import Ask, lasts_until
from marketplace.models import Fill, Listing, Order, Rental, Server
from marketplace.orders.close import cancel_order
from marketplace.orders.place import NotEnoughMoney, place_order
from marketplace.rentals.fail_unstarted import fail_start
from marketplace.servers import beat, unverify_server, verify_server
from marketplace.sweep import sweep
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW, make_listing, make_renter, make_server, order_for
from tests.marketplace.test_matching import make_bid

PRICES = st.sampled_from(["2.40", "2.50", "2.88", "2.95"])
which = st.integers(0, 30)
MOST_SERVERS = 5


class Exchange(RuleBasedStateMachine):
    """One book, two renters: one with much money, one with little."""

    def __init__(self) -> None:
        super().__init__()
        self.example = transaction.atomic()  # each example starts from the same rows
        self.example.__enter__()
        self.now = NOW

    @initialize()
    def open_the_market(self):
        self.gpu = make_gpu(slug="h100-sxm")
        make_listing(gpu=self.gpu, price="2.88", devices=3)
        self.renters = [make_renter(name="Orla Labs B.V.", units=500), make_renter(name="Small B.V.", units=15)]
        for renter, limit in zip(self.renters, ("2.50", "2.40"), strict=True):
            bid = order_for(self.gpu, limit=limit, hours=None, server_count=2)
            placed = place_order(organisation_id=renter.pk, instruction=bid, now=self.now)
            assert placed.state == "open", "so that a lower price, a new server or a beat has something to fill"

    def pick(self, rows, number: int):
        found = list(rows)
        return found[number % len(found)] if found else None

    def rows(self) -> tuple[int, ...]:
        return Order.objects.count(), Hold.objects.count(), Fill.objects.count()

    def listing(self, number: int) -> Listing:
        listings = Listing.objects.select_related("server").exclude(state="ended")
        return self.pick(listings.order_by("listed_at", "pk"), number)

    # providers

    @rule(price=PRICES, devices=st.integers(1, 4), min_gpus=st.integers(1, 2), max_hours=st.sampled_from([1, 720]))
    def list_one_more(self, price, devices, min_gpus, max_hours):
        if Server.objects.count() < MOST_SERVERS:
            server = make_server(gpu=self.gpu, devices=devices, now=self.now)
            terms = Offered(price=Decimal(price), min_gpus=min(min_gpus, devices), max_hours=max_hours)
            list_server(server=server, offered=terms, now=self.now)

    @rule(number=which, price=PRICES, min_gpus=st.integers(1, 2), hours_left=st.sampled_from([None, 1, 2, 30]))
    def reprice(self, number, price, min_gpus, hours_left):
        listing = self.listing(number)
        offered = Offered(
            price=Decimal(price),
            min_gpus=min(min_gpus, listing.server.device_count),
            available_until=None if hours_left is None else self.now + timedelta(hours=hours_left),
        )
        sold = list(Rental.objects.order_by("pk").values_list("pk", "price_usd_per_gpu_hour"))
        change_terms(provider_id=listing.server.provider_id, listing_id=listing.pk, offered=offered, now=self.now)
        kept = dict(Rental.objects.values_list("pk", "price_usd_per_gpu_hour"))
        assert all(kept[pk] == price for pk, price in sold), "what is sold keeps its price"

    @rule(number=which, is_paused=st.booleans())
    def pause_or_resume(self, number, is_paused):
        listing = self.listing(number)
        change = pause if is_paused else resume
        change(provider_id=listing.server.provider_id, listing_id=listing.pk, now=self.now)

    @rule(number=which, is_verified=st.booleans())
    def verify_or_not(self, number, is_verified):
        server = self.listing(number).server
        (verify_server if is_verified else unverify_server)(server_id=server.pk, now=self.now)

    @rule(number=which)
    def one_beats(self, number):
        beat(server_id=self.listing(number).server_id, now=self.now)

    @rule()
    def all_beat(self):
        for server_id in Server.objects.order_by("created_at", "pk").values_list("pk", flat=True):
            beat(server_id=server_id, now=self.now)

    # renters

    @rule(
        renter=st.integers(0, 1),
        limit=PRICES,
        gpu_count=st.integers(1, 3),
        server_count=st.integers(1, 3),
        hours=st.sampled_from([None, 1, 2]),
        force=st.sampled_from(["gtc", "gtc", "ioc", "fok"]),
        minutes=st.integers(1, 90),
    )
    def order(self, renter, limit, gpu_count, server_count, hours, force, minutes):
        instruction = order_for(
            self.gpu,
            limit=limit,
            gpu_count=gpu_count,
            server_count=server_count,
            hours=hours,
            time_in_force=force,
            expires_at=self.now + timedelta(minutes=minutes) if force == "gtc" else None,
            confirm_price=True,
        )
        before = self.rows()
        try:
            placed = place_order(organisation_id=self.renters[renter].pk, instruction=instruction, now=self.now)
        except NotEnoughMoney:
            assert self.rows() == before
            return
        assert force == "gtc" or placed.state in ("filled", "cancelled")
        assert force != "fok" or placed.filled_servers in (0, server_count)

    @rule(number=which)
    def cancel(self, number):
        order = self.pick(Order.objects.filter(state__in=Order.RESTING).order_by("sequence"), number)
        if order:
            assert cancel_order(organisation_id=order.organisation_id, order_id=order.pk, now=self.now).closed_at

    @rule(number=which)
    def a_start_fails(self, number):
        rental = self.pick(Rental.objects.filter(state="pending").order_by("fill__sequence"), number)
        if rental:
            assert fail_start(rental_id=rental.pk, reason="image_pull_failed", now=self.now)
            assert not fail_start(rental_id=rental.pk, reason="image_pull_failed", now=self.now)

    # time

    @rule(seconds=st.integers(1, 90))
    def a_moment_passes(self, seconds):
        self.now += timedelta(seconds=seconds)

    @rule(minutes=st.integers(2, 60))
    def a_while_passes_and_orders_expire(self, minutes):
        self.now += timedelta(minutes=minutes)
        sweep(now=self.now)
        assert not Order.objects.filter(state__in=Order.RESTING, expires_at__lte=self.now).exists()
        assert not Rental.objects.filter(state="pending", filled_at__lte=self.now - timedelta(minutes=10)).exists()

    # what always holds

    @invariant()
    def every_check_of_the_books_and_of_the_market_holds(self):
        if hasattr(self, "renters"):
            found = [*run_checks(now=self.now), *checks.run_checks(now=self.now)]
            assert [check for check in found if not check.ok] == []

    @invariant()
    def after_a_sweep_the_best_ask_is_what_the_live_asks_say(self):
        if not hasattr(self, "renters"):
            return
        sweep(now=self.now)
        best = BestAsk.objects.filter(gpu=self.gpu).first()
        told = best and (best.price_usd_per_gpu_hour, best.devices_available)
        assert told == best_of(live_asks(self.gpu.pk, now=self.now), self.now)

    @invariant()
    def what_is_held_is_what_rests_and_what_is_let(self):
        if not hasattr(self, "renters"):
            return
        for wallet in Account.objects.filter(kind="wallet"):
            resting = Order.objects.filter(wallet=wallet, state__in=Order.RESTING)
            pending = Rental.objects.filter(wallet=wallet, state__in=Rental.OPEN).select_related("hold")
            assert wallet.held_micros == sum(
                order.hold_per_server_micros * order.open_servers for order in resting
            ) + sum(rental.hold.remaining_micros for rental in pending)

    def teardown(self):
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)


def best_of(asks: list[Ask], now: datetime) -> tuple[Decimal, int] | None:
    """Return the lowest price of one device for an hour, and how many devices one may have so, from the asks alone."""
    until = lasts_until(make_bid(), now=now)
    single = [
        ask for ask in asks if ask.min_gpus == 1 and (ask.available_until is None or ask.available_until >= until)
    ]
    if not single:
        return None
    return min(ask.price for ask in single), sum(len(ask.free_device_ids) for ask in single)


def run_it(*, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Exchange,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.django_db
@pytest.mark.timeout(600)
def test_whatever_happens_in_a_book_every_invariant_holds():
    run_it(examples=15, steps=15)


@pytest.mark.long
@pytest.mark.django_db
@pytest.mark.timeout(7200)
def test_whatever_happens_in_a_book_every_invariant_holds_in_long_runs():
    run_it(examples=200, steps=50)
