"""Micros, rounded once; what is finer than its currency is refused; splits lose and gain nothing."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.money import (
    SCALES,
    TooFine,
    UnknownCurrency,
    from_micros,
    from_minor_units,
    round_to_micros,
    round_up_to_micros,
    split_micros,
    to_micros,
    to_minor_units,
)

micros = st.integers(-(10**15), 10**15)


@pytest.mark.parametrize(
    ("text", "currency"), [("0.999", "EUR"), ("1.001", "USD"), ("0.1", "JPY"), ("NaN", "EUR"), ("Infinity", "EUR")]
)
def test_an_amount_finer_than_its_currency_is_refused(text, currency):
    with pytest.raises(TooFine):
        to_micros(Decimal(text), currency=currency)


def test_a_currency_without_a_scale_is_refused():
    with pytest.raises(UnknownCurrency):
        to_micros(Decimal(1), currency="XTS")


@given(st.sampled_from(sorted(SCALES)), st.integers(0, 10**12))
def test_what_the_gateway_counts_comes_back_the_same_in_every_scale(currency, units):
    assert to_minor_units(from_minor_units(units, currency=currency), currency=currency) == units


def test_a_rest_below_a_cent_does_not_reach_the_gateway():
    with pytest.raises(TooFine):
        to_minor_units(10_001, currency="EUR")
    assert to_minor_units(1_000_000, currency="JPY") == 1


@given(micros)
def test_micros_and_decimals_are_the_same_number(amount):
    assert round_to_micros(from_micros(amount)) == amount


def test_half_a_micro_goes_to_the_even_one():
    assert [round_to_micros(Decimal(text)) for text in ("0.0000005", "0.0000015", "-0.0000005")] == [0, 2, 0]
    assert round_up_to_micros(Decimal("0.00000001")) == 1


@given(micros, st.lists(st.integers(0, 10**6), min_size=1, max_size=12).filter(any))
def test_the_parts_of_a_split_sum_to_the_whole_and_each_is_within_a_micro_of_its_share(total, weights):
    parts = split_micros(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(Decimal(part) - Decimal(total) * weight / sum(weights)) < 1


@given(st.integers(0, 10**9), st.lists(st.integers(1, 1000), min_size=2, max_size=6, unique=True))
def test_a_split_does_not_depend_on_the_order_of_different_weights(total, weights):
    forwards = dict(zip(weights, split_micros(total, weights), strict=True))
    backwards = dict(zip(weights[::-1], split_micros(total, weights[::-1]), strict=True))
    assert all(abs(forwards[weight] - backwards[weight]) <= 1 for weight in weights)


def test_a_split_needs_a_weight():
    for weights in ([0, 0], [-1, 2]):
        with pytest.raises(ValueError, match="weights"):
            split_micros(1, weights)
