"""What the page on LLM training prints: its rows, and every number of its sentences, computed from the catalogue.

All functions are pure. Facts that are not in the catalogue stand here with their source.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from catalog.models import Gpu
from catalog.queries import GpuPrices, Headline
from sizing.engine.simple_rule import BYTES_PER_PARAMETER, USABLE_SHARE, full_training_b_params

# The reference table's rows in its order: by generation, then by memory.
REFERENCE_NAMES = {
    "b300": "B300",
    "b200": "B200",
    "mi325x": "MI325X",
    "mi300x": "MI300X",
    "h200-sxm": "H200",
    "h100-nvl": "H100 NVL",
    "h100-sxm": "H100 SXM",
    "a100-sxm-80gb": "A100 SXM",
    "a100-pcie-80gb": "A100 PCIe",
}
ADDED_NAMES = {
    "mi355x": "MI355X",
    "h200-nvl": "H200 NVL",
    "h100-pcie": "H100 PCIe",
    "rtx-pro-6000-blackwell-server": "RTX PRO 6000 Server",
}

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
# Share of the dense figure that a whole training run reaches, from careless to careful. Source: MEASURED_SOURCE, "MFU".
REACHED_LOW, REACHED, REACHED_HIGH = Decimal("0.35"), Decimal("0.40"), Decimal("0.45")

SAMPLE_B_PARAMS = 7
SAMPLE_B_TOKENS = 100
SAMPLE_GPUS = 8
SAMPLE_HOURS = 24


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """One GPU of the table. Sizes in billions of parameters, link in GB/s one way, measured in BF16 TFLOPS."""

    gpu: Gpu
    name: str
    prices: GpuPrices
    trains_on_1: int
    trains_on_8: int
    link_gb_s: Decimal | None
    link_name: str
    measured_tflops: int | None

    @property
    def usd_per_pflop_hour(self) -> Decimal | None:
        """Price of the work: USD per hour of 1000 dense BF16 TFLOPS; None without a price or a figure."""
        headline, tflops = self.prices.headline, self.gpu.bf16_dense_tflops
        return headline.price_usd_per_gpu_hour * 1000 / tflops if headline and tflops else None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two GPUs and what tells them apart. `price_ratio` only between prices of one kind: live with live, list with list."""

    first: TrainingRow
    second: TrainingRow
    bf16_ratio: Decimal
    bandwidth_ratio: Decimal
    extra_gb: Decimal
    extra_percent: int
    price_ratio: Decimal | None


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """Every number of the page's sentences."""

    bytes_per_parameter: int
    usable_percent: int
    measured_low: tuple[str, int]
    measured_high: tuple[str, int]
    link_gb_s: Decimal
    pcie_gb_s: Decimal
    gradients_gb: int
    link_ms: int
    pcie_ms: int
    sample_b_params: int
    sample_memory_gb: int
    sample_gpus_of_80_gb: int
    smallest_single: TrainingRow
    sample_b_tokens: int
    sample_hours: int
    reached_low_percent: int
    reached_percent: int
    reached_high_percent: int


def training_rows(
    names: Mapping[str, str], *, gpus: Mapping[str, Gpu], prices: Mapping[str, GpuPrices]
) -> list[TrainingRow]:
    """Return the rows of `names` (slug to printed name) in its order, those the catalogue holds."""
    return [_row(gpus[slug], name=name, prices=prices[slug]) for slug, name in names.items() if slug in gpus]


def _row(gpu: Gpu, *, name: str, prices: GpuPrices) -> TrainingRow:
    return TrainingRow(
        gpu=gpu,
        name=name,
        prices=prices,
        trains_on_1=full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=1),
        trains_on_8=full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=8),
        # Makers print the sum of both directions.
        link_gb_s=gpu.nvlink_gb_s / 2 if gpu.nvlink_gb_s else None,
        link_name=gpu.interconnect.split(";")[0],
        measured_tflops=MEASURED_BF16_TFLOPS.get(gpu.slug),
    )


def cheapest_work(rows: Sequence[TrainingRow]) -> TrainingRow | None:
    """Return the row to mark: the fewest USD per unit of dense BF16 work among live prices, or None."""
    live = [row for row in rows if row.prices.headline and row.prices.headline.is_live and row.usd_per_pflop_hour]
    return min(live, key=lambda row: row.usd_per_pflop_hour or 0, default=None)
