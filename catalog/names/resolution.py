"""`resolve`: the order in which a spelling is looked up, and what comes of it."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from catalog.names.cards import Card, Words, fits, states_size
from catalog.names.hints import Hints, agrees, fitting
from catalog.names.index import Alias, NameIndex, default_index
from catalog.names.machines import mislabel, name_in_machine, narrowed_by_machine
from catalog.names.rules import Ambiguous, answer, entry_for
from catalog.names.words import key_of, readings_of, without_vendor, words_of

MatchedBy = Literal["alias", "rule", "normalised", ""]
NO_HINTS = Hints()
LONGEST_NAME = 200
KEPT_ANSWERS = 50_000


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """The card a name means, or the cards it may mean. No slug and no candidates: nobody knows this name."""

    slug: str | None = None
    matched_by: MatchedBy = ""
    candidates: tuple[str, ...] = ()


UNKNOWN = Resolution()


def resolve(name: str, *, hints: Hints = NO_HINTS, index: NameIndex | None = None) -> Resolution:
    """Return what a GPU's name means beside what else the source says. See the package for the order."""
    return _resolved(index or default_index(), " ".join(name.split()), hints)


@lru_cache(maxsize=KEPT_ANSWERS)
def _resolved(index: NameIndex, name: str, hints: Hints) -> Resolution:
    if not name or len(name) > LONGEST_NAME:
        return UNKNOWN
    if full_name := name_in_machine(hints):
        return _at_vast(index, full_name, hints)
    return _looked_up(index, name, hints)


def _at_vast(index: NameIndex, full_name: str, hints: Hints) -> Resolution:
    """Answer by the host's own name. Vast sells both sizes of an A100 under one, so a size must tell them apart."""
    own = Hints(memory_gb=hints.memory_gb, cloud=hints.cloud, instance_type=full_name)
    possible = _possible(index, full_name)
    if len(possible) > 1 and hints.memory_gb is None:
        return _ruled(entry_for(full_name, possible), own)
    found = _looked_up(index, full_name, own)
    return Resolution(slug=found.slug, matched_by="rule") if found.slug else found


def _looked_up(index: NameIndex, name: str, hints: Hints) -> Resolution:
    if slug := index.aliases.get(name):
        return _checked(index, name, slug, "alias", hints)
    if entry := index.ambiguous.get(name):
        return _ruled(entry, hints)
    vendor, rest = without_vendor(words_of(name))
    if entries := index.ambiguous_by_key.get(key_of(rest)):
        return _ruled(_one_entry(entries, vendor), hints)
    possible = _possible(index, name)
    if slug := _alias_slug(index.aliases_by_key.get(key_of(rest), ()), vendor, possible, index):
        return _checked(index, name, slug, "normalised", hints)
    return _read(index, name, possible, hints)


def _read(index: NameIndex, name: str, possible: tuple[Card, ...], hints: Hints) -> Resolution:
    """Answer by the words alone: one card that needs nothing more, or the rule of the several."""
    if not possible:
        return UNKNOWN
    if len(possible) == 1 and not _needs_size(index, name, possible[0]):
        return _checked(index, name, possible[0].slug, "normalised", hints)
    return _ruled(entry_for(name, possible), hints)


def _possible(index: NameIndex, name: str) -> tuple[Card, ...]:
    """Return the cards that some reading of the name accounts for word by word, in the catalogue's order."""
    found = {card.slug for words in _readings(index, name) for card in _cards_reading(index, words)}
    return tuple(card for slug, card in index.cards.items() if slug in found)


def _readings(index: NameIndex, name: str) -> list[Words]:
    return readings_of(words_of(name), index.vocabulary)


def _cards_reading(index: NameIndex, words: Words) -> list[Card]:
    return [card for word in words for card in index.cards_by_word.get(word, ()) if fits(card, words)]


def _needs_size(index: NameIndex, name: str, card: Card) -> bool:
    return card.size_must_be_stated and not any(states_size(words) for words in _readings(index, name))


def _alias_slug(aliases: tuple[Alias, ...], vendor: Words, possible: tuple[Card, ...], index: NameIndex) -> str | None:
    """Return the card of the spellings that differ in case, separators and leading vendor words only.

    A spelling that leans on its vendor word (`Tesla V100 16GB` is SXM2 by custom, `V100 16GB` is either) needs that
    word, or a reading that allows no other card. Vendor words of another vendor's product end it.
    """
    readable = {card.slug for card in possible}
    slugs = {
        alias.slug
        for alias in aliases
        if vendor <= index.cards[alias.slug].allowed and (alias.vendor_words <= vendor or readable <= {alias.slug})
    }
    return slugs.pop() if len(slugs) == 1 else None


def _one_entry(entries: tuple[Ambiguous, ...], vendor: Words) -> Ambiguous:
    """Return the entry of a key: that with the same vendor words, else what all share, a default only if all agree.

    Cards that the vendor words do not go with drop out.
    """
    same = [entry for entry in entries if without_vendor(words_of(entry.alias))[0] == vendor] or entries
    first = same[0]
    defaults = {entry.default_slug for entry in same}
    return Ambiguous(
        alias=first.alias,
        candidates=tuple(card for card in first.candidates if vendor <= card.allowed),
        default_slug=first.default_slug if len(defaults) == 1 else "",
        rule=first.rule,
    )


def _ruled(entry: Ambiguous, hints: Hints) -> Resolution:
    """Answer by the rule, or with the cards that hints and machine leave (all, where they leave none)."""
    if slug := answer(entry, hints):
        return Resolution(slug=slug, matched_by="rule")
    left = narrowed_by_machine(fitting(entry.candidates, hints), hints) if entry.rule else ()
    return Resolution(candidates=tuple(card.slug for card in left or entry.candidates))


def _checked(index: NameIndex, name: str, slug: str, matched_by: MatchedBy, hints: Hints) -> Resolution:
    """Answer with this card unless the hints contradict it; then with the sister they mean, if the name allows one."""
    if known := mislabel(slug, hints):
        return Resolution(slug=known.means, matched_by="rule") if known.means else Resolution(candidates=(slug,))
    if agrees(index.cards[slug], hints):
        return Resolution(slug=slug, matched_by=matched_by)
    sisters = [card for card in fitting(_possible(index, name), hints) if card.slug != slug]
    if len(sisters) == 1:
        return Resolution(slug=sisters[0].slug, matched_by="rule")
    return Resolution(candidates=(slug, *(card.slug for card in sisters)))
