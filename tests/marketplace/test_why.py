"""Why an order does not fill: the gap to the best ask that would do, and the devices each wish removes by itself."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID

from hypothesis import given

from marketplace.matching import Filters, misfits
from marketplace.why import explain
from tests.marketplace.conftest import NOW
from tests.marketplace.test_matching import books, make_ask, make_bid


def test_only_the_price_stands_in_the_way():
    why = explain(make_bid(limit=Decimal("2.50")), [make_ask(1), make_ask(2, price=Decimal("2.95"))], now=NOW)
    assert (why.best_price, why.gap, why.servers_fitting) == (Decimal("2.88"), Decimal("0.38"), 2)
    assert (why.removed, why.devices_for_rent) == ({}, 16)


def test_each_wish_is_counted_by_itself_whatever_the_price():
    asks = [
        make_ask(1, country="US", interconnect="pcie", free_device_ids=(1, 2, 3)),
        make_ask(2, country="US", price=Decimal(50)),
        make_ask(3, free_device_ids=(9,)),
    ]
    wishes = Filters(countries=frozenset({"NL"}), interconnect="nvlink")
    why = explain(make_bid(gpu_count=2, filters=wishes), asks, now=NOW)
    assert why.removed == {"countries": 11, "interconnect": 3, "free_devices": 1}
    assert (why.best_price, why.gap, why.servers_fitting, why.devices_for_rent) == (None, None, 0, 12)


def test_a_server_it_has_already_is_no_wish_and_does_not_fit():
    why = explain(make_bid(used_server_ids=frozenset({UUID(int=1001)})), [make_ask(1)], now=NOW)
    assert (why.removed, why.best_price, why.servers_fitting, why.devices_for_rent) == ({}, None, 0, 8)


def test_where_one_fits_under_the_limit_there_is_no_gap():
    why = explain(make_bid(limit=Decimal(3), open_servers=2), [make_ask(1)], now=NOW)
    assert (why.best_price, why.gap, why.servers_fitting) == (Decimal("2.88"), Decimal(0), 1)


def test_an_empty_book_has_nothing_to_say():
    why = explain(make_bid(), [], now=NOW)
    assert (why.best_price, why.gap, why.removed, why.devices_for_rent, why.servers_fitting) == (None, None, {}, 0, 0)


@given(book=books())
def test_at_the_best_price_something_fits_and_below_it_nothing(book):
    bids, asks = book
    for bid in bids:
        why = explain(bid, asks, now=NOW)
        assert why.devices_for_rent == sum(len(ask.free_device_ids) for ask in asks)
        assert all(0 < count <= why.devices_for_rent for count in why.removed.values())
        if why.best_price is None:
            assert all(misfits(ask, replace(bid, limit=Decimal(10**6)), now=NOW) for ask in asks)
            continue
        assert [ask for ask in asks if not misfits(ask, replace(bid, limit=why.best_price), now=NOW)]
        below = replace(bid, limit=why.best_price - Decimal("0.0001"))
        assert [ask for ask in asks if not misfits(ask, below, now=NOW)] == []
