"""Minimum, quartiles and median over clouds."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.statistics import lowest_per_cloud, quantile, summarise

PRICES = st.lists(st.decimals(min_value=0, max_value=10_000, places=4), min_size=1, max_size=40)


def test_quartiles_are_interpolated_linearly():
    spread = summarise([Decimal(4), Decimal(1), Decimal(3), Decimal(2)])
    assert (spread.min, spread.p25, spread.median, spread.p75) == (
        Decimal(1),
        Decimal("1.75"),
        Decimal("2.5"),
        Decimal("3.25"),
    )
    assert spread.offers == 4


def test_one_price_is_its_own_spread():
    spread = summarise([Decimal("2.88")])
    assert {spread.min, spread.p25, spread.median, spread.p75} == {Decimal("2.88")}
    assert spread.offers == 1


def test_no_price_has_no_spread():
    with pytest.raises(ValueError, match="no prices"):
        summarise([])


def test_a_cloud_with_many_regions_counts_once_with_its_lowest_price():
    lowest = lowest_per_cloud([("aws", Decimal(7)), ("aws", Decimal(6)), ("vast", Decimal(2)), ("aws", Decimal(9))])
    assert lowest == {"aws": Decimal(6), "vast": Decimal(2)}


def test_values_are_rounded_to_a_micro_half_even():
    assert quantile([Decimal("0.000001"), Decimal("0.000002")], Decimal("0.5")) == Decimal("0.000002")
    assert quantile([Decimal("0.000002"), Decimal("0.000003")], Decimal("0.5")) == Decimal("0.000002")


@given(PRICES)
def test_the_spread_is_ordered_and_lies_within_the_prices(prices: list[Decimal]):
    spread = summarise(prices)
    assert min(prices) == spread.min <= spread.p25 <= spread.median <= spread.p75 <= max(prices)
    assert spread.offers == len(prices)


@given(PRICES, st.randoms())
def test_the_order_of_the_prices_does_not_matter(prices: list[Decimal], random):
    shuffled = list(prices)
    random.shuffle(shuffled)
    assert summarise(shuffled) == summarise(prices)


@given(PRICES, st.decimals(min_value=0, max_value=1000, places=4))
def test_a_surcharge_on_every_price_moves_the_whole_spread_by_it(prices: list[Decimal], surcharge: Decimal):
    before, after = summarise(prices), summarise([price + surcharge for price in prices])
    assert abs(after.median - before.median - surcharge) <= Decimal("0.000001")
    assert after.min == before.min + surcharge
