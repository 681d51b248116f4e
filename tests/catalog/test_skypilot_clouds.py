"""The pitfalls of single clouds in the SkyPilot files, one by one, and its aggregators."""

from decimal import Decimal

import pytest

from catalog.sources.base import Availability, Market
from tests.catalog.skypilot_lines import DOCUMENTS, HEADER, card_of, info, offers

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
