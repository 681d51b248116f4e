"""What the page on LLM training prints: its rows, and every number of its sentences, computed from the catalogue.

All functions are pure. Facts that are not in the catalogue stand here with their source.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from catalog.history_queries import Trend
from catalog.models import Gpu
from catalog.queries import GpuPrices, Headline
from sizing.engine.simple_rule import BYTES_PER_PARAMETER, USABLE_SHARE, full_training_b_params

# The reference table's rows in its order: by generation, then by memory.
REFERENCE_SLUGS = (
    "b300",
    "b200",
    "mi325x",
    "mi300x",
    "h200-sxm",
    "h100-nvl",
    "h100-sxm",
    "a100-sxm-80gb",
    "a100-pcie-80gb",
)
ADDED_SLUGS = ("mi355x", "h200-nvl", "h100-pcie", "rtx-pro-6000-blackwell-server")

# Best matrix multiply found in BF16, TFLOPS. Source: MEASURED_SOURCE, accelerator tables, August 2026.
MEASURED_SOURCE = "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md"
MEASURED_BF16_TFLOPS = {
    "b300": 1769,
    "b200": 1745,
    "mi355x": 1565,
    "mi325x": 785,
    "mi300x": 668,
    "h100-sxm": 795,
    "a100-sxm-80gb": 271,
}

# One direction of a PCIe 5.0 x16 slot: 32 GT/s on 16 lanes at 128b/130b. Source: PCI-SIG base specification 5.0.
PCIE_5_X16_GB_S = Decimal(63)
# Forward and backward pass: 6 operations per parameter and token. Source: Kaplan et al., arXiv:2001.08361, section 2.1.
OPERATIONS_PER_PARAMETER_AND_TOKEN = 6
# Share of the dense figure that whole training runs reach. Our range; PaLM reports 46 % (arXiv:2204.02311, table 3).
REACHED_LOW, REACHED, REACHED_HIGH = Decimal("0.35"), Decimal("0.40"), Decimal("0.45")

CLOSE = Decimal("0.05")
SAMPLE_B_PARAMS = 7
SAMPLE_B_TOKENS = 100
SAMPLE_GPUS = 8
SAMPLE_HOURS = 24


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """One GPU of the table. Sizes in billions of parameters, link in GB/s one way, measured in BF16 TFLOPS."""

    gpu: Gpu
    prices: GpuPrices
    trains_on_1: int
    trains_on_8: int
    link_gb_s: Decimal | None
    link_name: str
    measured_tflops: int | None
    trend: Trend | None

    @property
    def usd_per_pflop_hour(self) -> Decimal | None:
        """Price of the work: USD per hour of 1000 dense BF16 TFLOPS; None without a price or a figure."""
        headline, tflops = self.prices.headline, self.gpu.bf16_dense_tflops
        return headline.price_usd_per_gpu_hour * 1000 / tflops if headline and tflops else None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two GPUs and what tells the first from the second.

    `price_ratio` is set only where both prices are of one kind, live with live or list with list.
    """

    first: TrainingRow
    second: TrainingRow
    bf16_ratio: Decimal
    bandwidth_ratio: Decimal
    extra_gb: Decimal
    extra_memory_percent: int
    price_ratio: Decimal | None

    @property
    def price_is_close(self) -> bool:
        """Whether the prices differ by less than a twentieth."""
        return self.price_ratio is not None and abs(self.price_ratio - 1) < CLOSE


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The share of the dense BF16 figure that the best matrix multiply reached, in percent."""

    name: str
    percent: int


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """Every number of the page's sentences. Units are in the names; sizes are billions of parameters or tokens."""

    bytes_per_parameter: int
    usable_percent: int
    measured_low: Measured
    measured_high: Measured
    link_gb_s: Decimal
    pcie_gb_s: Decimal
    gradients_gb: int
    link_ms: int
    pcie_ms: int
    sample_b_params: int
    sample_memory_gb: int
    sample_gpus: int
    roomy: TrainingRow
    sample_b_tokens: int
    sample_run_hours: int
    sample_run_gpus: int
    reached_percent: int
    reached_low_percent: int
    reached_high_percent: int


