"""The index behind `resolve`: the alias files and the cards, read once.

Raises NamesInvalid, naming file and line's name, when an alias points to no card of the catalogue, two aliases
disagree, or an ambiguous spelling has no rule in `rules`.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from pathlib import Path

from catalog.names.cards import Card, Words, cards_from_rows, head_words, vocabulary
from catalog.names.rules import RULES, Ambiguous, when_size_is_stated
from catalog.names.words import key_of, without_vendor, words_of

DATA = Path(__file__).resolve().parent.parent / "data"


class NamesInvalid(ValueError):
    """The data files contradict each other or the rules; the message names the spelling."""


@dataclass(frozen=True, kw_only=True)
class Alias:
    """A spelling whose key several may share: `vendor_words` are those it begins with, dropped from the key."""

    slug: str
    vendor_words: Words


@dataclass(frozen=True, kw_only=True, eq=False)
class NameIndex:
    """Everything `resolve` looks up. Compared by identity, so that answers may be kept per index."""

    cards: Mapping[str, Card]
    aliases: Mapping[str, str]
    ambiguous: Mapping[str, Ambiguous]
    aliases_by_key: Mapping[str, tuple[Alias, ...]]
    ambiguous_by_key: Mapping[str, tuple[Ambiguous, ...]]
    cards_by_word: Mapping[str, tuple[Card, ...]]
    vocabulary: Words


@cache
def default_index() -> NameIndex:
    """Return the index of the repository's own data files."""
    names = ("gpus.csv", "gpu_aliases.csv", "gpu_aliases_ambiguous.csv")
    return load_index(*((DATA / name).read_text(encoding="utf-8") for name in names))


def load_index(gpus_csv: str, aliases_csv: str, ambiguous_csv: str) -> NameIndex:
    """Return the index of three CSV texts with header lines. Raises NamesInvalid."""
    listed = cards_from_rows(csv.DictReader(StringIO(gpus_csv)))
    ambiguous = _ambiguous(csv.DictReader(StringIO(ambiguous_csv)), listed)
    cards = _with_sizes_to_state(listed, ambiguous.values())
    aliases = _aliases(csv.DictReader(StringIO(aliases_csv)), cards)
    return NameIndex(
        cards=cards,
        aliases=aliases,
        ambiguous=ambiguous,
        aliases_by_key=_aliases_by_key(aliases),
        ambiguous_by_key=_ambiguous_by_key(ambiguous.values()),
        cards_by_word=_cards_by_word(cards.values()),
        vocabulary=vocabulary(cards.values()),
    )


def _ambiguous(rows: Iterable[Mapping[str, str]], cards: Mapping[str, Card]) -> dict[str, Ambiguous]:
    entries = {}
    for row in rows:
        alias, slugs = row["alias"], row["candidate_slugs"].split("|")
        if alias not in RULES:
            raise NamesInvalid(f"ambiguous name {alias!r} has no rule")
        if unknown := {*slugs, row["default_slug"] or slugs[0]} - cards.keys():
            raise NamesInvalid(f"ambiguous name {alias!r} points to unknown {sorted(unknown)}")
        entries[alias] = Ambiguous(
            alias=alias,
            candidates=tuple(cards[slug] for slug in slugs),
            default_slug=row["default_slug"],
            rule=RULES[alias],
        )
    return entries


def _with_sizes_to_state(cards: Mapping[str, Card], ambiguous: Iterable[Ambiguous]) -> dict[str, Card]:
    two_sizes = {entry.candidates[0].slug for entry in ambiguous if entry.rule is when_size_is_stated}
    return {slug: replace(card, size_must_be_stated=slug in two_sizes) for slug, card in cards.items()}


def _aliases(rows: Iterable[Mapping[str, str]], cards: Mapping[str, Card]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for row in rows:
        alias, slug = row["alias"], row["slug"]
        if slug not in cards:
            raise NamesInvalid(f"alias {alias!r} points to unknown {slug!r}")
        if aliases.setdefault(alias, slug) != slug:
            raise NamesInvalid(f"alias {alias!r} points to {aliases[alias]!r} and {slug!r}")
    return aliases


def _aliases_by_key(aliases: Mapping[str, str]) -> dict[str, tuple[Alias, ...]]:
    by_key: dict[str, list[Alias]] = defaultdict(list)
    for alias, slug in aliases.items():
        vendor, rest = without_vendor(words_of(alias))
        by_key[key_of(rest)].append(Alias(slug=slug, vendor_words=vendor))
    return {key: tuple(known) for key, known in by_key.items()}


def _ambiguous_by_key(entries: Iterable[Ambiguous]) -> dict[str, tuple[Ambiguous, ...]]:
    by_key: dict[str, list[Ambiguous]] = defaultdict(list)
    for entry in entries:
        by_key[key_of(without_vendor(words_of(entry.alias))[1])].append(entry)
    return {key: tuple(known) for key, known in by_key.items()}


def _cards_by_word(cards: Iterable[Card]) -> dict[str, tuple[Card, ...]]:
    by_word: dict[str, list[Card]] = defaultdict(list)
    for card in cards:
        for word in head_words(card):
            by_word[word].append(card)
    return {word: tuple(known) for word, known in by_word.items()}
