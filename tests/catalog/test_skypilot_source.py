"""The SkyPilot adapter: every pitfall of its files, one by one, and the saved files as a whole."""

import tokenize
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.names import Hints, resolve
from catalog.sources import skypilot
from catalog.sources.base import Availability, Body, BodyRejected, Market, OfferRow
from catalog.sources.regions import country_of
from catalog.sources.skypilot import SkyPilot
from catalog.sources.skypilot.listing import read_gpu_info

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
DOCUMENTS = {document.key: document for document in SkyPilot().documents()}


def body_of(cloud: str, content: str | bytes, **facts: object) -> Body:
    encoded = content.encode() if isinstance(content, str) else content
    return Body(document=DOCUMENTS[cloud], content=encoded, fetched_at=NOW, **facts)  # type: ignore[arg-type]


def offers(cloud: str, *lines: str, header: str = HEADER, hosts: str = "") -> list[OfferRow]:
    companions = {"gcp-hosts": body_of("gcp-hosts", hosts)} if hosts else {}
    return list(SkyPilot().parse(body_of(cloud, "\n".join([header, *lines, ""])), companions))


def info(name: str, mib: int, count: int = 1) -> str:
    return f"\"{{'Gpus': [{{'Name': '{name}', 'Count': {count}, 'MemoryInfo': {{'SizeInMiB': {mib}}}}}]}}\""


def card_of(row: OfferRow) -> str | None:
    hints = Hints(
        memory_gb=row.gpu_memory_gb, form_factor=row.form_factor, cloud=row.cloud, instance_type=row.instance_type
    )
    return resolve(row.gpu_name, hints=hints).slug


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


# Pitfall 9: runpod's zones and invented spot


def test_pitfall_09_runpod_zones_of_one_price_are_one_offer_per_region():
    lines = [f"1x_L4_SECURE,L4,1.0,8,45,,{region},,0.44,{zone}" for region, zone in
             [("US", "US-CA-1"), ("US", "US-TX-1"), ("US", "US-GA-1"), ("CA", "CA-MTL-1")]]  # fmt: skip
    header = (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Region,SpotPrice,Price,AvailabilityZone"
    )
    rows = offers("runpod", *lines, header=header)
    assert [(row.region, row.zone, row.country) for row in rows] == [("US", "", "US"), ("CA", "CA-MTL-1", "CA")]


def test_pitfall_09_half_the_list_price_is_no_spot_quote_at_runpod():
    [row] = offers("runpod", "2x_H100-SXM_SECURE,H100-SXM,2.0,40,250,,6.98,3.49,US,")
    assert row.market is Market.ON_DEMAND
    assert len(offers("runpod", "1x_A40_SECURE,A40,1.0,9,48,,0.79,0.49,US,")) == 2


# Pitfall 10: seeweb's blank region, cudo's text count


def test_pitfall_10_a_blank_region_at_seeweb_means_sold_out():
    sold_out, sold = offers("seeweb", "ECS1GPU6,L4,1,8,32,,0.38,,,", "ECS1GPU7,L40S,1,8,32,,0.85,,it-fr2,")
    assert (sold_out.availability, sold.availability) == (Availability.NO, Availability.UNKNOWN)
    assert sold.country == "IT"


def test_pitfall_10_cudos_count_is_a_number_whatever_its_gpu_info_says():
    text = "\"{'Gpus': [{'Name': 'A40', 'Count': '2.0', 'MemoryInfo': {'SizeInMiB': 49152}}]}\""
    [row] = offers("cudo", f"ice-lake-a40-compute_2x8v16gb,A40,2.0,8,16,{text},0.7791999999999999,,se-stockholm-1,")
    assert (row.gpu_count, row.gpu_count_in_name) == (Decimal(2), Decimal(2))
    assert row.price_per_hour == Decimal("0.779200")


# Pitfall 11: one row per zone at aws, accelerators that are no GPU


