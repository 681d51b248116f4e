"""The filters of offers, each said once: the API, the page, its counts and the exchange's own asks all go by them.

A filter is a condition on offers, and one on our best asks where they can be told from the GPU, the price, or what the
exchange promises. What is not known does not meet a filter. Values are those of `catalog.filters.OfferParameters`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, DecimalField, ExpressionWrapper, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThanOrEqual

from catalog.freshness import FRESH_FOR, LIVE_FOR, SHOWN_FOR, Freshness, oldest_live_day
from catalog.models import BestAsk, Offer

SHOWN_BY_DEFAULT = tuple(tier for tier in Freshness if tier is not Freshness.STALE)
PRECISIONS = {
    "FP64": "fp64_tflops",
    "TF32": "tf32_dense_tflops",
    "BF16": "bf16_dense_tflops",
    "FP8": "fp8_dense_tflops",
    "FP4": "fp4_dense_tflops",
}
# An exchange rental is billed by the second and may end at any; nothing but its hours is charged, and nothing is kept.
OUR_BILLING_STEP_SECONDS = 1
OUR_MARKET = Offer.MarketKind.ON_DEMAND
_ALL, _NONE = Q(), Q(pk__in=[])

Condition = Callable[[Any, datetime], Q]
Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class OfferFilter:
    """One filter: `offers` is the condition on an offer, `asks` that on a best ask."""

    name: str
    offers: Condition
    asks: Condition


def offers_where(wanted: Values, *, now: datetime) -> QuerySet[Offer]:
    """Return the offers on sale that meet `wanted`; without a word on freshness, those of every tier but stale."""
    offers = Offer.objects.on_sale()
    for condition in offer_conditions(wanted, now=now).values():
        offers = offers.filter(condition)
    return offers


def asks_where(wanted: Values, *, now: datetime) -> QuerySet[BestAsk]:
    """Return our best asks that meet `wanted`; an ask that nobody changed stays good, so age alone hides none."""
    asks = BestAsk.objects.all()
    for each in FILTERS:
        if each.name in wanted:
            asks = asks.filter(each.asks(wanted[each.name], now))
    return asks


def offer_conditions(wanted: Values, *, now: datetime) -> dict[str, Q]:
    """Return by name the conditions that an offer must meet; freshness always has one."""
    given = {"freshness": SHOWN_BY_DEFAULT, **wanted}
    return {each.name: each.offers(given[each.name], now) for each in FILTERS if each.name in given}


@dataclass(frozen=True, kw_only=True)
class Removed:
    """Offers on sale: how many meet all filters, and how many each filter alone keeps out."""

    total: int
    found: int
    by_filter: Mapping[str, int]


def count_removed(wanted: Values, *, now: datetime) -> Removed:
    """Count in one pass over the offers on sale: they are grouped by which filters they miss, and the groups counted.

    Each filter is a column of its own, yes or no, so that the database expects few groups and shares the work out.
    """
    conditions = offer_conditions(wanted, now=now)
    missed = {
        f"misses_{name}": Case(When(condition, then=Value(False)), default=Value(True))
        for name, condition in conditions.items()
    }
    rows = Offer.objects.on_sale().annotate(**missed).order_by().values_list(*missed).annotate(rows=Count("*"))
    found, total, by_filter = 0, 0, dict.fromkeys(conditions, 0)
    for *misses, count in rows:
        total += count
        alone = [name for name, is_missed in zip(conditions, misses, strict=True) if is_missed]
        if not alone:
            found = count
        elif len(alone) == 1:
            by_filter[alone[0]] = count
    return Removed(total=total, found=found, by_filter=by_filter)


def total_memory() -> "ExpressionWrapper[Any]":
    """Return the memory of all GPUs of an offer, as an expression."""
    return ExpressionWrapper(
        F("gpu__memory_gb") * F("gpu_count"), output_field=DecimalField(max_digits=20, decimal_places=6)
    )


def billing_step() -> Coalesce:
    """Return an offer's billing step: its own, else its cloud's."""
    return Coalesce("billing_step_seconds", "cloud__billing_step_seconds")


def _is(lookup: str) -> Condition:
    return lambda value, now: Q(**{lookup: value})


def _both(name: str, lookup: str) -> OfferFilter:
    """A filter by the GPU or the price, which offers and asks have alike."""
    return OfferFilter(name=name, offers=_is(lookup), asks=_is(lookup))


def _elsewhere(name: str, lookup: str) -> OfferFilter:
    """A filter by what only an outside offer has: no ask of ours meets it."""
    return OfferFilter(name=name, offers=_is(lookup), asks=lambda value, now: _NONE)


def _promised(name: str, offers: Condition, *, ours: Callable[[Any], bool]) -> OfferFilter:
    """A filter by what is the same for all our asks; `ours` tells whether that meets a value."""
    return OfferFilter(name=name, offers=offers, asks=lambda value, now: _ALL if ours(value) else _NONE)


def _answer(name: str, lookup: str, *, ours: bool | None) -> OfferFilter:
    """A filter by yes or no; `ours` is the exchange's answer, None where it has none."""
    return _promised(
        name,
        lambda value, now: Q(**{lookup: value == "true"}),
        ours=lambda value: ours is not None and ours is (value == "true"),
    )


