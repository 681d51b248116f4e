"""The whole set of price sources: what each must have, so that adding one takes a file, a line and a test file."""

import csv
import inspect
import keyword
import pkgutil
import re
from collections import Counter
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from catalog import sources
from catalog.freshness import LIVE_FOR
from catalog.models import SourceDocument
from catalog.names import Hints, resolve
from catalog.sources import ALL_SOURCES, source_named
from catalog.sources.base import Body, BodyRejected, Document, KeyedSource, PacedSource, Source
from tests.catalog.source_bodies import READ_AT, rows_of_file

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "adding-a-source.md"
SOURCE_LIST = ROOT / "docs" / "sources.md"
FEEDS = {
    "akash": ["akash.json"],
    "azure": ["azure.json"],
    "cudo": ["cudo.json"],
    "digitalocean": ["digitalocean.json"],
    "lambda": ["lambda.json"],
    "oci": ["oci.json"],
    "ovh": ["ovh.json"],
    "primeintellect": ["primeintellect.json"],
    "runpod": ["runpod.json", "runpod_v2_catalog_gpus.json"],
    "scaleway": ["scaleway.json"],
    "shadeform": ["shadeform.json"],
    "tensordock": ["tensordock.json"],
    "vast": ["vast.json"],
    "verda": ["verda_instance_types.json"],
    "vultr": ["vultr.json"],
}
# Companions: read beside another document, never alone.
BESIDE_OTHERS = {"scaleway_availability.json", "verda_instance_availability.json"}
# Names in the shared samples, by source, that mean no card of ours or more than one, and must not be guessed.
LEFT_TO_REVIEW = {
    "ovh": {"H100"},  # no form factor is told, and 80 GB are of the SXM card as well as of the PCIe card
    "vast": {"RTX 4090 rebuilt to 48 GB"},
    "vultr": {"NVIDIA_A100"},  # likewise
}

each_source = pytest.mark.parametrize("source", ALL_SOURCES, ids=lambda source: source.name)
each_feed = pytest.mark.parametrize(("name", "file_name"), [(name, file) for name in FEEDS for file in FEEDS[name]])


def documents_of(source: Source) -> list[Document]:
    """Return the documents as they are asked for with a key, where one is taken."""
    return list(source.documents_with("key") if isinstance(source, KeyedSource) else source.documents())


def test_each_source_is_listed_once():
    assert [name for name, times in Counter(source.name for source in ALL_SOURCES).items() if times > 1] == []
    assert len({type(source) for source in ALL_SOURCES}) == len(ALL_SOURCES)


def test_no_adapter_lies_in_the_folder_without_being_listed():
    names = [f"catalog.sources.{module.name}" for module in pkgutil.iter_modules(sources.__path__)]
    adapters = {
        member
        for module in map(import_module, names)
        for _, member in inspect.getmembers(module, inspect.isclass)
        if member.__module__ == module.__name__ and hasattr(member, "adapter_version")
    }
    assert adapters == {type(source) for source in ALL_SOURCES}


@each_source
def test_a_source_lies_in_the_file_of_its_name(source: Source):
    expected = f"{source.name}_cloud" if keyword.iskeyword(source.name) else source.name
    assert type(source).__module__ == f"catalog.sources.{expected}"


@each_source
def test_a_source_has_a_test_file_that_uses_it(source: Source):
    tests = ROOT / "tests" / "catalog" / f"test_{source.name}_source.py"
    assert tests.is_file()
    assert re.search(rf"\b{type(source).__name__}\(\)", tests.read_text())


@each_source
def test_a_source_says_who_it_is(source: Source):
    assert source.title
    assert source.adapter_version
    assert source.adapter_version.isascii()
    assert type(source).parse.__doc__
    assert import_module(type(source).__module__).__doc__


@each_source
def test_a_source_of_the_network_has_a_homepage_and_addresses_under_https(source: Source):
    if not source.needs_network:
        return
    addresses = [url for document in documents_of(source) for url in document.urls]
    assert addresses
    assert {urlsplit(url).scheme for url in [source.homepage, *addresses]} == {"https"}


