"""Loading the catalogue: what the data files must be, and that the tables follow them without losing anything."""

import csv
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.load_catalogue import DATA, CatalogueInvalid, load_catalogue, read_clouds, read_gpus
from catalog.models import BestAsk, Cloud, Gpu
from tests.factories import NOW, make_cloud, make_gpu, make_offer

REFERENCE_LABELS = {
    "b300": "B300",
    "b200": "B200",
    "mi325x": "MI325X",
    "mi300x": "MI300X",
    "h200-sxm": "H200",
    "h100-nvl": "H100 NVL",
    "h100-sxm": "H100 SXM",
    "a100-sxm-80gb": "A100 SXM",
    "a100-pcie-80gb": "A100 PCIe",
    "rtx-4090": "RTX 4090",
}


@pytest.fixture
def data(tmp_path) -> Path:
    """A copy of the data folder whose files a test may change."""
    for name in ("gpus.csv", "clouds.csv"):
        shutil.copy(DATA / name, tmp_path / name)
    (tmp_path / "cloud_facts.csv").write_text("cloud,fact,value,note,source_url,checked_on\n")
    return tmp_path


def rewrite(path: Path, change) -> None:
    """Write the file's rows again as `change` returns them; the header is that of its first row."""
    with path.open(newline="") as lines:
        rows = change(list(csv.DictReader(lines)))
    with path.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def with_cell(path: Path, slug: str, column: str, text: str) -> None:
    rewrite(path, lambda rows: [{**row, column: text} if row["slug"] == slug else row for row in rows])


# What the repository's own files hold


def test_the_file_holds_115_gpus_with_short_unique_labels():
    gpus = read_gpus(DATA / "gpus.csv")
    assert len(gpus) == 115
    assert {gpu.slug: gpu.label for gpu in gpus if gpu.slug in REFERENCE_LABELS} == REFERENCE_LABELS
    assert [gpu.position for gpu in gpus] == list(range(1, 116))


def test_every_figure_of_the_reference_data_is_carried_over(shared_data):
    with (shared_data / "gpus.csv").open(newline="") as lines:
        reference = list(csv.DictReader(lines))
    with (DATA / "gpus.csv").open(newline="") as lines:
        ours = {row["slug"]: row for row in csv.DictReader(lines)}
    for row in reference:
        assert {column: ours[row["slug"]][column] for column in row if column != "notes"} == {
            column: cell for column, cell in row.items() if column != "notes"
        }


def test_a_blank_cell_is_not_published_and_never_zero():
    gpus = {gpu.slug: gpu for gpu in read_gpus(DATA / "gpus.csv")}
    assert gpus["b300"].int8_dense_tops is None
    assert gpus["l40s"].fp64_tflops is None
    assert gpus["gaudi-1"].bf16_dense_tflops is None
    assert not [
        (gpu.slug, field.name)
        for gpu in gpus.values()
        for field in Gpu._meta.concrete_fields
        if isinstance(value := getattr(gpu, field.name), Decimal) and value == 0
    ]


def test_each_cloud_of_the_reference_catalogues_is_known(shared_data):
    known = {cloud.slug for cloud in read_clouds(DATA / "clouds.csv")}
    files = {path.stem for path in (shared_data / "skypilot").glob("*.csv")}
    expected = files - {"do", "gcp_hosts", "aws_ondemand_2026-07"} | {"digitalocean"}
    assert expected <= known
    assert {"akash", "crusoe", "primeintellect", "shadeform", "tensordock", "vultr"} <= known


# Storing


@pytest.mark.django_db
def test_a_first_load_fills_both_tables():
    report = load_catalogue(now=NOW)
    assert (report.gpus.created, Gpu.objects.count()) == (115, 115)
    assert report.clouds.created == Cloud.objects.count() > 30
    h100 = Gpu.objects.get(slug="h100-sxm")
    assert (h100.label, h100.memory_gb, h100.released) == ("H100 SXM", Decimal(80), "2022-03")
    assert (h100.mig, h100.nvenc) == (True, 0)
    assert Gpu.objects.get(slug="k80").nvenc is None
    assert not h100.rt_cores
    assert Gpu.objects.get(slug="l40s").rt_cores


@pytest.mark.django_db
def test_a_second_load_changes_nothing():
    load_catalogue(now=NOW)
    before = list(Gpu.objects.order_by("pk").values()), list(Cloud.objects.order_by("pk").values())
    report = load_catalogue(now=NOW)
    assert (report.gpus.created, report.gpus.changed, report.gpus.unchanged) == (0, 0, 115)
    assert (report.clouds.created, report.clouds.changed) == (0, 0)
    assert (list(Gpu.objects.order_by("pk").values()), list(Cloud.objects.order_by("pk").values())) == before


@pytest.mark.django_db
def test_a_changed_cell_is_updated_in_place(data):
    load_catalogue(now=NOW, data=data)
    key = Gpu.objects.get(slug="b200").pk
    with_cell(data / "gpus.csv", "b200", "memory_bandwidth_gb_s", "8000")
    with_cell(data / "clouds.csv", "digitalocean", "website", "https://cloud.digitalocean.com")
    report = load_catalogue(now=NOW, data=data)
    assert (report.gpus.changed, report.clouds.changed) == (1, 1)
    assert Gpu.objects.get(pk=key).memory_bandwidth_gb_s == 8000


