"""Akash: bids per GPU, the lowest and the median, null where nobody bids, memory as a text."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.akash import Akash
from catalog.sources.base import Availability, BodyRejected
from tests.catalog.source_bodies import rows_of, rows_of_file

MODEL = {
    "vendor": "nvidia",
    "model": "h100",
    "ram": "80Gi",
    "interface": "SXM5",
    "availability": {"total": 64, "available": 12},
    "price": {"currency": "USD", "min": 1.35, "max": 2.6, "avg": 1.8, "weightedAverage": 1.8, "med": 1.7},
}


def rows(*models: object):
    return rows_of(Akash(), {"models": list(models)})


def test_the_lowest_and_the_median_bid_are_offers_of_one_gpu_each_and_the_highest_is_not():
    assert [(row.instance_type, row.gpu_count, row.price_per_hour) for row in rows(MODEL)] == [
        ("1x h100 80Gi SXM5, lowest bid", 1, Decimal("1.35")),
        ("1x h100 80Gi SXM5, median bid", 1, Decimal("1.7")),
    ]


def test_a_price_of_null_means_that_nobody_bids():
    assert {row.gpu_name for row in rows({**MODEL, "model": "rtx5090", "price": None}, MODEL)} == {"h100"}


def test_none_free_means_sold_out():
    found = rows({**MODEL, "availability": {"total": 3, "available": 0}})
    assert {row.availability for row in found} == {Availability.NO}


def test_without_a_word_on_stock_nothing_is_said():
    assert {row.availability for row in rows({**MODEL, "availability": None})} == {Availability.UNKNOWN}


@pytest.mark.parametrize(("stated", "expected"), [("80Gi", 80), ("24GiB", 24), ("", None), ("many", None)])
def test_memory_is_written_as_a_text(stated: str, expected: object):
    assert rows({**MODEL, "ram": stated})[0].gpu_memory_gb == expected


def test_cards_of_one_name_are_told_apart_by_memory_and_interface():
    found = rows(MODEL, {**MODEL, "interface": "PCIe"}, {**MODEL, "ram": "94Gi"})
    assert len({row.instance_type for row in found}) == 6
    assert {row.form_factor for row in found} == {"SXM5", "PCIe"}


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "rate limit"},
        {"models": []},
        {"models": [{**MODEL, "price": None}]},
        {"models": [{**MODEL, "model": ""}]},
        [],
    ],
)
def test_an_answer_without_bids_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Akash(), answer)


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Akash(), shared_data / "feeds" / "akash.json")
    lowest = [row for row in found if row.instance_type.endswith("lowest bid")]
    assert [(row.gpu_name, row.gpu_memory_gb, row.price_per_hour, row.availability) for row in lowest] == [
        ("h100", Decimal(80), Decimal("1.35"), Availability.YES),
        ("a100", Decimal(80), Decimal("0.75"), Availability.YES),
        ("rtx4090", Decimal(24), Decimal("0.28"), Availability.YES),
        ("rtxa6000", Decimal(48), Decimal("0.4"), Availability.NO),
    ]
    assert len(found) == 8