@dataclass(frozen=True, kw_only=True)
class SampleJob:
    """What `gpu_count` GPUs cost for `hours` at the headline price, in USD without tax."""

    row: TrainingRow
    headline: Headline
    gpu_count: int
    hours: int
    total_usd: Decimal


def training_rows(
    slugs: Iterable[str],
    *,
    gpus: Mapping[str, Gpu],
    prices: Mapping[str, GpuPrices],
    trends: Mapping[str, Trend],
) -> list[TrainingRow]:
    """Return the rows of `slugs` in that order, those the catalogue holds."""
    return [_row(gpus[slug], prices=prices[slug], trend=trends.get(slug)) for slug in slugs if slug in gpus]


def _row(gpu: Gpu, *, prices: GpuPrices, trend: Trend | None) -> TrainingRow:
    return TrainingRow(
        gpu=gpu,
        prices=prices,
        trains_on_1=full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=1),
        trains_on_8=full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=8),
        # Makers print the sum of both directions.
        link_gb_s=gpu.nvlink_gb_s / 2 if gpu.nvlink_gb_s else None,
        link_name=gpu.interconnect.split(";")[0],
        measured_tflops=MEASURED_BF16_TFLOPS.get(gpu.slug),
        trend=trend,
    )


def cheapest_work(rows: Sequence[TrainingRow]) -> TrainingRow | None:
    """Return the row to mark: the fewest USD per unit of dense BF16 work among live prices, or None."""
    live = [row for row in rows if row.prices.headline and row.prices.headline.is_live and row.usd_per_pflop_hour]
    return min(live, key=lambda row: row.usd_per_pflop_hour or 0, default=None)


def cheapest_hour(rows: Sequence[TrainingRow]) -> TrainingRow | None:
    """Return the row with the lowest live price of an hour, which is not always the cheapest work."""
    live = [row for row in rows if row.prices.headline and row.prices.headline.is_live and row.usd_per_pflop_hour]
    return min(
        live, key=lambda row: row.prices.headline.price_usd_per_gpu_hour if row.prices.headline else 0, default=None
    )


def largest_figures(rows: Sequence[TrainingRow]) -> dict[str, Decimal]:
    """Return the largest value of each column that draws bars."""
    return {
        "memory_gb": max((row.gpu.memory_gb for row in rows), default=Decimal(0)),
        "memory_bandwidth_gb_s": max((row.gpu.memory_bandwidth_gb_s or Decimal(0) for row in rows), default=Decimal(0)),
        "bf16_dense_tflops": max((row.gpu.bf16_dense_tflops or Decimal(0) for row in rows), default=Decimal(0)),
        "fp8_dense_tflops": max((row.gpu.fp8_dense_tflops or Decimal(0) for row in rows), default=Decimal(0)),
        "measured_tflops": Decimal(max((row.measured_tflops or 0 for row in rows), default=0)),
        "link_gb_s": max((row.link_gb_s or Decimal(0) for row in rows), default=Decimal(0)),
    }


def compared(rows: Mapping[str, TrainingRow], first: str, second: str) -> Pair:
    """Compare two rows by slug. Both need BF16 and bandwidth, which all reference rows have."""
    a, b = rows[first], rows[second]
    assert a.gpu.bf16_dense_tflops
    assert b.gpu.bf16_dense_tflops
    assert a.gpu.memory_bandwidth_gb_s
    assert b.gpu.memory_bandwidth_gb_s
    return Pair(
        first=a,
        second=b,
        bf16_ratio=a.gpu.bf16_dense_tflops / b.gpu.bf16_dense_tflops,
        bandwidth_ratio=a.gpu.memory_bandwidth_gb_s / b.gpu.memory_bandwidth_gb_s,
        extra_gb=a.gpu.memory_gb - b.gpu.memory_gb,
        extra_memory_percent=_rounded((a.gpu.memory_gb / b.gpu.memory_gb - 1) * 100),
        price_ratio=price_ratio(a.prices.headline, b.prices.headline),
    )


def price_ratio(first: Headline | None, second: Headline | None) -> Decimal | None:
    """Return how many times dearer the first is; None unless both are live or both are list prices."""
    if first is None or second is None or first.is_live != second.is_live:
        return None
    return first.price_usd_per_gpu_hour / second.price_usd_per_gpu_hour


