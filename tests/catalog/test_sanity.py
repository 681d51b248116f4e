"""Which prices are held back, at their edges, and what the reason says."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.sanity import Band, Quoted, band_for, hold_back_reason

FAIR = Quoted(gpu_slug="h100-sxm", gpu_count=Decimal(8), price_usd_per_hour=Decimal("23.04"), market="on_demand")
BAND = Band(median_usd_per_gpu_hour=Decimal("3"), made_of="12 prices of 30 days")


def reason(quoted: Quoted, band: Band | None = BAND) -> str:
    return hold_back_reason(quoted, band).reason


def priced(usd_per_gpu_hour: str, **facts: object) -> Quoted:
    return replace(FAIR, gpu_count=Decimal(1), price_usd_per_hour=Decimal(usd_per_gpu_hour), **facts)  # type: ignore[arg-type]


def test_a_fair_price_is_shown():
    verdict = hold_back_reason(FAIR, BAND)
    assert verdict.reason == ""
    assert not verdict.band_skipped


@pytest.mark.parametrize("price", ["0", "0.000000", "-1"])
def test_a_zero_price_is_held_back(price: str):
    assert reason(priced(price)).startswith("zero_price: ")


@pytest.mark.parametrize(("price", "held"), [("0.01", True), ("0.005", True), ("0.0101", False)])
def test_a_cent_per_gpu_hour_is_a_placeholder(price: str, held: bool):
    assert reason(priced(price), band=None).startswith("placeholder: ") is held


def test_a_placeholder_is_judged_per_gpu():
    assert reason(replace(FAIR, price_usd_per_hour=Decimal("0.08")), band=None).startswith("placeholder: ")
    assert reason(replace(FAIR, price_usd_per_hour=Decimal("0.09")), band=None) == ""


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "8.5", "65", "655360"])
def test_a_wrong_count_is_held_back(count: str):
    assert reason(replace(FAIR, gpu_count=Decimal(count)), band=None).startswith("wrong_count: ")


@pytest.mark.parametrize("count", ["0.1250", "0.333", "1", "8.0000", "16", "64"])
def test_slices_and_whole_machines_are_counts(count: str):
    quoted = replace(FAIR, gpu_count=Decimal(count), price_usd_per_hour=3 * Decimal(count))
    assert reason(quoted) == ""


def test_a_tpu_slice_may_have_thousands_of_chips():
    slice_ = replace(FAIR, gpu_slug="tpu-v5p", gpu_count=Decimal(8960), price_usd_per_hour=Decimal(20_000))
    assert reason(slice_) == ""
    assert reason(replace(slice_, gpu_count=Decimal(16_385))).startswith("wrong_count: ")


def test_a_count_that_contradicts_the_instance_name_is_held_back():
    quoted = replace(FAIR, gpu_count_in_name=Decimal(4))
    assert reason(quoted) == "wrong_count: the instance name says 4 GPUs, the source 8"
    assert reason(replace(FAIR, gpu_count=Decimal("8.0000"), gpu_count_in_name=Decimal(8))) == ""


def test_spot_above_on_demand_is_held_back_and_equal_is_fine():
    assert reason(priced("3.01", market="spot", on_demand_usd_per_hour=Decimal("3.00"))) == (
        "spot_above_on_demand: 3.01 against 3 USD per hour on demand"
    )
    assert reason(priced("3.00", market="spot", on_demand_usd_per_hour=Decimal("3.00"))) == ""
    assert reason(priced("3.01", market="spot")) == ""


def test_an_on_demand_price_is_not_compared_with_itself():
    assert reason(priced("3.01", on_demand_usd_per_hour=Decimal("3.00"))) == ""


@pytest.mark.parametrize(
    ("price", "held"),
    [("0.6", False), ("0.599999", True), ("15", False), ("15.000001", True), ("3", False), ("300", True)],
)
def test_a_price_outside_a_fifth_to_five_times_the_median_is_held_back_and_the_edges_are_inside(price: str, held: bool):
    assert reason(priced(price)).startswith("out_of_band: ") is held


def test_the_reason_of_the_band_names_price_median_and_what_it_is_made_of():
    assert reason(priced("17.8")) == (
        "out_of_band: 17.8 USD per GPU-hour is outside 0.2 to 5 times 3, the median of 12 prices of 30 days"
    )


def test_every_reason_fits_its_column():
    longest = Band(median_usd_per_gpu_hour=Decimal("12345678.123456"), made_of="the reference list prices")
    assert len(reason(priced("99999999.999999"), longest)) <= 200


def test_without_a_median_the_band_is_skipped_and_the_verdict_says_so():
    verdict = hold_back_reason(priced("300"), None)
    assert verdict.reason == ""
    assert verdict.band_skipped


def test_five_recent_prices_make_the_band():
    band = band_for(
        market="on_demand",
        recent_usd_per_gpu_hour=[Decimal(n) for n in (1, 2, 3, 4, 100)],
        reference_usd_per_gpu_hour=[Decimal(50)],
    )
    assert band == Band(median_usd_per_gpu_hour=Decimal(3), made_of="5 prices of 30 days")


def test_fewer_than_five_prices_leave_it_to_the_reference_snapshot():
    band = band_for(
        market="on_demand",
        recent_usd_per_gpu_hour=[Decimal(n) for n in (1, 2, 3, 4)],
        reference_usd_per_gpu_hour=[Decimal(6), Decimal(8)],
    )
    assert band is not None
    assert band.median_usd_per_gpu_hour == Decimal(7)
    assert "reference" in band.made_of


def test_neither_prices_nor_reference_make_no_band():
    assert band_for(
        market="spot",
        recent_usd_per_gpu_hour=[],
        reference_usd_per_gpu_hour=[],
    ) is None  # fmt: skip


@pytest.mark.parametrize(("market", "low_is_held"), [("spot", False), ("reserved", True)])
def test_spot_is_compared_with_on_demand_list_prices_on_the_high_side_only(market: str, low_is_held: bool):
    band = band_for(
        market=market,
        recent_usd_per_gpu_hour=[],
        reference_usd_per_gpu_hour=[Decimal(10)],
    )
    assert bool(reason(priced("0.9", market=market), band)) is low_is_held
    assert reason(priced("50.01", market=market), band).startswith("out_of_band: ")


PRICES = st.decimals(min_value=Decimal("0.02"), max_value=1000, places=4)


@given(PRICES, PRICES, st.integers(1, 64))
def test_the_band_judges_the_price_per_gpu_whatever_the_count(usd_per_gpu_hour: Decimal, median: Decimal, count: int):
    band = Band(median_usd_per_gpu_hour=median, made_of="prices")
    one = replace(FAIR, gpu_count=Decimal(1), price_usd_per_hour=usd_per_gpu_hour)
    many = replace(FAIR, gpu_count=Decimal(count), price_usd_per_hour=usd_per_gpu_hour * count)
    assert reason(one, band) == reason(many, band)
    assert bool(reason(one, band)) is not (median / 5 <= usd_per_gpu_hour <= median * 5)
