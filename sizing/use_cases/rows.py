"""What every use case is made of: rows, pairs, sources, and the price of the work.

All functions are pure. Prices are USD without tax.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from catalog.compared import price_ratio, ratio
from catalog.history_queries import Trend
from catalog.models import Gpu
from catalog.pairs import known_pair
from catalog.queries import GpuPrices, Headline

CLOSE = Decimal("0.05")


@dataclass(frozen=True, kw_only=True)
class Estimated:
    """A figure that its maker does not publish and a rule gives."""

    value: Decimal


# None: not published, or not read.
Value = Decimal | int | str | bool | Estimated | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One GPU of a use case's table. `values`: its columns' figures by key; `work`: what it does in an hour.

    The unit of `work` is the use case's own; None where a figure is missing.
    """

    gpu: Gpu
    prices: GpuPrices
    trend: Trend | None
    values: Mapping[str, Value]
    work: Decimal | None

    @property
    def link_name(self) -> str:
        """What joins it to its neighbours."""
        return self.gpu.interconnect.split(";")[0]

    @property
    def work_usd(self) -> Decimal | None:
        """Price of a unit of work; None without a price or a figure."""
        headline = self.prices.headline
        return headline.price_usd_per_gpu_hour / self.work if headline and self.work else None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two GPUs and what tells the first from the second."""

    first: Row
    second: Row

    @property
    def linked(self) -> tuple[str, str] | None:
        """The slugs in the order of the page that compares the two; None where there is no such page."""
        known = known_pair(self.first.gpu.slug, self.second.gpu.slug)
        return known.slugs if known else None

    @property
    def bf16_ratio(self) -> Decimal | None:
        """Dense BF16 of the first as a multiple of the second's; None where one is not published."""
        return ratio(self.first.gpu.bf16_dense_tflops, self.second.gpu.bf16_dense_tflops)

    @property
    def bandwidth_ratio(self) -> Decimal | None:
        """Memory bandwidth of the first as a multiple."""
        return ratio(self.first.gpu.memory_bandwidth_gb_s, self.second.gpu.memory_bandwidth_gb_s)

    @property
    def fp32_ratio(self) -> Decimal | None:
        """FP32 of the first as a multiple."""
        return ratio(self.first.gpu.fp32_tflops, self.second.gpu.fp32_tflops)

    @property
    def fp64_ratio(self) -> Decimal | None:
        """FP64 of the first as a multiple."""
        return ratio(self.first.gpu.fp64_tflops, self.second.gpu.fp64_tflops)

    @property
    def power_ratio(self) -> Decimal | None:
        """Power of the first as a multiple."""
        watts = (self.first.gpu.tdp_w, self.second.gpu.tdp_w)
        return ratio(*(Decimal(figure) if figure else None for figure in watts))

    @property
    def extra_gb(self) -> Decimal:
        """Memory that the first has more."""
        return self.first.gpu.memory_gb - self.second.gpu.memory_gb

    @property
    def extra_memory_percent(self) -> int:
        """Memory that the first has more, in percent of the second's."""
        return rounded((self.first.gpu.memory_gb / self.second.gpu.memory_gb - 1) * 100)

    @property
    def price_ratio(self) -> Decimal | None:
        """How many times dearer the first is; None unless both prices are live or both are list prices."""
        return price_ratio(self.first.prices.headline, self.second.prices.headline)

    @property
    def cheaper_percent(self) -> int | None:
        """How much less the first costs, in percent of the second; None where it does not."""
        return rounded((1 - self.price_ratio) * 100) if self.price_ratio and self.price_ratio < 1 else None

    @property
    def price_is_close(self) -> bool:
        """Whether the prices differ by less than a twentieth."""
        return self.price_ratio is not None and abs(self.price_ratio - 1) < CLOSE