def sample_job(row: TrainingRow) -> SampleJob | None:
    """Price a day on one server at the row's headline; None while it has no price."""
    headline = row.prices.headline
    if headline is None:
        return None
    total = headline.price_usd_per_gpu_hour * SAMPLE_GPUS * SAMPLE_HOURS
    return SampleJob(row=row, headline=headline, gpu_count=SAMPLE_GPUS, hours=SAMPLE_HOURS, total_usd=total)


def training_facts(rows: Mapping[str, TrainingRow]) -> TrainingFacts:
    """Compute the numbers of the page's sentences from the reference rows, by slug."""
    base = rows["h100-sxm"]
    assert base.link_gb_s
    assert base.gpu.bf16_dense_tflops
    shares = sorted(
        (Measured(name=row.gpu.label, percent=_measured_percent(row)) for row in rows.values() if row.measured_tflops),
        key=lambda measured: measured.percent,
    )
    memory_gb = SAMPLE_B_PARAMS * BYTES_PER_PARAMETER
    gradients_gb = SAMPLE_B_PARAMS * 2
    return TrainingFacts(
        bytes_per_parameter=BYTES_PER_PARAMETER,
        usable_percent=_rounded(USABLE_SHARE * 100),
        measured_low=shares[0],
        measured_high=shares[-1],
        link_gb_s=base.link_gb_s,
        pcie_gb_s=PCIE_5_X16_GB_S,
        gradients_gb=gradients_gb,
        link_ms=all_reduce_ms(gradients_gb, gpu_count=SAMPLE_GPUS, link_gb_s=base.link_gb_s),
        pcie_ms=all_reduce_ms(gradients_gb, gpu_count=SAMPLE_GPUS, link_gb_s=PCIE_5_X16_GB_S),
        sample_b_params=SAMPLE_B_PARAMS,
        sample_memory_gb=memory_gb,
        sample_gpus=math.ceil(memory_gb / (USABLE_SHARE * base.gpu.memory_gb)),
        roomy=min(
            (row for row in rows.values() if row.trains_on_1 >= SAMPLE_B_PARAMS), key=lambda row: row.gpu.memory_gb
        ),
        sample_b_tokens=SAMPLE_B_TOKENS,
        sample_run_hours=training_hours(base.gpu.bf16_dense_tflops, gpu_count=SAMPLE_GPUS),
        sample_run_gpus=SAMPLE_GPUS,
        reached_percent=_rounded(REACHED * 100),
        reached_low_percent=_rounded(REACHED_LOW * 100),
        reached_high_percent=_rounded(REACHED_HIGH * 100),
    )


def _measured_percent(row: TrainingRow) -> int:
    assert row.measured_tflops
    assert row.gpu.bf16_dense_tflops
    return _rounded(100 * row.measured_tflops / row.gpu.bf16_dense_tflops)


def all_reduce_ms(gradients_gb: int, *, gpu_count: int, link_gb_s: Decimal) -> int:
    """Return the least time to sum gradients over a ring: each link carries 2 (n - 1) / n of them, two digits kept.

    >>> all_reduce_ms(14, gpu_count=8, link_gb_s=Decimal(450)), all_reduce_ms(14, gpu_count=8, link_gb_s=Decimal(63))
    (54, 390)
    """
    milliseconds = Decimal(2 * (gpu_count - 1)) / gpu_count * gradients_gb / link_gb_s * 1000
    return _two_digits(milliseconds)


def training_hours(bf16_dense_tflops: Decimal, *, gpu_count: int) -> int:
    """Return the hours of the sample run (7 B parameters, 100 B tokens) at the share usually reached, two digits kept.

    >>> training_hours(Decimal(989), gpu_count=8)
    370
    """
    tera_operations = Decimal(OPERATIONS_PER_PARAMETER_AND_TOKEN * SAMPLE_B_PARAMS * SAMPLE_B_TOKENS) * 10**6
    return _two_digits(tera_operations / (gpu_count * bf16_dense_tflops * REACHED) / 3600)


def _two_digits(value: Decimal) -> int:
    step = Decimal(10) ** (value.adjusted() - 1)
    return int((value / step).to_integral_value(rounding=ROUND_HALF_UP) * step)


def _rounded(value: Decimal) -> int:
    return int(value.to_integral_value(rounding=ROUND_HALF_UP))
