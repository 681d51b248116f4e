"""Vultr: slices of a card, plans without locations, free plans, cursors, bare metal named by its id."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected
from catalog.sources.vultr import Vultr, next_page
from tests.catalog.source_bodies import rows_of, rows_of_file, rows_of_pages

PLAN = {
    "id": "vcg-a16-6c-64g-16vram",
    "vcpu_count": 6,
    "ram": 65536,
    "disk": 480,
    "disk_count": 1,
    "monthly_cost": 343,
    "hourly_cost": 0.47,
    "type": "vcg",
    "gpu_vram_gb": 16,
    "gpu_type": "NVIDIA_A16",
    "locations": ["ewr"],
}
FREE = {"id": "vc2-1c-0.5gb-free", "ram": 512, "hourly_cost": 0, "monthly_cost": 0, "type": "vc2", "locations": ["sea"]}
METAL = {
    "id": "vbm-112c-2048gb-8-h100-gpu",
    "cpu_threads": 224,
    "ram": 2097152,
    "disk": 480,
    "disk_count": 2,
    "hourly_cost": 23.92,
    "locations": ["sea"],
}


def rows(*plans: object):
    return rows_of(Vultr(), {"plans": list(plans)})


@pytest.mark.parametrize(
    ("gpu_type", "vram", "count"),
    [
        ("NVIDIA_A16", 16, "1"),
        ("NVIDIA_A16", 2, "0.125"),
        ("NVIDIA_A16", 128, "8"),
        ("NVIDIA_A100", 80, "1"),
        ("NVIDIA_A100", 20, "0.25"),
        ("NVIDIA_L40S", 96, "2"),
    ],
)
def test_the_memory_of_a_plan_is_that_of_several_cards_or_of_a_part_of_one(gpu_type: str, vram: int, count: str):
    (row,) = rows({**PLAN, "gpu_type": gpu_type, "gpu_vram_gb": vram})
    assert row.gpu_count == Decimal(count)


def test_the_memory_hint_is_that_of_the_whole_card_also_for_a_slice():
    assert rows({**PLAN, "gpu_vram_gb": 2})[0].gpu_memory_gb == 16


def test_the_price_is_for_the_whole_plan():
    assert rows(PLAN)[0].price_per_hour == Decimal("0.47")


def test_a_plan_without_locations_is_sold_out():
    assert [(row.region, row.availability) for row in rows({**PLAN, "locations": []})] == [("", Availability.NO)]


def test_each_location_is_an_offer():
    assert [(row.region, row.country) for row in rows({**PLAN, "locations": ["ewr", "blr", "zzz"]})] == [
        ("ewr", "US"),
        ("blr", "IN"),
        ("zzz", ""),
    ]


def test_the_free_plan_and_others_without_gpus_are_no_offers():
    assert [row.gpu_name for row in rows(FREE, PLAN)] == ["NVIDIA_A16"]


def test_a_gpu_plan_at_zero_is_yielded_and_judged_later():
    assert rows({**PLAN, "hourly_cost": 0})[0].price_per_hour == 0


def test_ram_is_in_mb():
    assert rows(PLAN)[0].ram_gb == 64


def test_a_type_whose_card_is_not_known_has_no_number_of_gpus():
    (row,) = rows({**PLAN, "gpu_type": "NVIDIA_Z900"})
    assert (row.gpu_name, row.gpu_count) == ("NVIDIA_Z900", 0)


def test_bare_metal_names_its_gpus_in_its_id():
    (row,) = rows_of(Vultr(), {"plans_metal": [METAL, {**METAL, "id": "vbm-4c-32gb"}]})
    assert (row.gpu_name, row.gpu_count) == ("h100", Decimal(8))
    assert (row.price_per_hour, row.vcpus, row.disk_gb) == (Decimal("23.92"), Decimal(224), Decimal(960))


def test_bare_metal_that_tells_no_number_is_not_taken_for_one():
    (row,) = rows_of(Vultr(), {"plans_metal": [{**METAL, "id": "vbm-64c-2048gb-l40-gpu"}]})
    assert (row.gpu_name, row.gpu_count) == ("l40", Decimal(0))


def test_the_cursor_leads_to_the_next_page_and_replaces_the_one_before():
    page = b'{"plans": [], "meta": {"links": {"next": "bmV4dA==", "prev": ""}}}'
    first = "https://api.vultr.com/v2/plans?type=all&per_page=500"
    second = next_page(page, first)
    assert second == f"{first}&cursor=bmV4dA%3D%3D"
    assert next_page(page.replace(b"bmV4dA==", b"dGhpcmQ="), second) == f"{first}&cursor=dGhpcmQ%3D"
    assert next_page(b'{"plans": [], "meta": {"links": {"next": ""}}}', second) == ""
    assert next_page(b'{"plans": []}', first) == ""


def test_a_plan_repeated_on_the_next_page_is_one_offer():
    page = {"plans": [PLAN], "meta": {}}
    assert len(rows_of_pages(Vultr(), page, page)) == 1


@pytest.mark.parametrize("answer", [{"error": "Unauthorized", "status": 401}, {"plans": []}, {"plans": [FREE]}, []])
def test_an_answer_without_gpu_plans_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(Vultr(), answer)


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(Vultr(), shared_data / "feeds" / "vultr.json")
    assert [(row.instance_type, row.region, row.gpu_count, row.availability) for row in found] == [
        ("vcg-a16-6c-64g-16vram", "ewr", Decimal(1), Availability.YES),
        ("vcg-a16-6c-64g-16vram", "ord", Decimal(1), Availability.YES),
        ("vcg-a16-6c-64g-16vram", "blr", Decimal(1), Availability.YES),
        ("vcg-a16-2c-8g-2vram", "ewr", Decimal("0.125"), Availability.YES),
        ("vcg-a100-12c-120g-80vram", "ewr", Decimal(1), Availability.YES),
        ("vcg-l40s-16c-180g-48vram", "", Decimal(1), Availability.NO),
    ]