@pytest.mark.django_db
def test_rows_may_change_places_and_swap_labels(data):
    load_catalogue(now=NOW)
    with_cell(data / "gpus.csv", "b300", "label", "B200 too")
    with_cell(data / "gpus.csv", "b200", "label", "B300")
    with_cell(data / "gpus.csv", "b300", "label", "B200")
    rewrite(data / "gpus.csv", lambda rows: list(reversed(rows)))
    load_catalogue(now=NOW, data=data)
    assert Gpu.objects.get(position=1).slug == "tt-n300"
    assert (Gpu.objects.get(slug="b300").label, Gpu.objects.get(slug="b300").position) == ("B200", 115)


@pytest.mark.django_db
def test_a_gpu_that_left_the_file_goes_unless_something_uses_it(data):
    load_catalogue(now=NOW)
    make_offer(gpu=Gpu.objects.get(slug="b300"), price="8.99", cloud="lambda")
    BestAsk.objects.create(
        gpu=Gpu.objects.get(slug="b200"), price_usd_per_gpu_hour=Decimal(8), devices_available=1, observed_at=NOW
    )
    gone = {"b300", "b200", "gb200"}
    rewrite(data / "gpus.csv", lambda rows: [row for row in rows if row["slug"] not in gone])
    rewrite(data / "clouds.csv", lambda rows: [row for row in rows if row["slug"] not in {"lambda", "vast"}])
    for _ in range(2):
        report = load_catalogue(now=NOW, data=data)
        assert (report.gpus.kept, report.clouds.kept) == (("b200", "b300"), ("lambda",))
    assert not Gpu.objects.filter(slug="gb200").exists()
    assert list(Gpu.objects.filter(position__gt=112).order_by("position").values_list("slug", "label")) == [
        ("b300", "B300"),
        ("b200", "B200"),
    ]


@pytest.mark.django_db
def test_removals_are_reported(data):
    make_gpu(slug="old-card")
    make_cloud(slug="old-cloud")
    report = load_catalogue(now=NOW, data=data)
    assert (report.gpus.removed, report.clouds.removed) == (("old-card",), ("old-cloud",))


# Files that are refused


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("memory_gb", "eighty", r"gpus.csv line 8 \(h100-sxm\), column memory_gb: 'eighty' is not a number"),
        ("memory_gb", "0", "column memory_gb: '0' is not a number above zero"),
        ("memory_gb", "", "column memory_gb: '' is not a number above zero"),
        ("fp64_tflops", "-34", "column fp64_tflops: '-34' is not a number of zero or more"),
        ("fp64_tflops", "NaN", "column fp64_tflops: 'NaN' is not a number"),
        ("fp64_tflops", "3,5", "column fp64_tflops: '3,5' is not a number"),
        ("fp64_tflops", "34.00001", "column fp64_tflops: Ensure that there are no more than 3 decimal places"),
        ("tdp_w", "700.5", "column tdp_w: '700.5' is not a whole number"),
        ("mig", "maybe", "column mig: 'maybe' is neither yes, no nor blank"),
        ("release_date", "March 2022", "column release_date: 'March 2022' is not a month"),
        ("label", "", "column label: must not be blank"),
        ("label", "H100 NVL", "column label: 'H100 NVL' stands in gpus.csv line 8"),
        ("source_url", "nvidia", "column source_url: Enter a valid URL"),
        ("vendor", "N" * 41, "column vendor: Ensure this value has at most 40 characters"),
    ],
)
def test_a_bad_cell_is_named(data, column, text, message):
    with_cell(data / "gpus.csv", "h100-sxm", column, text)
    with pytest.raises(CatalogueInvalid, match=message):
        read_gpus(data / "gpus.csv")


def test_unknown_missing_and_doubled_columns_are_named(data):
    path = data / "gpus.csv"
    original = path.read_text()
    rewrite(path, lambda rows: [{**row, "colour": "green"} for row in rows])
    with pytest.raises(CatalogueInvalid, match="unknown column 'colour'"):
        read_gpus(path)
    path.write_text(original.replace(",notes,", ",tdp_w,", 1))
    with pytest.raises(CatalogueInvalid, match="column 'notes' is missing"):
        read_gpus(path)
    path.write_text(original.replace(",notes,", ",notes,notes,", 1))
    with pytest.raises(CatalogueInvalid, match="column 'notes' stands twice"):
        read_gpus(path)


def test_a_row_of_another_length_is_named(data):
    path = data / "clouds.csv"
    path.write_text(path.read_text() + "newcloud,New Cloud\n")
    with pytest.raises(CatalogueInvalid, match=r"clouds.csv line \d+ \(newcloud\) has not as many cells"):
        read_clouds(path)
    path.write_text("slug,name,website\nnewcloud,New Cloud,https://example.com,more\n")
    with pytest.raises(CatalogueInvalid, match=r"\(newcloud\) has not as many cells"):
        read_clouds(path)


@pytest.mark.django_db
def test_a_bad_file_changes_nothing(data):
    load_catalogue(now=NOW)
    with_cell(data / "gpus.csv", "b300", "label", "Renamed")
    with_cell(data / "clouds.csv", "aws", "website", "not an address")
    with pytest.raises(CatalogueInvalid, match=r"clouds.csv line \d+ \(aws\), column website"):
        load_catalogue(now=NOW, data=data)
    assert Gpu.objects.get(slug="b300").label == "B300"
