"""The offers of one document: what its rows mean, whether they may be shown, and what changed since the last body."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any
from uuid import UUID

from catalog.models import Offer, SourceDocument
from catalog.names import Hints, Resolution, resolve
from catalog.refresh.bands import Bands
from catalog.sanity import Quoted, hold_back_reason
from catalog.sources.base import LARGEST_NUMBER, Market, OfferRow
from fx.queries import UsdRate

KEY = ("cloud_id", "instance_type", "gpu_id", "gpu_count", "region", "zone", "market", "term_months")
CONTENT = (
    "gpu_name", "is_whole", "price_usd_per_hour", "price_usd_per_gpu_hour", "currency", "price_in_currency_per_hour",
    "rate_on", "rate_origin", "country", "vcpus", "ram_gb", "disk_gb", "interconnect", "billing_step_seconds", "availability", "verified",
    "is_list", "held_back",
)  # fmt: skip
# Written when they differ, but not counted as a change of the offer.
EVIDENCE = ("url", "priced_on")
CONFLICT_FIELDS = [
    "document", "cloud", "instance_type", "gpu", "gpu_count", "region", "zone", "market", "term_months",
]  # fmt: skip
BATCH = 500
MICRO = Decimal("0.000001")
COUNT_STEP = Decimal("0.0001")
SIZE_STEP = Decimal("0.01")
LARGEST_SIZE = Decimal(10**6)
LARGEST_COUNT = Decimal(10**5)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What a run knows while it stores one document. `rates` holds those of the other currencies of the rows.

    `dated_on` is the day for rows without one. `keeps_verdicts`: the content is the one already judged.
    """

    now: datetime
    observed_at: datetime
    clouds: Mapping[str, int]
    gpus: Mapping[str, int]
    bands: Bands
    rates: Mapping[str, UsdRate]
    dated_on: date | None
    keeps_verdicts: bool


@dataclass(frozen=True, kw_only=True)
class Stored:
    """How many offers are new, changed, gone; rows held back, rows without a median; and the rows nobody could name."""

    new: int
    changed: int
    gone: int
    held_back: int
    band_skipped: int
    unnamed: Sequence[tuple[OfferRow, Resolution]]
    named: Sequence[OfferRow]


def store_offers(document: SourceDocument, rows: Sequence[OfferRow], facts: RunFacts) -> Stored:
    """Make the document's offers say what `rows` say. A handful of statements; call it inside a transaction."""
    meanings = [(row, _meaning(row)) for row in rows]
    named = [
        (row, found.slug)
        for row, found in meanings
        if found.slug in facts.gpus and row.cloud in facts.clouds and found.slug is not None
    ]
    fileable = [(row, slug) for row, slug in named if _is_fileable(row)]
    existing = {_values(offer, KEY): offer for offer in Offer.objects.filter(document=document)}
    offers, band_skipped = _judged(document, fileable, facts, existing)
    counts = _write(document, offers, existing, facts)
    return Stored(
        new=counts["new"],
        changed=counts["changed"],
        gone=counts["gone"],
        held_back=sum(bool(offer.held_back) for offer in offers.values()) + len(named) - len(fileable),
        band_skipped=band_skipped,
        unnamed=[
            (row, found) for row, found in meanings if found.slug not in facts.gpus or row.cloud not in facts.clouds
        ],
        named=[row for row, _slug in named],
    )


def convert_anew(document: SourceDocument, rates: Mapping[str, UsdRate]) -> int:
    """Bring the USD prices of a document that did not change to the rates of today; return how many offers that moved."""
    offers = [
        offer
        for offer in Offer.objects.filter(document=document, gone_at__isnull=True, currency__in=rates)
        if offer.rate_on != rates[offer.currency].day
    ]
    for offer in offers:
        rate = rates[offer.currency]
        offer.price_usd_per_hour = rate.to_usd(offer.price_in_currency_per_hour)
        offer.price_usd_per_gpu_hour = (offer.price_usd_per_hour / offer.gpu_count).quantize(MICRO, ROUND_HALF_EVEN)
        offer.rate_on, offer.rate_origin = rate.day, rate.origin
    fields = ["price_usd_per_hour", "price_usd_per_gpu_hour", "rate_on", "rate_origin"]
    return Offer.objects.bulk_update(offers, fields, batch_size=BATCH)


def _meaning(row: OfferRow) -> Resolution:
    if row.gpu_slug:
        return Resolution(slug=row.gpu_slug, matched_by="alias")
    hints = Hints(
        memory_gb=row.gpu_memory_gb, form_factor=row.form_factor, cloud=row.cloud, instance_type=row.instance_type
    )
    return resolve(row.gpu_name, hints=hints)


def _is_fileable(row: OfferRow) -> bool:
    """Whether a row can be an offer at all. No GPUs, or a price below nothing, is only counted as held back."""
    return COUNT_STEP <= row.gpu_count < LARGEST_COUNT and 0 <= row.price_per_hour / row.gpu_count < LARGEST_NUMBER


