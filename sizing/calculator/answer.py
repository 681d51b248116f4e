"""The answer as the page shows it: where the memory goes, which GPUs hold it, and what finishing costs, cheapest first.

Pure: an estimate and prices in, rows out. A card's set is the number of its GPUs that finishes for the least money;
of numbers that cost the same, the largest, which is done first.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sizing.engine.cost import cost_usd
from sizing.engine.estimate import Estimate, Fit, PerGpu
from sizing.engine.verdict import Verdict

CLOSE = Decimal("1.01")  # costs nearer than this are the same: the model does not know better
# What lies on the card from the first tensor on, then what comes and goes, then what is not tensors.
PART_ORDER = ("weights", "optimizer", "gradients", "buffers", "kv_cache", "activations", "loss", "step")
ALLOCATOR, CONTEXT = "allocator", "context"
SHORTEST_HOURS = Decimal("0.1")
_LEAST_SHOWN_GIB = 0.005


@dataclass(frozen=True, kw_only=True)
class CardPrice:
    """What one GPU-hour of a card costs, USD; None where there is no price. `gpus_free`: on the exchange alone.

    `is_live` is false for a dated list price, which nobody may still ask.
    """

    usd_per_gpu_hour: Decimal | None = None
    is_live: bool = False
    spot_usd_per_gpu_hour: Decimal | None = None
    gpus_free: int | None = None


NO_PRICE = CardPrice()


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the memory: GiB, its share in percent, and where it lies in a bar of 100 units. `shade` from 1."""

    name: str
    gib: Decimal
    percent: int
    x: str
    width: str
    shade: int


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One of `gpu_count` GPUs at its worst moment, GiB. `total_gib`: as nvidia-smi shows it, the sum of the parts.

    `low_gib` to `high_gib` is the interval; `low_x` and `high_x` its ends in the bar, which is as long as the larger of
    total and upper end.
    """

    gpu_count: int
    phase: str
    parts: tuple[Part, ...]
    total_gib: Decimal
    low_gib: Decimal
    high_gib: Decimal
    low_x: str
    high_x: str


@dataclass(frozen=True, kw_only=True)
class GpuSet:
    """So many GPUs of one card. `cost_usd` None: without a price, or without the figures that a speed needs."""

    gpu_count: int
    verdict: Verdict
    headroom_gib: Decimal
    tokens_per_s: Decimal | None
    hours: Decimal | None
    cost_usd: Decimal | None
    is_more_than_free: bool = False

    @property
    def seconds(self) -> int:
        """How long it takes."""
        return round((self.hours or Decimal(0)) * 3600)

    @property
    def shortest_hours(self) -> Decimal:
        """The least time that is told apart."""
        return SHORTEST_HOURS

    @property
    def is_short(self) -> bool:
        """Whether it is done in less than that."""
        return self.hours is not None and self.hours < SHORTEST_HOURS

    @property
    def missing_gib(self) -> Decimal:
        """What a card that is too small lacks."""
        return -self.headroom_gib

    @property
    def whole_hours(self) -> int:
        """Hours to rent: begun ones are full ones, at least one."""
        return max(1, math.ceil(self.hours or 0))


@dataclass(frozen=True, kw_only=True)
class Row:
    """One card: its sets in the order of the counts asked for, and the one to take (None: it holds the job in none)."""

    slug: str
    sets: tuple[GpuSet, ...]
    best: GpuSet | None
    price: CardPrice


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the page says, `totals` for each number of GPUs, `memory` for the one that is named first.

    `priced`: cards that finish it for a known cost, cheapest first, those that are tight last. `unpriced`: they hold
    it, but no cost is known. `too_small`: slugs of the rest.
    """

    parameters: int
    memory: Memory
    totals: tuple[Memory, ...]
    priced: tuple[Row, ...]
    unpriced: tuple[Row, ...]
    too_small: tuple[str, ...]

    @property
    def cheapest(self) -> Row | None:
        """The row that fits for the least money at a live price, and is free; at a list price where none is live."""
        return cheapest_of(self.priced)


