"""The statements around a decision: what they read is what the rules would choose from, whoever runs them."""

from datetime import timedelta
from decimal import Decimal
from itertools import count

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uuid6 import uuid7

from billing.roles import grant_to_application, has_two_roles
from catalog.models import BestAsk
from marketplace.book import live_asks, open_book, write
from marketplace.limits import LIVE_FOR, START_WITHIN
from marketplace.listings import pause
from marketplace.matching import Bid, Filters, fill, misfits
from marketplace.models import Device, Fill, Lease, Listing, Order, Rental, Server
from marketplace.orders import place as placing
from marketplace.orders.close import cancel_order
from marketplace.orders.place import NotEnoughMoney, place_order
from marketplace.rentals.fail_unstarted import fail_start
from marketplace.servers import beat
from marketplace.sweep import sweep
from tests.marketplace.conftest import NOW, make_listing, make_renter, order_for

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
_examples = count(1)

PLAIN_MACHINE = {"price": "2.8800", "devices": 4}
PLAIN_WISH = {"limit": Decimal("2.8801"), "gpu_count": 1, "open_servers": 1, "hours": 1, "filters": Filters()}


def but_for(plain: dict[str, object], **other: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    """Return what is plain but for one or two things: so that much fits, and most of what does not fails by one thing."""
    changes = st.lists(st.sampled_from(sorted(other)), max_size=2, unique=True)
    return changes.flatmap(lambda names: st.fixed_dictionaries({name: other[name] for name in names})).map(
        lambda changed: {**plain, **changed}
    )


machines = but_for(
    PLAIN_MACHINE,
    price=st.sampled_from(["2.8801", "2.8802"]),
    devices=st.integers(1, 3),
    min_gpus=st.integers(1, 3),
    max_hours=st.sampled_from([1, 2]),
    available_until=st.sampled_from([NOW + START_WITHIN + HOUR, NOW + START_WITHIN + 2 * HOUR - SECOND]),
    country=st.just("PL"),
    interconnect=st.just("pcie"),
    ram_gb=st.just(256),
    vcpus=st.just(32),
    disk_gb=st.just(1000),
)
bids = but_for(
    PLAIN_WISH,
    limit=st.sampled_from([Decimal("2.8800"), Decimal("2.8799")]),
    gpu_count=st.integers(2, 3),
    open_servers=st.integers(2, 3),
    hours=st.sampled_from([None, 2, 720]),
    filters=st.sampled_from(
        [
            Filters(countries=frozenset({"NL"})),
            Filters(countries=frozenset({"NL", "PL"})),
            Filters(countries=frozenset({"FI"})),
            Filters(interconnect="nvlink"),
            Filters(min_ram_gb=257),
            Filters(min_vcpus=64),
            Filters(min_disk_gb=2000),
        ]
    ),
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(books=st.lists(machines, min_size=2, max_size=5), wish=bids)
def test_an_order_reads_exactly_the_asks_that_the_rules_would_take(h100, renter, books, wish):
    with transaction.atomic():
        for machine in books:
            least = min(machine.get("min_gpus", 1), machine["devices"])
            make_listing(gpu=h100, name=f"machine {next(_examples)}", **{**machine, "min_gpus": least})
        bid = Bid(order_id=uuid7(), sequence=2**62, **wish)
        everything = live_asks(h100.pk, now=NOW)
        book = open_book(bid, gpu_id=h100.pk, organisation_id=renter.pk, currency="USD", now=NOW)
        assert all(not misfits(ask, bid, now=NOW) for ask in book.asks)
        assert fill(bid, book.asks, now=NOW) == fill(bid, everything, now=NOW)
        assert len(book.asks) == min(
            bid.open_servers, len([ask for ask in everything if not misfits(ask, bid, now=NOW)])
        )
        transaction.set_rollback(True)


def test_times_and_prices_come_back_to_the_last_digit(h100, renter):
    until = NOW + timedelta(hours=5, microseconds=123_456)
    make_listing(gpu=h100, price="2.8801", available_until=until)
    bid = Bid(order_id=uuid7(), limit=Decimal("2.8801"), sequence=0, gpu_count=1, open_servers=1, hours=None)
    with transaction.atomic():
        (read,) = open_book(bid, gpu_id=h100.pk, organisation_id=renter.pk, currency="USD", now=NOW).asks
    assert [read] == live_asks(h100.pk, now=NOW)
    assert (read.available_until, str(read.price)) == (until, "2.8801")
    at = NOW + timedelta(microseconds=7)
    place_order(organisation_id=renter.pk, instruction=order_for(h100, limit="2.8801", hours=None), now=at)
    order, fill_, rental = Order.objects.get(), Fill.objects.get(), Rental.objects.get()
    assert {order.placed_at, order.closed_at, fill_.filled_at, rental.filled_at} == {at}
    assert (rental.lease_until, Lease.objects.get().period.upper) == (until, until)
    assert (rental.price_usd_per_gpu_hour, rental.fee_percent) == (Decimal("2.8801"), Decimal(10))
    held = rental.held_hours.get()
    assert (held.fx_rate, held.tax_rate_percent, held.held_at) == (Decimal(1), Decimal(21), at)


def test_a_whole_instruction_is_stored_as_it_was_given(h100, renter):
    wishes = Filters(countries=frozenset({"NL", "PL"}), interconnect="pcie", min_ram_gb=1, min_vcpus=2, min_disk_gb=3)
    instruction = order_for(
        h100,
        limit="2.5001",
        gpu_count=2,
        server_count=3,
        hours=None,
        filters=wishes,
        image="nvcr.io/nvidia/pytorch:26.10-py3 'quoted' \"twice\" \\ é",
        ssh_public_key="ssh-ed25519 AAAA é",
        expires_at=NOW + timedelta(days=2, microseconds=1),
    )
    placed = place_order(organisation_id=renter.pk, instruction=instruction, now=NOW)
    order = Order.objects.get(pk=placed.order_id)
    assert (order.gpu_count, order.server_count, order.hours, order.filled_servers) == (2, 3, None, 0)
    assert (order.countries, order.interconnect) == (["NL", "PL"], "pcie")
    assert (order.min_ram_gb, order.min_vcpus, order.min_disk_gb) == (1, 2, 3)
    assert (order.image, order.ssh_public_key) == (instruction.image, instruction.ssh_public_key)
    assert (order.limit_price_usd_per_gpu_hour, order.expires_at) == (Decimal("2.5001"), instruction.expires_at)
    assert (order.quote_id, order.placed_by_id, order.close_reason, order.closed_at) == (None, None, "", None)


def test_too_little_money_that_only_the_database_sees_is_refused_by_its_name(h100, monkeypatch):
    renter = make_renter(name="Small B.V.", units=1)
    make_listing(gpu=h100)
    monkeypatch.setattr(placing, "_afford", lambda *read: None)
    with pytest.raises(NotEnoughMoney) as refused, transaction.atomic():
        place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    assert (refused.value.needed_micros, refused.value.available_micros) == (3_484_804, 1_000_000)
    assert not Order.objects.exists()


def test_the_application_s_role_runs_the_exchange_without_touching_the_ledger(h100, renter):
    """Two roles: the one that serves pages reads the ledger, calls its door, and writes the exchange's own rows."""
    listing = make_listing(gpu=h100, devices=1)
    with connection.cursor() as cursor:
        cursor.execute("DROP ROLE IF EXISTS bourse_app")
        cursor.execute("CREATE ROLE bourse_app")
        grant_to_application("bourse_app")
        cursor.execute("SET ROLE bourse_app")
    try:
        assert has_two_roles()
        place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
        waiting = place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
        fail_start(rental_id=Rental.objects.get().pk, reason="image_pull_failed", now=NOW + SECOND)
        assert Order.objects.get(pk=waiting.order_id).state == "filled"
        resting = place_order(organisation_id=renter.pk, instruction=order_for(h100, limit="1.00"), now=NOW + SECOND)
        cancel_order(organisation_id=renter.pk, order_id=resting.order_id, now=NOW + SECOND)
        beat(server_id=listing.server_id, now=NOW + 2 * LIVE_FOR)
        sweep(now=NOW + 2 * LIVE_FOR)
        with (
            pytest.raises(DatabaseError, match="permission denied"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute("UPDATE billing_hold SET remaining_micros = 0")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE")


def test_a_device_is_leased_to_one_at_a_time_whatever_sql_says(h100, renter):
    make_listing(gpu=h100, devices=2)
    place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    rental, device = Rental.objects.get(), Device.objects.earliest("index")
    for statement, constraint in (
        ("VALUES (%s, %s, tstzrange(%s, %s), 1, NULL)", "one_open_lease_per_device"),
        ("VALUES (%s, %s, tstzrange(%s, %s), 1, 2)", "device_never_leased_twice"),
    ):
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO marketplace_lease (device_id, rental_id, period, taken_sequence, closed_sequence) {statement}",
                [device.pk, rental.pk, NOW + (HOUR if "NULL" not in statement else 9 * HOUR), NOW + 10 * HOUR],
            )


def test_a_closed_order_is_not_moved_again(h100, renter):
    make_listing(gpu=h100)
    placed = place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    again = {"id": placed.order_id, "state": "cancelled", "filled_servers": 0, "close_reason": "cancelled"}
    with pytest.raises(DatabaseError, match="does not rest"), transaction.atomic():
        write(gpu_id=h100.pk, now=NOW, orders=[again])


def test_the_next_lease_of_a_device_begins_where_the_last_one_ended_whatever_two_clocks_say(h100, renter):
    """Who waited for the book's lock read the clock before it."""
    make_listing(gpu=h100, devices=1)
    place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    freed_at = NOW + 5 * SECOND
    fail_start(rental_id=Rental.objects.get().pk, reason="image_pull_failed", now=freed_at)
    place_order(organisation_id=renter.pk, instruction=order_for(h100), now=freed_at - SECOND)
    first, second = Lease.objects.order_by("taken_sequence")
    assert first.period.upper == second.period.lower == freed_at
    # and where the last one never was longer than an instant
    fail_start(rental_id=second.rental_id, reason="image_pull_failed", now=NOW)
    place_order(organisation_id=renter.pk, instruction=order_for(h100), now=NOW)
    assert Lease.objects.latest("taken_sequence").period.lower == freed_at + timedelta(microseconds=1)


def test_the_day_s_trade_is_a_difference_of_two_fills(h100, renter):
    listing = make_listing(gpu=h100, devices=8, price="2.00")
    for hours in (0, 7, 28, 30):
        at = NOW + hours * HOUR
        beat(server_id=listing.server_id, now=at)
        if hours < 30:
            place_order(organisation_id=renter.pk, instruction=order_for(h100, gpu_count=2), now=at)
    bid = Bid(order_id=uuid7(), limit=Decimal(3), sequence=0, gpu_count=1, open_servers=1, hours=1)
    with transaction.atomic():
        book = open_book(bid, gpu_id=h100.pk, organisation_id=renter.pk, currency="USD", now=at)
    assert (book.traded.fills, book.traded.gpus, book.traded.value) == (2, 4, Decimal(8))
    assert book.median_ask == Decimal(2)


def test_silence_is_noticed_by_whoever_takes_the_lock_and_only_a_beat_ends_it(h100, renter):
    listing = make_listing(gpu=h100)
    late = NOW + LIVE_FOR + SECOND
    assert live_asks(h100.pk, now=late) == [], "who only reads sees no silent server either"
    assert BestAsk.objects.filter(gpu=h100).exists(), "reading writes nothing"
    resting = place_order(organisation_id=renter.pk, instruction=order_for(h100), now=late)
    assert not Server.objects.get().is_heard
    assert not BestAsk.objects.filter(gpu=h100).exists()
    # A beat that was sent within the minute and comes now brings the server back as any other.
    beat(server_id=listing.server_id, now=NOW + LIVE_FOR)
    assert Order.objects.get(pk=resting.order_id).state == "filled"
    assert listing.server.beat_spans.count() == 1, "within a minute of the last one: no gap"


def test_a_book_with_nothing_for_rent_is_read_as_empty(h100, renter):
    listing = make_listing(gpu=h100)
    pause(provider_id=listing.server.provider_id, listing_id=listing.pk, now=NOW)
    bid = Bid(order_id=uuid7(), limit=Decimal(9), sequence=0, gpu_count=1, open_servers=1, hours=1)
    with transaction.atomic():
        book = open_book(bid, gpu_id=h100.pk, organisation_id=renter.pk, currency="GBP", now=NOW)
    assert (book.asks, book.median_ask, book.traded.fills, book.wallet.account_id) == ([], None, 0, None)
    assert (book.is_known, book.is_tax_decided, book.tax_rate_percent) == (False, True, Decimal(21))
    assert Listing.objects.get().free_count == 8
