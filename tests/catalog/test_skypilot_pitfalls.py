"""The pitfalls of the SkyPilot files, one by one: columns, dialects, memory, spot, slices, hosts, stock, names."""

from decimal import Decimal

import pytest

from catalog.sources.base import Availability, Market
from catalog.sources.skypilot import SkyPilot
from catalog.sources.skypilot.listing import read_gpu_info
from tests.catalog.skypilot_lines import HEADER, body_of, card_of, info, offers

# Pitfall 1: column order, CRLF, non-ASCII regions with commas


def test_pitfall_01_columns_are_read_by_name_whatever_their_order():
    [row] = offers(
        "scaleway",
        "fr-par-2,H100-1-80G,24,H100,1,,fr-par,2.52",
        header=("AvailabilityZone,InstanceType,vCPUs,AcceleratorName,AcceleratorCount,GpuInfo,Region,Price"),
    )
    assert (row.instance_type, row.price_per_hour, row.zone, row.vcpus) == (
        "H100-1-80G",
        Decimal("2.520000"),
        "fr-par-2",
        Decimal(24),
    )


def test_pitfall_01_crlf_and_a_byte_order_mark_are_read():
    content = f"\ufeff{HEADER}\r\nVM.GPU.A10.1,A10,1,30,240,,2,,eu-amsterdam-1,AD-1\r\n"
    [row] = SkyPilot().parse(body_of("oci", content), {})
    assert (row.price_per_hour, row.zone) == (Decimal(2), "AD-1")


def test_pitfall_01_a_region_may_hold_commas_and_other_letters():
    [row] = offers("vast", f'1x-L40S-32-65536,L40S,1,32,64,{info("L40S", 46068)},0.60,0.00,"Île-de-France, FR, EU",')
    assert (row.region, row.country) == ("Île-de-France, FR, EU", "FR")


# Pitfall 2: GpuInfo in five dialects


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'Gpus': [{'Name': 'L4', 'MemoryInfo': {'SizeInMiB': 24576}}]}", ("L4", 24576)),
        ('{"Gpus":[{"Name":"B300","Count":1,"MemoryInfo":{"SizeInMiB":268288}}]}', ("B300", 268288)),
        ("{'Gpus': [{'Name': 'A100-80G-PCIe', 'Manufacturer': null, 'MemoryInfo': {'SizeInMiB': 81920}}]}",
         ("A100-80G-PCIe", 81920)),
        ("{'gpus': [{'name': 'h100', 'memoryinfo': {'sizeinmib': 81559}}]}", ("h100", 81559)),
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': 40960}}]}", ("", 40960)),
        ("H100", ("H100", 0)),
        ("", ("", 0)),
    ],
)  # fmt: skip
def test_pitfall_02_every_dialect_of_gpu_info_is_read(text: str, expected: tuple[str, int]):
    assert read_gpu_info(text) == expected


@pytest.mark.parametrize("text", ["{'Gpus': [", "{}", "{'Gpus': []}", "{'Gpus': 3}", "{'Gpus': [{'MemoryInfo': 5}]}",
                                  "{__import__('os').getcwd(): 1}", "{" * 500, "{'Gpus': '" + "x" * 3000 + "'}"])  # fmt: skip
def test_pitfall_02_gpu_info_nobody_knows_costs_a_hint_and_is_never_executed(text: str):
    assert read_gpu_info(text) == ("", 0)


# Pitfall 3: SizeInMiB cannot be trusted everywhere


@pytest.mark.parametrize(
    ("cloud", "line", "memory_gb"),
    [
        ("shadeform", f"nebius_H200x8,H200,8,1,1,{info('H200', 141)},28,,paris-france-1,", "141"),
        ("runpod", f"8x_A100-80GB_SECURE,A100-80GB,8,1,1,{info('A100 PCIe', 80)},15.9,,US,", "80"),
        ("vast", f'4x-H100_SXM-32-65536,H100,4,1,1,{info("H100", 326236)},7.47,0.00,"Vietnam, VN, AS",', "79.65"),
        ("primeintellect", f"nebius__8xH100_80GB__1__2,H100,8,1,1,{info('H100', 655360)},17,,FI,", "80"),
        ("lambda", f"gpu_8x_a100,A100,8,1,1,{info('A100', 40960)},15.9,,us-east-1,", "40.00"),
        ("seeweb", f"ECS1GPU12,RTX PRO 6000 96GB,1,1,1,{info('RTX PRO 6000', 0)},1.25,,it-fr2,", None),
        ("aws", f"g6.12xlarge,L4,4,1,1,{info('L4', 91553, 4)},4.6,,us-east-1,use1-az2", None),
        ("azure", "Standard_NC4as_T4_v3,T4,1,4,28,T4,0.526,,eastus,", None),
    ],
)
def test_pitfall_03_memory_is_a_hint_per_gpu_only_where_the_file_can_be_trusted(cloud, line, memory_gb):
    [row] = offers(cloud, line)
    assert row.gpu_memory_gb == (None if memory_gb is None else Decimal(memory_gb))


