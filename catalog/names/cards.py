"""What may stand in the name of each card, derived from its row in `data/gpus.csv`.

A name is read as a set of words. It fits a card when one of the card's cores (the words that make its model) is in it,
and every other word is one the card allows: its vendor and product line, its architecture, its form factor, its exact
memory size and type, and a few words without meaning ("Tensor Core GPU"). Any other word (D, Ti, Laptop, a MIG
profile, a size the card does not have) makes it another product, and the name fits nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from catalog.names.words import words_of

Words = frozenset[str]

FILLER = frozenset(
    (
        "gpu",
        "gpus",
        "graphics",
        "card",
        "tensor",
        "core",
        "cores",
        "ai",
        "accelerator",
        "vram",
        "memory",
        "per",
        "compute",
        "mode",
    )
)
EDITION_FILLER = frozenset(("generation", "edition"))
VENDOR_WORDS = {
    "NVIDIA": frozenset(("nvidia",)),
    "AMD": frozenset(("amd",)),
    "Intel": frozenset(("intel", "habana")),
    "Google": frozenset(("google", "cloud", "tpu")),
    "AWS": frozenset(("aws", "amazon")),
    "Tenstorrent": frozenset(("tenstorrent", "tt", "wormhole")),
}
EDITIONS = {
    "server": frozenset(("server", "se", "s")),
    "workstation": frozenset(("workstation", "ws", "we", "wk")),
    "maxq": frozenset(("maxq",)),
}
TPU_SLICE_WORDS = frozenset(("pod", "podslice", "slice", "device"))

# Models that makers and clouds write in more than one way, or whose name is spread over several words.
WRITTEN_AS = {
    "gaudi-1": ("gaudi hl 205", "hl 205", "gaudi 1"),
    "inferentia-1": ("inferentia", "inferentia 1"),
    "inferentia-2": ("inferentia 2",),
    "trainium-1": ("trainium", "trainium 1"),
    "trainium-2": ("trainium 2",),
    "max-1550": ("max 1550", "data center max 1550"),
    "tpu-v4": ("tpu v4",),
    "tpu-v5e": ("v5e", "v5 lite", "v5 litepod"),
    "tpu-v5p": ("v5p",),
    "tpu-v6e": ("v6e", "v6e trillium", "tpu trillium"),
    "tpu-7x": ("tpu7x", "tpu 7x", "tpu v7", "tpu v7x", "tpu ironwood"),
}

# Sizes in GB that vendors and tools also print for the same card (usable, launch or per-host figures; see its notes).
ALSO_PRINTED_GB = {
    "b300": (268, 269, 270),
    "b200": (192,),
    "gb200": (192,),
    "gb300": (279,),
    "gh200-144gb": (141,),
}

# Turing's Quadro RTX and the Ada cards share these numbers: without Quadro, Ada or a size either may be meant.
SHARED_NUMBERS = frozenset(("4000", "5000", "6000"))

_WORKSTATION_AMPERE = re.compile(r"a\d{4}")
_MEMORY_WORD = re.compile(r"\d+gb")


class Kind(StrEnum):
    """Form factors that make one NVIDIA model into different products."""

    SXM = "sxm"
    PCIE = "pcie"
    NVL = "nvl"


KIND_WORDS = {
    Kind.SXM: frozenset(("sxm", "hgx", "dgx")),
    Kind.PCIE: frozenset(("pcie", "pci")),
    Kind.NVL: frozenset(("nvl",)),
}


@dataclass(frozen=True, kw_only=True)
class Card:
    """One row of the catalogue as names see it. `kind` is None for superchips and for makers other than NVIDIA.

    `allowed_beside` are words that mean something only beside another: an H100 NVL is a PCIe board too, an H100 PCIe is
    not an NVL. `slice_allowed`: a number may name a slice of such chips (`v5litepod-8`). `size_must_be_stated` marks
    cards that exist with another memory size under the same name.
    """

    slug: str
    kind: Kind | None
    memory_gb: Decimal
    cores: tuple[Words, ...]
    allowed: Words
    allowed_beside: tuple[tuple[str, Words], ...] = ()
    slice_allowed: bool = False
    size_must_be_stated: bool = False


@dataclass(frozen=True, kw_only=True)
class _Line:
    """How a product line writes its models."""

    cores: tuple[Words, ...]
    allowed: Words = frozenset()
    allowed_beside: tuple[tuple[str, Words], ...] = ()


def cards_from_rows(rows: Iterable[Mapping[str, str]]) -> dict[str, Card]:
    """Return the cards by slug, in the order of the rows. Reads eight columns of `data/gpus.csv`."""
    cards = [_card(row) for row in rows]
    return {card.slug: _among(card, cards) for card in cards}


def fits(card: Card, words: Words) -> bool:
    """Tell whether a reading of a name accounts for every word as this card."""
    allowed = card.allowed.union(*(more for beside, more in card.allowed_beside if beside in words))
    rests = [words - core - allowed for core in card.cores if core <= words]
    return any(not rest or (card.slice_allowed and _is_one_number(rest)) for rest in rests)


def states_size(words: Words) -> bool:
    """Tell whether a reading names a memory size."""
    return any(_MEMORY_WORD.fullmatch(word) for word in words)


def head_words(card: Card) -> Words:
    """Return the most telling word of each core: a name without any of them cannot be this card."""
    return frozenset(max(core, key=lambda word: (len(word), word)) for core in card.cores)


def vocabulary(cards: Iterable[Card]) -> Words:
    """Return every word some card's name may hold."""
    words: set[str] = set()
    for card in cards:
        words.update(card.allowed, *card.cores, *(more for _, more in card.allowed_beside))
    return frozenset(words)