def _all_published(wanted: Sequence[str], now: datetime) -> Q:
    condition = Q()
    for precision in wanted:
        condition &= Q(**{f"gpu__{PRECISIONS[precision]}__gt": 0})
    return condition


def _has_rt_cores(answer: str, now: datetime) -> Q:
    return Q(gpu__rt_cores=answer == "true")


def _parts_of(column: str, parts: Sequence[str]) -> Q:
    condition = _NONE
    for part in parts:
        condition |= Q(**{f"{column}__icontains": part.strip()})
    return condition


def _linked_by(parts: Sequence[str], now: datetime) -> Q:
    return _parts_of("interconnect", parts) | (Q(interconnect="") & _parts_of("gpu__interconnect", parts))


def _step_up_to(most: int, now: datetime) -> Q:
    untold = Q(billing_step_seconds__isnull=True, cloud__billing_step_seconds__lte=most)
    return Q(billing_step_seconds__lte=most) | untold


def _in_tiers(tiers: Sequence[str], now: datetime) -> Q:
    """Return the condition that `catalog.freshness.freshness` answers one of `tiers`."""
    dated = Q(is_list=True) | Q(priced_on__isnull=False, priced_on__lt=oldest_live_day(now))
    return _any_tier(tiers, {**{tier: ~dated & aged for tier, aged in _ages(now).items()}, Freshness.LIST: dated})


def _asks_in_tiers(tiers: Sequence[str], now: datetime) -> Q:
    return _any_tier(tiers, {**_ages(now), Freshness.LIST: _NONE})


def _ages(now: datetime) -> dict[Freshness, Q]:
    fresh, live, shown = (Q(observed_at__gt=now - limit) for limit in (FRESH_FOR, LIVE_FOR, SHOWN_FOR))
    return {
        Freshness.FRESH: fresh,
        Freshness.WARNED: live & ~fresh,
        Freshness.OLD: shown & ~live,
        Freshness.STALE: ~shown,
    }


def _any_tier(tiers: Sequence[str], conditions: Mapping[Freshness, Q]) -> Q:
    chosen = _NONE
    for tier in dict.fromkeys(tiers):
        chosen |= conditions[Freshness(tier)]
    return chosen


FILTERS: tuple[OfferFilter, ...] = (
    _both("gpu", "gpu__slug__in"),
    _both("vendor", "gpu__vendor__in"),
    _elsewhere("cloud", "cloud__slug__in"),
    _elsewhere("source", "source__name__in"),
    _promised("market", _is("market__in"), ours=lambda kinds: OUR_MARKET in kinds),
    _elsewhere("term_months", "term_months"),
    _elsewhere("country", "country__in"),
    _elsewhere("region", "region__in"),
    _promised("min_gpus", _is("gpu_count__gte"), ours=lambda least: least <= 1),
    _promised("max_gpus", _is("gpu_count__lte"), ours=lambda most: True),
    _both("min_memory_gb", "gpu__memory_gb__gte"),
    OfferFilter(
        name="min_total_memory_gb",
        offers=lambda least, now: Q(GreaterThanOrEqual(total_memory(), least)),
        asks=_is("gpu__memory_gb__gte"),  # one device
    ),
    _both("min_memory_bandwidth_gb_s", "gpu__memory_bandwidth_gb_s__gte"),
    _both("min_fp64_tflops", "gpu__fp64_tflops__gte"),
    OfferFilter(name="precision", offers=_all_published, asks=_all_published),
    OfferFilter(name="rt_cores", offers=_has_rt_cores, asks=_has_rt_cores),
    OfferFilter(name="interconnect", offers=_linked_by, asks=lambda parts, now: _parts_of("gpu__interconnect", parts)),
    _answer("multi_node", "cloud__multi_node", ours=None),
    OfferFilter(
        name="fabric", offers=lambda parts, now: _parts_of("cloud__fabric", parts), asks=lambda parts, now: _NONE
    ),
    _promised("billing_step_max_seconds", _step_up_to, ours=lambda most: most >= OUR_BILLING_STEP_SECONDS),
    _promised("minimum_time_max_seconds", _is("cloud__minimum_seconds__lte"), ours=lambda most: True),
    _answer("persistent_volumes", "cloud__persistent_volumes", ours=False),
    _answer("volume_survives_stop", "cloud__volume_survives_stop", ours=False),
    _elsewhere("min_spot_notice_seconds", "cloud__spot_notice_seconds__gte"),
    _elsewhere("min_storage_mib_s", "cloud__storage_mib_s__gte"),
    _promised("max_egress_usd_per_gb", _is("cloud__egress_usd_per_gb__lte"), ours=lambda most: True),
    _promised("availability", _is("availability__in"), ours=lambda stocks: Offer.Stock.YES in stocks),
    OfferFilter(name="freshness", offers=_in_tiers, asks=_asks_in_tiers),
    _both("max_price_usd_per_gpu_hour", "price_usd_per_gpu_hour__lte"),
)
