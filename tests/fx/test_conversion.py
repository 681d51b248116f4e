"""Conversion is exact, and a rate is rounded in one place."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx.conversion import from_usd, to_usd, units_per_usd

rates = st.decimals("0.0001", "100000", places=5)
amounts = st.decimals("0", "1000000", places=6)


def test_the_rate_of_the_settlement_example():
    assert units_per_usd(units_per_eur=Decimal(1), usd_per_eur=Decimal("1.1476")) == Decimal("0.8713837574")
    assert units_per_usd(units_per_eur=Decimal(1), usd_per_eur=Decimal("1.1500")) == Decimal("0.8695652174")


def test_half_a_step_rounds_to_even():
    assert units_per_usd(units_per_eur=Decimal("0.00000000005"), usd_per_eur=Decimal(1)) == Decimal("0E-10")
    assert units_per_usd(units_per_eur=Decimal("0.00000000015"), usd_per_eur=Decimal(1)) == Decimal("2E-10")


def test_a_margin_makes_the_currency_dearer():
    plain = units_per_usd(units_per_eur=Decimal(1), usd_per_eur=Decimal("1.25"))
    dearer = units_per_usd(units_per_eur=Decimal(1), usd_per_eur=Decimal("1.25"), margin=Decimal("0.01"))
    assert (plain, dearer) == (Decimal("0.8"), Decimal("0.808"))


@given(rates)
def test_usd_in_usd_is_one(rate):
    assert units_per_usd(units_per_eur=rate, usd_per_eur=rate) == 1


@given(amounts, rates, rates)
def test_there_and_back_differs_by_no_more_than_the_rounding(amount, per_eur, usd):
    rate = units_per_usd(units_per_eur=per_eur, usd_per_eur=usd)
    if rate == 0:
        return
    back = to_usd(from_usd(amount, units_per_usd=rate), units_per_usd=rate)
    assert abs(back - amount) <= Decimal("0.0000005") / rate + Decimal("0.0000005")


def test_a_rate_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="positive"):
        units_per_usd(units_per_eur=Decimal(0), usd_per_eur=Decimal(1))
    with pytest.raises(ValueError, match="positive"):
        to_usd(Decimal(1), units_per_usd=Decimal(0))
