"""RunPod: prices per single GPU, in two kinds, from two APIs."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected, Market
from catalog.sources.runpod import RunPod
from tests.catalog.source_bodies import rows_of, rows_of_file

GPU_TYPE = {
    "id": "NVIDIA H100 80GB HBM3",
    "displayName": "H100 SXM",
    "memoryInGb": 80,
    "maxGpuCount": 8,
    "securePrice": 3.05,
    "communityPrice": None,
    "secureSpotPrice": None,
    "communitySpotPrice": None,
    "lowestPrice": {"stockStatus": "High", "availableGpuCounts": [1]},
}
CATALOGUE_GPU = {
    "id": "NVIDIA H100 80GB HBM3",
    "name": "H100 SXM",
    "memory": 80,
    "price": {"secure": 3.05, "community": 2.71, "serverless": 4.2},
    "maxCount": {"secure": 2, "community": 1},
    "availability": "HIGH",
    "dataCenters": [],
}


def rows(**changes: object):
    return rows_of(RunPod(), {"data": {"gpuTypes": [{**GPU_TYPE, **changes}]}})


def catalogue_rows(**changes: object):
    return rows_of(RunPod(), {"gpus": [{**CATALOGUE_GPU, **changes}]})


def test_the_price_is_for_one_gpu_and_is_multiplied_for_a_pod_of_eight():
    found = rows(lowestPrice={"stockStatus": "High", "availableGpuCounts": [1, 8]})
    assert [(row.gpu_count, row.price_per_hour) for row in found] == [(1, Decimal("3.05")), (8, Decimal("24.40"))]


def test_null_and_zero_mean_not_offered():
    assert {row.instance_type for row in rows(communityPrice=0, communitySpotPrice=0)} == {
        "1x NVIDIA H100 80GB HBM3, secure"
    }


def test_secure_community_and_spot_are_offers_of_their_own():
    found = rows(communityPrice=2.71, secureSpotPrice=1.8, communitySpotPrice=1.6)
    assert [(row.instance_type.partition(", ")[2], row.market, row.price_per_hour) for row in found] == [
        ("secure", Market.ON_DEMAND, Decimal("3.05")),
        ("community", Market.ON_DEMAND, Decimal("2.71")),
        ("secure", Market.SPOT, Decimal("1.8")),
        ("community", Market.SPOT, Decimal("1.6")),
    ]


def test_a_null_stock_status_means_none_free():
    assert [row.availability for row in rows(lowestPrice={"stockStatus": None, "availableGpuCounts": [1]})] == [
        Availability.NO
    ]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("High", Availability.YES),
        ("Medium", Availability.YES),
        ("Low", Availability.LOW),
        ("Odd", Availability.UNKNOWN),
    ],
)
def test_a_stock_status_is_read_in_words(stated: str, expected: Availability):
    assert rows(lowestPrice={"stockStatus": stated, "availableGpuCounts": [1]})[0].availability is expected


def test_one_gpu_may_be_gone_while_eight_are_left():
    found = rows(lowestPrice={"stockStatus": "Low", "availableGpuCounts": [8], "uninterruptablePrice": None})
    assert [row.gpu_count for row in found] == [8]


@pytest.mark.parametrize("lowest", [{"stockStatus": None, "availableGpuCounts": []}, None])
def test_no_free_size_keeps_the_price_of_one_as_sold_out(lowest: object):
    assert [(row.gpu_count, row.availability) for row in rows(lowestPrice=lowest)] == [(1, Availability.NO)]


def test_the_drivers_name_is_the_name():
    (row,) = rows()
    assert (row.gpu_name, row.gpu_memory_gb) == ("NVIDIA H100 80GB HBM3", 80)


def test_none_in_the_second_api_means_sold_out():
    found = catalogue_rows(availability="NONE")
    assert {row.availability for row in found if row.instance_type.endswith("secure")} == {Availability.NO}


def test_the_second_api_says_nothing_about_the_stock_of_hosts_and_of_none_that_it_was_not_asked_for():
    community = catalogue_rows(price={"community": 2.71})
    assert [row.availability for row in community] == [Availability.UNKNOWN]
    unasked = catalogue_rows(availability=None, price={"secure": 3.05})
    assert {row.availability for row in unasked} == {Availability.UNKNOWN}


def test_the_second_api_tells_the_data_centre():
    centres = [{"id": "US-KS-2", "availability": "HIGH"}, {"id": "EU-RO-1", "availability": "LOW"}]
    found = catalogue_rows(dataCenters=centres, maxCount={"secure": 1, "community": 0}, price={"secure": 3.05})
    assert [(row.region, row.country, row.availability) for row in found] == [
        ("US-KS-2", "US", Availability.YES),
        ("EU-RO-1", "RO", Availability.LOW),
    ]


def test_the_second_api_sells_pods_up_to_its_largest_and_serverless_is_no_pod():
    found = catalogue_rows()
    assert [(row.instance_type, row.price_per_hour) for row in found] == [
        ("1x NVIDIA H100 80GB HBM3, secure", Decimal("3.05")),
        ("2x NVIDIA H100 80GB HBM3, secure", Decimal("6.10")),
        ("1x NVIDIA H100 80GB HBM3, community", Decimal("2.71")),
    ]


def test_without_a_key_the_old_query_is_asked_and_with_one_the_catalogue():
    (query,), (catalogue,) = RunPod().documents(), RunPod().documents_with("secret-key")
    assert query.json_body is not None
    assert "gpuTypes" in query.json_body["query"]
    assert query.headers == {}
    assert catalogue.json_body is None
    assert catalogue.urls == ["https://api.runpod.io/v2/catalog/gpus?include=AVAILABILITY&product=POD"]
    assert catalogue.key == query.key
    assert "secret-key" not in repr(catalogue)


@pytest.mark.parametrize(
    "answer",
    [
        {"errors": [{"message": "Cannot query field"}], "data": None},
        {"errors": [{"message": "partly"}], "data": {"gpuTypes": [GPU_TYPE]}},
        {"data": {"gpuTypes": []}},
        {"data": {}},
        {},
        {"gpus": []},
        [],
    ],
)
def test_an_answer_with_errors_or_without_types_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(RunPod(), answer)


def test_the_shared_sample_of_the_old_query_is_read_whole(shared_data: Path):
    found = rows_of_file(RunPod(), shared_data / "feeds" / "runpod.json")
    singles = {
        (row.gpu_name, row.instance_type.rpartition(", ")[2]): (row.price_per_hour, row.availability)
        for row in found
        if row.gpu_count == 1 and row.market is Market.ON_DEMAND
    }
    assert singles == {
        ("NVIDIA H100 80GB HBM3", "secure"): (Decimal("3.05"), Availability.YES),
        ("NVIDIA H100 80GB HBM3", "community"): (Decimal("2.71"), Availability.YES),
        ("NVIDIA H200", "secure"): (Decimal("4.05"), Availability.LOW),
        ("NVIDIA A100-SXM4-80GB", "secure"): (Decimal("1.62"), Availability.YES),
        ("NVIDIA A100-SXM4-80GB", "community"): (Decimal("1.49"), Availability.YES),
        ("NVIDIA GeForce RTX 4090", "secure"): (Decimal("0.61"), Availability.YES),
        ("NVIDIA GeForce RTX 4090", "community"): (Decimal("0.36"), Availability.YES),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "secure"): (Decimal("1.71"), Availability.LOW),
        ("AMD Instinct MI300X OAM", "secure"): (Decimal("2.6"), Availability.NO),
    }


def test_the_shared_sample_of_the_catalogue_is_read_whole(shared_data: Path):
    found = rows_of_file(RunPod(), shared_data / "feeds" / "runpod_v2_catalog_gpus.json")
    singles = [(row.gpu_name, row.region, row.price_per_hour, row.availability) for row in found if row.gpu_count == 1]
    assert singles == [
        ("NVIDIA H100 80GB HBM3", "US-KS-2", Decimal("3.05"), Availability.YES),
        ("NVIDIA H100 80GB HBM3", "EU-RO-1", Decimal("3.05"), Availability.LOW),
        ("NVIDIA H100 80GB HBM3", "", Decimal("2.71"), Availability.UNKNOWN),
        ("NVIDIA L40S", "", Decimal("0.88"), Availability.NO),
    ]