def test_pitfall_11_aws_on_demand_is_one_offer_per_region_and_spot_one_per_zone_where_it_differs():
    lines = [f"g5.xlarge,A10G,1.0,4,16,,1.006,{spot},us-east-1,use1-az{zone}" for zone, spot in [(1, 0.40), (2, 0.45)]]
    rows = offers("aws", *lines)
    assert [(row.market.value, row.zone, row.price_per_hour) for row in rows] == [
        ("on_demand", "", Decimal("1.006")), ("spot", "use1-az1", Decimal("0.4")), ("spot", "use1-az2", Decimal("0.45"))
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["Virtex UltraScale (VU9P)", "Qualcomm AI100", "Xilinx U30"])
def test_pitfall_11_known_non_gpus_are_left_out(name: str):
    assert offers("aws", f"f1.2xlarge,{name},1.0,8,122,,1.65,0.5,us-east-1,use1-az1") == []


def test_pitfall_11_accelerators_of_the_catalogue_and_unknown_names_stay():
    assert [row.gpu_name for row in offers(
        "aws", "trn1.2xlarge,Trainium,1.0,8,32,,1.34375,,us-east-1,use1-az1", "x9.large,New Chip,1,8,32,,2,,us-east-1,a"
    )] == ["Trainium", "New Chip"]  # fmt: skip


def test_pitfall_11_inferentia_two_is_told_from_one_by_its_family():
    lines = [f"{kind}.xlarge,Inferentia,1.0,4,8,,0.3,,us-east-1,use1-az1" for kind in ("inf1", "inf2")]
    assert [card_of(row) for row in offers("aws", *lines)] == ["inferentia-1", "inferentia-2"]


# Pitfall 12: azure's shifted rows and blank names


def test_pitfall_12_an_unquoted_generation_is_put_together_again():
    header = HEADER.replace("GpuInfo", "Generation,GpuInfo")
    [row] = offers("azure", "Standard_NC6s_v3,V100,1,6,112,V1,V2,V100,3.06,,eastus,", header=header)
    assert (row.price_per_hour, row.region) == (Decimal("3.06"), "eastus")


@pytest.mark.parametrize(
    ("size", "name", "count"),
    [
        ("Standard_ND96is_MI300X_v5", "MI300X", "8"),
        ("Standard_ND128isr_NDR_GB200_v6", "GB200", "4"),
        ("Standard_NV4ads_V710_v5", "Radeon PRO V710", "0.1667"),
        ("Standard_NV28adms_V710_v5", "Radeon PRO V710", "1"),
        ("Standard_NG16ads_V620_v1", "Radeon PRO V620", "0.5"),
    ],
)
def test_pitfall_12_azure_sizes_without_a_name_are_named_by_their_size(size: str, name: str, count: str):
    [row] = offers("azure", f"{size},,,96,1850,,48,,eastus,")
    assert (row.gpu_name, row.gpu_count) == (name, Decimal(count))


def test_pitfall_12_a_machine_without_a_gpu_is_no_offer():
    assert offers("azure", "Standard_D4s_v5,,,4,16,,0.192,0.03,eastus,") == []


# Pitfall 13: one short name, several cards: name, hints and machine together tell them apart


