"""Verda: prices as texts, memory as a total, stock in a document of its own."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected, Market
from catalog.sources.verda import Verda
from tests.catalog.source_bodies import rows_of, rows_of_file

TYPE = {
    "instance_type": "8B200.240V",
    "model": "B200",
    "price_per_hour": "39.2",
    "spot_price": None,
    "currency": "usd",
    "cpu": {"number_of_cores": 240},
    "gpu": {"description": "8x B200 SXM6 180GB", "number_of_gpus": 8},
    "gpu_memory": {"size_in_gigabytes": 1440},
    "memory": {"size_in_gigabytes": 1472},
}
STOCK = [
    {"location_code": "FIN-03", "availabilities": ["8B200.240V"]},
    {"location_code": "ICE-01", "availabilities": ["8B200.240V"]},
]


def rows(**changes: object):
    return rows_of(Verda(), [{**TYPE, **changes}])


def test_a_price_is_a_text_and_stays_exact():
    assert rows(price_per_hour="39.20")[0].price_per_hour == Decimal("39.20")


def test_a_price_that_is_no_number_refuses_the_body():
    with pytest.raises(BodyRejected):
        rows(price_per_hour="39,20")


def test_gpu_memory_is_the_instances_total():
    assert rows()[0].gpu_memory_gb == 180


@pytest.mark.parametrize("stated", [None, "", "null"])
def test_an_empty_spot_price_is_no_spot_offer(stated: str | None):
    assert [row.market for row in rows(spot_price=stated)] == [Market.ON_DEMAND]


def test_a_spot_price_is_for_the_whole_instance_too():
    assert [(row.market, row.price_per_hour) for row in rows(spot_price="13.7")] == [
        (Market.ON_DEMAND, Decimal("39.2")),
        (Market.SPOT, Decimal("13.7")),
    ]


def test_a_machine_without_gpus_is_no_offer():
    cpu = {**TYPE, "instance_type": "CPU.4V.16G", "gpu": {"description": "", "number_of_gpus": 0}}
    assert [row.instance_type for row in rows_of(Verda(), [cpu, TYPE])] == ["8B200.240V"]


def test_each_location_where_a_type_is_free_is_an_offer():
    found = rows_of(Verda(), [TYPE], availability=STOCK)
    assert [(row.region, row.country, row.availability) for row in found] == [
        ("FIN-03", "FI", Availability.YES),
        ("ICE-01", "IS", Availability.YES),
    ]


def test_a_type_that_is_free_nowhere_is_sold_out():
    (row,) = rows_of(Verda(), [TYPE], availability=[{"location_code": "FIN-03", "availabilities": []}])
    assert (row.region, row.availability) == ("", Availability.NO)


def test_without_the_companion_nothing_is_said_about_stock():
    assert [row.availability for row in rows()] == [Availability.UNKNOWN]


def test_stock_of_on_demand_says_nothing_about_spot():
    found = rows_of(Verda(), [{**TYPE, "spot_price": "13.7"}], availability=STOCK[:1])
    assert [(row.market, row.availability) for row in found] == [
        (Market.ON_DEMAND, Availability.YES),
        (Market.SPOT, Availability.UNKNOWN),
    ]


def test_another_currency_is_carried_with_the_row():
    assert rows(currency="eur")[0].currency == "EUR"


def test_prices_are_asked_for_in_usd_and_stock_is_read_beside_them():
    types, stock, spot_stock = Verda().documents()
    assert all("currency=usd" in url for url in types.urls)
    assert stock.companion_of == spot_stock.companion_of == types.key


@pytest.mark.parametrize("answer", [[], {}, {"code": "unauthorized"}, [{"gpu": None}], [1]])
def test_an_answer_that_is_no_list_of_types_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Verda(), answer)


def test_the_shared_sample_is_read_whole(shared_data: Path):
    feeds = shared_data / "feeds"
    found = rows_of_file(
        Verda(), feeds / "verda_instance_types.json", availability=feeds / "verda_instance_availability.json"
    )
    assert [
        (row.instance_type, row.market, row.region, row.price_per_hour, row.gpu_memory_gb, row.form_factor)
        for row in found
    ] == [
        ("1H100.80S.32V", Market.ON_DEMAND, "FIN-02", Decimal("2.31"), Decimal(80), "SXM"),
        ("1H100.80S.32V", Market.SPOT, "", Decimal("0.81"), Decimal(80), "SXM"),
        ("8B200.240V", Market.ON_DEMAND, "FIN-03", Decimal("39.2"), Decimal(180), "SXM"),
        ("8B200.240V", Market.SPOT, "", Decimal("13.7"), Decimal(180), "SXM"),
        ("2RTXPRO6000.60V", Market.ON_DEMAND, "FIN-03", Decimal("3.4"), Decimal(96), ""),
    ]
    assert all(row.gpu_count == row.gpu_count_in_name for row in found)
