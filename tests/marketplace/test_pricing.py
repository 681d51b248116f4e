"""What an order may cost: a hold that is never too little, a reference that is the market's own, a limit that is asked about."""

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.pricing import (
    Terms,
    Traded,
    gross_per_hour,
    hold_micros,
    is_far_above,
    net_per_hour,
    reference_price,
)

PRICES = st.decimals(Decimal("0.0001"), Decimal(100_000), places=4)
RATES = st.decimals(Decimal("0.0000000001"), Decimal(200), places=10)
TAXES = st.sampled_from([Decimal(0), Decimal("8.1"), Decimal(21), Decimal("25.50"), Decimal(27)])
NONE_TRADED = Traded(fills=0, gpus=0, value=Decimal(0))


def exact_gross_micros(price: Decimal, terms: Terms) -> Fraction:
    net = Fraction(price) * terms.gpu_count * Fraction(terms.fx_rate) * (terms.hours or 1)
    return net * (100 + Fraction(terms.tax_rate_percent)) / 100 * 1_000_000


@given(price=PRICES, gpu_count=st.integers(1, 64), hours=st.none() | st.integers(1, 720), fx_rate=RATES, tax=TAXES)
def test_a_hold_covers_the_gross_and_two_micros_for_each_hour_and_not_more(price, gpu_count, hours, fx_rate, tax):
    terms = Terms(gpu_count=gpu_count, hours=hours, fx_rate=fx_rate, tax_rate_percent=tax)
    held, gross = hold_micros(price, terms), exact_gross_micros(price, terms)
    spare = 2 * ((hours or 1) + 1)
    assert gross + spare <= held < gross + spare + 1


@given(
    price=PRICES,
    gpu_count=st.integers(1, 8),
    fx_rate=RATES,
    tax=TAXES,
    seconds=st.lists(st.integers(1, 3600), min_size=1, max_size=5),
)
def test_lines_rounded_each_for_itself_never_come_to_more_than_the_hold(price, gpu_count, fx_rate, tax, seconds):
    """Net is rounded, then the tax on it: two roundings of half a micro an hour at most, for hours that fit the lot."""
    hours = -(-sum(seconds) // 3600)
    terms = Terms(gpu_count=gpu_count, hours=max(hours, len(seconds) - 1), fx_rate=fx_rate, tax_rate_percent=tax)
    paid = 0
    for billed in seconds:
        net = round(Fraction(net_per_hour(price, terms)) * 1_000_000 * billed / 3600)
        paid += net + round(Fraction(net) * Fraction(tax) / 100)
    assert paid <= hold_micros(price, terms)


def test_an_open_ended_order_holds_one_hour():
    one_hour = Terms(gpu_count=2, hours=1, fx_rate=Decimal(1), tax_rate_percent=Decimal(21))
    open_ended = Terms(gpu_count=2, hours=None, fx_rate=Decimal(1), tax_rate_percent=Decimal(21))
    assert hold_micros(Decimal("2.88"), open_ended) == hold_micros(Decimal("2.88"), one_hour) == 6_969_600 + 4


def test_gross_is_net_with_its_tax_exactly():
    terms = Terms(gpu_count=4, hours=3, fx_rate=Decimal("0.8713837574"), tax_rate_percent=Decimal("25.5"))
    net, gross = net_per_hour(Decimal("2.88"), terms), gross_per_hour(Decimal("2.88"), terms)
    assert net == Decimal("10.0383408852480")
    assert gross == net * Decimal("1.255")
    assert gross.quantize(Decimal("0.000001"), rounding=ROUND_HALF_EVEN) == Decimal("12.598118")


def test_five_fills_of_a_day_are_the_reference_by_volume():
    traded = Traded(fills=5, gpus=10, value=Decimal("28.80"))
    assert reference_price(traded=traded, median_ask=Decimal(5), elsewhere=Decimal(9)) == Decimal("2.88")


def test_with_four_fills_the_median_ask_is():
    traded = Traded(fills=4, gpus=8, value=Decimal("800"))
    assert reference_price(traded=traded, median_ask=Decimal(5), elsewhere=Decimal(9)) == Decimal(5)


def test_without_asks_it_is_what_others_take():
    assert reference_price(traded=NONE_TRADED, median_ask=None, elsewhere=Decimal(9)) == Decimal(9)
    assert reference_price(traded=NONE_TRADED, median_ask=None, elsewhere=None) is None


@pytest.mark.parametrize(
    ("limit", "reference", "expected"),
    [("3.0000", "2", False), ("3.0001", "2", True), ("0.0001", "2", False), ("100000", None, False)],
)
def test_a_limit_is_far_above_from_one_tick_over_half_as_much_again(limit, reference, expected):
    assert is_far_above(Decimal(limit), reference=None if reference is None else Decimal(reference)) is expected
