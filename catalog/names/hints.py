"""What a source says beside the name, and whether a card agrees with it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from catalog.names.cards import Card, Kind

# Drivers and tools report 80 GB cards as 79.2 (GiB) to 85.9 (10^9 bytes), 24 GB cards with ECC as 22.2, a B300 as 268.
LEAST_SHARE = Decimal("0.915")
MOST_SHARE = Decimal("1.08")

_SXM = re.compile(r"(?<![a-z])(?:sxm\d?|hgx)(?![a-z])")
_NVL = re.compile(r"(?<![a-z])nvl(?![a-z])")
_PCIE = re.compile(r"(?<![a-z])pci-?e?(?![a-z])")


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What tells cards of one name apart. `memory_gb` is per GPU, and given only where the source can be trusted."""

    memory_gb: Decimal | None = None
    form_factor: str = ""
    cloud: str = ""
    instance_type: str = ""

    @property
    def kind(self) -> Kind | None:
        """The form factor, or else the one the machine type's name carries (`gpu_1x_h100_pcie`)."""
        return _kind_in(self.form_factor) or _kind_in(self.instance_type)


def fitting(cards: Sequence[Card], hints: Hints) -> tuple[Card, ...]:
    """Return the cards that agree with the hints. An NVL card is a PCIe board: it counts where no other does."""
    agreeing = [card for card in cards if agrees(card, hints)]
    of_kind = [card for card in agreeing if card.kind is not None and card.kind is hints.kind]
    return tuple(of_kind or agreeing)


def agrees(card: Card, hints: Hints) -> bool:
    """Tell whether nothing in the hints speaks against the card."""
    if hints.memory_gb is not None and not _is_size_of(card, hints.memory_gb):
        return False
    if card.kind is None or hints.kind is None or card.kind is hints.kind:
        return True
    return hints.kind is Kind.PCIE and card.kind is Kind.NVL


def _is_size_of(card: Card, memory_gb: Decimal) -> bool:
    return card.memory_gb * LEAST_SHARE <= memory_gb <= card.memory_gb * MOST_SHARE


def _kind_in(text: str) -> Kind | None:
    plain = text.casefold()
    if _SXM.search(plain):
        return Kind.SXM
    if _NVL.search(plain):
        return Kind.NVL
    return Kind.PCIE if _PCIE.search(plain) else None
