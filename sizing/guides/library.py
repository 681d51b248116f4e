"""The guides there are, read once: by slug and language."""

import functools
from pathlib import Path

from sizing.guides.document import Document, read_document

TEXTS = Path(__file__).resolve().parent / "texts"
SLUGS = ("choosing-a-training-gpu",)


@functools.cache
def guide_text(slug: str, language: str) -> Document | None:
    """Return a guide in a language; None where there is no such guide."""
    if slug not in SLUGS:
        return None
    return read_document((TEXTS / slug / f"{language}.md").read_text(encoding="utf-8"))