# Pitfall 4: blank, zero and equal spot prices, spot-only rows


def test_pitfall_04_a_blank_spot_price_is_no_spot_offer():
    [row] = offers("nebius", "gpu-b200-sxm_8gpu-160vcpu-1792gb,B200,8,160,1792,,44.00,,us-central1,")
    assert row.market is Market.ON_DEMAND


def test_pitfall_04_zero_spot_is_no_spot_at_vast_and_an_odd_number_elsewhere():
    [row] = offers("vast", '1x-RTX_4090-32-65536,RTX4090,1,32,64,,0.40,0.00,"Sweden, SE, EU",')
    assert row.market is Market.ON_DEMAND
    assert len(offers("nebius", "gpu-h100-sxm_1gpu-16vcpu-200gb,H100,1,16,200,,2.95,0.00,eu-north1,")) == 2


def test_pitfall_04_azure_spot_equal_to_on_demand_stays_a_spot_offer():
    on_demand, spot = offers("azure", "Standard_ND96isr_H200_v5,H200,8,96,1850,H200,106,106,eastus2,")
    assert (on_demand.market, spot.market) == (Market.ON_DEMAND, Market.SPOT)
    assert on_demand.price_per_hour == spot.price_per_hour


@pytest.mark.parametrize(
    ("cloud", "line"),
    [
        ("verda", "2B200.60V,B200,2.0,60,550,,,3.423,FIN-03,"),
        ("primeintellect", "datacrunch__2xA100_80GB__44__240__SPOT,A100-80GB,2.0,44,240,,,1.05,FI,FIN-01"),
    ],
)
def test_pitfall_04_a_row_with_a_spot_price_only_is_one_spot_offer(cloud: str, line: str):
    [row] = offers(cloud, line)
    assert row.market is Market.SPOT


def test_pitfall_04_a_row_without_any_price_is_no_offer():
    assert offers("aws", "p5e.48xlarge,H200,8.0,192,2048,,,,us-east-2,use2-az1") == []


# Pitfall 5: slices of a card


@pytest.mark.parametrize(
    ("cloud", "line", "count"),
    [
        ("azure", "Standard_NV6ads_A10_v5,A10,0.167,6,55,A10,0.454,,eastus,", "0.167"),
        ("azure", "Standard_NV18ads_A10_v5,A10,0.5,18,220,A10,1.6,,eastus,", "0.5"),
        ("azure", "Standard_NV4as_v4,MI25,1,4,14,MI25,0.233,,eastus,", "0.125"),
        ("azure", "Standard_NV32as_v4,MI25,1,32,112,MI25,1.864,,eastus,", "1"),
        ("aws", f"g6f.large,l4,0,2,8,{info('l4', 2861, 0)},0.202,,us-east-1,", "0.125"),
        ("aws", f"g6f.4xlarge,l4,0,16,64,{info('l4', 11444, 0)},0.95,,us-east-1,", "0.5"),
        ("aws", "g6.xlarge,L4,1.0,4,16,,0.8048,,us-east-1,", "1"),
    ],
)
def test_pitfall_05_a_slice_counts_as_its_part_of_a_card(cloud: str, line: str, count: str):
    [row] = offers(cloud, line)
    assert row.gpu_count == Decimal(count)


# Pitfall 6: Google's accelerator and host are separate lines; TPU slices

GCP_HEADER = (
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice"
)
GCP_A100 = ",,,A100,1,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 40960}}]},us-central1,us-central1-a,2.93391,1.2"
GCP_A100_HOST = "a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,0.73948,0.3"


def test_pitfall_06_a_google_price_is_the_gpu_and_the_host_of_the_same_zone():
    on_demand, spot = offers("gcp", GCP_A100, GCP_A100_HOST, header=GCP_HEADER)
    assert (on_demand.instance_type, on_demand.vcpus, on_demand.ram_gb) == ("a2-highgpu-1g", Decimal(12), Decimal(85))
    assert on_demand.price_per_hour == Decimal("3.67339")
    assert spot.price_per_hour == Decimal("1.5")


def test_pitfall_06_the_hosts_may_lie_in_a_file_of_their_own():
    together = offers("gcp", GCP_A100, GCP_A100_HOST, header=GCP_HEADER)
    apart = offers("gcp", GCP_A100, header=GCP_HEADER, hosts=f"{GCP_HEADER}\n{GCP_A100_HOST}\n")
    assert apart == together


@pytest.mark.parametrize("host", ["a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-b,0.73948,0.3",
                                  "a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,,",
                                  "n2-standard-8,8.0,32.0,,,,us-central1,us-central1-a,0.4,0.1"])  # fmt: skip
