"""`/feeds/skypilot.csv`: our asks and live offers as SkyPilot's catalogue reader takes them.

SKYPILOT'S OWN READER DOES NOT RUN HERE unless the package `skypilot` is installed, which it is not among our locked
packages: `test_skypilots_own_reader_loads_the_file` says so each time. What stands in for it are the rules that
`sky/catalog/common.py` (github.com/skypilot-org/skypilot, commit 005261080a6b, read 30 November 2026) puts on a file,
applied to every row below: `COLUMNS` and `FIGURES` are what it reads by name and with which type.
"""

import ast
import csv
import importlib
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest

from catalog.models import Gpu
from catalog.names import Hints, resolve
from catalog.names.skypilot import skypilot_name
from tests.factories import make_document, make_gpu, make_list_offer, make_live_offer, make_source
from tests.marketplace.conftest import make_listing

PAGE = "/feeds/skypilot.csv"
COLUMNS = [
    "InstanceType",
    "vCPUs",
    "MemoryGiB",
    "AcceleratorName",
    "AcceleratorCount",
    "GpuInfo",
    "Price",
    "SpotPrice",
    "Region",
    "AvailabilityZone",
]
FIGURES = ("vCPUs", "MemoryGiB", "AcceleratorCount", "Price", "SpotPrice")  # float64 in its data frame, empty = NaN
MAY_BE_EMPTY = ("vCPUs", "MemoryGiB", "Price", "SpotPrice")

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu() -> Gpu:
    return make_gpu(label="H100 SXM")


def body_of(client) -> str:
    answer = client.get(PAGE)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return b"".join(answer.streaming_content).decode()


def rows_of(client) -> list[dict[str, str]]:
    """Return the rows, after every rule of the reader was applied to them."""
    reader = csv.DictReader(StringIO(body_of(client)))
    rows = list(reader)
    assert reader.fieldnames == COLUMNS
    check_as_the_reader_would(rows)
    return rows


def check_as_the_reader_would(rows: list[dict[str, str]]) -> None:
    sizes, places, zones = defaultdict(set), set(), defaultdict(set)
    for row in rows:
        for name in COLUMNS:
            assert row[name] or name in MAY_BE_EMPTY, f"{name} is empty in {row}"
        figures = {name: float(row[name]) for name in FIGURES if row[name]}
        assert figures["AcceleratorCount"] > 0
        assert row["Price"] or row["SpotPrice"]  # a row without any price is one that nobody can have
        # list_accelerators_impl reads the memory of the first GPU out of a Python literal
        assert ast.literal_eval(row["GpuInfo"])["Gpus"][0]["MemoryInfo"]["SizeInMiB"] / 1024 > 0
        sizes[row["InstanceType"]].add((row["vCPUs"], row["MemoryGiB"]))
        places.add((row["InstanceType"], row["Region"], row["AvailabilityZone"]))
        zones[row["InstanceType"], row["AvailabilityZone"]].add(row["Region"])
    # get_vcpus_mem_from_instance_type_impl: one size for an instance type; NaN is unequal to itself, so then one row.
    assert all(len(found) == 1 for found in sizes.values())
    unsized = [row["InstanceType"] for row in rows if not (row["vCPUs"] and row["MemoryGiB"])]
    assert len({(row["InstanceType"], row["AvailabilityZone"]) for row in rows}) == len(rows)
    assert len(set(unsized)) == len(unsized)
    # get_hourly_cost_impl: one row for an instance type in a zone. validate_region_zone_impl: a zone in one region.
    assert len(places) == len(rows)
    assert all(len(found) == 1 for found in zones.values())


def test_skypilots_own_reader_loads_the_file(client, gpu, tmp_path: Path):
    try:
        reader, pandas = importlib.import_module("sky.catalog.common"), importlib.import_module("pandas")
    except ImportError:
        pytest.skip(
            "SKYPILOT'S OWN READER DID NOT RUN: `skypilot` is not installed. Its rules were checked by our own."
        )
    make_live_offer(gpu=gpu, price="2.19", gpu_count=8, vcpus=208, ram_gb=1800)
    file = tmp_path / "vms.csv"
    file.write_text(body_of(client))
    found = reader.list_accelerators_impl("gpu-bourse", pandas.read_csv(file), True, None, None, None)
    assert [info.price for info in found["H100"]] == [17.52]


def test_a_machine_is_one_row_with_both_its_prices_for_the_whole_machine(client, gpu):
    same = {"instance_type": "gpu_8x_h100", "gpu_count": 8, "vcpus": 208, "ram_gb": 1800, "region": "eu-1", "gpu": gpu}
    make_live_offer(price="2.19", **same)
    make_live_offer(price="1.10", market="spot", **same)
    [row] = rows_of(client)
    assert row == {
        "InstanceType": "lambda--gpu_8x_h100--8x-h100-sxm-208v-1800g",
        "vCPUs": "208",
        "MemoryGiB": "1800",
        "AcceleratorName": "H100",
        "AcceleratorCount": "8",
        "GpuInfo": row["GpuInfo"],
        "Price": "17.52",
        "SpotPrice": "8.8",
        "Region": "eu-1",
        "AvailabilityZone": "eu-1",
    }
    assert ast.literal_eval(row["GpuInfo"]) == {
        "Gpus": [
            {"Name": "H100", "Manufacturer": "NVIDIA", "Count": 8, "MemoryInfo": {"SizeInMiB": 81920}},
        ],
        "TotalGpuMemoryInMiB": 655360,
    }