def _judged(
    document: SourceDocument,
    rows: Iterable[tuple[OfferRow, str]],
    facts: RunFacts,
    existing: Mapping[tuple[Any, ...], Offer],
) -> tuple[dict[tuple[Any, ...], Offer], int]:
    """Return the offers by key, each with its verdict, and how many had no median to be compared with.

    Rows that mean the same offer count once, at the lowest price.
    """
    offers: dict[tuple[Any, ...], tuple[Offer, OfferRow, str]] = {}
    for row, slug in rows:
        offer = _offer(document, row, slug, facts)
        known = offers.get(_values(offer, KEY))
        if known is None or offer.price_usd_per_hour < known[0].price_usd_per_hour:
            offers[_values(offer, KEY)] = (offer, row, slug)
    on_demand = _on_demand_prices(offer for offer, _row, _slug in offers.values())
    skipped = 0
    for key, (offer, row, slug) in offers.items():
        verdict = hold_back_reason(_quoted(offer, row, slug, on_demand), facts.bands.of(slug, offer.market))
        skipped += verdict.band_skipped
        judged = existing.get(key) if facts.keeps_verdicts else None
        is_same = judged is not None and judged.price_usd_per_hour == offer.price_usd_per_hour
        offer.held_back = judged.held_back if judged is not None and is_same else verdict.reason
    return {key: offer for key, (offer, _row, _slug) in offers.items()}, skipped


def _offer(document: SourceDocument, row: OfferRow, slug: str, facts: RunFacts) -> Offer:
    count = row.gpu_count.quantize(COUNT_STEP, ROUND_HALF_EVEN)
    rate = facts.rates.get(row.currency)
    price = rate.to_usd(row.price_per_hour) if rate else row.price_per_hour.quantize(MICRO, ROUND_HALF_EVEN)
    return Offer(
        source_id=document.source_id,
        document=document,
        cloud_id=facts.clouds[row.cloud],
        gpu_id=facts.gpus[slug],
        gpu_name=row.gpu_name[:100],
        instance_type=row.instance_type[:120],
        gpu_count=count,
        is_whole=row.gpu_count >= 1,
        price_usd_per_hour=price,
        price_usd_per_gpu_hour=(price / row.gpu_count).quantize(MICRO, ROUND_HALF_EVEN),
        currency=row.currency,
        price_in_currency_per_hour=row.price_per_hour.quantize(MICRO, ROUND_HALF_EVEN),
        rate_on=rate.day if rate else None,
        rate_origin=rate.origin if rate else "",
        market=row.market.value,
        term_months=row.term_months,
        region=row.region[:80],
        zone=row.zone[:80],
        country=row.country,
        vcpus=_size(row.vcpus),
        ram_gb=_size(row.ram_gb),
        disk_gb=_size(row.disk_gb),
        interconnect=row.interconnect[:60],
        billing_step_seconds=row.billing_step_seconds,
        availability=row.availability.value,
        verified=row.verified,
        is_list=row.is_list,
        url=row.url[:400],
        observed_at=facts.observed_at,
        priced_on=row.priced_on or facts.dated_on,
        first_seen_at=facts.observed_at,
    )


def _size(number: Decimal | None) -> Decimal | None:
    """Return a size as its column holds it; a figure no machine has is no figure."""
    if number is None or not 0 <= number < LARGEST_SIZE:
        return None
    return number.quantize(SIZE_STEP, ROUND_HALF_EVEN)


def _on_demand_prices(offers: Iterable[Offer]) -> dict[tuple[Any, ...], Decimal]:
    """Return on-demand prices by machine, region and zone; under zone None the highest of the region."""
    found: dict[tuple[Any, ...], Decimal] = {}
    for offer in offers:
        if offer.market == Market.ON_DEMAND:
            machine = (offer.cloud_id, offer.instance_type, offer.gpu_count, offer.region)
            found[*machine, offer.zone] = offer.price_usd_per_hour
            found[*machine, None] = max(offer.price_usd_per_hour, found.get((*machine, None), Decimal(0)))
    return found


def _quoted(offer: Offer, row: OfferRow, slug: str, on_demand: Mapping[tuple[Any, ...], Decimal]) -> Quoted:
    machine = (offer.cloud_id, offer.instance_type, offer.gpu_count, offer.region)
    return Quoted(
        gpu_slug=slug,
        gpu_count=row.gpu_count,
        price_usd_per_hour=offer.price_usd_per_hour,
        market=offer.market,
        gpu_count_in_name=row.gpu_count_in_name,
        on_demand_usd_per_hour=on_demand.get((*machine, offer.zone), on_demand.get((*machine, None))),
    )


def _write(
    document: SourceDocument,
    offers: Mapping[tuple[Any, ...], Offer],
    existing: Mapping[tuple[Any, ...], Offer],
    facts: RunFacts,
) -> Counter[str]:
    """Insert what is new, rewrite what differs, renew the rest, and mark what is missing as gone. Four statements."""
    on_sale = {key: offer for key, offer in existing.items() if offer.gone_at is None}
    new = [offer for key, offer in offers.items() if key not in on_sale]
    again = {key: offer for key, offer in offers.items() if key in on_sale}
    rewritten = [
        offer
        for key, offer in again.items()
        if _values(offer, CONTENT + EVIDENCE) != _values(on_sale[key], CONTENT + EVIDENCE)
    ]
    Offer.objects.bulk_create(
        [*new, *rewritten],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=CONFLICT_FIELDS,
        update_fields=[*CONTENT, *EVIDENCE, "observed_at", "gone_at"],
    )
    _stamp([on_sale[key].pk for key in again], observed_at=facts.observed_at)
    gone = [offer.pk for key, offer in on_sale.items() if key not in offers]
    _stamp(gone, gone_at=facts.now)
    changed = sum(_values(offer, CONTENT) != _values(on_sale[key], CONTENT) for key, offer in again.items())
    return Counter(new=len(new), changed=changed, gone=len(gone))


def _stamp(keys: Sequence[UUID], **times: datetime) -> None:
    """Set times on many offers; a statement takes 65,535 parameters at most."""
    for start in range(0, len(keys), BATCH):
        Offer.objects.filter(pk__in=keys[start : start + BATCH]).update(**times)


def _values(offer: Offer, fields: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(offer, field) for field in fields)
