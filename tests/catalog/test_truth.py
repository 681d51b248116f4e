"""Bests and statistics of the price files and feeds, computed again by other code: plain csv and json, floats.

Nothing of the product's reading or counting is used here; only the answers are compared.
"""

import csv
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import call_command

from catalog.models import Gpu, Offer, Source
from catalog.queries import price_table
from catalog.refresh import refresh_source
from fx.models import Rate

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


# The feeds, read by the one command that people use

USD_PER_EUR = 1.1476
# What the names of the samples mean, by hand.
GPUS_BY_NAME = {
    "A100_80G": "a100-pcie-80gb",
    "A6000": "rtx-a6000",
    "A6000_48GB": "rtx-a6000",
    "A40 (compute mode)": "a40",
    "H100": "h100-sxm",
    "H100 SXM": "h100-sxm",
    "H100-PCIe": "h100-pcie",
    "H100-SXM": "h100-sxm",
    "H100_80GB": "h100-sxm",
    "H200": "h200-sxm",
    "H200_141GB": "h200-sxm",
    "L40S": "l40s",
    "L40S (graphics mode)": "l40s",
    "MI300X": "mi300x",
    "NVIDIA_A16": "a16",
    "NVIDIA_L40S": "l40s",
    "RTX A6000": "rtx-a6000",
    "a100": "a100-sxm-80gb",
    "amd_mi300x": "mi300x",
    "geforcertx4090-pcie-24gb": "rtx-4090",
    "h100": "h100-sxm",
    "h100-sxm5-80gb": "h100-sxm",
    "nvidia_h100": "h100-sxm",
    "nvidia_rtx6000_ada": "rtx-6000-ada",
    "rtx4090": "rtx-4090",
    "rtxa4000-pcie-16gb": "rtx-a4000",
    "rtxa6000": "rtx-a6000",
}


# Below, one reader per source, called as it is: (cloud, name as written, GPUs, USD of the whole machine).


def shadeform(feed) -> Iterator[tuple[str, str, float, float]]:
    clouds = {"lambdalabs": "lambda"}
    for kind in feed["instance_types"]:
        machine = kind["configuration"]
        price = kind["hourly_price"] / 100
        yield clouds.get(kind["cloud"], kind["cloud"]), machine["gpu_type"], machine["num_gpus"], price


def primeintellect(feed) -> Iterator[tuple[str, str, float, float]]:
    clouds = {"lambdalabs": "lambda", "datacrunch": "verda"}
    for item in feed["items"]:
        if item["gpuCount"] and not item["isSpot"]:
            cloud = clouds.get(item["provider"], item["provider"])
            yield cloud, item["gpuType"], item["gpuCount"], item["prices"]["onDemand"]


def vultr(feed) -> Iterator[tuple[str, str, float, float]]:
    for plan in feed["plans"]:
        card = {"NVIDIA_A16": 16, "NVIDIA_L40S": 48}.get(plan.get("gpu_type"))
        if card and plan["gpu_vram_gb"] >= card:
            yield "vultr", plan["gpu_type"], plan["gpu_vram_gb"] / card, plan["hourly_cost"]


def scaleway(feed) -> Iterator[tuple[str, str, float, float]]:
    for kind in feed["servers"].values():
        if kind["gpu"]:
            yield "scaleway", kind["gpu_info"]["gpu_name"], kind["gpu"], kind["hourly_price"] * USD_PER_EUR


def ovh(feed) -> Iterator[tuple[str, str, float, float]]:
    for addon in feed["addons"]:
        if addon["planCode"] == "l40s-90.consumption":
            yield "ovhcloud", "L40S", 1, addon["pricings"][0]["price"] / 1e8 * USD_PER_EUR


def akash(feed) -> Iterator[tuple[str, str, float, float]]:
    for model in feed["models"]:
        if model["price"]:
            yield "akash", model["model"], 1, model["price"]["min"]


def cudo(feed) -> Iterator[tuple[str, str, float, float]]:
    for kind in feed["machineTypes"]:
        gpu, vcpu, gib = (float(kind[name]["value"]) for name in ("gpuPriceHr", "vcpuPriceHr", "memoryGibPriceHr"))
        yield "cudo", kind["gpuModel"], 1, gpu + 8 * vcpu + 32 * gib


def tensordock(feed) -> Iterator[tuple[str, str, float, float]]:
    for location in feed["data"]["locations"]:
        for gpu in location["gpus"]:
            most, beside = max(1, gpu["max_count"]), gpu["pricing"]
            parts = 8 * beside["per_vcpu_hr"] + 32 * beside["per_gb_ram_hr"]
            disk = 100 * beside["per_gb_storage_hr"]
            yield "tensordock", gpu["v0Name"], most, most * (gpu["price_per_hr"] + parts) + disk


def digitalocean(feed) -> Iterator[tuple[str, str, float, float]]:
    for size in feed["sizes"]:
        if size["gpu_info"]:
            yield "digitalocean", size["gpu_info"]["model"], size["gpu_info"]["count"], size["price_hourly"]


PLAIN_READERS = (shadeform, primeintellect, vultr, scaleway, ovh, akash, cudo, tensordock, digitalocean)


@pytest.fixture
def feeds(shared_data, db):
    """Every sample, read by `refresh_offers --from`, at a rate of the day."""
    call_command("load_catalogue", verbosity=0)
    rate = Decimal(str(USD_PER_EUR))
    Rate.objects.create(currency="USD", day=date(2026, 11, 27), units_per_eur=rate, origin="ecb", stored_at=NOW)
    call_command("refresh_offers", "--from", str(shared_data / "feeds"), stdout=StringIO())
    return shared_data / "feeds"


@pytest.mark.parametrize("reader", PLAIN_READERS, ids=lambda reader: reader.__name__)
def test_the_lowest_price_of_each_cloud_of_a_feed_is_the_one_in_its_sample(feeds, reader):
    lowest: dict[tuple[str, str], float] = {}
    for cloud, name, gpus, price in reader(json.loads((feeds / f"{reader.__name__}.json").read_text())):
        key = (cloud, GPUS_BY_NAME[name])
        lowest[key] = min(price / gpus, lowest.get(key, price))
    offers = Offer.objects.filter(source__name=reader.__name__, is_whole=True, market="on_demand")
    found: dict[tuple[str, str], float] = {}
    for cloud, gpu, price in offers.values_list("cloud__slug", "gpu__slug", "price_usd_per_gpu_hour"):
        found[cloud, gpu] = min(float(price), found.get((cloud, gpu), float(price)))
    assert found == pytest.approx(lowest, abs=2e-6)


def test_every_source_of_the_feeds_was_read_whole(feeds):
    states = dict(Source.objects.values_list("name", "state"))
    assert set(states.values()) == {Source.State.FRESH}
    others = {"azure", "lambda", "oci", "reference", "runpod", "vast", "verda"}
    assert states.keys() == others | {reader.__name__ for reader in PLAIN_READERS}


def test_the_headline_counts_each_cloud_once_and_takes_nothing_sold_out(feeds):
    """By hand from the samples: L40S at OVHcloud, CUDO and Scaleway; Vultr and RunPod have none left."""
    found = price_table(now=datetime.now(UTC))["l40s"].elsewhere["on_demand"]
    cudo_price = 0.88 + 8 * 0.0024 + 32 * 0.0037
    expected = sorted([1.38 * USD_PER_EUR, cudo_price, 1.45 * USD_PER_EUR])
    assert found is not None
    assert found.offers == 3
    assert float(found.min) == pytest.approx(cudo_price, abs=1e-6)
    assert float(found.median) == pytest.approx(expected[1], abs=1e-6)