@dataclass(frozen=True, kw_only=True)
class Source:
    """A document that a page leans on, under the title its authors gave it, and the day it was read."""

    title: str
    url: str
    read_on: date


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The job that a page prices at its end."""

    slug: str
    gpu_count: int
    hours: int


@dataclass(frozen=True, kw_only=True)
class SampleJob:
    """What `gpu_count` GPUs cost for `hours` at the headline price, in USD without tax."""

    row: Row
    headline: Headline
    gpu_count: int
    hours: int
    total_usd: Decimal


@dataclass(frozen=True, kw_only=True)
class UseCase:
    """One use case: `groups` of slugs in the table's order, each with a key; `also`: GPUs that only sentences name.

    `values` gives a row's figures by column, `work` what a GPU does in an hour, `facts` the numbers of the sentences
    from the rows by slug, `rule` those of the rule that the page states. A pair stands in `pairs` under the name its reason has in the template.
    """

    slug: str
    groups: Mapping[str, Sequence[str]]
    values: Callable[[Gpu], Mapping[str, Value]]
    work: Callable[[Gpu], Decimal | None]
    facts: Callable[[Mapping[str, Row]], object]
    rule_version: int
    rule: Mapping[str, object]
    pairs: Mapping[str, tuple[str, str]]
    sample: Sample
    sources: Sequence[Source]
    also: Sequence[str] = field(default=())

    @property
    def listed(self) -> list[str]:
        """The slugs of all rows, in the table's order."""
        return [slug for slugs in self.groups.values() for slug in slugs]

    @property
    def slugs(self) -> list[str]:
        """Every GPU that the page names."""
        named = [*self.listed, *self.also, *(slug for pair in self.pairs.values() for slug in pair), self.sample.slug]
        return list(dict.fromkeys(named))


def build_rows(
    use_case: UseCase, *, gpus: Mapping[str, Gpu], prices: Mapping[str, GpuPrices], trends: Mapping[str, Trend]
) -> dict[str, Row]:
    """Return a row for each GPU that the page names and the catalogue holds, by slug."""
    return {
        slug: Row(
            gpu=gpus[slug],
            prices=prices[slug],
            trend=trends.get(slug),
            values=use_case.values(gpus[slug]),
            work=use_case.work(gpus[slug]),
        )
        for slug in use_case.slugs
        if slug in gpus
    }


def cheapest_work(rows: Sequence[Row]) -> Row | None:
    """Return the row to mark: the fewest USD per unit of work among live prices, or None."""
    return min(_live(rows), key=lambda row: row.work_usd or 0, default=None)


def cheapest_hour(rows: Sequence[Row]) -> Row | None:
    """Return the row with the lowest live price of an hour, which is not always the cheapest work."""
    return min(
        _live(rows),
        key=lambda row: row.prices.headline.price_usd_per_gpu_hour if row.prices.headline else 0,
        default=None,
    )


def sorted_rows(rows: Sequence[Row], *, sort: str) -> Sequence[Row]:
    """Order by price (lowest first, none last) or memory (largest first); anything else keeps the use case's order."""
    if sort == "price":
        return sorted(
            rows, key=lambda row: row.prices.headline.price_usd_per_gpu_hour if row.prices.headline else Decimal("inf")
        )
    return sorted(rows, key=lambda row: -row.gpu.memory_gb) if sort == "memory" else rows


def _live(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.prices.headline and row.prices.headline.is_live and row.work_usd]


def pairs_of(use_case: UseCase, rows: Mapping[str, Row]) -> dict[str, Pair]:
    """Return the pairs of a use case by name. The rows must hold all of their GPUs."""
    return {name: Pair(first=rows[a], second=rows[b]) for name, (a, b) in use_case.pairs.items()}


def sample_job(sample: Sample, row: Row) -> SampleJob | None:
    """Price the sample job at the row's headline; None while it has no price."""
    headline = row.prices.headline
    if headline is None:
        return None
    total = headline.price_usd_per_gpu_hour * sample.gpu_count * sample.hours
    return SampleJob(row=row, headline=headline, gpu_count=sample.gpu_count, hours=sample.hours, total_usd=total)


def one_way(nvlink_gb_s: Decimal | None) -> Decimal | None:
    """Return a link's GB/s in one direction: makers print the sum of both."""
    return nvlink_gb_s / 2 if nvlink_gb_s else None


def pflops(tflops: Decimal | None) -> Decimal | None:
    """Return TFLOPS as PFLOPS: the work of an hour of training, tuning or drawing."""
    return tflops / 1000 if tflops else None


def rounded(value: Decimal) -> int:
    """Round to the nearest whole number, halves up."""
    return int(value.to_integral_value(rounding=ROUND_HALF_UP))


def two_digits(value: Decimal, *, rounding: str = ROUND_HALF_UP) -> int:
    """Keep the first two digits of a number of 10 or more.

    >>> two_digits(Decimal("368.1")), two_digits(Decimal(2987), rounding="ROUND_FLOOR")
    (370, 2900)
    """
    step = Decimal(10) ** (value.adjusted() - 1)
    return int((value / step).to_integral_value(rounding=rounding) * step)