def answer_of(estimate: Estimate, prices: Mapping[str, CardPrice]) -> Answer:
    """Return the answer. `prices` by card; the memory shown is that of the cheapest set, else of the largest."""
    by_card: dict[str, list[Fit]] = {}
    for fit in estimate.fits:
        by_card.setdefault(fit.gpu, []).append(fit)
    rows = [row_of(slug, fits, prices.get(slug, NO_PRICE)) for slug, fits in by_card.items()]
    holding = [row for row in rows if row.best]
    priced = sorted((row for row in holding if row.best and row.best.cost_usd is not None), key=_by_cost)
    totals = tuple(memory_of(row) for row in estimate.per_gpu)
    cheapest = cheapest_of(priced)
    count = cheapest.best.gpu_count if cheapest and cheapest.best else None
    return Answer(
        parameters=estimate.parameters,
        memory=next((memory for memory in totals if memory.gpu_count == count), totals[-1]),
        totals=totals,
        priced=tuple(priced),
        unpriced=tuple(row for row in holding if row.best and row.best.cost_usd is None),
        too_small=tuple(row.slug for row in rows if row.best is None),
    )


def cheapest_of(rows: Sequence[Row]) -> Row | None:
    """Return the first of rows in their order that fits and is to be had at a live price, else live, else that fits."""
    fitting = [row for row in rows if row.best and row.best.verdict == "fits"]
    live = [row for row in fitting if row.price.is_live]
    free = [row for row in live if row.best and not row.best.is_more_than_free]
    return next(iter(free or live or fitting), None)


def _by_cost(row: Row) -> tuple[bool, Decimal, str]:
    best = row.best
    assert best is not None
    return best.verdict != "fits", best.cost_usd or Decimal(0), row.slug


def row_of(slug: str, fits: Sequence[Fit], price: CardPrice) -> Row:
    """Return a card's row."""
    sets = tuple(_set_of(fit, price) for fit in fits)
    return Row(slug=slug, sets=sets, best=best_of(sets), price=price)


def _set_of(fit: Fit, price: CardPrice) -> GpuSet:
    cost = None
    if price.usd_per_gpu_hour is not None and fit.hours is not None:
        cost = cost_usd(hours=fit.hours, gpu_count=fit.gpu_count, price_usd_per_gpu_hour=price.usd_per_gpu_hour)
    return GpuSet(
        gpu_count=fit.gpu_count,
        verdict=fit.verdict,
        headroom_gib=_decimal(fit.headroom_gib),
        tokens_per_s=None if fit.tokens_per_s is None else _decimal(fit.tokens_per_s),
        hours=None if fit.hours is None else _decimal(fit.hours),
        cost_usd=cost,
        is_more_than_free=price.gpus_free is not None and fit.gpu_count > price.gpus_free,
    )


def best_of(sets: Sequence[GpuSet]) -> GpuSet | None:
    """Return the set to take: it fits rather than is tight, is there to be had, costs least, is done first."""
    for verdict in ("fits", "tight"):
        holding = [each for each in sets if each.verdict == verdict]
        there = [each for each in holding if not each.is_more_than_free] or holding
        costs = [each.cost_usd for each in there if each.cost_usd is not None]
        if costs:
            least = min(costs) * CLOSE
            there = [each for each in there if each.cost_usd is not None and each.cost_usd <= least]
            return max(there, key=lambda each: each.gpu_count)
        if there:
            return min(there, key=lambda each: each.gpu_count)
    return None


def memory_of(row: PerGpu) -> Memory:
    """Return the memory of one GPU with its parts; those under a hundredth of a GiB are left out."""
    sizes = {name: row.parts[name] for name in PART_ORDER if name in row.parts}
    sizes |= {name: size for name, size in row.parts.items() if name not in sizes}
    sizes[ALLOCATOR] = row.reserved_gib - row.allocated_gib
    sizes[CONTEXT] = row.nvidia_smi_gib - row.reserved_gib
    scale = 100 / max(row.nvidia_smi_gib, row.high_gib)
    parts: list[Part] = []
    x = 0.0
    for name, size in sizes.items():
        if size >= _LEAST_SHOWN_GIB:
            parts.append(
                Part(
                    name=name,
                    gib=_decimal(size),
                    percent=round(100 * size / row.nvidia_smi_gib),
                    x=f"{x:.2f}",
                    width=f"{size * scale:.2f}",
                    shade=len(parts) + 1,
                )
            )
            x += size * scale
    return Memory(
        gpu_count=row.gpu_count,
        phase=row.phase,
        parts=tuple(parts),
        total_gib=_decimal(row.nvidia_smi_gib),
        low_gib=_decimal(row.low_gib),
        high_gib=_decimal(row.high_gib),
        low_x=f"{row.low_gib * scale:.2f}",
        high_x=f"{row.high_gib * scale:.2f}",
    )


def _decimal(value: float) -> Decimal:
    return Decimal(repr(round(value, 3)))
