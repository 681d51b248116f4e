"""CUDO Compute: prices as texts in objects, machines put together from their parts, none free."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected
from catalog.sources.cudo import Cudo
from tests.catalog.source_bodies import rows_of, rows_of_file

KIND = {
    "dataCenterId": "se-stockholm-1",
    "machineType": "ice-lake-a40-compute",
    "gpuModel": "A40 (compute mode)",
    "minVcpuPerMemoryGib": 0.25,
    "maxVcpuPerMemoryGib": 1,
    "minVcpuPerGpu": 1,
    "maxVcpuPerGpu": 13,
    "vcpuPriceHr": {"value": "0.0024"},
    "memoryGibPriceHr": {"value": "0.0037"},
    "gpuPriceHr": {"value": "0.36"},
    "totalGpuFree": 12,
    "maxGpuFree": 1,
}


def rows(*kinds: object):
    return rows_of(Cudo(), {"machineTypes": list(kinds)})


def test_the_price_of_a_machine_is_that_of_its_gpu_vcpus_and_ram_together():
    (row,) = rows(KIND)
    assert (row.vcpus, row.ram_gb) == (8, 32)
    assert row.price_per_hour == Decimal("0.36") + 8 * Decimal("0.0024") + 32 * Decimal("0.0037")


def test_a_larger_machine_has_all_its_parts_times_the_number_of_gpus():
    found = rows({**KIND, "maxGpuFree": 4})
    assert [(row.gpu_count, row.vcpus, row.ram_gb) for row in found] == [(1, 8, 32), (2, 16, 64), (4, 32, 128)]
    assert found[2].price_per_hour == 4 * found[0].price_per_hour


def test_the_limits_of_a_type_shape_its_machine():
    (few,) = rows({**KIND, "maxVcpuPerGpu": 4})
    assert (few.vcpus, few.ram_gb) == (4, 16)
    (many,) = rows({**KIND, "minVcpuPerGpu": 48, "maxVcpuPerGpu": 64})
    assert (many.vcpus, many.ram_gb) == (48, 48)
    (open_ended,) = rows({**KIND, "minVcpuPerGpu": None, "maxVcpuPerGpu": None, "minVcpuPerMemoryGib": 0})
    assert (open_ended.vcpus, open_ended.ram_gb) == (8, 32)


def test_none_free_means_sold_out_at_the_price_of_one():
    (row,) = rows({**KIND, "totalGpuFree": 0, "maxGpuFree": 0})
    assert (row.gpu_count, row.availability) == (1, Availability.NO)


def test_no_machine_is_larger_than_what_is_free():
    assert [row.gpu_count for row in rows({**KIND, "totalGpuFree": 3, "maxGpuFree": 8})] == [1, 2]
    assert [row.gpu_count for row in rows({**KIND, "totalGpuFree": 2, "maxGpuFree": None})] == [1, 2]


@pytest.mark.parametrize("missing", ["gpuPriceHr", "vcpuPriceHr", "memoryGibPriceHr", "gpuModel"])
def test_a_type_without_one_of_its_prices_or_without_a_gpu_is_no_offer(missing: str):
    assert len(rows({**KIND, missing: None}, KIND)) == 1


def test_the_data_centre_tells_the_country():
    found = rows(KIND, {**KIND, "dataCenterId": "no-kristiansand-1"})
    assert [(row.region, row.country) for row in found] == [("se-stockholm-1", "SE"), ("no-kristiansand-1", "NO")]


@pytest.mark.parametrize(
    "answer",
    [
        {"code": 16, "message": "unauthenticated"},
        {"machineTypes": []},
        {"machineTypes": [{**KIND, "gpuPriceHr": "0.36"}]},
        {"machineTypes": [{**KIND, "gpuPriceHr": {"value": "cheap"}}]},
        {"machineTypes": [{**KIND, "machineType": None}]},
        [],
    ],
)
def test_an_answer_that_is_no_list_of_types_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Cudo(), answer)


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Cudo(), shared_data / "feeds" / "cudo.json")
    singles = [(row.gpu_name, row.region, row.price_per_hour, row.availability) for row in found if row.gpu_count == 1]
    assert singles == [
        ("A40 (compute mode)", "se-stockholm-1", Decimal("0.4976"), Availability.YES),
        ("RTX A6000", "se-stockholm-1", Decimal("0.5976"), Availability.NO),
        ("L40S (graphics mode)", "no-kristiansand-1", Decimal("1.0176"), Availability.YES),
        ("H100 SXM", "ca-montreal-3", Decimal("2.6276"), Availability.YES),
    ]
    assert [row.gpu_count for row in found if row.gpu_name.startswith("L40S")] == [1, 2]
