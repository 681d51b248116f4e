"""The SkyPilot adapter: what is no catalogue file, addresses and dates, and the saved files as a whole."""

import tokenize
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.sources import skypilot
from catalog.sources.base import BodyRejected, Market, OfferRow
from catalog.sources.regions import country_of
from catalog.sources.skypilot import SkyPilot
from tests.catalog.skypilot_lines import DOCUMENTS, HEADER, body_of, card_of

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
