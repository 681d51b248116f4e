"""Bests and statistics of the price files, computed again by other code: plain csv, floats, the standard library.

Nothing of the product's reading or counting is used here; only the answers are compared.
"""

import csv
import statistics
from collections import defaultdict
from datetime import UTC, datetime

import pytest
from django.core.management import call_command

from catalog.models import Gpu
from catalog.queries import price_table
from catalog.refresh import refresh_source

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

# (file, name as written, what tells the card apart in the machine's name or "") -> GPU. Only names that need no rule.
CARDS = {
    ("aws", "A10G"): "a10g",
    ("aws", "L4"): "l4",
    ("aws", "L40S"): "l40s",
    ("aws", "T4"): "t4",
    ("aws", "T4g"): "t4g",
    ("azure", "A10"): "a10",
    ("azure", "MI300X"): "mi300x",
    ("azure", "T4"): "t4",
    ("cudo", "A40"): "a40",
    ("cudo", "L40S"): "l40s",
    ("cudo", "H100-SXM"): "h100-sxm",
    ("cudo", "RTXA6000"): "rtx-a6000",
    ("fluidstack", "L40"): "l40",
    ("fluidstack", "RTXA6000"): "rtx-a6000",
    ("hyperstack", "L40"): "l40",
    ("hyperstack", "H100-80G-SXM5"): "h100-sxm",
    ("hyperstack", "RTX-A6000"): "rtx-a6000",
    ("jarvislabs", "L4"): "l4",
    ("lambda", "A10"): "a10",
    ("lambda", "B200"): "b200",
    ("nebius", "B200"): "b200",
    ("nebius", "L40S"): "l40s",
    ("oci", "A10"): "a10",
    ("runpod", "A40"): "a40",
    ("runpod", "L4"): "l4",
    ("runpod", "L40"): "l40",
    ("runpod", "RTX4090"): "rtx-4090",
    ("runpod", "RTXA6000"): "rtx-a6000",
    ("runpod", "H100-SXM"): "h100-sxm",
    ("verda", "B200"): "b200",
    ("verda", "B300"): "b300",
}
# GPUs whose every row, in every file, is listed above or read by `gcp_l4`: their statistics can be recomputed whole.
WHOLE = ("a10", "a10g", "mi300x", "t4g", "b300")


@pytest.fixture(scope="module")
def price_files(shared_data):
    return shared_data / "skypilot"


@pytest.fixture
def replayed(price_files, db):
    call_command("load_catalogue", verbosity=0)
    report = refresh_source(source_name="skypilot", now=NOW, from_path=price_files)
    assert not report.is_failure
    return price_files


def rows_of(path):
    with path.open(newline="", encoding="utf-8-sig") as lines:
        return list(csv.DictReader(lines))


def lowest_by_plain_code(folder) -> dict[str, dict[str, float]]:
    """GPU -> cloud -> lowest on-demand price per whole GPU."""
    lowest: dict[str, dict[str, float]] = defaultdict(dict)
    for (file, name), slug in CARDS.items():
        prices = [
            float(row["Price"]) / float(row["AcceleratorCount"])
            for row in rows_of(folder / f"{file}.csv")
            if row["AcceleratorName"] == name and row["Price"] and float(row["AcceleratorCount"]) >= 1
        ]
        lowest[slug][file] = min(prices)
    return lowest


def gcp_l4(folder) -> float:
    """The cheapest L4 at Google: the accelerator plus the host machine made for that many, in the same zone."""
    hosts = {
        (row["InstanceType"], row["AvailabilityZone"]): float(row["Price"]) for row in rows_of(folder / "gcp_hosts.csv")
    }
    made_for = {1: ("4", "8", "12", "16", "32"), 2: ("24",), 4: ("48",), 8: ("96",)}
    found = []
    for row in rows_of(folder / "gcp.csv"):
        if row["AcceleratorName"] != "L4" or not row["Price"]:
            continue
        count = int(float(row["AcceleratorCount"]))
        for size in made_for[count]:
            host = hosts.get((f"g2-standard-{size}", row["AvailabilityZone"]))
            if host is not None:
                found.append((float(row["Price"]) + host) / count)
    return min(found)


def test_the_lowest_price_of_each_cloud_is_the_one_in_its_file(replayed):
    expected = lowest_by_plain_code(replayed)
    expected["l4"]["gcp"] = gcp_l4(replayed)
    for slug, clouds in expected.items():
        for cloud, price in clouds.items():
            offers = (
                Gpu.objects.get(slug=slug)
                .offers.eligible()
                .filter(source__name="skypilot", cloud__slug=cloud, market="on_demand")
            )
            found = offers.order_by("price_usd_per_gpu_hour").values_list("price_usd_per_gpu_hour", flat=True).first()
            assert found is not None, f"{slug} at {cloud}"
            assert float(found) == pytest.approx(price, abs=1e-6), f"{slug} at {cloud}"


def test_bests_and_statistics_are_those_of_the_files(replayed):
    expected = lowest_by_plain_code(replayed)
    table = price_table(now=NOW)
    for slug in WHOLE:
        prices = sorted(expected[slug].values())
        found = table[slug].elsewhere["on_demand"]
        assert found is not None, slug
        assert found.offers == len(prices), slug
        assert float(found.min) == pytest.approx(prices[0], abs=1e-6)
        assert float(found.median) == pytest.approx(statistics.median(prices), abs=1e-6)
        if len(prices) > 1:
            p25, _, p75 = statistics.quantiles(prices, n=4, method="inclusive")
            assert (float(found.p25), float(found.p75)) == pytest.approx((p25, p75), abs=1e-6)
        headline = table[slug].headline
        assert headline is not None
        assert headline.kind == "on_demand"
        assert float(headline.price_usd_per_gpu_hour) == pytest.approx(prices[0], abs=1e-6)
