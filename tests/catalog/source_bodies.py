"""Bodies for tests of price sources: rows of a made-up answer, or of a saved one."""

import json
from datetime import UTC, datetime
from pathlib import Path

from catalog.sources.base import Body, Document, OfferRow, Source

READ_AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def body_of(content: bytes, *, key: str = "sample", url: str = "") -> Body:
    document = Document(key=key, urls=(), file_name="sample.json")
    return Body(document=document, content=content, fetched_at=READ_AT, url=url)


def rows_of(source: Source, answer: object, *, key: str = "sample", **companions: object) -> list[OfferRow]:
    """Parse `answer` as the source's body of this key; companions by key, with `_` for `-`."""
    beside = {
        key.replace("_", "-"): body_of(json.dumps(value).encode(), key=key.replace("_", "-"))
        for key, value in companions.items()
    }
    return list(source.parse(body_of(json.dumps(answer).encode(), key=key), beside))


def rows_of_pages(source: Source, *pages: object) -> list[OfferRow]:
    """Parse several pages as one body, the way they are joined when they are fetched."""
    return list(source.parse(body_of(b"\n".join(json.dumps(page).encode() for page in pages)), {}))


def rows_of_file(source: Source, path: Path, *, key: str = "sample", **companions: Path) -> list[OfferRow]:
    """Parse a saved answer of the shared feeds."""
    beside = {
        key.replace("_", "-"): body_of(file.read_bytes(), key=key.replace("_", "-")) for key, file in companions.items()
    }
    return list(source.parse(body_of(path.read_bytes(), key=key), beside))
