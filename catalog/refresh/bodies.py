"""The bodies of one run: over the network, from saved copies, or from the repository. No transaction is open here."""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from django.conf import settings

from catalog import names
from catalog.models import Source as SourceRow
from catalog.sources.base import Body, BodyRejected, Document, FetchFailed, KeyedSource, LocalSource, Source
from catalog.sources.fetching import Known, Limits, NotModified, fetch_document

log = logging.getLogger(__name__)

Fetch = Callable[[Document, Known, datetime], Body | NotModified]


class NothingSaved(LookupError):
    """No document of this source lies at the path; the message says what was looked for."""


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A document without a body, and why."""

    reason: str


Reading = Body | NotModified | Unread


def key_of(adapter: Source) -> str:
    """Return the key a source is asked with: the value of its setting, "" where it has none."""
    return str(settings.SOURCE_KEYS.get(adapter.key_setting, "")) if isinstance(adapter, KeyedSource) else ""


def lacks_key(adapter: Source) -> bool:
    """Whether the source answers nobody without a key, and there is none."""
    return isinstance(adapter, KeyedSource) and adapter.needs_key and not key_of(adapter)


def reading_version(adapter: Source) -> str:
    """Return what decides how a body is read: the adapter's version, and a digest of the names' rules and files.

    When it changes, bodies that stand still are asked for whole once more, so that a new alias reaches them too.
    """
    return f"{adapter.adapter_version}+{_names_digest()}"


@cache
def _names_digest() -> str:
    package = Path(names.__file__).parent
    files = [*sorted(package.glob("*.py")), *sorted((package.parent / "data").glob("*.csv"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def fetched(adapter: Source, source: SourceRow, now: datetime, fetch: Fetch | None) -> dict[str, Reading]:
    """Return what every document's address answers; a document without addresses is only ever a saved copy."""
    if isinstance(adapter, LocalSource):
        return {document.key: _local(adapter, document, now) for document in adapter.documents()}
    documents = adapter.documents_with(key_of(adapter)) if isinstance(adapter, KeyedSource) else adapter.documents()
    known = {
        row.key: Known(url=row.url, etag=row.etag, last_modified=row.last_modified) for row in source.documents.all()
    }
    # A document is read together with its companions: all of them whole, or it would be parsed beside the wrong ones.
    together = {document.companion_of for document in documents if document.urls} | {
        document.key for document in documents if document.companion_of
    }
    is_read_anew = source.adapter_version != reading_version(adapter)
    limits = Limits(timeout_seconds=settings.SOURCE_TIMEOUT_SECONDS, most_bytes=settings.SOURCE_MAX_BYTES)
    ask = fetch or partial(fetch_document, limits=limits, silent_hosts=set())
    return {
        document.key: _fetched(
            ask,
            document,
            Known() if is_read_anew or document.key in together else known.get(document.key, Known()),
            now,
        )
        for document in documents
        if document.urls
    }


def saved(adapter: Source, path: Path, observed_at: datetime) -> dict[str, Reading]:
    """Return the bodies saved at `path`: a folder of files by their names, or one file with what lies beside it.

    Raises NothingSaved when no document of this source is there.
    """
    found = list(_saved_files(adapter.documents(), path))
    if all(document.companion_of for document, _file in found):
        names = ", ".join(document.file_name for document in adapter.documents() if not document.companion_of)
        raise NothingSaved(f"{path} holds no saved body of {adapter.name} (looked for {names})")
    return {
        document.key: Body(document=document, content=file.read_bytes(), fetched_at=observed_at, replayed=True)
        for document, file in found
    }


def _local(adapter: LocalSource, document: Document, now: datetime) -> Reading:
    try:
        return Body(document=document, content=adapter.read(document).read_bytes(), fetched_at=now)
    except OSError as why:
        return Unread(reason=f"{document.file_name} cannot be read: {why.strerror}")


def _fetched(fetch: Fetch, document: Document, known: Known, now: datetime) -> Reading:
    try:
        return fetch(document, known, now)
    except (FetchFailed, BodyRejected) as why:
        return Unread(reason=str(why))
    except Exception as why:
        # Whatever one address does to the client must not keep the other bodies from being fetched.
        log.exception("%s could not be fetched", document.key)
        return Unread(reason=f"could not be fetched: {type(why).__name__}")


def _saved_files(documents: Sequence[Document], path: Path) -> Iterator[tuple[Document, Path]]:
    folder, chosen = (path, None) if path.is_dir() else (path.parent, _document_of_file(documents, path))
    for document in documents:
        file = path if document is chosen else folder / document.file_name
        is_wanted = path.is_dir() or (chosen is not None and chosen.key in {document.key, document.companion_of})
        if is_wanted and file.is_file():
            yield document, file


def _document_of_file(documents: Sequence[Document], path: Path) -> Document | None:
    """Return the document a file is a copy of: by its whole name, else by `<name>_<anything>` (aws_2026-07.csv)."""
    for document in documents:
        if document.file_name == path.name:
            return document
    named = [
        document
        for document in documents
        if not document.companion_of
        and path.suffix == Path(document.file_name).suffix
        and path.stem.startswith(f"{Path(document.file_name).stem}_")
    ]
    return max(named, key=lambda document: len(document.file_name), default=None)