def test_of_two_sources_for_one_machine_the_lower_price_counts(client, gpu):
    other = make_source(name="shadeform")
    make_document(source=other)
    for source, price in ((None, "2.19"), (other, "2.05")):
        make_live_offer(gpu=gpu, price=price, instance_type="m", vcpus=8, ram_gb=64, source=source)
    assert [row["Price"] for row in rows_of(client)] == ["2.05"]


def test_machines_that_differ_in_size_or_are_not_sized_are_different_types(client, gpu):
    sizes = ({"vcpus": 8, "ram_gb": 64}, {"vcpus": 16, "ram_gb": 64}, {"vcpus": None, "ram_gb": 64}, {})
    for number, size in enumerate(sizes):
        for region in ("eu-1", "us-1"):
            make_live_offer(
                gpu=gpu, price="2", instance_type=f"m{number // 2}", region=region, zone=str(number), **size
            )
    rows = rows_of(client)
    assert len(rows) == 8
    assert len({row["InstanceType"] for row in rows}) == 2 + 4


def test_a_zone_is_never_empty_and_in_one_region_only(client, gpu):
    for region, zone in (("eu-1", ""), ("eu-1", "a"), ("us-1", "a"), ("us-1", "us-1b"), ("", "")):
        make_live_offer(gpu=gpu, price="2", instance_type="m", vcpus=8, ram_gb=64, region=region, zone=zone)
    found = {(row["Region"], row["AvailabilityZone"]) for row in rows_of(client)}
    assert found == {
        ("eu-1", "eu-1"),
        ("eu-1", "eu-1-a"),
        ("us-1", "us-1-a"),
        ("us-1", "us-1b"),
        ("default", "default"),
    }


def test_only_what_can_be_had_now_by_the_hour_is_listed(client, gpu):
    make_list_offer(gpu=gpu, price="1.00")
    make_live_offer(gpu=gpu, price="1.00", hours_old=13)
    make_live_offer(gpu=gpu, price="1.00", market="reserved", term_months=12)
    make_live_offer(gpu=gpu, price="1.00", availability="no")
    make_live_offer(gpu=gpu, price="1.00", gpu_count=Decimal("0.25"), is_whole=False)
    make_live_offer(gpu=gpu, price="1.00", held_back="far from all others")
    assert rows_of(client) == []


def test_our_asks_come_first_at_the_lowest_price_for_each_usual_count(client, gpu):
    now = datetime.now(UTC)
    make_listing(gpu=gpu, price="2.88", devices=8, country="NL", now=now)
    make_listing(gpu=gpu, price="2.50", devices=2, country="NL", now=now)
    make_listing(gpu=gpu, price="1.00", devices=8, country="DE", min_gpus=4, now=now)
    make_live_offer(gpu=gpu, price="0.50", vcpus=8, ram_gb=64)
    rows = rows_of(client)
    ours = [(row["InstanceType"], row["Price"]) for row in rows if row["InstanceType"].startswith("gpu-bourse--")]
    assert ours == [
        ("gpu-bourse--h100-sxm-x4--DE", "4"),
        ("gpu-bourse--h100-sxm-x8--DE", "8"),
        ("gpu-bourse--h100-sxm-x1--NL", "2.5"),
        ("gpu-bourse--h100-sxm-x2--NL", "5"),
        ("gpu-bourse--h100-sxm-x4--NL", "11.52"),
        ("gpu-bourse--h100-sxm-x8--NL", "23.04"),
    ]
    assert [row["InstanceType"].startswith("gpu-bourse--") for row in rows] == [True] * 6 + [False]


def test_a_silent_server_is_not_listed(client, gpu):
    make_listing(gpu=gpu, now=datetime.now(UTC) - timedelta(minutes=2))
    assert rows_of(client) == []


def test_the_file_takes_two_queries_however_long(client, gpu, django_assert_max_num_queries):
    for number in range(20):
        make_live_offer(gpu=gpu, price="2", vcpus=number, ram_gb=64)
    make_listing(gpu=gpu, now=datetime.now(UTC))
    with django_assert_max_num_queries(4):
        assert len(rows_of(client)) == 24


def test_every_gpu_has_one_name_of_its_own_that_reads_back_to_it(site_data):
    named = {gpu.slug: (skypilot_name(gpu.slug, label=gpu.label), gpu) for gpu in Gpu.objects.all()}
    assert len({name for name, _ in named.values()}) == len(named)
    for slug, (name, gpu) in named.items():
        hints = Hints(memory_gb=gpu.memory_gb, form_factor=gpu.form_factor)
        found = resolve(name, hints=hints)
        assert slug in {found.slug, *found.candidates}, (slug, name, found)


def test_names_are_those_that_skypilots_files_have(site_data):
    lines = (Path(__file__).parent.parent / "catalog" / "skypilot_names.csv").read_text().splitlines()
    rows = list(csv.DictReader(lines))
    spelled = {row["name"].lower().replace(" ", "") for row in rows}
    listed = {slug for row in rows for slug in row["slugs"].split("|")}
    unlike = {
        gpu.slug
        for gpu in Gpu.objects.filter(slug__in=listed)
        if skypilot_name(gpu.slug, label=gpu.label).lower().replace(" ", "") not in spelled
    }
    # The files call these by a name that is another product's, or by the size of a slice.
    shared = {"h100-nvl", "p100-sxm2", "rtx-4060-ti-16gb", "rtx-4070-ti-super", "v100-pcie-16gb", "v100-pcie-32gb"}
    assert unlike == shared | {"tpu-v5e", "tpu-v5p", "tpu-v6e"}