@pytest.mark.parametrize(
    ("cloud", "line", "slug"),
    [
        ("aws", f"p4d.24xlarge,A100,8,96,1152,{info('A100', 40960, 8)},32.77,,us-east-1,a", "a100-sxm-40gb"),
        ("aws", f"p4de.24xlarge,a100,8,96,1152,{info('a100', 81920, 8)},27.44,,us-east-1,a", "a100-sxm-80gb"),
        ("aws", f"p3dn.24xlarge,v100,8,96,768,{info('v100', 32768, 8)},31.2,,us-east-1,a", "v100-sxm2-32gb"),
        ("seeweb", f"ECS1GPU,RTX6000,1,8,32,{info('RTX6000', 24576)},0.29,,it-fr2,", "quadro-rtx-6000"),
        ("seeweb", f"ECS1GPU3,A100,1,8,32,{info('A100', 81920)},0.99,,it-fr2,", None),
        ("cudo", f"epyc-genoa-a100-pcie_1x2v4gb,A100,1.0,2,4,{info('A100', 81920)},1.5,,no-k-1,", "a100-pcie-80gb"),
        ("cudo", f"intel-ice-lake-a100-pci_1x2v4gb,A100,1.0,2,4,{info('A100', 81920)},1.3,,us-c-1,", "a100-pcie-80gb"),
        ("runpod", "1x_H100_SECURE,H100,1.0,16,80,H100,4.49,,US,", "h100-pcie"),
        ("runpod", "1x_H100-SXM_SECURE,H100-SXM,1.0,16,80,H100-SXM,4.69,,US,", "h100-sxm"),
        ("azure", "Standard_NC40ads_H100_v5,H100,1,40,320,H100,6.98,,eastus2,", "h100-nvl"),
        ("azure", "Standard_NCC40ads_H100_v5,H100,1,40,320,H100,6.98,,eastus2,", "h100-nvl"),
        ("azure", "Standard_ND96isr_H100_v5,H100,8,96,1900,H100,98.32,,eastus,", "h100-sxm"),
        ("azure", "Standard_ND96asr_v4,A100,8,96,900,A100,27.197,,eastus,", "a100-sxm-40gb"),
        ("azure", "Standard_NC24ads_A100_v4,A100-80GB,1,24,220,A100-80GB,3.673,,eastus,", "a100-pcie-80gb"),
        ("azure", "Standard_NC6s_v3,V100,1,6,112,V100,3.06,,eastus,", "v100-pcie-16gb"),
        ("lambda", f"gpu_1x_rtx6000,RTX6000,1,14,46,{info('RTX6000', 24576)},0.69,,us-east-1,", "quadro-rtx-6000"),
        ("lambda", f"gpu_1x_h100_pcie,H100,1,26,200,{info('H100', 81920)},3.29,,us-east-1,", "h100-pcie"),
        ("lambda", f"gpu_8x_a100,A100,8,124,1800,{info('A100', 40960)},15.92,,us-east-1,", "a100-sxm-40gb"),
        ("lambda", f"gpu_2x_a100,A100,2,60,400,{info('A100', 40960)},3.98,,us-east-1,", "a100-pcie-40gb"),
        ("oci", f"BM.GPU4.8,A100,8,128,2048,{info('A100', 40960, 8)},24.4,,eu-paris-1,AD-1", "a100-sxm-40gb"),
        ("scaleway", f"RENDER-S,P100,1,10,42,{info('Tesla P100-PCIE-16GB', 16384)},1.24,,fr-par,", "p100-pcie"),
        ("hyperbolic", f"1x-H100-75-722,H100,1,1,1,{info('NVIDIA-H100-80GB-HBM3', 81920)},1.29,,default,", "h100-sxm"),
        ("fluidstack", f"A100_PCIE_80GB::1,A100-80GB,1,1,1,{info('A100-80GB', 81920)},1.8,,CANADA,", "a100-pcie-80gb"),
        ("hyperstack", f"n3-H100-SXM5x8,H100-80G-SXM5,8,1,1,{info('H100-80G-SXM5', 81920)},19.2,,US-1,", "h100-sxm"),
        ("shadeform", f"hyperstack_H100x4,H100,4,1,1,{info('H100', 80)},7.6,,montreal-canada-2,", "h100-pcie"),
        ("shadeform", f"hyperstack_H100-sxm5x8,H100,8,1,1,{info('H100', 80)},19.2,,houston-usa-3,", "h100-sxm"),
        ("shadeform", f"latitude_H100,H100,1,1,1,{info('H100', 80)},1.99,,dallas-usa-1,", None),
        ("verda", f"1B300.30V,B300,1,1,1,{info('B300', 268288)},6.99,,FIN-03,", "b300"),
        ("primeintellect", "datacrunch__1xH100_80GB__30__120,H100,1,1,1,,1.97,,FI,", "h100-sxm"),
    ],
)
def test_pitfall_13_name_hints_and_machine_tell_cards_of_one_name_apart(cloud: str, line: str, slug: str | None):
    assert card_of(offers(cloud, line)[0]) == slug


# Pitfall 14: common/ metadata is wrong


def test_pitfall_14_no_memory_is_taken_from_the_catalogues_common_folder():
    assert all("/common/" not in url for document in DOCUMENTS.values() for url in document.urls)


# Pitfalls 15 and 16, aggregators


