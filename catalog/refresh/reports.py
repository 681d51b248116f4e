"""What a refresh did, in numbers and words: per document, and summed per source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DocumentReport:
    """One document. With an `error` nothing of it was stored; `is_unchanged` = the other side said so, nothing was read.

    `without_rate`: how many of the rows held back wait for a rate of their currency.
    """

    key: str
    rows_read: int = 0
    new: int = 0
    changed: int = 0
    gone: int = 0
    held_back: int = 0
    without_rate: int = 0
    unmapped: int = 0
    band_skipped: int = 0
    is_unchanged: bool = False
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class RefreshReport:
    """One source. `not_read` says why nothing was tried: another refresh is running, or a key is missing."""

    source_name: str
    documents: Sequence[DocumentReport] = ()
    not_read: str = ""

    @property
    def failed(self) -> Sequence[DocumentReport]:
        """The documents that could not be read or were refused."""
        return [document for document in self.documents if document.error]

    @property
    def is_failure(self) -> bool:
        """Whether every document failed."""
        return bool(self.documents) and len(self.failed) == len(self.documents)

    @property
    def line(self) -> str:
        """The line `refresh_offers` prints."""
        if self.not_read:
            return f"{self.source_name}: not read, {self.not_read}"
        counts = [
            f"{self._sum('rows_read')} rows read",
            f"{self._sum('new')} new",
            f"{self._sum('changed')} changed",
            f"{self._sum('gone')} gone",
            f"{self._sum('held_back')} held back",
            f"{self._sum('unmapped')} unmapped",
        ]
        if self._sum("without_rate"):
            counts.append(f"{self._sum('without_rate')} of those held back in a currency without a rate")
        unchanged = sum(document.is_unchanged for document in self.documents)
        if unchanged:
            counts.append(f"{unchanged} of {len(self.documents)} documents unchanged")
        if self.failed:
            words = "; ".join(reasons({document.key: document.error for document in self.failed}))
            counts.append(f"{len(self.failed)} of {len(self.documents)} documents failed ({words})")
        return f"{self.source_name}: {', '.join(counts)}"

    def _sum(self, field: str) -> int:
        return sum(getattr(document, field) for document in self.documents)


def reasons(errors: Mapping[str, str]) -> list[str]:
    """Return what went wrong, each reason once with the documents it befell.

    >>> reasons({"aws": "nobody answers", "gcp": "it holds no offer", "lambda": "nobody answers"})
    ['aws, lambda: nobody answers', 'gcp: it holds no offer']
    """
    keys: dict[str, list[str]] = {}
    for key, error in errors.items():
        keys.setdefault(error, []).append(key)
    return [f"{', '.join(befallen)}: {error}" for error, befallen in keys.items()]
