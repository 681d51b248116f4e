"""Names at large: spellings people and clouds use, thousands built from the cards' own facts, and look-alikes.

A wrong card is a defect; an unmapped name is only work for the operator. So every test here asks for the right card or
none, and the share that is mapped is measured against a floor.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.names import Hints, cloud_slug, default_index, resolve
from catalog.names.cards import ALSO_PRINTED_GB
from catalog.names.index import DATA

HERE = Path(__file__).resolve().parent
LEAST_MAPPED = 0.95


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


GPUS = {row["slug"]: row for row in lines_of(DATA / "gpus.csv")}
# The reference table calls the SXM card H200; as a name alone it is the NVL's too.
AMBIGUOUS_LABELS = {"H200"}


# Spellings written down by hand


def test_clear_spellings_that_no_file_lists_are_mapped():
    rows = lines_of(HERE / "clear_spellings.csv")
    listed = default_index().aliases.keys() | default_index().ambiguous.keys()
    unlisted = [row for row in rows if row["spelling"] not in listed]
    assert len(unlisted) > 350
    assert {row["slug"] for row in rows} == GPUS.keys()
    assert [
        (row["spelling"], row["slug"], resolve(row["spelling"])) for row in unlisted if _slug(row) != row["slug"]
    ] == []


def _slug(row: dict[str, str]) -> str | None:
    return resolve(row["spelling"]).slug


def test_the_catalogues_own_names_and_labels_are_mapped():
    for row in GPUS.values():
        assert resolve(row["name"]).slug == row["slug"]
        assert resolve(row["label"]).slug == (None if row["label"] in AMBIGUOUS_LABELS else row["slug"])


@pytest.mark.parametrize("name", (HERE / "other_products.txt").read_text().splitlines())
def test_other_products_slices_and_half_names_are_no_card(name):
    assert resolve(name).slug is None


# Spellings built from the cards' own facts


def spellings(row: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the parts of clear spellings: vendor or not, then model, size, memory type and a filler in some order."""
    size, kind = f"{row['memory_gb']}GB", row["memory_type"]
    vendors = ("", row["vendor"])
    model = row["name"].removeprefix(f"{row['vendor']} ").replace(" (per GPU)", "")
    bare = model.removeprefix("GeForce ").removeprefix("Instinct ")
    for vendor, words in product(vendors, dict.fromkeys((model, bare))):
        for extras in ((), (size,), (size, kind), ("GPU",), (size, "GPU")):
            yield tuple(part for part in (vendor, *words.split(), *extras) if part)


SEPARATORS = (" ", "-", "_")
CASES: Sequence[Callable[[str], str]] = (str, str.lower, str.upper)
ALL_SPELLINGS = [(slug, parts) for slug, row in GPUS.items() for parts in spellings(row)]


def test_nearly_all_spellings_built_from_a_cards_facts_are_mapped_and_none_to_another_card():
    results = [
        (slug, case(separator.join(parts)))
        for (slug, parts), separator, case in product(ALL_SPELLINGS, SEPARATORS, CASES)
    ]
    answers = [(slug, name, resolve(name).slug) for slug, name in results]
    assert [answer for answer in answers if answer[2] not in (answer[0], None)] == []
    mapped = sum(answer[2] is not None for answer in answers)
    assert mapped / len(answers) >= LEAST_MAPPED, [answer for answer in answers if answer[2] is None][:40]


@st.composite
def mixed_spellings(draw) -> tuple[str, str]:
    """A card, and a spelling of it with separators and case mixed within the name, or none between some words."""
    slug, parts = draw(st.sampled_from(ALL_SPELLINGS))
    name = ""
    for part in parts:
        glue = draw(st.sampled_from((*SEPARATORS, "  ", " - ", "")))
        name += (glue if name else "") + draw(st.sampled_from(CASES))(part)
    return slug, name


@given(mixed_spellings())
def test_however_a_name_is_glued_it_is_its_card_or_none(spelling):
    slug, name = spelling
    assert resolve(name).slug in (slug, None)


