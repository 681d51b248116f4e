"""TensorDock: prices per GPU, and vCPUs, RAM and disk on top at the location's own prices."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected
from catalog.sources.tensordock import TensorDock
from tests.catalog.source_bodies import rows_of, rows_of_file

GPU = {
    "v0Name": "h100-sxm5-80gb",
    "displayName": "H100 SXM5 80GB",
    "max_count": 1,
    "price_per_hr": 2.28,
    "resources": {"max_vcpus": 64, "max_ram_gb": 256, "max_storage_gb": 1000},
    "pricing": {"per_vcpu_hr": 0.003, "per_gb_ram_hr": 0.002, "per_gb_storage_hr": 5e-05},
}
LOCATION = {"id": "loc-1", "city": "Dallas", "stateprovince": "Texas", "country": "United States", "tier": 3}


def rows(*gpus: object, **place: object):
    return rows_of(TensorDock(), {"data": {"locations": [{**LOCATION, **place, "gpus": list(gpus)}]}})


def test_the_price_of_a_machine_is_that_of_the_gpu_and_of_what_stands_beside_it():
    (row,) = rows(GPU)
    assert (row.vcpus, row.ram_gb, row.disk_gb) == (8, 32, 100)
    assert row.price_per_hour == Decimal("2.28") + 8 * Decimal("0.003") + 32 * Decimal("0.002") + Decimal("0.005")


def test_gpus_vcpus_and_ram_are_multiplied_and_the_disk_is_not():
    found = rows({**GPU, "max_count": 8})
    assert [(row.gpu_count, row.vcpus, row.ram_gb, row.disk_gb) for row in found] == [
        (1, 8, 32, 100),
        (2, 16, 64, 100),
        (4, 32, 128, 100),
        (8, 64, 256, 100),
    ]
    assert found[3].price_per_hour == 8 * (found[0].price_per_hour - Decimal("0.005")) + Decimal("0.005")


def test_a_machine_has_no_more_than_the_location_has():
    few = {**GPU, "resources": {"max_vcpus": 4, "max_ram_gb": 16, "max_storage_gb": 50}}
    (row,) = rows(few)
    assert (row.vcpus, row.ram_gb, row.disk_gb) == (4, 16, 50)
    assert row.price_per_hour == Decimal("2.28") + Decimal("0.012") + Decimal("0.032") + Decimal("0.0025")


def test_a_largest_number_of_zero_means_sold_out_at_the_price_of_one():
    assert [(row.gpu_count, row.availability) for row in rows({**GPU, "max_count": 0})] == [(1, Availability.NO)]


def test_two_locations_in_one_city_are_two_offers():
    locations = [{**LOCATION, "id": name, "gpus": [GPU]} for name in ("loc-1", "loc-2")]
    found = rows_of(TensorDock(), {"data": {"locations": locations}})
    assert [(row.region, row.zone) for row in found] == [("Dallas, Texas", "loc-1"), ("Dallas, Texas", "loc-2")]


@pytest.mark.parametrize(
    ("stated", "expected"), [("United States", "US"), ("Poland", "PL"), ("United Kingdom", "GB"), ("Atlantis", "")]
)
def test_the_country_is_written_out(stated: str, expected: str):
    assert rows(GPU, country=stated)[0].country == expected


def test_a_card_without_a_price_is_no_offer():
    assert len(rows({**GPU, "price_per_hr": None}, GPU)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "Unauthorized"},
        {"data": {"locations": []}},
        {"data": {"locations": [{**LOCATION, "gpus": []}]}},
        {"data": {"locations": [{**LOCATION, "gpus": [{**GPU, "pricing": {"per_vcpu_hr": 0.003}}]}]}},
        {"data": {"locations": [{**LOCATION, "gpus": [{**GPU, "v0Name": ""}]}]}},
        [],
    ],
)
def test_an_answer_without_locations_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(TensorDock(), answer)


def test_the_key_goes_into_the_header():
    (document,) = TensorDock().documents_with("secret-key")
    assert document.headers == {"Authorization": "Bearer secret-key"}
    assert TensorDock().documents()[0].headers == {}


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(TensorDock(), shared_data / "feeds" / "tensordock.json")
    assert [(row.gpu_name, int(row.gpu_count), row.price_per_hour, row.country, row.availability) for row in found] == [
        ("h100-sxm5-80gb", 1, Decimal("2.373"), "US", Availability.YES),
        ("h100-sxm5-80gb", 2, Decimal("4.741"), "US", Availability.YES),
        ("h100-sxm5-80gb", 4, Decimal("9.477"), "US", Availability.YES),
        ("h100-sxm5-80gb", 8, Decimal("18.949"), "US", Availability.YES),
        ("geforcertx4090-pcie-24gb", 1, Decimal("0.453"), "US", Availability.YES),
        ("geforcertx4090-pcie-24gb", 2, Decimal("0.901"), "US", Availability.YES),
        ("geforcertx4090-pcie-24gb", 4, Decimal("1.797"), "US", Availability.YES),
        ("rtxa4000-pcie-16gb", 1, Decimal("0.193"), "PL", Availability.NO),
    ]
