"""DigitalOcean: whole droplets, memory of all GPUs together, sizes without regions, pages."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources.base import Availability, BodyRejected
from catalog.sources.digitalocean import DigitalOcean, next_page
from tests.catalog.source_bodies import rows_of, rows_of_file, rows_of_pages

SIZE = {
    "slug": "gpu-mi300x8-1536gb",
    "memory": 1966080,
    "vcpus": 160,
    "disk": 720,
    "price_monthly": 11829.6,
    "price_hourly": 15.9,
    "regions": ["nyc2"],
    "available": True,
    "gpu_info": {"count": 8, "model": "amd_mi300x", "vram": {"amount": 1536, "unit": "gib"}},
}
PLAIN = {"slug": "s-1vcpu-1gb", "memory": 1024, "price_hourly": 0.009, "regions": ["nyc1"], "available": True}


def rows(*sizes: object):
    return rows_of(DigitalOcean(), {"sizes": list(sizes)})


def test_the_memory_is_that_of_all_gpus_and_the_price_that_of_the_droplet():
    (row,) = rows(SIZE)
    assert (row.gpu_count, row.gpu_count_in_name, row.gpu_memory_gb, row.price_per_hour) == (8, 8, 192, Decimal("15.9"))


def test_ram_is_in_mb():
    assert rows(SIZE)[0].ram_gb == 1920


def test_an_empty_region_list_means_sold_out():
    assert [(row.region, row.availability) for row in rows({**SIZE, "regions": []})] == [("", Availability.NO)]


def test_a_size_marked_as_not_available_is_sold_out_whatever_its_regions():
    assert [(row.region, row.availability) for row in rows({**SIZE, "available": False})] == [("", Availability.NO)]


def test_each_region_is_an_offer():
    assert [(row.region, row.country) for row in rows({**SIZE, "regions": ["tor1", "nyc2"]})] == [
        ("tor1", "CA"),
        ("nyc2", "US"),
    ]


def test_droplets_without_gpus_or_price_are_no_offers():
    assert [row.instance_type for row in rows(PLAIN, {**SIZE, "price_hourly": None}, SIZE)] == [SIZE["slug"]]


def test_a_size_repeated_on_the_next_page_is_one_offer():
    assert len(rows_of_pages(DigitalOcean(), {"sizes": [SIZE]}, {"sizes": [PLAIN, SIZE]})) == 1


def test_the_link_to_the_next_page_is_followed_until_there_is_none():
    link = b'{"sizes": [], "links": {"pages": {"next": "https://api.digitalocean.com/v2/sizes?page=2"}}}'
    assert next_page(link, "") == "https://api.digitalocean.com/v2/sizes?page=2"
    assert next_page(b'{"sizes": [], "links": {"pages": {"prev": "x"}}}', "") == ""
    assert next_page(b'{"sizes": [], "links": {}}', "") == ""


@pytest.mark.parametrize(
    "answer",
    [
        {"id": "unauthorized", "message": "Unable to authenticate you"},
        {"sizes": []},
        {"sizes": [PLAIN]},
        {"sizes": [{**SIZE, "gpu_info": {"count": 8}}]},
        [],
    ],
)
def test_an_answer_without_gpu_sizes_changes_nothing(answer: object):
    with pytest.raises(BodyRejected):
        rows_of(DigitalOcean(), answer)


def test_the_key_goes_into_the_header():
    (document,) = DigitalOcean().documents_with("secret-key")
    assert document.headers == {"Authorization": "Bearer secret-key"}
    assert DigitalOcean().documents()[0].headers == {}


def test_the_shared_sample_is_read_whole(shared_data: Path):
    found = rows_of_file(DigitalOcean(), shared_data / "feeds" / "digitalocean.json")
    assert [
        (row.instance_type, row.region, row.gpu_memory_gb, row.price_per_hour, row.availability) for row in found
    ] == [
        ("gpu-h100x1-80gb", "tor1", Decimal(80), Decimal("3.41"), Availability.YES),
        ("gpu-h100x1-80gb", "nyc2", Decimal(80), Decimal("3.41"), Availability.YES),
        ("gpu-mi300x8-1536gb", "", Decimal(192), Decimal("15.9"), Availability.NO),
        ("gpu-6000adax1-48gb", "tor1", Decimal(48), Decimal("1.6"), Availability.YES),
    ]
