"""Training a language model: rows of the reference table, the simple rule, and the numbers of the page's sentences.

All functions are pure. Facts that are not in the catalogue stand here with their source.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from catalog.models import Gpu
from sizing.engine.measured_bf16 import MEASURED_BF16_TFLOPS, MEASURED_SOURCE, measured_percent
from sizing.engine.simple_rule import BYTES_PER_PARAMETER, RULE_VERSION, USABLE_SHARE, full_training_b_params
from sizing.use_cases.rows import Row, Sample, Source, UseCase, Value, one_way, pflops, rounded, two_digits

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

# One direction of a PCIe 5.0 x16 slot: 32 GT/s on 16 lanes at 128b/130b. Source: PCI-SIG base specification 5.0.
PCIE_5_X16_GB_S = Decimal(63)
# Forward and backward pass: 6 operations per parameter and token. Source: Kaplan et al., arXiv:2001.08361, section 2.1.
OPERATIONS_PER_PARAMETER_AND_TOKEN = 6
# Share of the dense figure that whole training runs reach. Our range; PaLM reports 46 % (arXiv:2204.02311, table 3).
REACHED_LOW, REACHED, REACHED_HIGH = Decimal("0.35"), Decimal("0.40"), Decimal("0.45")

SAMPLE_B_PARAMS = 7
SAMPLE_B_TOKENS = 100
SAMPLE_GPUS = 8


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The share of the dense BF16 figure that the best matrix multiply reached, in percent."""

    name: str
    percent: int


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """Every number of the page's sentences. Units are in the names; sizes are billions of parameters or tokens."""

    bytes_per_parameter: int
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
    roomy: Row
    geforce: Row
    sample_b_tokens: int
    sample_run_hours: int
    sample_run_gpus: int
    reached_percent: int
    reached_low_percent: int
    reached_high_percent: int


def training_values(gpu: Gpu) -> dict[str, Value]:
    """Return a row's figures: link in GB/s one way, measured in BF16 TFLOPS, sizes in billions of parameters."""
    measured = MEASURED_BF16_TFLOPS.get(gpu.slug)
    return {
        "memory": gpu.memory_gb,
        "type": gpu.memory_type,
        "bandwidth": gpu.memory_bandwidth_gb_s,
        "bf16": gpu.bf16_dense_tflops,
        "one": full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=1),
        "eight": full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=SAMPLE_GPUS),
        "fp8": gpu.fp8_dense_tflops,
        "measured": None if measured is None else Decimal(measured),
        "link": one_way(gpu.nvlink_gb_s),
    }


def training_work(gpu: Gpu) -> Decimal | None:
    """Return the dense BF16 PFLOPS: PFLOP-hours of an hour."""
    return pflops(gpu.bf16_dense_tflops)


def training_facts(rows: Mapping[str, Row]) -> TrainingFacts:
    """Compute the numbers of the page's sentences, from the rows by slug."""
    base = rows["h100-sxm"].gpu
    link_gb_s = one_way(base.nvlink_gb_s)
    assert link_gb_s
    assert base.bf16_dense_tflops
    shares = _measured_shares(rows)
    memory_gb = SAMPLE_B_PARAMS * BYTES_PER_PARAMETER
    gradients_gb = SAMPLE_B_PARAMS * 2
    return TrainingFacts(
        bytes_per_parameter=BYTES_PER_PARAMETER,
        measured_low=shares[0],
        measured_high=shares[-1],
        link_gb_s=link_gb_s,
        pcie_gb_s=PCIE_5_X16_GB_S,
        gradients_gb=gradients_gb,
        link_ms=all_reduce_ms(gradients_gb, gpu_count=SAMPLE_GPUS, link_gb_s=link_gb_s),
        pcie_ms=all_reduce_ms(gradients_gb, gpu_count=SAMPLE_GPUS, link_gb_s=PCIE_5_X16_GB_S),
        sample_b_params=SAMPLE_B_PARAMS,
        sample_memory_gb=memory_gb,
        sample_gpus=math.ceil(memory_gb / (USABLE_SHARE * base.memory_gb)),
        roomy=_smallest_that_trains(SAMPLE_B_PARAMS, rows),
        geforce=rows["rtx-5090"],
        sample_b_tokens=SAMPLE_B_TOKENS,
        sample_run_hours=training_hours(base.bf16_dense_tflops, gpu_count=SAMPLE_GPUS),
        sample_run_gpus=SAMPLE_GPUS,
        reached_percent=rounded(REACHED * 100),
        reached_low_percent=rounded(REACHED_LOW * 100),
        reached_high_percent=rounded(REACHED_HIGH * 100),
    )