def test_pitfall_15_a_primeintellect_spot_line_pairs_with_its_on_demand_line():
    on_demand, spot = offers(
        "primeintellect",
        "datacrunch__1xL40S_48GB__20__60,L40S,1.0,20,60,,0.91,,FI,FIN-02",
        "datacrunch__1xL40S_48GB__20__60__SPOT,L40S,1.0,20,60,,,0.26,FI,FIN-02",
    )
    assert on_demand.instance_type == spot.instance_type == "datacrunch__1xL40S_48GB__20__60"
    assert (on_demand.market, spot.market) == (Market.ON_DEMAND, Market.SPOT)


def test_pitfall_15_primeintellect_takes_the_form_factor_from_the_upstream_type():
    header = HEADER.replace("GpuInfo", "UpstreamCloudId")
    line = "lambdalabs__1xH100_80GB__26__225,H100,1.0,26,225,gpu_1x_h100_sxm5,3.29,,US,us-south-2"
    [row] = offers("primeintellect", line, header=header)
    assert (row.cloud, row.form_factor, row.gpu_memory_gb, card_of(row)) == ("lambda", "SXM", Decimal(80), "h100-sxm")


def test_pitfall_16_shadeforms_misplaced_total_is_never_read():
    text = "\"{'Gpus': [{'Name': 'A100', 'MemoryInfo': {'SizeInMiB': 40}, 'TotalGpuMemoryInMiB': 320}]}\""
    [row] = offers("shadeform", f"denvr_A100-sxm4x8,A100,8.0,124,940,{text},10,,calgary-canada-1,")
    assert (row.gpu_memory_gb, row.form_factor, row.gpu_count_in_name) == (Decimal(40), "SXM", Decimal(8))


@pytest.mark.parametrize(
    ("aggregator", "instance_type", "cloud"),
    [
        ("shadeform", "lambdalabs_A100-sxm4", "lambda"),
        ("shadeform", "digitalocean_H100-sxm5x8", "digitalocean"),
        ("primeintellect", "datacrunch__1xA6000_48GB__10__60", "verda"),
        ("primeintellect", "crusoecloud__1xL40S_48GB__8__147", "crusoe"),
        ("primeintellect", "dc_roan__8xH100_80GB__104__1024", "primeintellect"),
    ],
)
def test_an_aggregators_row_belongs_to_the_cloud_that_runs_the_machine(aggregator, instance_type, cloud):
    [row] = offers(aggregator, f"{instance_type},A6000,1,10,60,,0.47,,US,")
    assert row.cloud == cloud


def test_a_line_repeated_with_another_price_counts_once_at_the_lower_one():
    lines = [f'1x-RTX_5090-32-65536,RTX5090,1,32,64,,{price},0.00,"Denmark, DK, EU",' for price in (0.44, 0.40, 0.50)]
    [row] = offers("vast", *lines)
    assert row.price_per_hour == Decimal("0.4")


# What is not a catalogue file


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"<!DOCTYPE html><html><body>Not Found</body></html>\n",
        b"404: Not Found\n",
        b"\xff\xfe\x00binary",
        f"{HEADER}\n".encode(),
        f"{HEADER}\ng5.xlarge,A10G,1.0,4,16,,1.006,0.4,us-east-1,use1-az1".encode(),
        f"{HEADER}\ng5.xlarge,A10G,1.0,4,16,,1.0\n".encode(),
        f"{HEADER}\ng5.xlarge,A10G,1.0,4,16,\"{{'Gpus': [\n".encode(),
        f"{HEADER}\ng5.xlarge,A10G,1.0,4,16,,about one,,us-east-1,use1-az1\n".encode(),
        f"{HEADER}\ng5.xlarge,A10G,1.0,4,16,,1e500,,us-east-1,use1-az1\n".encode(),
        f"{HEADER}\ng5.xlarge,A10G,1.0,4,16,,Infinity,,us-east-1,use1-az1\n".encode(),
        f"{HEADER.replace('Price,', 'Cost,', 1)}\ng5.xlarge,A10G,1.0,4,16,,1.006,,us-east-1,use1-az1\n".encode(),
    ],
)
def test_a_page_a_half_file_or_a_strange_format_is_rejected_whole(content: bytes):
    with pytest.raises(BodyRejected):
        list(SkyPilot().parse(body_of("aws", content), {}))


