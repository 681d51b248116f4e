"""Which GPUs an address asks to compare: `?gpus=a,b`, or once per field of the form. Pure.

>>> [slot.slug for slot in read_choice(["l4,t4", "", "l4"], known={"l4", "t4"}).slots]
['l4', 't4', '', '']
>>> read_choice(["l4", "l5"], known={"l4"}).unknown
['l5']
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

MOST = 4


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A field of the form: what stands in it, and whether that is no GPU of the catalogue."""

    number: int
    slug: str
    is_unknown: bool


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was asked for: one slot per field, and how many GPUs were left out because there is no room."""

    slots: tuple[Slot, ...]
    left_out: int

    @property
    def slugs(self) -> list[str]:
        """The GPUs to compare, in the order asked for."""
        return [slot.slug for slot in self.slots if slot.slug and not slot.is_unknown]

    @property
    def unknown(self) -> list[str]:
        """What is no GPU of the catalogue."""
        return [slot.slug for slot in self.slots if slot.is_unknown]


def read_choice(values: Sequence[str], *, known: Container[str]) -> Choice:
    """Read what was asked for; a GPU counts once, blanks are skipped, the fifth and further are left out."""
    words = [word.strip()[:60] for value in values for word in value.split(",")]
    asked = list(dict.fromkeys(word for word in words if word))
    shown = [*asked[:MOST], *[""] * (MOST - len(asked))]
    return Choice(
        slots=tuple(
            Slot(number=number, slug=slug, is_unknown=bool(slug) and slug not in known)
            for number, slug in enumerate(shown, 1)
        ),
        left_out=max(0, len(asked) - MOST),
    )
