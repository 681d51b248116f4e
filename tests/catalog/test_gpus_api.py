"""`gpus/` and `gpus/<slug>/`: the whole catalogue, in numbers or null."""

import csv
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.test import Client

from catalog.models import Gpu
from tests.factories import make_best_ask, make_gpu, make_offer

LIST = "/api/v1/gpus/"
FIGURES = {
    "memory_gb",
    "memory_bandwidth_gb_s",
    "bf16_dense_tflops",
    "fp16_dense_tflops",
    "fp8_dense_tflops",
    "fp4_dense_tflops",
    "tf32_dense_tflops",
    "fp32_tflops",
    "fp64_tflops",
    "int8_dense_tops",
    "nvlink_gb_s",
    "tdp_w",
}
WORDS = {"slug", "name", "vendor", "architecture", "form_factor", "memory_type", "interconnect", "compute_capability"}
REST = {"ecc", "mig", "rt_cores", "software_stack", "sources", "full_training_b_params", "prices"}

pytestmark = pytest.mark.django_db


def get(query: str = "", path: str = LIST):
    response = Client().get(path + query)
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def slugs(query: str) -> list[str]:
    return [gpu["slug"] for gpu in get(query)["results"]]


def refused(query: str) -> dict[str, str]:
    response = Client().get(LIST + query)
    assert response.status_code == 400
    return {error["field"]: error["code"] for error in json.loads(response.content)["errors"]}


def test_every_gpu_of_the_data_file_comes_in_one_page_cell_by_cell(site_data, shared_data):
    found = {gpu["slug"]: gpu for gpu in get()["results"]}
    rows = list(csv.DictReader((shared_data / "gpus.csv").read_text(encoding="utf-8").splitlines()))
    assert list(found) == [row["slug"] for row in rows]
    for row in rows:
        gpu = found[row["slug"]]
        for column in FIGURES & row.keys():
            expected = Decimal(row[column]) if row[column] else None
            printed = gpu[column]
            assert (None if printed is None else Decimal(str(printed))) == expected, (row["slug"], column)
        for column in (WORDS | {"software_stack"}) & row.keys():
            assert gpu[column] == (row[column] or None), (row["slug"], column)
        for column in ("ecc", "mig", "rt_cores"):
            assert gpu[column] is {"yes": True, "no": False, "": None}[row[column]], (row["slug"], column)


def test_a_gpu_has_every_field_of_the_contract():
    make_gpu()
    gpu = get()["results"][0]
    assert gpu.keys() >= FIGURES | WORDS | REST


def test_figures_are_numbers_without_needless_decimals_and_null_where_nobody_published_one():
    make_gpu(memory_gb=Decimal("80.00"), fp64_tflops=Decimal("1.250"), fp4_dense_tflops=None, interconnect="", ecc=None)
    text = Client().get(LIST).content.decode()
    for part in (
        '"memory_gb":80,',
        '"fp64_tflops":1.25,',
        '"fp4_dense_tflops":null',
        '"interconnect":null',
        '"ecc":null',
    ):
        assert part in text


def test_sources_say_who_published_the_figures():
    make_gpu(source_url="https://maker.example/x", second_source_url="https://other.example/y")
    assert get()["results"][0]["sources"] == [
        {"url": "https://maker.example/x", "kind": "vendor"},
        {"url": "https://other.example/y", "kind": "second"},
    ]


@pytest.mark.parametrize(
    ("memory_gb", "sizes"),
    [(80, (4, 30)), (94, (4, 35)), (141, (7, 55)), (180, (9, 70)), (192, (9, 75)), (256, (10, 100)), (288, (10, 110))],
)
def test_training_sizes_are_those_of_the_simple_rule(memory_gb, sizes):
    make_gpu(memory_gb=Decimal(memory_gb))
    assert get()["results"][0]["full_training_b_params"] == {"1": sizes[0], "8": sizes[1]}


