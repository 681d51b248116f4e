"""Tax on top, tax taken out, and what a hold needs: exact, and never more than was promised."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.tax.amounts import Amounts, add_tax, gross_up, settle, split_gross
from billing.tax.rates import known_rates
from common.money import MICROS

RATES = st.sampled_from(sorted({row.percent for row in known_rates().rows} | {Decimal(0)}))
NETS = st.integers(0, 10**15)


@pytest.mark.parametrize(
    ("net", "rate", "tax"),
    [
        (9_285_465, "25.5", 2_367_794), (9_703_730, "25.5", 2_474_451), (5_019_170, "25.5", 1_279_888),
        (3_648_812, "25.5", 930_447), (2, "25", 0), (6, "25", 2), (10, "25", 2), (0, "21", 0),
    ],
)  # fmt: skip
def test_tax_is_rounded_half_even_to_the_micro(net, rate, tax):
    assert add_tax(net, rate_percent=Decimal(rate)) == Amounts(net_micros=net, tax_micros=tax, gross_micros=net + tax)


@pytest.mark.parametrize(
    ("net", "hours", "hold"),
    [(Decimal("34.56") * Decimal("0.8713837574"), 4, 37_794_362), (Decimal("4.19") * Decimal("0.8713837574"), 2, 4_582_132)],
)  # fmt: skip
def test_tax_21_a_hold_is_gross_rounded_up_with_two_micros_for_each_hour_it_may_touch(net, hours, hold):
    assert gross_up(net, rate_percent=Decimal("25.5")) + 2 * hours == hold


def test_tax_21_ten_euros_hold_three_hours_under_reverse_charge_and_not_with_finnish_tax():
    net = 3 * Decimal("2.88")
    assert gross_up(net, rate_percent=Decimal("25.5")) == 10_843_200 > 10 * MICROS
    assert gross_up(net, rate_percent=Decimal(0)) == 8_640_000 < 10 * MICROS


@given(net=NETS, rate=RATES)
def test_gross_is_net_and_tax_and_the_tax_is_within_half_a_micro(net, rate):
    found = add_tax(net, rate_percent=rate)
    assert found.gross_micros == found.net_micros + found.tax_micros
    assert abs(found.tax_micros - Decimal(net) * rate / 100) <= Decimal("0.5")
    assert gross_up(Decimal(net) / MICROS, rate_percent=rate) - found.gross_micros in (0, 1)


@given(gross=NETS, rate=RATES)
def test_a_gross_amount_taken_apart_adds_up_and_its_tax_fits_its_net(gross, rate):
    found = split_gross(gross, rate_percent=rate)
    assert found.net_micros + found.tax_micros == found.gross_micros == gross
    assert abs(found.tax_micros - Decimal(found.net_micros) * rate / 100) <= 1


@given(net=NETS, rate=RATES)
def test_taking_apart_what_was_put_together_gives_the_same(net, rate):
    assert split_gross(add_tax(net, rate_percent=rate).gross_micros, rate_percent=rate).net_micros == net


@given(net=NETS, rate=RATES, held=RATES)
def test_settlement_never_takes_more_than_the_rate_it_was_held_at_promised(net, rate, held):
    found = settle(net, rate_percent=rate, held_rate_percent=held)
    promised = add_tax(net, rate_percent=held)
    assert found.gross_micros <= promised.gross_micros
    assert found.net_micros + found.tax_micros == found.gross_micros
    if rate > held:
        assert found.gross_micros == promised.gross_micros
        assert found.net_micros <= net
    else:
        assert found == add_tax(net, rate_percent=rate)


def test_a_negative_rate_is_refused():
    for wrong in (add_tax, split_gross):
        with pytest.raises(ValueError):
            wrong(1, rate_percent=Decimal(-1))
    with pytest.raises(ValueError):
        gross_up(Decimal(1), rate_percent=Decimal(-1))
