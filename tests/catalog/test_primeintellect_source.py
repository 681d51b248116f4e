"""Prime Intellect: other clouds' machines, whole instances, pages, spot as own entries, machines paid ahead."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected, Market
from catalog.sources.primeintellect import PrimeIntellect, next_page
from tests.catalog.source_bodies import rows_of, rows_of_file, rows_of_pages

FIRST_PAGE = "https://api.primeintellect.ai/api/v1/availability/gpus?page=1&page_size=100"


def machine(**changes: object) -> dict:
    prices = {"onDemand": 24.1, "communityPrice": None, "currency": "USD", **changes.pop("prices", {})}  # type: ignore[dict-item]
    return {
        "cloudId": "gpu_8x_h100_sxm5",
        "gpuType": "H100_80GB",
        "socket": "SXM5",
        "provider": "lambdalabs",
        "region": "united_states",
        "dataCenter": "us-east-1",
        "country": "US",
        "gpuCount": 8,
        "gpuMemory": 80,
        "disk": {"defaultCount": 500},
        "vcpu": {"defaultCount": 208},
        "memory": {"defaultCount": 1600},
        "stockStatus": "Available",
        "prices": prices,
        "isSpot": False,
        "prepaidTime": None,
        **changes,
    }


def rows(*machines: object):
    return rows_of(PrimeIntellect(), {"items": list(machines)})


def single(price: float) -> dict:
    return machine(cloudId="gpu_1x_h100_sxm5", gpuCount=1, prices={"onDemand": price})


def test_the_price_is_for_the_whole_instance():
    (row,) = rows(machine())
    assert (row.price_per_hour, row.gpu_count, row.cloud) == (Decimal("24.1"), 8, "lambda")


def test_a_body_in_which_eight_gpus_cost_what_one_costs_holds_prices_per_gpu_and_is_refused():
    with pytest.raises(BodyRejected, match="prices per GPU"):
        rows(single(3.2), machine(prices={"onDemand": 3.1}))
    assert len(rows(single(3.2), machine())) == 2


def test_one_odd_machine_among_several_does_not_stop_the_rest():
    found = rows(single(3.2), machine(), machine(cloudId="gpu_8x_other", prices={"onDemand": 3.1}))
    assert len(found) == 3


def test_spot_is_an_entry_of_its_own_for_the_same_machine():
    found = rows(machine(), machine(cloudId="gpu_8x_h100_sxm5_SPOT", isSpot=True, prices={"onDemand": 11.9}))
    assert [(row.instance_type, row.market, row.price_per_hour) for row in found] == [
        ("gpu_8x_h100_sxm5", Market.ON_DEMAND, Decimal("24.1")),
        ("gpu_8x_h100_sxm5", Market.SPOT, Decimal("11.9")),
    ]


def test_without_a_price_for_secure_machines_that_of_community_machines_counts():
    assert rows(machine(prices={"onDemand": None, "communityPrice": 20}))[0].price_per_hour == 20


def test_a_machine_without_any_price_is_no_offer():
    assert len(rows(machine(), machine(cloudId="x", prices={"onDemand": None}))) == 1


def test_a_machine_paid_ahead_for_a_term_has_no_price_per_hour():
    assert [row.instance_type for row in rows(machine(), machine(cloudId="ahead", prepaidTime=168))] == [
        "gpu_8x_h100_sxm5"
    ]


def test_machines_without_gpus_are_left_out():
    cpu = machine(gpuType="CPU_NODE", gpuCount=0, cloudId="CPU.4V")
    assert len(rows(cpu, machine())) == 1


def test_the_memory_in_the_name_is_believed_before_the_field_that_may_be_a_total():
    assert rows(machine(gpuMemory=640))[0].gpu_memory_gb == 80


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("Available", Availability.YES),
        ("High", Availability.YES),
        ("Low", Availability.LOW),
        ("Unavailable", Availability.NO),
        ("Odd", Availability.UNKNOWN),
        (None, Availability.UNKNOWN),
    ],
)
def test_the_stock_is_read_in_words(stated: object, expected: Availability):
    assert rows(machine(stockStatus=stated))[0].availability is expected


def test_another_currency_is_carried_with_the_row():
    assert rows(machine(prices={"currency": "eur"}))[0].currency == "EUR"


def test_a_machine_repeated_on_the_next_page_is_one_offer():
    page = {"items": [machine()], "totalCount": 2}
    assert len(rows_of_pages(PrimeIntellect(), page, page)) == 1


def test_pages_are_asked_for_as_far_as_the_stated_number_goes():
    page = json.dumps({"items": [], "totalCount": 201}).encode()
    second = next_page(page, FIRST_PAGE)
    assert second == FIRST_PAGE.replace("page=1", "page=2", 1)
    third = next_page(page, second)
    assert next_page(page, third) == ""
    assert next_page(b'{"items": [], "totalCount": 100}', FIRST_PAGE) == ""
    assert next_page(b'{"items": []}', FIRST_PAGE) == ""


@pytest.mark.parametrize(
    "answer",
    [
        {"detail": "Invalid API key"},
        {"items": [], "totalCount": 0},
        {"items": [machine(cloudId="")]},
        {"H100_80GB": [machine()]},
        [],
    ],
)
def test_an_answer_without_machines_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(PrimeIntellect(), answer)


def test_the_key_goes_into_the_header():
    (document,) = PrimeIntellect().documents_with("secret-key")
    assert document.headers == {"Authorization": "Bearer secret-key"}
    assert list(document.urls) == [FIRST_PAGE]


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(PrimeIntellect(), shared_data / "feeds" / "primeintellect.json")
    assert [
        (row.cloud, row.gpu_name, row.market, row.region, row.country, row.price_per_hour, row.availability)
        for row in found
    ] == [
        ("lambda", "H100_80GB", Market.ON_DEMAND, "us-east-1", "US", Decimal("24.1"), Availability.YES),
        ("lambda", "H100_80GB", Market.SPOT, "us-east-1", "US", Decimal("11.9"), Availability.LOW),
        ("verda", "H200_141GB", Market.ON_DEMAND, "FIN-02", "FI", Decimal("2.1"), Availability.LOW),
        ("hyperstack", "A6000_48GB", Market.ON_DEMAND, "CANADA-1", "CA", Decimal("0.52"), Availability.NO),
    ]