@given(mixed_spellings(), st.integers(min_value=1, max_value=16))
def test_a_count_before_or_after_the_name_changes_nothing(spelling, count):
    slug, name = spelling
    for counted in (f"{count}x {name}", f"{name} x{count}"):
        assert resolve(counted).slug in (slug, None)


# Look-alikes: one word more, or another size, is another product


LOOK_ALIKE_WORDS = (
    "D", "Ti", "SUPER", "S", "X", "G", "XT", "Laptop", "Laptop GPU", "Max-Q", "Mobile", "MIG", "MIG 1g.10gb",
    "1g.5gb", "MIG 3g.40gb", "24Q", "40C", "vGPU", "48Q", "Ada", "PRO", "SFF", "Server", "CNX", "Lite", "V2", "Plus",
    "D V2", "half", "0.5", "1/2", "slice",
)  # fmt: skip
TURNS_INTO = {("l40", "S"): "l40s", ("a10", "G"): "a10g", ("t4", "G"): "t4g", ("mi250", "X"): "mi250x"}


@given(mixed_spellings(), st.sampled_from(LOOK_ALIKE_WORDS), st.sampled_from((" ", "-", "")))
def test_a_word_more_is_never_still_the_same_card_unless_it_says_nothing_new(spelling, word, separator):
    slug, name = spelling
    longer = f"{name}{separator}{word}"
    if says_nothing_new(slug, word) or longer.lower().endswith("gpus"):
        return
    answer = resolve(longer).slug
    assert answer != slug
    assert answer in (None, TURNS_INTO.get((slug, word))) or says_nothing_new(answer, word)


def says_nothing_new(slug: str, word: str) -> bool:
    """Tell whether the word belongs to the card (its architecture Ada, its edition Server, the Ti it has)."""
    own = words_in(GPUS[slug])
    return set(word.lower().replace("-", "").split()) <= own or (slug.startswith("tpu-") and word in ("slice", "Lite"))


def words_in(row: dict[str, str]) -> set[str]:
    text = f"{row['name']} {row['architecture']} {row['slug']}".lower().replace("max-q", "maxq")
    words = set(text.replace("-", " ").replace("(", " ").replace(")", " ").split())
    return words | ({"s"} if words & {"super", "server"} else set())


@given(
    mixed_spellings(),
    st.sampled_from((3, 4, 5, 6, 8, 10, 11, 12, 16, 20, 22, 24, 32, 40, 48, 64, 72, 80, 96, 128, 256)),
)
def test_another_memory_size_in_the_name_is_never_the_same_card(spelling, size_gb):
    slug, name = spelling
    row = GPUS[slug]
    if size_gb in (int(row["memory_gb"]), *ALSO_PRINTED_GB.get(slug, ())):
        return
    assert resolve(f"{name} {size_gb}GB").slug != slug
    assert resolve(f"{name}-{size_gb}g").slug != slug


# The names in the reference catalogues


def test_each_name_of_the_reference_catalogues_is_its_card_or_unmapped(shared_data):
    expected = {
        (row["file"], row["name"]): set(row["slugs"].split("|")) for row in lines_of(HERE / "skypilot_names.csv")
    }
    seen = set()
    for path in sorted((shared_data / "skypilot").glob("*.csv")):
        for row in lines_of(path):
            if row["AcceleratorName"]:
                key = (path.stem, row["AcceleratorName"])
                seen.add(key)
                assert (_card_in(path.stem, row) or "") in expected[key], (key, row["InstanceType"])
    assert seen == expected.keys()


def _card_in(file_name: str, row: dict[str, str]) -> str | None:
    machine = row["InstanceType"]
    seller = {
        "shadeform": machine.split("_")[0],
        "primeintellect": machine.split("__")[0],
        "aws_ondemand_2026-07": "aws",
    }
    cloud = cloud_slug(seller.get(file_name, file_name))
    return resolve(row["AcceleratorName"], hints=Hints(cloud=cloud, instance_type=machine)).slug
