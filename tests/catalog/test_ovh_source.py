"""OVHcloud: prices in 1e-8 EUR, among plans by the month, by the minute, for Windows and without a GPU."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected
from catalog.sources.ovh import Ovh
from tests.catalog.source_bodies import rows_of, rows_of_file

HOUR = {"commitment": 0, "interval": 1, "intervalUnit": "hour", "price": 1116000000}


def addon(*pricings: object, plan_code: str = "h100-1520.consumption", gpu: object = None) -> dict:
    technical = {
        "cpu": {"cores": 120},
        "memory": {"size": 1520},
        "gpu": gpu if gpu is not None else {"model": "H100", "number": 4, "memory": {"size": 80}},
    }
    return {"planCode": plan_code, "pricings": list(pricings) or [HOUR], "blobs": {"technical": technical}}


def rows(*addons: object, currency: str = "EUR"):
    return rows_of(Ovh(), {"locale": {"currencyCode": currency}, "addons": list(addons)})


def test_a_price_is_a_whole_number_of_a_hundred_millionth_for_the_whole_flavour():
    (row,) = rows(addon())
    assert (row.price_per_hour, row.currency, row.gpu_count) == (Decimal("11.16"), "EUR", 4)


def test_no_digit_of_a_small_price_is_lost():
    assert rows(addon({**HOUR, "price": 279000001}))[0].price_per_hour == Decimal("2.79000001")


def test_a_price_no_flavour_can_have_is_another_format():
    with pytest.raises(BodyRejected, match="too large"):
        rows(addon({**HOUR, "price": 10**17}))


@pytest.mark.parametrize(
    "other",
    [
        addon({**HOUR, "intervalUnit": "month", "price": 100440000000}, plan_code="h100-380.monthly.postpaid"),
        addon({**HOUR, "intervalUnit": "month"}),
        addon({**HOUR, "intervalUnit": "minute", "price": 4700000}, plan_code="ai-training.h100-1-gpu.consumption"),
        addon({**HOUR, "intervalUnit": "minute"}),
        addon(plan_code="win-t1-45.consumption"),
        addon({**HOUR, "commitment": 12}),
        addon({**HOUR, "interval": 24}),
        addon(plan_code="b3-8.consumption", gpu={}),
        {"planCode": "b3-8.consumption", "pricings": [HOUR], "blobs": None},
        addon({**HOUR, "price": None}),
    ],
)
def test_only_a_gpu_flavour_by_the_hour_without_commitment_is_an_offer(other: object):
    assert [row.instance_type for row in rows(other, addon(plan_code="l40s-90.consumption"))] == ["l40s-90"]


def test_of_several_prices_the_hourly_one_without_commitment_counts():
    cheaper = {**HOUR, "commitment": 12, "price": 500000000}
    assert rows(addon(cheaper, HOUR))[0].price_per_hour == Decimal("11.16")


def test_the_memory_is_that_of_one_gpu_and_stock_is_not_told():
    (row,) = rows(addon())
    assert (row.gpu_memory_gb, row.ram_gb, row.vcpus) == (80, 1520, 120)
    assert (row.region, row.availability) == ("", Availability.UNKNOWN)


def test_the_catalogue_names_the_currency():
    assert rows(addon(), currency="pln")[0].currency == "PLN"


def test_the_large_catalogue_is_asked_for_less_often_and_stays_live_in_between():
    assert 60 <= Ovh.interval_minutes < 12 * 60


@pytest.mark.parametrize(
    "answer",
    [
        {"message": "Invalid subsidiary"},
        {"locale": {"currencyCode": "EUR"}, "addons": []},
        {"locale": {"currencyCode": ""}, "addons": [addon()]},
        {"locale": None, "addons": [addon()]},
        {"locale": {"currencyCode": "EUR"}, "addons": [addon(gpu={"number": 1})]},
        [],
    ],
)
def test_an_answer_that_is_no_catalogue_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Ovh(), answer)


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Ovh(), shared_data / "feeds" / "ovh.json")
    assert [(row.instance_type, row.gpu_name, int(row.gpu_count), row.price_per_hour) for row in found] == [
        ("h100-380", "H100", 1, Decimal("2.79")),
        ("h100-1520", "H100", 4, Decimal("11.16")),
        ("l40s-90", "L40S", 1, Decimal("1.38")),
    ]
    assert {row.cloud for row in found} == {"ovhcloud"}
