"""A GPU as the engine sees it, and the memory that programs really get of it.

A card's name promises GB; drivers, error correction and rounding leave less. Seen in logs: A10 22.07 GiB, RTX 3090 and
4090 23.6, T4 14.56, RTX 4080 15.99, A100 and H100 80 GB 79.1 to 79.2, H200 139.7, B300 268 (its maker's DGX total / 8).
"""

from dataclasses import dataclass

SEEN_GIB: dict[str, float] = {
    "a10": 22.07,
    "a10g": 22.07,
    "t4": 14.56,
    "t4g": 14.56,
    "rtx-3090": 23.6,
    "rtx-3090-ti": 23.6,
    "rtx-4090": 23.6,
    "rtx-4080": 15.99,
    "rtx-4080-super": 15.99,
    "h200-sxm": 139.7,
    "h200-nvl": 139.7,
    "b300": 268.0,
    "gb300": 268.0,
}
HBM_SHARE = 79.15 / 80  # A100 and H100 80 GB
ECC_GDDR_SHARE = 22.07 / 24  # error correction inside ordinary memory takes a sixteenth and more: A10
GDDR_SHARE = 23.6 / 24  # RTX 3090, 4090

# The card sizes that people choose from, with the least that a card of that size gives: what a report picks among.
STANDARD_CARDS_GIB: dict[int, float] = {
    8: 7.8, 12: 11.7, 16: 15.6, 24: 23.6, 32: 31.4, 40: 39.4, 48: 47.4, 80: 79.1, 96: 94.9, 141: 139.7, 192: 190.0,
    288: 268.0,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """One GPU model. Figures are the maker's dense ones; None = not published."""

    slug: str
    memory_gb: float
    vendor: str = "NVIDIA"
    architecture: str = ""
    memory_type: str = ""
    has_ecc: bool = False
    bandwidth_gb_s: float | None = None
    bf16_tflops: float | None = None
    fp16_tflops: float | None = None
    nvlink_gb_s: float | None = None
    max_per_board: int = 8

    @property
    def usable_gib(self) -> float:
        """GiB that a program can use.

        >>> round(Card(slug="h100-sxm", memory_gb=80, memory_type="HBM3").usable_gib, 2)
        79.15
        """
        if self.slug in SEEN_GIB:
            return SEEN_GIB[self.slug]
        if self.memory_type.upper().startswith("HBM"):
            return self.memory_gb * HBM_SHARE
        return self.memory_gb * (ECC_GDDR_SHARE if self.has_ecc else GDDR_SHARE)

    @property
    def is_little_measured(self) -> bool:
        """Whether hardly any published measurement ran on such a card."""
        return self.vendor != "NVIDIA" or "blackwell" in self.architecture.lower()


def smallest_standard_card(high_gib: float) -> int | None:
    """Return the smallest standard size in GB that holds `high_gib`, or None.

    >>> smallest_standard_card(20.0), smallest_standard_card(23.9), smallest_standard_card(1e4)
    (24, 32, None)
    """
    return next((size for size, usable in STANDARD_CARDS_GIB.items() if high_gib <= usable), None)
