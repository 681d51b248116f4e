"""Vast.ai: offers of single machines, at the price of the whole offer."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected, Market
from catalog.sources.vast import Vast
from tests.catalog.source_bodies import rows_of, rows_of_file

OFFER = {
    "machine_id": 40935,
    "num_gpus": 8,
    "gpu_name": "H100 SXM",
    "gpu_ram": 81920,
    "gpu_total_ram": 655360,
    "gpu_frac": 1.0,
    "cpu_cores": 128,
    "cpu_cores_effective": 128.0,
    "cpu_ram": 524288,
    "disk_space": 800.0,
    "dph_base": 16.41,
    "dph_total": 16.42,
    "min_bid": None,
    "rentable": True,
    "rented": False,
    "is_bid": False,
    "geolocation": "Norway, NO",
    "verification": "verified",
}


def rows(*changes: dict):
    return rows_of(Vast(), {"offers": [{**OFFER, **change} for change in changes or ({},)]})


def test_the_price_of_a_machine_with_eight_gpus_is_for_all_of_them():
    (row,) = rows()
    assert (row.gpu_count, row.price_per_hour) == (8, Decimal("16.42"))


def test_the_price_contains_the_disk_it_must_be_rented_with():
    assert rows({"dph_base": 1, "dph_total": 1.05})[0].price_per_hour == Decimal("1.05")


def test_a_fraction_of_the_machine_is_not_a_fraction_of_a_card():
    (row,) = rows({"num_gpus": 1, "gpu_frac": 0.125})
    assert row.gpu_count == 1
    assert row.gpu_memory_gb == 80


def test_the_machines_ram_is_shared_by_that_fraction():
    assert rows({"num_gpus": 1, "gpu_frac": 0.125})[0].ram_gb == 64


def test_memory_is_per_gpu_and_not_the_total():
    assert rows()[0].gpu_memory_gb == 80


def test_null_cpu_cores_do_not_matter():
    (row,) = rows({"cpu_cores": None, "cpu_cores_effective": 32.0})
    assert row.vcpus == 32
    assert rows({"cpu_cores": None, "cpu_cores_effective": None})[0].vcpus is None


def test_an_unverified_host_is_marked():
    assert [row.verified for row in rows({"verification": "unverified"})] == [False]
    assert [row.verified for row in rows({"verification": "deverified"})] == [False]
    assert [row.verified for row in rows()] == [True]


def test_a_rented_machine_is_no_offer():
    gone = {"machine_id": 2, "rented": True}
    unavailable = {"machine_id": 3, "rentable": False}
    assert len(rows({}, gone, unavailable)) == 1


def test_a_floor_for_bids_is_a_spot_price_of_the_whole_offer():
    spot = [row for row in rows({"min_bid": 9.6}) if row.market is Market.SPOT]
    assert [(row.price_per_hour, row.gpu_count) for row in spot] == [(Decimal("9.6"), 8)]


def test_a_null_floor_is_no_spot_offer():
    assert [row.market for row in rows({"min_bid": None})] == [Market.ON_DEMAND]


def test_an_interruptible_offer_is_spot_only():
    assert [(row.market, row.price_per_hour) for row in rows({"is_bid": True, "dph_total": 7.5})] == [
        (Market.SPOT, Decimal("7.5"))
    ]


def test_a_null_price_is_no_offer_and_zero_is_left_to_the_checks():
    assert [row.price_per_hour for row in rows({}, {"machine_id": 2, "dph_total": None})] == [Decimal("16.42")]
    assert rows({"dph_total": 0})[0].price_per_hour == 0


def test_two_equal_parts_of_one_machine_are_one_offer_at_the_lower_price():
    part = {"num_gpus": 2, "gpu_frac": 0.25}
    found = rows({**part, "dph_total": 4.4}, {**part, "dph_total": 4.1}, {})
    assert sorted((row.gpu_count, row.price_per_hour) for row in found) == [
        (2, Decimal("4.1")),
        (8, Decimal("16.42")),
    ]


@pytest.mark.parametrize(
    ("geolocation", "region", "country"),
    [("Norway, NO", "Norway, NO", "NO"), (", US", "US", "US"), ("Georgia, US", "Georgia, US", "US"), (None, "", "")],
)
def test_the_country_is_the_code_at_the_end_of_the_place(geolocation: str | None, region: str, country: str):
    (row,) = rows({"geolocation": geolocation})
    assert (row.region, row.country) == (region, country)


def test_a_card_rebuilt_to_twice_its_memory_is_not_the_product_of_that_name():
    (row,) = rows({"gpu_name": "RTX 4090", "num_gpus": 1, "gpu_ram": 49140})
    assert row.gpu_name == "RTX 4090 rebuilt to 48 GB"
    assert rows({"gpu_name": "RTX 4090", "num_gpus": 1, "gpu_ram": 24564})[0].gpu_name == "RTX 4090"


@pytest.mark.parametrize(
    "answer", [{}, {"offers": None}, {"offers": []}, {"error": "x"}, {"offers": [{**OFFER, "num_gpus": 0}]}]
)
def test_an_answer_without_offers_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Vast(), answer)


def test_the_search_asks_for_all_verified_free_machines_and_not_for_the_first_few():
    (document,) = Vast().documents()
    assert document.json_body is not None
    assert document.json_body["limit"] >= 1000
    assert document.json_body["verified"] == {"eq": True}
    assert document.json_body["rented"] == {"eq": False}
    assert document.headers == {}


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Vast(), shared_data / "feeds" / "vast.json")
    on_demand = [row for row in found if row.market is Market.ON_DEMAND]
    assert [(row.gpu_name, int(row.gpu_count), row.price_per_hour, row.verified) for row in on_demand] == [
        ("H100 SXM", 8, Decimal("16.42"), True),
        ("H100 NVL", 1, Decimal("1.93"), True),
        ("A100 SXM4", 4, Decimal("2.91"), True),
        ("A100 SXM4", 1, Decimal("0.94"), True),
        ("RTX 4090", 2, Decimal("0.71"), True),
        ("RTX 4090 rebuilt to 48 GB", 1, Decimal("0.55"), True),
        ("RTX PRO 6000 WS", 1, Decimal("1.09"), True),
        ("RTX 4070S Ti", 1, Decimal("0.14"), False),
        ("Q RTX 8000", 2, Decimal("0.44"), True),
    ]
    assert len(found) - len(on_demand) == 8
    assert {row.availability for row in found} == {Availability.YES}
    assert all(row.country for row in found)
