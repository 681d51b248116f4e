"""Scaleway: EUR, zones, types without GPUs, bytes, stock in a document of its own, MIG slices."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected
from catalog.sources.scaleway import ZONES, Scaleway, next_page
from tests.catalog.source_bodies import rows_of, rows_of_file, rows_of_pages

GIB = 1024**3
KIND = {
    "gpu": 8,
    "gpu_info": {"gpu_manufacturer": "NVIDIA", "gpu_name": "H100-SXM", "gpu_memory": 80 * GIB},
    "hourly_price": 23.5,
    "monthly_price": 17155.0,
    "mig_profile": None,
    "ncpus": 128,
    "ram": 960 * GIB,
    "end_of_service": False,
}
CPU = {"gpu": 0, "gpu_info": None, "hourly_price": 0.09, "ncpus": 4, "ram": 16 * GIB}


def rows(stock: dict[str, str] | None = None, /, **types: object):
    named = {name.replace("_", "-"): kind for name, kind in types.items()}
    if stock is None:
        return rows_of(Scaleway(), {"servers": named}, key="fr-par-2")
    companion = {"servers": {name: {"availability": state} for name, state in stock.items()}}
    return rows_of(Scaleway(), {"servers": named}, key="fr-par-2", fr_par_2_availability=companion)


def test_the_price_is_in_eur_for_the_whole_server():
    (row,) = rows(H100_SXM=KIND)
    assert (row.price_per_hour, row.currency, row.gpu_count) == (Decimal("23.5"), "EUR", 8)


def test_types_without_gpus_are_left_out():
    assert [row.instance_type for row in rows(GP1=CPU, H100_SXM=KIND)] == ["H100-SXM"]


def test_bytes_become_gib_and_the_memory_is_that_of_one_card():
    (row,) = rows(H100_SXM=KIND)
    assert (row.gpu_memory_gb, row.ram_gb) == (80, 960)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("available", Availability.YES),
        ("scarce", Availability.LOW),
        ("shortage", Availability.NO),
        ("odd", Availability.UNKNOWN),
    ],
)
def test_the_stock_of_a_type_is_read_in_words(stated: str, expected: Availability):
    assert rows({"H100-SXM": stated}, H100_SXM=KIND)[0].availability is expected


def test_a_type_the_stock_does_not_name_and_a_missing_companion_tell_nothing():
    assert rows({"OTHER": "shortage"}, H100_SXM=KIND)[0].availability is Availability.UNKNOWN
    assert rows(H100_SXM=KIND)[0].availability is Availability.UNKNOWN


def test_a_type_at_the_end_of_its_service_is_not_sold():
    old = {**KIND, "end_of_service": True}
    assert [row.instance_type for row in rows(OLD=old, H100_SXM=KIND)] == ["H100-SXM"]


def test_a_mig_profile_is_a_part_of_a_card():
    (row,) = rows(H100_MIG={**KIND, "gpu": 1, "mig_profile": "1g.10gb"})
    assert row.gpu_count == Decimal("0.125")
    (unclear,) = rows(H100_MIG={**KIND, "gpu": 1, "mig_profile": "some"})
    assert unclear.gpu_count == 0


def test_the_zone_is_the_region_and_tells_the_country():
    assert [(row.region, row.country) for row in rows(H100_SXM=KIND)] == [("fr-par-2", "FR")]


def test_each_zone_has_its_stock_beside_it_and_saved_copies_of_its_own():
    documents = Scaleway().documents()
    assert [document.key for document in documents if not document.companion_of] == list(ZONES)
    assert [document.companion_of for document in documents if document.companion_of] == list(ZONES)
    assert [document.file_name for document in documents[:2]] == ["scaleway.json", "scaleway_availability.json"]
    assert documents[2].file_name == "scaleway_pl-waw-2.json"


def test_a_full_page_has_another_behind_it():
    first = Scaleway().documents()[0].urls[0]
    full = json.dumps({"servers": {f"T{number}": CPU for number in range(100)}}).encode()
    second = next_page(full, first)
    assert second == first.removesuffix("1") + "2"
    assert next_page(full, second).endswith("page=3")
    assert next_page(b'{"servers": {}}', second) == ""


def test_a_type_repeated_on_the_next_page_is_one_offer():
    page = {"servers": {"H100-SXM": KIND}}
    assert len(rows_of_pages(Scaleway(), page, page)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"message": "resource is not found", "type": "unknown_resource"},
        {"servers": {}},
        {"servers": {"GP1": CPU}},
        {"servers": {"X": {**KIND, "gpu_info": None}}},
        {"servers": []},
        [],
    ],
)
def test_an_answer_without_gpu_types_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Scaleway(), answer)


def test_the_shared_sample_is_read_whole(shared_data: Path):
    feeds = shared_data / "feeds"
    found = rows_of_file(
        Scaleway(),
        feeds / "scaleway.json",
        key="fr-par-2",
        fr_par_2_availability=feeds / "scaleway_availability.json",
    )
    assert [(row.instance_type, int(row.gpu_count), row.price_per_hour, row.availability) for row in found] == [
        ("H100-1-80G", 1, Decimal("2.8"), Availability.LOW),
        ("H100-SXM-8-80G", 8, Decimal("23.5"), Availability.NO),
        ("L40S-2-48G", 2, Decimal("2.9"), Availability.YES),
    ]
