"""Who fills whom: properties of the pure rules over any small book, and one test for each thing that stands in the way."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.matching import (
    Ask,
    Bid,
    Filters,
    fill,
    hours_at_first,
    lasts_until,
    lease_until,
    match_book,
    misfits,
    trade_price,
)
from tests.marketplace.conftest import NOW

HOUR = timedelta(hours=1)
TEN_MINUTES = timedelta(minutes=10)
PRICES = st.sampled_from([Decimal("2.5000"), Decimal("2.8800"), Decimal("2.8801"), Decimal("3.1000")])
COUNTRIES = st.sampled_from(["NL", "PL", "FI"])


def make_ask(number: int = 1, **values) -> Ask:
    defaults = {
        "listing_id": UUID(int=number),
        "server_id": UUID(int=1000 + number),
        "price": Decimal("2.88"),
        "priority": number,
        "free_device_ids": tuple(range(8)),
        "min_gpus": 1,
        "max_hours": 720,
        "available_until": None,
        "country": "NL",
        "interconnect": "nvlink",
        "ram_gb": 512,
        "vcpus": 64,
        "disk_gb": 2000,
    }
    return Ask(**{**defaults, **values})


def make_bid(number: int = 100, **values) -> Bid:
    defaults = {
        "order_id": UUID(int=2000 + number),
        "limit": Decimal("2.88"),
        "sequence": number,
        "gpu_count": 1,
        "open_servers": 1,
        "hours": 1,
    }
    return Bid(**{**defaults, **values})


@st.composite
def books(draw) -> tuple[list[Bid], list[Ask]]:
    """A book of up to five orders and six servers whose places in line are mixed."""
    line = draw(st.permutations(range(1, 12)))
    asks = [
        make_ask(
            place,
            price=draw(PRICES),
            free_device_ids=tuple(range(10 * place, 10 * place + draw(st.integers(1, 4)))),
            min_gpus=draw(st.integers(1, 2)),
            max_hours=draw(st.sampled_from([1, 4, 720])),
            available_until=draw(st.sampled_from([None, NOW + HOUR + TEN_MINUTES, NOW + 5 * HOUR])),
            country=draw(COUNTRIES),
        )
        for place in line[: draw(st.integers(0, 6))]
    ]
    bids = [
        make_bid(
            place,
            limit=draw(PRICES),
            gpu_count=draw(st.integers(1, 3)),
            open_servers=draw(st.integers(1, 3)),
            hours=draw(st.sampled_from([None, 1, 4])),
            filters=Filters(countries=draw(st.frozensets(COUNTRIES, max_size=2))),
            used_server_ids=frozenset(ask.server_id for ask in asks if draw(st.integers(0, 5)) == 0),
        )
        for place in line[6 : 6 + draw(st.integers(0, 5))]
    ]
    return bids, asks


@given(book=books(), all_or_nothing=st.booleans())
def test_one_bid_takes_whole_servers_under_its_limit_each_once(book, all_or_nothing):
    bids, asks = book
    offered = {ask.listing_id: ask for ask in asks}
    for bid in (replace(each, all_or_nothing=all_or_nothing) for each in bids):
        matches = fill(bid, asks, now=NOW)
        assert len(matches) <= bid.open_servers
        assert not all_or_nothing or len(matches) in (0, bid.open_servers)
        servers = [match.server_id for match in matches]
        assert len(set(servers)) == len(servers)
        assert not set(servers) & bid.used_server_ids
        for match in matches:
            ask = offered[match.listing_id]
            assert match.price <= bid.limit
            assert match.price == (ask.price if ask.priority < bid.sequence else bid.limit)
            assert match.device_ids == ask.free_device_ids[: bid.gpu_count], "the lowest free devices"
            assert len(match.device_ids) == bid.gpu_count


@given(book=books())
def test_one_bid_takes_the_best_price_first_then_the_oldest_and_all_it_may(book):
    bids, asks = book
    offered = {ask.listing_id: ask for ask in asks}
    for bid in bids:
        taken = [offered[match.listing_id] for match in fill(bid, asks, now=NOW)]
        assert all((a.price, a.priority) < (b.price, b.priority) for a, b in pairwise(taken))
        left = [ask for ask in asks if ask not in taken and not misfits(ask, bid, now=NOW)]
        if left:
            assert len(taken) == bid.open_servers, "nothing that fits is left while it wants more"
            worst = taken[-1]
            assert all((worst.price, worst.priority) < (ask.price, ask.priority) for ask in left)


@given(book=books())
def test_a_matched_book_is_at_rest_and_no_device_is_sold_twice(book):
    bids, asks = book
    matches = match_book(bids, asks, now=NOW)
    sold = [(match.listing_id, device) for match in matches for device in match.device_ids]
    assert len(set(sold)) == len(sold)
    gone = set(sold)
    asks_after = [
        replace(ask, free_device_ids=tuple(d for d in ask.free_device_ids if (ask.listing_id, d) not in gone))
        for ask in asks
    ]
    bids_after = []
    for bid in bids:
        servers = frozenset(match.server_id for match in matches if match.order_id == bid.order_id)
        assert len(servers) == sum(match.order_id == bid.order_id for match in matches) <= bid.open_servers
        rest = bid.open_servers - len(servers)
        bids_after.append(replace(bid, open_servers=rest, used_server_ids=bid.used_server_ids | servers))
    for bid in bids_after:
        if bid.open_servers:
            assert [ask for ask in asks_after if not misfits(ask, bid, now=NOW)] == []
    assert match_book(bids_after, asks_after, now=NOW) == []


@given(book=books(), seed=st.randoms(use_true_random=False))
def test_the_order_in_which_rows_are_read_decides_nothing(book, seed):
    bids, asks = book
    matches = match_book(bids, asks, now=NOW)
    seed.shuffle(bids)
    seed.shuffle(asks)
    assert match_book(bids, asks, now=NOW) == matches


@given(book=books())
def test_the_first_in_line_gets_what_it_would_get_alone(book):
    bids, asks = book
    if bids:
        first = min(bids, key=lambda bid: (-bid.limit, bid.sequence))
        own = [match for match in match_book(bids, asks, now=NOW) if match.order_id == first.order_id]
        assert own == fill(first, asks, now=NOW)


def test_the_higher_limit_is_served_before_the_older_order():
    older, higher = make_bid(100), make_bid(101, limit=Decimal("2.90"))
    [match] = match_book([older, higher], [make_ask(1, free_device_ids=(7,))], now=NOW)
    assert (match.order_id, match.price) == (higher.order_id, Decimal("2.88"))


def test_of_equal_limits_the_older_order_is_served():
    older, younger = make_bid(100), make_bid(101)
    [match] = match_book([younger, older], [make_ask(1, free_device_ids=(7,))], now=NOW)
    assert match.order_id == older.order_id


def test_of_equal_prices_the_older_ask_sells_first():
    [match] = fill(make_bid(), [make_ask(5), make_ask(3), make_ask(4)], now=NOW)
    assert match.listing_id == UUID(int=3)


def test_a_trade_is_at_the_price_of_the_older_side():
    bid = make_bid(100, limit=Decimal("3.00"))
    assert trade_price(make_ask(99), bid) == Decimal("2.88")
    assert trade_price(make_ask(101), bid) == Decimal("3.00")


def test_all_or_nothing_takes_all_when_all_are_there():
    bid = make_bid(open_servers=2, all_or_nothing=True)
    assert fill(bid, [make_ask(1)], now=NOW) == []
    assert len(fill(bid, [make_ask(1), make_ask(2)], now=NOW)) == 2


def test_a_bid_takes_one_listing_of_many_devices_once_only():
    assert len(fill(make_bid(open_servers=3), [make_ask(1)], now=NOW)) == 1


def test_nothing_stands_between_a_plain_bid_and_a_plain_ask():
    assert misfits(make_ask(), make_bid(), now=NOW) == []


@pytest.mark.parametrize(
    ("reason", "ask", "bid"),
    [
        ("price", {"price": Decimal("2.8801")}, {}),
        ("free_devices", {"free_device_ids": (0,)}, {"gpu_count": 2}),
        ("min_gpus", {"min_gpus": 4}, {"gpu_count": 3}),
        ("max_hours", {"max_hours": 3}, {"hours": 4}),
        ("available_until", {"available_until": NOW + HOUR + TEN_MINUTES - timedelta(microseconds=1)}, {"hours": 1}),
        ("available_until", {"available_until": NOW + HOUR}, {"hours": None}),
        ("countries", {"country": "US"}, {"filters": Filters(countries=frozenset({"NL", "PL"}))}),
        ("interconnect", {"interconnect": "pcie"}, {"filters": Filters(interconnect="nvlink")}),
        ("min_ram_gb", {"ram_gb": 511}, {"filters": Filters(min_ram_gb=512)}),
        ("min_vcpus", {"vcpus": 63}, {"filters": Filters(min_vcpus=64)}),
        ("min_disk_gb", {"disk_gb": 1999}, {"filters": Filters(min_disk_gb=2000)}),
        ("server_used", {}, {"used_server_ids": frozenset({UUID(int=1001)})}),
    ],
)
def test_each_thing_that_stands_in_the_way_is_named_alone(reason, ask, bid):
    assert misfits(make_ask(**ask), make_bid(**bid), now=NOW) == [reason]
    assert fill(make_bid(**bid), [make_ask(**ask)], now=NOW) == []


@pytest.mark.parametrize(
    ("ask", "bid"),
    [
        ({"price": Decimal("2.88")}, {"limit": Decimal("2.8800")}),
        ({"free_device_ids": (4, 5)}, {"gpu_count": 2}),
        ({"min_gpus": 4}, {"gpu_count": 4}),
        ({"max_hours": 4}, {"hours": 4}),
        ({"available_until": NOW + HOUR + TEN_MINUTES}, {"hours": 1}),
        ({"available_until": NOW + HOUR + TEN_MINUTES, "max_hours": 1}, {"hours": None}),
        ({"ram_gb": 512}, {"filters": Filters(min_ram_gb=512)}),
        ({"country": "PL"}, {"filters": Filters(countries=frozenset({"NL", "PL"}))}),
    ],
)
def test_what_is_just_enough_fits(ask, bid):
    assert misfits(make_ask(**ask), make_bid(**bid), now=NOW) == []


def test_a_lot_claims_its_devices_for_its_hours_and_the_start():
    ask = make_ask(available_until=NOW + timedelta(days=30))
    assert lease_until(ask, hours=3, filled_at=NOW) == NOW + 3 * HOUR + TEN_MINUTES


def test_an_open_ended_rental_claims_as_far_as_the_ask_goes():
    until = NOW + 5 * HOUR
    assert lease_until(make_ask(max_hours=720), hours=None, filled_at=NOW) == NOW + 720 * HOUR + TEN_MINUTES
    assert lease_until(make_ask(max_hours=720, available_until=until), hours=None, filled_at=NOW) == until
    assert lease_until(make_ask(max_hours=2, available_until=until), hours=None, filled_at=NOW) == (
        NOW + 2 * HOUR + TEN_MINUTES
    )


def test_an_open_ended_order_asks_for_one_hour_at_first():
    assert (hours_at_first(None), hours_at_first(7)) == (1, 7)
    assert lasts_until(make_bid(hours=None), now=NOW) == NOW + HOUR + TEN_MINUTES
