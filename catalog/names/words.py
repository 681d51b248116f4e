"""A spelling taken apart: lower-case words, sizes in one form, glued words split where every part is known.

>>> words_of("NVIDIA A100-SXM4-80 GB")
('nvidia', 'a100', 'sxm4', '80gb')
>>> key_of(words_of("RTX_4090")) == key_of(words_of("rtx 4090"))
True
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice, product

VENDOR_WORDS = frozenset(
    ("nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "intel", "habana", "google", "aws", "amazon")
)
MOST_READINGS = 16
LONGEST_GLUED = 40

_MARKS = re.compile(r"[®™©]|\((?:r|tm|c)\)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015/,;:()\[\]]+")
_MEMORY = re.compile(r"([1-9]\d{0,2})(?:gb|gib|g)")
_UNITS = frozenset(("gb", "gib", "g"))
_PAIRS = {("pci", "e"): "pcie", ("max", "q"): "maxq"}
_COUNT_BEFORE = re.compile(r"\d{1,2}x")
_COUNT_BEHIND = re.compile(r"x\d{1,2}$")


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a spelling: separators gone, `80 GB`, `80G` and `80GiB` as `80gb`, `PCI-E` as `pcie`.

    A dot stays inside its word, so that `1g.24gb` (a slice of a card) is one word nobody understands.
    """
    text = unicodedata.normalize("NFKC", _MARKS.sub(" ", name)).casefold()
    return tuple(_one_form(word) for word in _joined([word for word in _SEPARATORS.split(text) if word]))


def key_of(words: tuple[str, ...]) -> str:
    """Return words as one string without separators; two numbers stay apart, so that 40 90 is not 4090."""
    key = ""
    for word in words:
        key += f" {word}" if key and key[-1].isdigit() and word[0].isdigit() else word
    return key


def without_vendor(words: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the vendor words a spelling begins with, and the rest. A spelling of vendor words only keeps the last."""
    first = 0
    while first < len(words) - 1 and words[first] in VENDOR_WORDS:
        first += 1
    return frozenset(words[:first]), words[first:]


def readings_of(words: tuple[str, ...], vocabulary: frozenset[str]) -> list[frozenset[str]]:
    """Return every way to read the words as known words, most often one; empty when a word is not known.

    A count before or behind the name (`8x H100`, `H100 x8`, `h100-sxm5x8`) is no part of it.
    """
    choices = [list(_parts(word, vocabulary)) for word in _without_counts(words, vocabulary)]
    return [_meaning(frozenset().union(*choice)) for choice in islice(product(*choices), MOST_READINGS)]


def _joined(words: list[str]) -> Iterator[str]:
    """Yield the words, with a number and its unit, `pci e`, `max q` and `sxm 5` each as one word."""
    position = 0
    while position < len(words):
        word, following = words[position], words[position + 1 : position + 2]
        pair = _pair(word, following[0]) if following else ""
        yield pair or word
        position += 2 if pair else 1


def _pair(word: str, following: str) -> str:
    if word.isdigit() and following in _UNITS:
        return f"{word}gb"
    if word == "sxm" and len(following) == 1 and following.isdigit():
        return f"sxm{following}"
    return _PAIRS.get((word, following), "")


def _one_form(word: str) -> str:
    size = _MEMORY.fullmatch(word)
    return f"{size[1]}gb" if size else word


def _without_counts(words: tuple[str, ...], vocabulary: frozenset[str]) -> list[str]:
    """Drop a count that begins the first word or ends the last, glued or not; `mi250x2` may be two of either card."""
    counted = list(words)
    if counted and counted[0] not in vocabulary and (before := _COUNT_BEFORE.match(counted[0])):
        counted[0] = counted[0][before.end() :]
    if counted and counted[-1] not in vocabulary and not counted[-1].startswith("mi"):
        counted[-1] = _COUNT_BEHIND.sub("", counted[-1])
    return [word for word in counted if word]


def _parts(word: str, vocabulary: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield the ways to read one word: itself if known, else split into known words, never between two digits."""
    if word in vocabulary or word.isdecimal() or _MEMORY.fullmatch(word):
        yield (_one_form(word),)
    elif len(word) <= LONGEST_GLUED:
        yield from _splits(word, vocabulary)


def _splits(word: str, vocabulary: frozenset[str]) -> Iterator[tuple[str, ...]]:
    if not word:
        yield ()
    for end in range(len(word), 0, -1):
        head, tail = word[:end], word[end:]
        if tail and (_cuts_a_number(head, tail) or _is_letter(head)):
            continue
        if head in vocabulary or _MEMORY.fullmatch(head):
            for rest in _splits(tail, vocabulary):
                yield (_one_form(head), *rest)


def _cuts_a_number(head: str, tail: str) -> bool:
    return head[-1].isdigit() and tail[0].isdigit()


def _is_letter(head: str) -> bool:
    """Tell whether a lone letter would begin or break up a word: it may only end one (4080s, titanv; not vgpu)."""
    return len(head) == 1 and head.isalpha()


def _meaning(words: frozenset[str]) -> frozenset[str]:
    """Read the S of a 4070S or 4080S as the SUPER it stands for."""
    if "s" in words and words & {"4070", "4080"}:
        return words - {"s"} | {"super"}
    return words
