"""Azure: one Linux price among Windows, spot, low priority, reservations and placeholders."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.azure import NOT_SOLD, REGIONS, Azure, next_page
from catalog.sources.base import Availability, BodyRejected, Market
from catalog.sources.regions import country_of
from tests.catalog.source_bodies import body_of, rows_of, rows_of_file

ITEM = {
    "currencyCode": "USD",
    "retailPrice": 7.05,
    "armRegionName": "eastus",
    "effectiveStartDate": "2026-01-01T00:00:00Z",
    "meterName": "NC40ads H100 v5",
    "productName": "Virtual Machines NCadsH100v5 Series",
    "skuName": "NC40ads H100 v5",
    "unitOfMeasure": "1 Hour",
    "type": "Consumption",
    "isPrimaryMeterRegion": True,
    "armSkuName": "Standard_NC40ads_H100_v5",
}


def rows(*changes: dict):
    """Parse one item per change, or the plain one; an item that must be left out needs the plain one beside it."""
    return rows_of(Azure(), {"Items": [{**ITEM, **change} for change in changes or ({},)]})


def kept_beside_plain(**change: object) -> bool:
    return len(rows({}, {"armRegionName": "westeurope", **change})) == 2


def test_the_price_is_for_the_whole_machine():
    (row,) = rows({"armSkuName": "Standard_ND96isr_H200_v5", "retailPrice": 86.4})
    assert (row.gpu_count, row.price_per_hour, row.market) == (8, Decimal("86.4"), Market.ON_DEMAND)


def test_windows_is_left_out():
    assert not kept_beside_plain(productName="Virtual Machines NCadsH100v5 Series Windows")


def test_low_priority_is_left_out():
    assert not kept_beside_plain(skuName="NC40ads H100 v5 Low Priority", meterName="NC40ads H100 v5 Low Priority")


def test_cloud_services_are_left_out():
    assert not kept_beside_plain(productName="NCadsH100v5 Series Cloud Services")
    assert not kept_beside_plain(productName="Virtual Machines NCadsH100v5 Series CloudServices")


def test_spot_is_a_market_of_its_own():
    spot = {"skuName": "NC40ads H100 v5 Spot", "meterName": "NC40ads H100 v5 Spot", "retailPrice": 2.6}
    assert [(row.market, row.price_per_hour) for row in rows({}, spot)] == [
        (Market.ON_DEMAND, Decimal("7.05")),
        (Market.SPOT, Decimal("2.6")),
    ]


@pytest.mark.parametrize(("term", "price", "months"), [("1 Year", 37020, 12), ("3 Years", 65700, 36)])
def test_a_reservation_states_the_price_of_its_whole_term(term: str, price: int, months: int):
    (row,) = rows({"type": "Reservation", "reservationTerm": term, "retailPrice": price})
    assert row.market is Market.RESERVED
    assert row.term_months == months
    assert abs(row.price_per_hour * 8760 * months / 12 - price) < Decimal("0.02")


def test_a_term_nobody_knows_refuses_the_body():
    with pytest.raises(BodyRejected, match="term"):
        rows({"type": "Reservation", "reservationTerm": "18 Months"})


def test_a_placeholder_price_is_passed_on_to_be_held_back_with_its_reason():
    assert rows({"retailPrice": 0.01})[0].price_per_hour == Decimal("0.01")
    assert rows({"retailPrice": 0})[0].price_per_hour == 0


def test_a_missing_price_is_no_offer():
    assert not kept_beside_plain(retailPrice=None)


@pytest.mark.parametrize("region", ["usgovvirginia", "usdodeast", "chinanorth3", "ussecwest"])
def test_sovereign_regions_are_left_out(region: str):
    assert not kept_beside_plain(armRegionName=region)


def test_another_unit_than_the_hour_is_left_out():
    assert not kept_beside_plain(unitOfMeasure="1/Month")


def test_a_machine_without_gpus_is_left_out():
    assert not kept_beside_plain(armSkuName="Standard_D4s_v5")


@pytest.mark.parametrize("size", ["NP10s", "NC6", "NC24r", "NC12s_v2", "ND24rs", "NV6", "NC6_Promo"])
def test_sizes_that_nobody_can_start_or_that_hold_no_gpu_are_left_out(size: str):
    assert NOT_SOLD.fullmatch(size)
    assert not kept_beside_plain(armSkuName=f"Standard_{size}")


def test_every_page_of_a_region_is_read():
    pages = [{"Items": [ITEM]}, {"Items": [{**ITEM, "armRegionName": "westeurope"}]}]
    content = b"\n".join(json.dumps(page).encode() for page in pages)
    assert [row.region for row in Azure().parse(body_of(content), {})] == ["eastus", "westeurope"]


def test_a_row_repeated_on_the_next_page_is_one_offer():
    content = b"\n".join([json.dumps({"Items": [ITEM]}).encode()] * 2)
    assert len(list(Azure().parse(body_of(content), {}))) == 1


def test_one_meter_id_for_spot_and_on_demand_loses_neither():
    spot = {"skuName": "NC40ads H100 v5 Spot", "meterId": "m"}
    assert len(rows({"meterId": "m"}, spot)) == 2


def test_of_two_meters_for_one_offer_the_primary_and_newest_bills_it():
    other = {"retailPrice": 9, "isPrimaryMeterRegion": False, "effectiveStartDate": "2026-06-01T00:00:00Z"}
    older = {"retailPrice": 8, "effectiveStartDate": "2025-01-01T00:00:00Z"}
    assert [row.price_per_hour for row in rows({}, other, older)] == [Decimal("7.05")]


def test_the_link_to_the_next_page_is_followed_until_it_is_null():
    assert next_page(b'{"NextPageLink": "https://prices.azure.com:443/api?$skip=1000"}', "").endswith("$skip=1000")
    assert next_page(b'{"NextPageLink": null}', "") == ""
    assert next_page(b"{}", "") == ""
    assert {document.next_url for document in Azure().documents()} == {next_page}


@pytest.mark.parametrize(
    ("size", "name", "count"),
    [
        ("NC80adis_H100_v5", "H100", "2"),
        ("NC96ads_A100_v4", "A100", "4"),
        ("NC64as_T4_v3", "T4", "4"),
        ("NC16as_T4_v3", "T4", "1"),
        ("NC24rs_v3", "V100", "4"),
        ("ND96amsr_A100_v4", "A100", "8"),
        ("ND96isr_MI300X_v5", "MI300X", "8"),
        ("ND128isr_NDR_GB200_v6", "GB200", "4"),
        ("NV48s_v3", "M60", "4"),
        ("NV72ads_A10_v5", "A10", "2"),
    ],
)
def test_a_size_holds_the_cards_of_its_series(size: str, name: str, count: str):
    (row,) = rows({"armSkuName": f"Standard_{size}"})
    assert (row.gpu_name, row.gpu_count) == (name, Decimal(count))


@pytest.mark.parametrize(
    ("size", "count"),
    [("NV6ads_A10_v5", "0.1667"), ("NV12ads_A10_v5", "0.3333"), ("NV18ads_A10_v5", "0.5"), ("NV4as_v4", "0.125")],
)
def test_a_slice_of_a_card_is_a_fraction(size: str, count: str):
    assert rows({"armSkuName": f"Standard_{size}"})[0].gpu_count == Decimal(count)


def test_a_size_nobody_knows_keeps_its_own_name_and_no_count():
    (row,) = rows({"armSkuName": "Standard_ND200xyz_Z900_v9"})
    assert (row.gpu_name, row.gpu_count) == ("ND200xyz_Z900_v9", 0)


def test_the_memory_of_the_h100_tells_the_nvl_card():
    (row,) = rows()
    assert (row.gpu_memory_gb, row.form_factor) == (94, "NVL")


def test_the_day_a_price_came_into_force_does_not_date_the_offer():
    assert rows()[0].priced_on is None


def test_another_currency_is_carried_with_the_row():
    assert rows({"currencyCode": "EUR"})[0].currency == "EUR"


def test_one_document_per_region_asks_for_gpu_sizes_in_usd():
    documents = Azure().documents()
    assert [document.key for document in documents] == list(REGIONS)
    assert all("Standard_N" in document.urls[0] and "currencyCode=USD" in document.urls[0] for document in documents)
    assert all(country_of("azure", region) for region in REGIONS)


@pytest.mark.parametrize("answer", [{}, {"Items": []}, {"Items": None}, {"Error": {"Code": "BadRequest"}}, []])
def test_an_answer_without_items_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Azure(), answer)


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Azure(), shared_data / "feeds" / "azure.json")
    read = [(row.instance_type, row.region, row.market.value, row.gpu_count, row.price_per_hour) for row in found]
    assert sorted(read) == [
        ("Standard_NC40ads_H100_v5", "eastus", "on_demand", 1, Decimal("7.05")),
        ("Standard_NC40ads_H100_v5", "eastus", "reserved", 1, Decimal("4.226027")),
        ("Standard_NC40ads_H100_v5", "eastus", "spot", 1, Decimal("2.6")),
        ("Standard_NC40ads_H100_v5", "ukwest", "on_demand", 1, Decimal("0.01")),
        ("Standard_ND96isr_H200_v5", "swedencentral", "on_demand", 8, Decimal("86.4")),
        ("Standard_NV12ads_A10_v5", "westeurope", "on_demand", Decimal("0.3333"), Decimal("1.12")),
    ]
    assert {row.availability for row in found} == {Availability.UNKNOWN}
    assert all(row.country for row in found)