def test_every_cut_of_a_file_in_the_middle_of_a_line_is_rejected():
    whole = "\n".join(
        [HEADER, *(f"g5.{n}xlarge,A10G,1.0,4,16,,1.006,0.4,us-east-1,az{n}" for n in range(3)), ""]
    ).encode()
    for end in range(len(HEADER) + 2, len(whole)):
        if whole[end - 1 : end] != b"\n":
            with pytest.raises(BodyRejected):
                list(SkyPilot().parse(body_of("aws", whole[:end]), {}))


# Addresses and dates


def test_newer_schema_versions_are_asked_first_and_the_mirror_last():
    urls = DOCUMENTS["digitalocean"].urls
    assert urls[0].endswith("raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8/do/vms.csv")
    assert [url.split("/catalogs/")[1][:2] for url in urls] == ["v8", "v7", "v6", "v5"] * 2
    assert all(url.startswith("https://skypilot-catalog.s3.us-east-1.amazonaws.com/") for url in urls[4:])
    assert len(DOCUMENTS["digitalocean"].last_change_urls) == len(urls)


def test_a_price_carries_the_day_its_file_last_changed():
    line = f"{HEADER}\ng5.xlarge,A10G,1.0,4,16,,1.006,,us-east-1,use1-az1\n"
    known = body_of("aws", line, priced_on=date(2026, 11, 29), last_modified="Mon, 30 Nov 2026 06:00:00 GMT")
    mirrored = body_of("aws", line, last_modified="Mon, 30 Nov 2026 06:00:00 GMT")
    strange = body_of("aws", line, last_modified="yesterday")
    days = [
        next(iter(SkyPilot().parse(body, {}))).priced_on for body in (known, mirrored, strange, body_of("aws", line))
    ]
    assert days == [date(2026, 11, 29), date(2026, 11, 30), None, None]


@pytest.mark.parametrize(
    ("cloud", "region", "country"),
    [
        ("aws", "us-east-1", "US"),
        ("azure", "swedencentral", "SE"),
        ("gcp", "europe-west4", "NL"),
        ("digitalocean", "tor1", "CA"),
        ("verda", "FIN-03", "FI"),
        ("ovhcloud", "GRA", "FR"),
        ("vast", "The Netherlands, NL, EU", "NL"),
        ("vast", "US, NA", "US"),
        ("shadeform", "kristiansand-norway-2", "NO"),
        ("primeintellect", "IS", "IS"),
        ("hyperbolic", "default", ""),
        ("aws", "us-moon-1", ""),
        ("lambda", "europe-south-1", ""),
    ],
)
def test_a_region_gives_its_country_only_where_it_is_known(cloud: str, region: str, country: str):
    assert country_of(cloud, region) == country


# The saved files


@pytest.fixture(scope="module")
def saved(shared_data: Path) -> dict[str, list[OfferRow]]:
    folder = shared_data / "skypilot"
    hosts = {"gcp-hosts": body_of("gcp-hosts", (folder / "gcp_hosts.csv").read_bytes())}
    bodies = {key: body_of(key, (folder / document.file_name).read_bytes()) for key, document in DOCUMENTS.items()}
    return {key: list(SkyPilot().parse(body, hosts)) for key, body in bodies.items() if key != "gcp-hosts"}


def test_every_saved_file_is_read(saved: dict[str, list[OfferRow]]):
    on_demand = {key: sum(row.market is Market.ON_DEMAND for row in rows) for key, rows in saved.items()}
    assert on_demand == {
        "aws": 709, "azure": 829, "cudo": 72, "digitalocean": 2, "fluidstack": 14, "gcp": 499, "hyperbolic": 3,
        "hyperstack": 25, "ibm": 9, "jarvislabs": 16, "lambda": 391, "nebius": 21, "oci": 363, "ovhcloud": 42,
        "paperspace": 14, "primeintellect": 54, "runpod": 480, "scaleway": 4, "scp": 12, "seeweb": 27,
        "shadeform": 70, "vast": 64, "verda": 17,
    }  # fmt: skip


def test_no_saved_offer_appears_twice_or_carries_a_float(saved: dict[str, list[OfferRow]]):
    for rows in saved.values():
        keys = [
            (row.cloud, row.instance_type, row.gpu_name, row.gpu_count, row.region, row.zone, row.market)
            for row in rows
        ]
        assert len(keys) == len(set(keys))
        assert not any(isinstance(value, float) for row in rows for value in vars(row).values())


