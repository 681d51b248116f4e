"""The review queue: names that stay unclear, with the cards they may mean. Nothing is guessed; an alias ends it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal

from django.db.models import Q

from catalog.models import Source, UnmappedName
from catalog.names import Resolution
from catalog.sources.base import OfferRow

Name = tuple[str, str, Decimal | None]
HUNDREDTH = Decimal("0.01")
LARGEST_MEMORY = Decimal(10**7)


def note_names(
    source: Source, unnamed: Sequence[tuple[OfferRow, Resolution]], named: Iterable[OfferRow], now: datetime
) -> None:
    """Put what a run could not name into the queue, with its number of rows, and take out what it can name now."""
    counts = Counter(_name(row) for row, _found in unnamed)
    examples = {_name(row): (row, found) for row, found in unnamed}
    UnmappedName.objects.bulk_create(
        [
            UnmappedName(
                source=source,
                cloud_slug=cloud,
                gpu_name=gpu_name,
                gpu_memory_gb=memory_gb,
                instance_type=examples[cloud, gpu_name, memory_gb][0].instance_type[:120],
                candidates=_candidates(examples[cloud, gpu_name, memory_gb][1]),
                rows=rows,
                first_seen_at=now,
                last_seen_at=now,
            )
            for (cloud, gpu_name, memory_gb), rows in sorted(counts.items(), key=lambda item: str(item[0]))
        ],
        update_conflicts=True,
        unique_fields=["source", "cloud_slug", "gpu_name", "gpu_memory_gb"],
        update_fields=["instance_type", "candidates", "rows", "last_seen_at"],
    )
    _forget(source, {_name(row) for row in named} - counts.keys())


def _name(row: OfferRow) -> Name:
    memory_gb = row.gpu_memory_gb
    known = memory_gb is not None and 0 <= memory_gb < LARGEST_MEMORY
    rounded = memory_gb.quantize(HUNDREDTH, ROUND_HALF_EVEN) if memory_gb is not None and known else None
    return row.cloud[:40], row.gpu_name[:100], rounded


def _candidates(found: Resolution) -> list[str]:
    return [found.slug] if found.slug else list(found.candidates)


def _forget(source: Source, named: set[Name]) -> None:
    waiting = UnmappedName.objects.filter(source=source)
    done = [queued.pk for queued in waiting if (queued.cloud_slug, queued.gpu_name, queued.gpu_memory_gb) in named]
    if done:
        waiting.filter(Q(pk__in=done)).delete()