def test_prices_of_a_gpu_are_those_of_the_price_list():
    gpu = make_gpu()
    make_offer(gpu=gpu, price="2.19", observed_at=datetime.now(UTC))
    make_best_ask(gpu=gpu, price="1.99")
    assert get()["results"][0]["prices"] == get(path="/api/v1/prices/")["results"][0]


def test_one_gpu_is_answered_as_in_the_list():
    make_gpu()
    make_gpu(slug="a100-sxm")
    assert get(path="/api/v1/gpus/a100-sxm/") == get()["results"][1]


def test_a_gpu_nobody_has_heard_of_is_a_404_document():
    response = Client().get("/api/v1/gpus/h900/")
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")


def test_filters_narrow_the_list_and_take_several_values_in_any_case():
    make_gpu(slug="h100-sxm")
    make_gpu(slug="mi300x", vendor="AMD", architecture="CDNA 3", memory_gb=Decimal(192), software_stack="ROCm")
    make_gpu(slug="max-1550", vendor="Intel", architecture="Xe-HPC", memory_gb=Decimal(128), software_stack="oneAPI")
    assert slugs("?vendor=amd,Intel") == ["mi300x", "max-1550"]
    assert slugs("?architecture=CDNA 3") == ["mi300x"]
    assert slugs("?software_stack=rocm,cuda") == ["h100-sxm", "mi300x"]
    assert slugs("?memory_gb_min=128&memory_gb_max=128.0") == ["max-1550"]
    assert slugs("?vendor=AMD&memory_gb_max=100") == []


def test_search_wants_every_word_in_any_order():
    make_gpu(slug="h100-nvl", name="NVIDIA H100 NVL")
    make_gpu(slug="h100-sxm", name="NVIDIA H100 SXM")
    assert slugs("?search=nvl h100") == ["h100-nvl"]
    assert slugs("?search=H100") == ["h100-nvl", "h100-sxm"]
    assert slugs("?search=100%25") == []  # a percent sign is a letter like any other


def test_a_gpu_without_the_figure_comes_last_whichever_way_the_list_is_sorted():
    make_gpu(slug="none", tdp_w=None)
    make_gpu(slug="cool", tdp_w=300)
    make_gpu(slug="hot", tdp_w=1000)
    assert slugs("?ordering=tdp_w") == ["cool", "hot", "none"]
    assert slugs("?ordering=-tdp_w") == ["hot", "cool", "none"]


def test_pages_join_up_to_the_whole_list(site_data):
    whole = slugs("?ordering=-fp64_tflops")
    url, joined = f"{LIST}?ordering=-fp64_tflops&limit=50", []
    while url:
        page = get(path=url)
        joined += [gpu["slug"] for gpu in page["results"]]
        url = page["next"]
    assert joined == whole
    assert len(set(joined)) == Gpu.objects.count()


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ("?memory=80", "memory", "unknown_parameter"),
        ("?vendor=NVIDIA&vendor=AMD", "vendor", "repeated"),
        ("?vendor=Voodoo", "vendor", "unknown"),
        ("?vendor=", "vendor", "blank"),
        ("?memory_gb_min=nan", "memory_gb_min", "invalid"),
        ("?memory_gb_min=", "memory_gb_min", "invalid"),
        ("?memory_gb_max=1e400", "memory_gb_max", "max_value"),
        ("?ordering=price", "ordering", "invalid_choice"),
        ("?ordering=--tdp_w", "ordering", "invalid_choice"),
        ("?search=%00", "search", "null_characters_not_allowed"),
        ("?limit=501", "limit", "max_value"),
        ("?limit=0", "limit", "min_value"),
        ("?cursor=abc", "cursor", "invalid"),
        ("?format=json", "format", "unknown_parameter"),
    ],
)
def test_bad_parameters_are_refused_by_name(query, field, code):
    make_gpu()
    assert refused(query) == {field: code}


def test_the_whole_list_takes_few_queries_however_many_gpus_there_are(site_data, django_assert_max_num_queries):
    with django_assert_max_num_queries(6):
        get()