def test_no_saved_count_contradicts_its_instance_name(saved: dict[str, list[OfferRow]]):
    named = [row for rows in saved.values() for row in rows if row.gpu_count_in_name is not None]
    assert len(named) > 1000
    assert all(row.gpu_count == row.gpu_count_in_name for row in named)


@pytest.mark.parametrize(
    ("cloud", "name", "lowest", "highest"),
    [
        ("aws", "H100", "12.29", "13.16"),
        ("azure", "H100", "6.98", "23.34"),
        ("lambda", "H100", "3.29", "4.29"),
        ("shadeform", "H100", "1.90", "5.99"),
        ("vast", "H100", "1.80", "1.98"),
        ("verda", "H100", "2.29", "2.29"),
        ("nebius", "H200", "3.50", "3.50"),
        ("verda", "H200", "3.39", "3.39"),
        ("vast", "H200", "2.35", "2.83"),
        ("lambda", "B200", "6.69", "6.99"),
        ("nebius", "B200", "5.50", "5.50"),
        ("verda", "B200", "4.89", "4.89"),
        ("primeintellect", "B200", "4.40", "4.40"),
        ("lambda", "A100-80GB", "2.79", "2.79"),
        ("azure", "A100-80GB", "3.67", "8.20"),
        ("oci", "A100-80GB", "4.00", "4.00"),
        ("shadeform", "A100-80GB", "1.35", "3.22"),
        ("cudo", "L40S", "0.89", "0.99"),
        ("nebius", "L40S", "1.54", "2.76"),
        ("runpod", "RTX4090", "0.74", "0.74"),
        ("vast", "RTX 4090", "0.34", "0.44"),
    ],
)
def test_saved_prices_per_gpu_lie_in_their_known_bands(saved, cloud: str, name: str, lowest: str, highest: str):
    prices = [
        row.price_per_hour / row.gpu_count
        for row in saved[cloud]
        if row.gpu_name.startswith(name) and row.market is Market.ON_DEMAND
    ]
    assert prices
    assert Decimal(lowest) <= min(prices)
    assert max(prices) <= Decimal(highest)


def test_google_prices_hold_the_host(saved: dict[str, list[OfferRow]]):
    [a100] = [
        row
        for row in saved["gcp"]
        if row.instance_type == "a2-highgpu-1g" and row.region == "us-central1" and row.market is Market.ON_DEMAND
    ]
    assert a100.price_per_hour == Decimal("2.93391") + Decimal("0.73948")


def test_the_adapter_computes_without_floats():
    package = Path(skypilot.__file__).parent
    for file in package.glob("*.py"):
        with tokenize.open(file) as source:
            names = {token.string for token in tokenize.generate_tokens(source.readline)}
        assert "float" not in names


def test_the_saved_offers_mean_cards_of_the_catalogue_but_for_the_names_that_stay_unclear(saved):
    unclear = {
        (row.cloud, row.gpu_name)
        for rows in saved.values()
        for row in rows
        if not row.gpu_slug and card_of(row) is None
    }
    assert ("verda", "B300") not in unclear
    assert unclear == {
        ("cudo", "A100-80GB"), ("cudo", "H100"), ("cudo", "V100"), ("crusoe", "A100-80GB"), ("fluidstack", "H100"),
        ("horizon", "H100"), ("ibm", "V100"), ("jarvislabs", "H100"), ("latitude", "A100-80GB"), ("latitude", "H100"),
        ("oblivus", "A100-80GB"), ("oci", "P100"), ("ovhcloud", "A100-80GB"), ("ovhcloud", "V100"),
        ("paperspace", "A100-80GB"), ("paperspace", "H100"), ("paperspace", "M4000"), ("paperspace", "P4000"),
        ("paperspace", "V100"), ("paperspace", "V100-32GB"), ("scaleway", "H100"), ("scp", "A100-80GB"),
        ("scp", "V100-32GB"), ("seeweb", "A100"), ("seeweb", "H100"), ("vast", "RTX 3060 Ti"), ("vast", "Tesla V100"),
    }  # fmt: skip
