"""The medians that prices are compared with, as one run finds them at its start."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Avg, Q

from catalog.models import Offer
from catalog.sanity import Band, band_for
from catalog.sources.base import Body, Market
from catalog.sources.reference import ReferenceSnapshot

RECENT = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Bands:
    """Prices in USD per GPU-hour: those of 30 days by GPU slug and market, the snapshot's on-demand ones by GPU slug."""

    recent: Mapping[tuple[str, str], list[Decimal]]
    reference: Mapping[str, list[Decimal]]

    def of(self, gpu_slug: str, market: str) -> Band | None:
        """Return the band of one GPU and market, None where nothing is known to compare with."""
        return band_for(
            market=market,
            recent_usd_per_gpu_hour=self.recent.get((gpu_slug, market), []),
            reference_usd_per_gpu_hour=self.reference.get(gpu_slug, []),
        )


def bands_at(now: datetime) -> Bands:
    """Return the bands of a run that starts now. One query."""
    return Bands(recent=_recent_prices(now), reference=_reference_prices(now))


def _recent_prices(now: datetime) -> dict[tuple[str, str], list[Decimal]]:
    """Return prices not held back and not of a list, one per cloud and instance type: its mean over regions."""
    since = now - RECENT
    rows = (
        Offer.objects.filter(held_back="", is_whole=True, is_list=False, observed_at__gt=since)
        .filter(Q(priced_on__isnull=True) | Q(priced_on__gte=since.date()))
        .values_list("gpu__slug", "market", "cloud_id", "instance_type")
        .annotate(mean=Avg("price_usd_per_gpu_hour"))
    )
    found: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for gpu_slug, market, _cloud, _instance_type, mean in rows:
        found[gpu_slug, market].append(mean)
    return dict(found)


def _reference_prices(now: datetime) -> dict[str, list[Decimal]]:
    snapshot = ReferenceSnapshot()
    found: dict[str, list[Decimal]] = defaultdict(list)
    for document in snapshot.documents():
        body = Body(document=document, content=snapshot.read(document).read_bytes(), fetched_at=now)
        for fact in snapshot.parse(body, {}):
            if fact.market is Market.ON_DEMAND:
                found[fact.gpu_slug].append(fact.price_per_hour / fact.gpu_count)
    return dict(found)
