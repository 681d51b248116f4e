"""The pairs of GPUs that have a page of their own: only those that people choose between, each with its reason.

The first of a pair is the one that the reason speaks of. Whoever asks for the reverse is led to this order.

>>> known_pair("a100-sxm-80gb", "h100-sxm").address
'h100-sxm-vs-a100-sxm-80gb'
>>> known_pair("h100-sxm", "l4") is None
True
"""

from dataclasses import dataclass
from typing import Literal

Reason = Literal["speed", "memory", "generation", "amd", "build", "memory_kind", "desktop"]


@dataclass(frozen=True, kw_only=True)
class KnownPair:
    """Two slugs, why one would choose between them, and the use cases where the choice comes up (slugs)."""

    first: str
    second: str
    reason: Reason
    uses: tuple[str, ...]

    @property
    def slugs(self) -> tuple[str, str]:
        """Both, in the pair's order."""
        return self.first, self.second

    @property
    def address(self) -> str:
        """The pair as its page's address has it."""
        return f"{self.first}-vs-{self.second}"

    def other(self, slug: str) -> str:
        """Return the one that `slug` is compared with."""
        return self.second if slug == self.first else self.first


def _pair(first: str, second: str, reason: Reason, *uses: str) -> KnownPair:
    return KnownPair(first=first, second=second, reason=reason, uses=uses)


PAIRS = (
    _pair("h100-sxm", "a100-sxm-80gb", "speed", "llm-training", "science"),
    _pair("h200-sxm", "h100-sxm", "memory", "llm-training", "llm-inference"),
    _pair("b200", "h200-sxm", "generation", "llm-training"),
    _pair("b300", "b200", "memory", "llm-training", "science"),
    _pair("mi300x", "h200-sxm", "amd", "llm-training", "science"),
    _pair("rtx-4090", "l40s", "desktop", "fine-tuning", "rendering"),
    _pair("a100-sxm-80gb", "l40s", "memory_kind", "fine-tuning", "llm-inference"),
    _pair("rtx-pro-6000-blackwell-server", "a100-sxm-80gb", "memory_kind", "fine-tuning"),
    _pair("rtx-5090", "rtx-4090", "generation", "fine-tuning", "image-video", "rendering"),
    _pair("mi300x", "h100-sxm", "amd", "llm-inference"),
    _pair("h100-nvl", "h100-sxm", "build", "llm-inference"),
    _pair("rtx-4090", "l4", "desktop", "llm-inference"),
    _pair("l40s", "rtx-6000-ada", "build", "image-video"),
    _pair("h100-sxm", "rtx-pro-6000-blackwell-server", "memory_kind", "image-video"),
    _pair("rtx-pro-6000-blackwell-server", "rtx-6000-ada", "generation", "rendering"),
    _pair("h100-sxm", "h100-pcie", "build", "llm-training"),
    _pair("a100-sxm-80gb", "a100-pcie-80gb", "build", "llm-training"),
    _pair("mi325x", "mi300x", "memory", "llm-training", "llm-inference"),
    _pair("mi355x", "b200", "amd", "llm-training", "llm-inference"),
    _pair("mi325x", "h200-sxm", "amd", "llm-inference"),
    _pair("b200", "h100-sxm", "generation", "llm-training", "llm-inference"),
    _pair("rtx-4090", "rtx-3090", "generation", "fine-tuning", "image-video"),
    _pair("rtx-6000-ada", "rtx-a6000", "generation", "rendering"),
    _pair("rtx-pro-6000-blackwell-server", "rtx-5090", "memory", "image-video", "rendering"),
)
_BY_SLUGS = {frozenset(pair.slugs): pair for pair in PAIRS}


def known_pair(one: str, other: str) -> KnownPair | None:
    """Return the pair of two slugs, asked for in either order; None where the two have no page."""
    return _BY_SLUGS.get(frozenset((one, other)))


def pairs_of(slug: str) -> list[KnownPair]:
    """Return the pairs that a GPU stands in, in their order."""
    return [pair for pair in PAIRS if slug in pair.slugs]
