"""Lambda: cents, whole instances, regions with capacity."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected, Market
from catalog.sources.lambda_cloud import Lambda
from tests.catalog.source_bodies import rows_of, rows_of_file


def instance(name: str, *, description: str = "H100 (80 GB SXM5)", cents: object = 2488, gpus: int = 8, regions=()):
    kind = {
        "name": name,
        "gpu_description": description,
        "price_cents_per_hour": cents,
        "specs": {"vcpus": 208, "memory_gib": 1800, "storage_gib": 22528, "gpus": gpus},
    }
    free = [{"name": region, "description": ""} for region in regions]
    return {name: {"instance_type": kind, "regions_with_capacity_available": free}}


def rows(**instance_fields):
    return rows_of(Lambda(), {"data": instance("gpu_8x_h100_sxm5", **instance_fields)})


def test_cents_become_dollars_without_rounding():
    assert rows(cents=2489)[0].price_per_hour == Decimal("24.89")
    assert rows(cents=259.5)[0].price_per_hour == Decimal("2.595")


def test_the_price_is_for_the_whole_instance_and_the_count_is_told_twice():
    (row,) = rows()
    assert (row.gpu_count, row.gpu_count_in_name, row.market) == (8, 8, Market.ON_DEMAND)


def test_an_empty_region_list_means_sold_out():
    (row,) = rows()
    assert (row.availability, row.region) == (Availability.NO, "")


def test_each_region_with_capacity_is_an_offer():
    found = rows(regions=["us-east-1", "asia-northeast-2"])
    assert [(row.region, row.country, row.availability) for row in found] == [
        ("us-east-1", "US", Availability.YES),
        ("asia-northeast-2", "JP", Availability.YES),
    ]


def test_a_machine_without_gpus_is_no_offer():
    answer = {"data": {**instance("cpu_4x_general", description="N/A", gpus=0), **instance("gpu_8x_h100_sxm5")}}
    assert [row.instance_type for row in rows_of(Lambda(), answer)] == ["gpu_8x_h100_sxm5"]


def test_a_null_price_is_no_offer():
    answer = {"data": {**instance("gpu_1x_new", cents=None), **instance("gpu_8x_h100_sxm5")}}
    assert [row.instance_type for row in rows_of(Lambda(), answer)] == ["gpu_8x_h100_sxm5"]


def test_the_description_tells_memory_and_form_factor():
    (row,) = rows(description="A100 (40 GB SXM4)")
    assert (row.gpu_name, row.gpu_memory_gb, row.form_factor) == ("A100", 40, "SXM")


def test_a_description_of_another_shape_is_kept_as_the_name():
    assert rows(description="B300 SXM6")[0].gpu_name == "B300 SXM6"


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": "global/invalid-api-key"}},
        {"data": []},
        {"data": {}},
        {"data": {"x": {}}},
        {"data": instance("x", cents="")},
    ],
)
def test_an_answer_that_is_no_map_of_types_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Lambda(), answer)


def test_the_key_goes_into_the_header_and_only_there():
    (document,) = Lambda().documents_with("secret-key")
    assert document.headers == {"Authorization": "Bearer secret-key"}
    assert "secret-key" not in repr(document)
    assert Lambda().documents()[0].headers == {}


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Lambda(), shared_data / "feeds" / "lambda.json")
    assert [(row.instance_type, row.region, row.price_per_hour, row.availability) for row in found] == [
        ("gpu_1x_h100_pcie", "us-west-3", Decimal("2.59"), Availability.YES),
        ("gpu_8x_h100_sxm5", "", Decimal("24.88"), Availability.NO),
        ("gpu_8x_a100", "asia-northeast-2", Decimal("10.56"), Availability.YES),
        ("gpu_8x_a100", "us-east-1", Decimal("10.56"), Availability.YES),
        ("gpu_1x_gh200", "us-east-3", Decimal("1.59"), Availability.YES),
    ]