def _measured_shares(rows: Mapping[str, Row]) -> list[Measured]:
    """Return what the best matrix multiply reached on each reference GPU that was measured, lowest share first."""
    listed = [rows[slug].gpu for slug in REFERENCE_SLUGS]
    found = [(gpu.label, measured_percent(gpu.slug, bf16_dense_tflops=gpu.bf16_dense_tflops)) for gpu in listed]
    shares = [Measured(name=name, percent=percent) for name, percent in found if percent is not None]
    return sorted(shares, key=lambda share: share.percent)


def _smallest_that_trains(b_params: int, rows: Mapping[str, Row]) -> Row:
    able = [
        rows[slug]
        for slug in REFERENCE_SLUGS
        if full_training_b_params(memory_gb=rows[slug].gpu.memory_gb, gpu_count=1) >= b_params
    ]
    return min(able, key=lambda row: row.gpu.memory_gb)


def all_reduce_ms(gradients_gb: int, *, gpu_count: int, link_gb_s: Decimal) -> int:
    """Return the least time to sum gradients over a ring: each link carries 2 (n - 1) / n of them, two digits kept.

    >>> all_reduce_ms(14, gpu_count=8, link_gb_s=Decimal(450)), all_reduce_ms(14, gpu_count=8, link_gb_s=Decimal(63))
    (54, 390)
    """
    milliseconds = Decimal(2 * (gpu_count - 1)) / gpu_count * gradients_gb / link_gb_s * 1000
    return two_digits(milliseconds)


def training_hours(bf16_dense_tflops: Decimal, *, gpu_count: int) -> int:
    """Return the hours of the sample run (7 B parameters, 100 B tokens) at the share usually reached, two digits kept.

    >>> training_hours(Decimal(989), gpu_count=8)
    370
    """
    tera_operations = Decimal(OPERATIONS_PER_PARAMETER_AND_TOKEN * SAMPLE_B_PARAMS * SAMPLE_B_TOKENS) * 10**6
    return two_digits(tera_operations / (gpu_count * bf16_dense_tflops * REACHED) / 3600)


_READ_ON = date(2026, 11, 30)
LLM_TRAINING = UseCase(
    slug="llm-training",
    groups={"reference": REFERENCE_SLUGS, "added": ADDED_SLUGS},
    also=("rtx-5090",),
    values=training_values,
    work=training_work,
    facts=training_facts,
    rule_version=RULE_VERSION,
    rule={"bytes": BYTES_PER_PARAMETER, "percent": rounded(USABLE_SHARE * 100)},
    pairs={
        "h100_a100": ("h100-sxm", "a100-sxm-80gb"),
        "h200_h100": ("h200-sxm", "h100-sxm"),
        "b200_h200": ("b200", "h200-sxm"),
        "b300_b200": ("b300", "b200"),
        "mi300x_h200": ("mi300x", "h200-sxm"),
    },
    sample=Sample(slug="h100-sxm", gpu_count=SAMPLE_GPUS, hours=24),
    sources=(
        Source(
            title="Hugging Face, model memory anatomy",
            url="https://huggingface.co/docs/transformers/model_memory_anatomy",
            read_on=_READ_ON,
        ),
        Source(title="PyTorch, FSDP", url="https://docs.pytorch.org/docs/stable/fsdp.html", read_on=_READ_ON),
        Source(
            title="PyTorch, distributed overview",
            url="https://docs.pytorch.org/tutorials/beginner/dist_overview.html",
            read_on=_READ_ON,
        ),
        Source(title="ZeRO, arXiv:1910.02054", url="https://arxiv.org/abs/1910.02054", read_on=_READ_ON),
        Source(title="Scaling laws, arXiv:2001.08361", url="https://arxiv.org/abs/2001.08361", read_on=_READ_ON),
        Source(title="ml-engineering, accelerators", url=MEASURED_SOURCE, read_on=_READ_ON),
        Source(title="NVIDIA H100", url="https://www.nvidia.com/en-us/data-center/h100/", read_on=_READ_ON),
        Source(title="NVIDIA H200", url="https://www.nvidia.com/en-us/data-center/h200/", read_on=_READ_ON),
        Source(title="NVIDIA DGX B200", url="https://www.nvidia.com/en-us/data-center/dgx-b200/", read_on=_READ_ON),
        Source(title="NVIDIA DGX B300", url="https://www.nvidia.com/en-us/data-center/dgx-b300/", read_on=_READ_ON),
        Source(
            title="AMD Instinct MI300X",
            url="https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html",
            read_on=_READ_ON,
        ),
    ),
)