def _is_one_number(words: Words) -> bool:
    return len(words) == 1 and all(word.isdecimal() for word in words)


def _card(row: Mapping[str, str]) -> Card:
    words = frozenset(words_of(row["name"]))
    kind = _kind(row, words)
    line = _line(row, words)
    allowed = FILLER.union(_vendor_words(row), _memory_words(row), _form_words(row, kind), line.allowed, *line.cores)
    return Card(
        slug=row["slug"],
        kind=kind,
        memory_gb=Decimal(row["memory_gb"]),
        cores=line.cores,
        allowed=allowed | _architecture_words(row),
        allowed_beside=(*line.allowed_beside, ("nvl", KIND_WORDS[Kind.PCIE]))
        if kind is Kind.NVL
        else line.allowed_beside,
        slice_allowed=row["vendor"] == "Google",
    )


def _among(card: Card, cards: Sequence[Card]) -> Card:
    """Let an NVL without a PCIe sister be called PCIe: an H200 on a PCIe board can only be that one."""
    kinds = {other.kind for other in cards if other.cores == card.cores}
    if card.kind is Kind.NVL and Kind.PCIE not in kinds:
        return replace(card, allowed=card.allowed | KIND_WORDS[Kind.PCIE])
    return card


def _kind(row: Mapping[str, str], words: Words) -> Kind | None:
    if row["vendor"] != "NVIDIA":
        return None
    if "nvl" in words:
        return Kind.NVL
    if row["form_factor"].startswith("SXM"):
        return Kind.SXM
    return Kind.PCIE if row["form_factor"] == "PCIe" else None


def _vendor_words(row: Mapping[str, str]) -> Words:
    return VENDOR_WORDS.get(row["vendor"], frozenset((row["vendor"].casefold(),)))


def _memory_words(row: Mapping[str, str]) -> Words:
    sizes = (row["memory_gb"], *map(str, ALSO_PRINTED_GB.get(row["slug"], ())))
    return frozenset((*(f"{size}gb" for size in sizes), row["memory_type"].casefold()))


def _architecture_words(row: Mapping[str, str]) -> Words:
    """Return the words of "Ada Lovelace"; of "CDNA 2" the one word cdna2, as a lone 2 would be a count."""
    words = words_of(row["architecture"])
    return frozenset(word for word in words if not word.isdecimal()) | {"".join(words)}


def _form_words(row: Mapping[str, str], kind: Kind | None) -> Words:
    """Return SXM with its own generation, PCIe, NVL, OAM or Superchip, and NVLink where the card has it."""
    words = KIND_WORDS[kind] if kind else frozenset(words_of(row["form_factor"]))
    if kind is Kind.SXM:
        words |= {row["form_factor"].casefold()}
    if row["vendor"] == "NVIDIA" and row["nvlink_gb_s"]:
        words |= {"nvlink"}
    return words | TPU_SLICE_WORDS if row["vendor"] == "Google" else words


def _line(row: Mapping[str, str], words: Words) -> _Line:
    if row["slug"] in WRITTEN_AS:
        return _Line(cores=tuple(frozenset(text.split()) for text in WRITTEN_AS[row["slug"]]))
    model = words - FILLER - EDITION_FILLER - _vendor_words(row) - _memory_words(row)
    if row["vendor"] == "NVIDIA":
        return _nvidia_line(model)
    if row["vendor"] == "AMD":
        return _amd_line(model)
    return _Line(cores=(model,))


def _nvidia_line(model: Words) -> _Line:
    if "geforce" in model:
        series = model & {"rtx", "gtx"}
        return _Line(cores=(model - series - {"geforce"},), allowed=series | {"geforce", "lhr"})
    if {"rtx", "pro"} <= model:
        return _rtx_pro_line(model)
    if "rtx" in model:
        return _workstation_line(model)
    if "titan" in model:
        return _Line(cores=(model,))
    core = frozenset(word for word in model if not word.startswith(("sxm", "pcie", "nvl")))
    grace = (
        frozenset(("grace", "superchip", "nvl", "nvl72")) if any(word.startswith("g") for word in core) else frozenset()
    )
    return _Line(cores=(core,), allowed=grace | {"tesla"})


def _rtx_pro_line(model: Words) -> _Line:
    """RTX PRO cards: one number may come as server, workstation and Max-Q edition."""
    core = model - {"rtx", "blackwell"} - EDITIONS.keys()
    editions: Words = frozenset().union(*(EDITIONS[edition] for edition in EDITIONS.keys() & model))
    return _Line(
        cores=(core,),
        allowed=editions | EDITION_FILLER | {"rtx", "blackwell"},
        allowed_beside=(("maxq", EDITIONS["workstation"]),) if "maxq" in model else (),
    )


def _workstation_line(model: Words) -> _Line:
    """RTX A-series, Quadro RTX, TITAN RTX and RTX Ada cards."""
    if "ada" in model:
        shared = frozenset(word for word in model if word in SHARED_NUMBERS and "sff" not in model)
        cores = (model - {"rtx"}, shared | {"rtx"}) if shared else (model - {"rtx"},)
        return _Line(cores=cores, allowed=EDITION_FILLER | {"rtx"})
    if "titan" in model:
        return _Line(cores=(model,))
    if any(_WORKSTATION_AMPERE.fullmatch(word) for word in model):
        return _Line(cores=(model - {"rtx"},), allowed=frozenset(("rtx", "quadro")))
    return _Line(cores=(model - {"quadro"},), allowed=frozenset(("quadro", "q")))


def _amd_line(model: Words) -> _Line:
    lines = frozenset(("radeon", "instinct", "pro", "rx"))
    allowed = model & lines or frozenset(("instinct",))
    return _Line(cores=(model - lines,), allowed=allowed | {"radeon"})
