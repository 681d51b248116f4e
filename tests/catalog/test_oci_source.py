"""Oracle's price list: prices per GPU, sold in shapes, among products that are no GPU."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected
from catalog.sources.oci import Oci
from tests.catalog.source_bodies import rows_of, rows_of_file


def product(name: str, *, metric: str = "GPU Per Hour", **prices: object):
    return {
        "partNumber": "B90002",
        "displayName": f"OCI - Compute - GPU - {name}",
        "metricName": metric,
        "currencyCodeLocalizations": [
            {"currencyCode": currency, "prices": [{"model": "PAY_AS_YOU_GO", "value": value}]}
            for currency, value in prices.items()
        ],
    }


def rows(*products: object):
    return rows_of(Oci(), {"items": list(products)})


def test_the_price_of_one_gpu_is_multiplied_for_the_shape_it_is_sold_in():
    (row,) = rows(product("H200", USD=9.9))
    assert (row.instance_type, row.gpu_count, row.price_per_hour) == ("BM.GPU.H200.8", 8, Decimal("79.2"))


def test_a_card_sold_in_several_shapes_is_an_offer_in_each():
    assert [(row.instance_type, row.price_per_hour) for row in rows(product("A10", USD=1.9))] == [
        ("VM.GPU.A10.1", Decimal("1.9")),
        ("VM.GPU.A10.2", Decimal("3.8")),
        ("BM.GPU.A10.4", Decimal("7.6")),
    ]


def test_products_without_gpus_are_left_out():
    found = rows(product("H200", USD=9.9), product("E5", metric="OCPU Per Hour", USD=0.03))
    assert [row.gpu_name for row in found] == ["H200"]


def test_usd_is_taken_of_several_currencies_wherever_it_stands():
    assert [(row.currency, row.price_per_hour) for row in rows(product("H200", EUR=9.1, USD=9.9))] == [
        ("USD", Decimal("79.2"))
    ]


def test_a_product_priced_in_another_currency_only_carries_it():
    assert [(row.currency, row.price_per_hour) for row in rows(product("H200", EUR=9.1))] == [("EUR", Decimal("72.8"))]


def test_other_price_models_and_free_allowances_are_not_the_price():
    item = product("H200", USD=9.9)
    item["currencyCodeLocalizations"][0]["prices"] += [
        {"model": "MONTHLY_COMMIT", "value": 12},
        {"model": "PAY_AS_YOU_GO", "value": 0},
    ]
    assert [row.price_per_hour for row in rows(item)] == [Decimal("79.2")]


def test_a_null_price_is_no_offer():
    assert [row.gpu_name for row in rows(product("B200", USD=None), product("H200", USD=9.9))] == ["H200"]


def test_the_h100_has_a_name_of_its_own_here():
    (row,) = rows(product("H100T", USD=9.8))
    assert (row.gpu_name, row.instance_type, row.form_factor) == ("H100T", "BM.GPU.H100.8", "SXM")


def test_the_second_a100_is_the_card_with_80_gb():
    (row,) = rows(product("A100 - v2", USD=4))
    assert (row.gpu_name, row.gpu_memory_gb, row.gpu_count) == ("A100", 80, 8)


def test_a_card_whose_shape_is_unknown_keeps_the_part_number_and_the_lists_unit():
    (row,) = rows(product("Z900", USD=3))
    assert (row.gpu_name, row.instance_type, row.gpu_count) == ("Z900", "B90002", 1)


def test_nothing_is_said_about_stock_or_region():
    (row,) = rows(product("H200", USD=9.9))
    assert (row.availability, row.region) == (Availability.UNKNOWN, "")


def test_the_list_is_asked_for_in_usd():
    (document,) = Oci().documents()
    assert [url.endswith("currencyCode=USD") for url in document.urls] == [True]


@pytest.mark.parametrize("answer", [{}, {"items": None}, {"items": []}, {"items": [product("E5", metric="OCPU")]}, []])
def test_an_answer_without_gpu_products_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Oci(), answer)


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Oci(), shared_data / "feeds" / "oci.json")
    assert [(row.gpu_name, int(row.gpu_count), row.price_per_hour) for row in found] == [
        ("H200", 8, Decimal("79.2")),
        ("H100T", 8, Decimal("78.4")),
        ("A10", 1, Decimal("1.9")),
        ("A10", 2, Decimal("3.8")),
        ("A10", 4, Decimal("7.6")),
        ("MI300X", 8, Decimal("47.2")),
    ]
    assert {row.currency for row in found} == {"USD"}