def test_pitfall_06_a_google_gpu_without_its_host_in_that_zone_is_no_offer(host: str):
    assert offers("gcp", GCP_A100, host, header=GCP_HEADER) == []


def test_pitfall_06_a_google_gpu_without_a_spot_host_has_no_spot_offer():
    [row] = offers("gcp", GCP_A100, GCP_A100_HOST.replace(",0.3", ","), header=GCP_HEADER)
    assert row.market is Market.ON_DEMAND


def test_pitfall_06_one_l4_is_sold_on_every_g2_size_of_the_zone():
    lines = [f"g2-standard-{vcpus},{vcpus},16,,,,us-east1,us-east1-b,0.{vcpus:02},0.01" for vcpus in (4, 8, 24)]
    gpu = ",,,L4,1,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 24576}}]},us-east1,us-east1-b,0.56,"
    rows = offers("gcp", gpu, *lines, header=GCP_HEADER)
    assert {row.instance_type: row.price_per_hour for row in rows} == {
        "g2-standard-4": Decimal("0.60"), "g2-standard-8": Decimal("0.64")
    }  # fmt: skip


def test_pitfall_06_an_attached_gpu_names_its_n1_host():
    gpu = ",,,T4,2,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 16384}}]},us-east1,us-east1-b,0.7,"
    [row] = offers("gcp", gpu, "n1-standard-8,8.0,30.0,,,,us-east1,us-east1-b,0.38,0.08", header=GCP_HEADER)
    assert (row.instance_type, row.price_per_hour) == ("n1-standard-8+2xT4", Decimal("1.08"))


@pytest.mark.parametrize(
    ("name", "slug", "chips"),
    [
        ("tpu-v5litepod-16", "tpu-v5e", 16),
        ("tpu-v6e-8", "tpu-v6e", 8),
        ("tpu-v5p-16", "tpu-v5p", 8),
        ("tpu-v4-8", "tpu-v4", 4),
        ("tpu-v9-8", "", 1),
    ],
)
def test_pitfall_06_a_tpu_slice_counts_chips_and_needs_no_host(name: str, slug: str, chips: int):
    [row] = offers("gcp", f",,,{name},1,{name},us-east5,us-east5-a,33.6,", header=GCP_HEADER)
    assert (row.instance_type, row.gpu_slug, row.gpu_count, row.price_per_hour) == (
        name, slug, Decimal(chips), Decimal("33.6")
    )  # fmt: skip


# Pitfall 7: not an availability source


@pytest.mark.parametrize("cloud", ["lambda", "paperspace", "ibm", "digitalocean", "scp"])
def test_pitfall_07_a_price_list_says_nothing_about_stock(cloud: str):
    [row] = offers(cloud, "gpu_1x_a10,A10,1,30,200,,1.29,,us-east-1,")
    assert row.availability is Availability.UNKNOWN


# Pitfall 8: vast's names are stripped


@pytest.mark.parametrize(
    ("instance_type", "name", "mib", "host_name", "slug"),
    [
        ("4x-RTX_4070S_Ti-32-65536", "RTX4070", 65504, "RTX 4070S Ti", "rtx-4070-ti-super"),
        ("1x-RTX_3060_Ti-32-65536", "RTX3060", 8192, "RTX 3060 Ti", None),
        ("1x-RTX_4060_Ti-32-65536", "RTX4060", 8188, "RTX 4060 Ti", None),
        ("1x-H100_NVL-32-65536", "H100", 95830, "H100 NVL", "h100-nvl"),
        ("8x-H100_SXM-32-65536", "H100", 652472, "H100 SXM", "h100-sxm"),
        ("1x-H200-32-65536", "H200", 143771, "H200", "h200-sxm"),
        ("1x-H200_NVL-32-65536", "H200", 143771, "H200 NVL", "h200-nvl"),
        ("2x-A100_PCIE-32-65536", "A100", 81920, "A100 PCIE", "a100-pcie-40gb"),
        ("2x-A100_SXM4-32-65536", "A100", 163840, "A100 SXM4", "a100-sxm-80gb"),
        ("1x-RTX_4090-32-65536", "RTX4090", 24564, "RTX 4090", "rtx-4090"),
        ("1x-RTX_4090_D-32-65536", "RTX4090", 24564, "RTX 4090 D", None),
        ("2x-RTX_4090-32-65536", "RTX4090", 98280, "RTX 4090", None),
    ],
)
def test_pitfall_08_the_vast_card_is_read_from_the_instance_type(instance_type, name, mib, host_name, slug):
    count = instance_type[0]
    [row] = offers("vast", f'{instance_type},{name},{count},32,64,{info(name, mib)},0.77,0.00,"Arizona, US, NA",')
    assert row.gpu_name == host_name
    assert card_of(row) == slug
