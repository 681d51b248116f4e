"""Shadeform: cents, whole instances, other clouds' machines region by region."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected
from catalog.sources.shadeform import Shadeform
from tests.catalog.source_bodies import rows_of, rows_of_file


def kind(**changes: object) -> dict:
    configuration = {
        "memory_in_gb": 1600,
        "storage_in_gb": 512,
        "vcpus": 128,
        "num_gpus": 8,
        "gpu_type": "H200",
        "interconnect": "sxm5",
        "vram_per_gpu_in_gb": 141,
        **changes.pop("configuration", {}),  # type: ignore[dict-item]
    }
    return {
        "cloud": "nebius",
        "shade_instance_type": "H200_sxm5x8",
        "cloud_instance_type": "gpu-h200-sxm_8gpu",
        "configuration": configuration,
        "hourly_price": 2790,
        "availability": [{"region": "helsinki-finland-3", "available": True}],
        **changes,
    }


def rows(*kinds: object):
    return rows_of(Shadeform(), {"instance_types": list(kinds)})


def test_cents_for_the_whole_instance_become_dollars_without_rounding():
    (row,) = rows(kind(hourly_price=2789.5))
    assert (row.price_per_hour, row.gpu_count, row.currency) == (Decimal("27.895"), 8, "USD")


def test_an_offer_is_of_the_cloud_that_runs_the_machine_and_has_its_name_there():
    found = rows(kind(cloud="lambdalabs", cloud_instance_type="gpu_8x_h200"), kind(cloud="datacrunch"))
    assert [(row.cloud, row.instance_type) for row in found] == [
        ("lambda", "gpu_8x_h200"),
        ("verda", "gpu-h200-sxm_8gpu"),
    ]


def test_a_region_that_is_not_available_is_sold_out_beside_one_that_is():
    places = [{"region": "montreal-canada-2", "available": True}, {"region": "oslo-norway-1", "available": False}]
    assert [(row.region, row.country, row.availability) for row in rows(kind(availability=places))] == [
        ("montreal-canada-2", "CA", Availability.YES),
        ("oslo-norway-1", "NO", Availability.NO),
    ]


@pytest.mark.parametrize("places", [[], None])
def test_a_type_without_regions_can_be_started_nowhere(places: object):
    assert [(row.region, row.availability) for row in rows(kind(availability=places))] == [("", Availability.NO)]


def test_one_machine_under_two_names_of_the_aggregator_is_one_offer_at_the_lower_price():
    found = rows(kind(), kind(shade_instance_type="H200x8_NVLINK", hourly_price=2700))
    assert [row.price_per_hour for row in found] == [27]


def test_of_a_machine_listed_twice_the_one_in_stock_stands():
    gone = [{"region": "helsinki-finland-3", "available": False}]
    found = rows(kind(hourly_price=2700, availability=gone), kind())
    assert [(row.price_per_hour, row.availability) for row in found] == [(Decimal("27.9"), Availability.YES)]


def test_the_interconnect_and_the_memory_per_gpu_are_hints():
    (row,) = rows(kind())
    assert (row.gpu_name, row.form_factor, row.gpu_memory_gb) == ("H200", "sxm5", 141)


def test_machines_without_gpus_or_price_are_no_offers():
    no_gpu = kind(configuration={"num_gpus": 0, "gpu_type": ""})
    assert [row.gpu_count for row in rows(no_gpu, kind(hourly_price=None), kind())] == [8]


def test_an_odd_price_is_yielded_and_judged_later():
    assert rows(kind(hourly_price=0))[0].price_per_hour == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "Unauthorized"},
        {"instance_types": []},
        {"instance_types": [kind(configuration={"gpu_type": None})]},
        {"instance_types": [{**kind(), "configuration": None}]},
        [],
    ],
)
def test_an_answer_that_is_no_list_of_types_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Shadeform(), answer)


def test_the_key_goes_into_a_header_of_its_own():
    (document,) = Shadeform().documents_with("secret-key")
    assert document.headers == {"X-API-KEY": "secret-key"}
    assert Shadeform().documents()[0].headers == {}


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Shadeform(), shared_data / "feeds" / "shadeform.json")
    assert [(row.cloud, row.instance_type, row.price_per_hour, row.availability) for row in found] == [
        ("hyperstack", "n3-A100x4", Decimal("5.48"), Availability.YES),
        ("hyperstack", "n3-A100x4", Decimal("5.48"), Availability.NO),
        ("nebius", "gpu-h200-sxm_8gpu-128vcpu-1600gb", Decimal("27.9"), Availability.YES),
        ("lambda", "gpu_1x_h100_sxm5", Decimal("3.31"), Availability.NO),
        ("massedcompute", "gpu_2x_a6000_plus", Decimal("1.16"), Availability.YES),
        ("crusoe", "mi300x-192gb-ib.8x", Decimal("27.6"), Availability.YES),
    ]
