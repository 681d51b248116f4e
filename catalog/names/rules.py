"""The rules of the ambiguous spellings: one per family, told in prose in `data/gpu_aliases_ambiguous.csv`.

A rule sees the cards that memory and form factor have left, and the hints. It answers with one of those cards or not
at all. Without an answer the only card left stands; then the file's default; else the name stays unmapped.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catalog.names.cards import Card
from catalog.names.clouds import cloud_slug
from catalog.names.hints import Hints, fitting
from catalog.names.machines import narrowed_by_machine

# Places where anyone's card is rented out: a bare name there says nothing about the edition.
HOST_MARKETPLACES = frozenset(("akash", "primeintellect", "salad", "shadeform", "tensordock", "vast"))

_WORKSTATION = re.compile(r"(?<![a-z])(?:ws|wk|workstation)(?![a-z])")
_MAXQ = re.compile(r"(?<![a-z])max-?q(?![a-z])")

Rule = Callable[[Sequence[Card], Hints], str | None]


@dataclass(frozen=True, kw_only=True)
class Ambiguous:
    """One line of the file. `rule` None: never a card of ours, whatever the hints (a slice, a cut-down card)."""

    alias: str
    candidates: tuple[Card, ...]
    default_slug: str
    rule: Rule | None


def answer(entry: Ambiguous, hints: Hints) -> str | None:
    """Return the slug an ambiguous spelling means beside these hints, or None."""
    if entry.rule is None:
        return None
    left = fitting(entry.candidates, hints)
    if slug := entry.rule(left, hints):
        return slug
    if len(left) == 1 and len(entry.candidates) > 1:
        return left[0].slug
    return entry.default_slug if entry.default_slug in {card.slug for card in left} else None


def by_machine(cards: Sequence[Card], hints: Hints) -> str | None:
    """A100, A800, H100, V100, P100, GH200, RTX 4000 to 6000: memory and form factor, then the cloud's machines."""
    left = narrowed_by_machine(cards, hints)
    return left[0].slug if len(left) == 1 and len(cards) > 1 else None


def h200(cards: Sequence[Card], hints: Hints) -> str | None:
    """H200 at a cloud is the SXM card unless NVL is said somewhere; SkyPilot's Vast file strips it, so not there."""
    stripped = cloud_slug(hints.cloud) == "vast" and not hints.instance_type
    return _if_left("h200-sxm", cards) if hints.cloud and not stripped else None


def rtx_pro_6000(cards: Sequence[Card], hints: Hints) -> str | None:
    """Three editions of one size: the machine type's words, else the server's at clouds, unknown at marketplaces."""
    machine = hints.instance_type.casefold()
    if _MAXQ.search(machine):
        return _if_left("rtx-pro-6000-blackwell-maxq", cards)
    if _WORKSTATION.search(machine):
        return _if_left("rtx-pro-6000-blackwell", cards)
    is_cloud = bool(hints.cloud) and cloud_slug(hints.cloud) not in HOST_MARKETPLACES
    return _if_left("rtx-pro-6000-blackwell-server", cards) if is_cloud else None


def when_size_is_stated(cards: Sequence[Card], hints: Hints) -> str | None:
    """RTX 3060, 4060 Ti, 5060 Ti, A2000: sold in two sizes, one of them ours; `cards` holds it if the size agrees."""
    return cards[0].slug if cards and hints.memory_gb is not None else None


def t4g(cards: Sequence[Card], hints: Hints) -> str | None:
    """T4G: only in AWS's Arm machines."""
    is_aws = cloud_slug(hints.cloud) == "aws" or hints.instance_type.startswith("g5g.")
    return _if_left("t4g", cards) if is_aws else None


def by_default(_cards: Sequence[Card], _hints: Hints) -> str | None:
    """A6000, GH200 480GB, MI250, RTX 3090 to 4080: the file's default, unless the hints speak against it."""
    return None


RULES: dict[str, Rule | None] = {
    **dict.fromkeys(("A100", "A100-80GB", "A100 80GB", "NVIDIA A100"), by_machine),
    **dict.fromkeys(("H100", "NVIDIA H100", "H100-80GB"), by_machine),
    **dict.fromkeys(("H200", "NVIDIA H200"), h200),
    **dict.fromkeys(("V100", "V100-32GB", "Tesla V100"), by_machine),
    **dict.fromkeys(("P100", "Tesla P100"), by_machine),
    **dict.fromkeys(("RTX6000", "RTX 6000", "NVIDIA RTX 6000"), by_machine),
    **dict.fromkeys(("RTX 5000", "RTX5000", "RTX 4000", "RTX4000"), by_machine),
    **dict.fromkeys(("GH200", "A800"), by_machine),
    **dict.fromkeys(("RTX PRO 6000", "RTXPRO6000", "RTX-PRO-6000"), rtx_pro_6000),
    **dict.fromkeys(("RTX 5060 Ti", "RTX 4060 Ti", "RTX 3060", "RTX A2000"), when_size_is_stated),
    **dict.fromkeys(("A6000", "MI250", "RTX4070", "RTX4080", "RTX3090"), by_default),
    **dict.fromkeys(("NVIDIA GH200 480GB", "NVIDIA GH200 120GB"), by_default),
    "t4g": t4g,
    # Two cards under one driver string, which counts each board twice.
    "AMD Instinct MI250X / MI250": None,
    # A size its card does not have; a cut-down card; a slice of a card.
    **dict.fromkeys(("quadrortx6000-pcie-48gb", "RTX 4090 D", "MIG 1g.24gb"), None),
}

RULES_BY_SLUG = {
    "h200-sxm": h200,
    "h200-nvl": h200,
    "rtx-pro-6000-blackwell-server": rtx_pro_6000,
    "rtx-pro-6000-blackwell": rtx_pro_6000,
    "rtx-pro-6000-blackwell-maxq": rtx_pro_6000,
}


def entry_for(name: str, cards: Sequence[Card]) -> Ambiguous:
    """Return the ambiguity of a name the file does not list, but whose words fit all of these cards."""
    rule = when_size_is_stated if len(cards) == 1 else RULES_BY_SLUG.get(cards[0].slug, by_machine)
    return Ambiguous(alias=name, candidates=tuple(cards), default_slug="", rule=rule)


def _if_left(slug: str, cards: Sequence[Card]) -> str | None:
    return slug if any(card.slug == slug for card in cards) else None