@each_source
def test_the_documents_of_a_source_can_be_told_apart_and_stored(source: Source):
    documents = documents_of(source)
    keys = [document.key for document in documents]
    assert len(set(keys)) == len(keys)
    assert len({document.file_name for document in documents}) == len(documents)
    for document in documents:
        for url in document.urls or [""]:
            SourceDocument(key=document.key, url=url).clean_fields(exclude=["source"])


@each_source
@pytest.mark.parametrize(
    "content", [b"<!DOCTYPE html><title>502</title>", b"", b'{"half": [', b"null", b"{}", b"\xff\xfe"]
)
def test_what_is_no_answer_of_a_source_is_refused(source: Source, content: bytes):
    for document in source.documents():
        if not document.companion_of:
            body = Body(document=document, content=content, fetched_at=READ_AT)
            with pytest.raises(BodyRejected):
                list(source.parse(body, {}))


@each_source
def test_a_companion_stands_beside_a_document_of_its_source(source: Source):
    documents = documents_of(source)
    main_keys = {document.key for document in documents if not document.companion_of}
    assert {document.companion_of for document in documents if document.companion_of} <= main_keys


@each_source
def test_a_key_has_its_setting_and_goes_nowhere_but_into_a_header(source: Source):
    if not isinstance(source, KeyedSource):
        assert not hasattr(source, "key_setting")
        return
    assert source.key_setting in settings.SOURCE_KEYS
    for document in source.documents_with("a-secret"):
        assert "a-secret" not in repr(document)
        assert "a-secret" not in f"{document.urls}{document.json_body}"


def test_no_setting_is_left_for_a_key_that_no_source_wants():
    assert set(settings.SOURCE_KEYS) == {
        source.key_setting for source in ALL_SOURCES if isinstance(source, KeyedSource)
    }


def test_no_shared_sample_is_left_unread(shared_data: Path):
    saved = {file.name for file in (shared_data / "feeds").glob("*.json")}
    assert saved == {file_name for files in FEEDS.values() for file_name in files} | BESIDE_OTHERS


@each_source
def test_a_source_that_is_paced_is_still_asked_before_its_prices_grow_old(source: Source):
    if isinstance(source, PacedSource):
        assert (
            timedelta(minutes=settings.SOURCE_INTERVAL_MINUTES) < timedelta(minutes=source.interval_minutes) < LIVE_FOR
        )


@each_feed
def test_each_name_of_the_shared_samples_means_a_card_or_is_left_to_review(
    shared_data: Path, name: str, file_name: str
):
    rows = rows_of_file(source_named(name), shared_data / "feeds" / file_name)
    unknown = {
        row.gpu_name
        for row in rows
        if not resolve(
            row.gpu_name,
            hints=Hints(
                memory_gb=row.gpu_memory_gb,
                form_factor=row.form_factor,
                cloud=row.cloud,
                instance_type=row.instance_type,
            ),
        ).slug
    }
    assert unknown == LEFT_TO_REVIEW.get(name, set())


@each_feed
def test_each_cloud_of_the_shared_samples_is_known(shared_data: Path, name: str, file_name: str):
    with (ROOT / "catalog" / "data" / "clouds.csv").open(encoding="utf-8") as lines:
        known = {row["slug"] for row in csv.DictReader(lines)}
    assert {row.cloud for row in rows_of_file(source_named(name), shared_data / "feeds" / file_name)} <= known


@each_source
def test_a_source_is_in_the_list_of_sources_with_its_key(source: Source):
    (line,) = [line for line in SOURCE_LIST.read_text().splitlines() if f"| `{source.name}` |" in line]
    assert (f"`{source.key_setting}`" in line) if isinstance(source, KeyedSource) else "| none |" in line


def test_a_key_reaches_the_site_in_production():
    composed = (ROOT / "docker-compose.yml").read_text()
    assert {name for name in settings.SOURCE_KEYS if f"{name}: ${{{name}:-}}" not in composed} == set()


def test_the_guide_names_only_files_that_exist():
    named = set(re.findall(r"`((?:catalog|config|tests)/[\w/.]+)`", GUIDE.read_text()))
    assert named
    assert {path for path in named if not (ROOT / path).exists() and not list(ROOT.glob(f"{path}.py"))} == set()
