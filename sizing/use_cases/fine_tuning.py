"""Fine-tuning an open model: LoRA, QLoRA and full tuning by the simple rules, smallest card first."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from catalog.models import Gpu
from sizing.engine.adapters import adapter_parameters
from sizing.engine.job import BLOCK_LINEARS
from sizing.engine.simple_rule import (
    BYTES_PER_PARAMETER,
    LORA_BYTES,
    QLORA_BYTES,
    RULE_VERSION,
    USABLE_SHARE,
    full_training_b_params,
    lora_b_params,
    qlora_b_params,
)
from sizing.facts import presets
from sizing.use_cases.rows import Row, Sample, Source, UseCase, Value, pflops, rounded

SLUGS = (
    "rtx-4090",
    "rtx-3090",
    "rtx-5090",
    "l40s",
    "rtx-6000-ada",
    "rtx-a6000",
    "rtx-pro-6000-blackwell-server",
    "a100-sxm-80gb",
    "h100-sxm",
    "h100-nvl",
    "h200-sxm",
    "mi300x",
)

UNSLOTH = "https://unsloth.ai/docs/get-started/fine-tuning-for-beginners/unsloth-requirements"
# The least GB that a framework known for saving memory asks for, by billions of parameters. Source: UNSLOTH.
QLORA_MINIMUM_GB = {8: 6, 70: 41}
LORA_MINIMUM_GB = {8: 22, 70: 164}
# With the gradients in float32: 18. Source: ml-engineering, training, anatomy of a model's memory.
BYTES_WITH_FLOAT32_GRADIENTS = 18
SMALL_B_PARAMS, LARGE_B_PARAMS = 8, 70
SAMPLE_MODEL, SAMPLE_RANK = "llama-3.1-8b", 16
BYTES_PER_ADAPTER_WEIGHT = 2


@dataclass(frozen=True, kw_only=True)
class TuningFacts:
    """Every number of the page's sentences. Sizes are billions of parameters."""

    smallest: Row
    smallest_lora: int
    smallest_qlora: int
    small_b_params: int
    small_qlora_gb: int
    small_lora_gb: int
    small_full_low_gb: int
    small_full_high_gb: int
    large_b_params: int
    large_qlora_gb: int
    large_lora_gb: int
    large_qlora_on: Row
    large_lora_on: Row
    large_lora_pair: Row
    large_lora_count: int
    adapter_mb: int
    adapter_rank: int


def tuning_values(gpu: Gpu) -> dict[str, Value]:
    """Return a row's figures; sizes in billions of parameters on one GPU."""
    return {
        "memory": gpu.memory_gb,
        "bandwidth": gpu.memory_bandwidth_gb_s,
        "bf16": gpu.bf16_dense_tflops,
        "lora": lora_b_params(memory_gb=gpu.memory_gb),
        "qlora": qlora_b_params(memory_gb=gpu.memory_gb),
        "full": full_training_b_params(memory_gb=gpu.memory_gb, gpu_count=1),
        "software": gpu.software_stack,
    }


def tuning_work(gpu: Gpu) -> Decimal | None:
    """Return the dense BF16 PFLOPS: PFLOP-hours of an hour."""
    return pflops(gpu.bf16_dense_tflops)


def tuning_facts(rows: Mapping[str, Row]) -> TuningFacts:
    """Compute the numbers of the page's sentences, from the rows by slug."""
    smallest, pair = rows[SLUGS[0]], rows["h200-sxm"]
    return TuningFacts(
        smallest=smallest,
        smallest_lora=lora_b_params(memory_gb=smallest.gpu.memory_gb),
        smallest_qlora=qlora_b_params(memory_gb=smallest.gpu.memory_gb),
        small_b_params=SMALL_B_PARAMS,
        small_qlora_gb=QLORA_MINIMUM_GB[SMALL_B_PARAMS],
        small_lora_gb=LORA_MINIMUM_GB[SMALL_B_PARAMS],
        small_full_low_gb=SMALL_B_PARAMS * BYTES_PER_PARAMETER,
        small_full_high_gb=SMALL_B_PARAMS * BYTES_WITH_FLOAT32_GRADIENTS,
        large_b_params=LARGE_B_PARAMS,
        large_qlora_gb=QLORA_MINIMUM_GB[LARGE_B_PARAMS],
        large_lora_gb=LORA_MINIMUM_GB[LARGE_B_PARAMS],
        large_qlora_on=smallest_for(LARGE_B_PARAMS, bytes_each=QLORA_BYTES, rows=[rows[slug] for slug in SLUGS]),
        large_lora_on=smallest_for(LARGE_B_PARAMS, bytes_each=LORA_BYTES, rows=rows.values()),
        large_lora_pair=pair,
        large_lora_count=gpus_for(LARGE_B_PARAMS, bytes_each=LORA_BYTES, memory_gb=pair.gpu.memory_gb),
        adapter_mb=adapter_mb(),
        adapter_rank=SAMPLE_RANK,
    )


def smallest_for(b_params: int, *, bytes_each: Decimal, rows: Iterable[Row]) -> Row:
    """Return the row of least memory that holds the model at `bytes_each` per parameter in the usable share."""
    able = [row for row in rows if USABLE_SHARE * row.gpu.memory_gb >= b_params * bytes_each]
    return min(able, key=lambda row: row.gpu.memory_gb)


def gpus_for(b_params: int, *, bytes_each: Decimal, memory_gb: Decimal) -> int:
    """Return how many GPUs hold the model together.

    >>> gpus_for(70, bytes_each=LORA_BYTES, memory_gb=Decimal(141))
    2
    """
    return math.ceil(b_params * bytes_each / (USABLE_SHARE * memory_gb))


def adapter_mb() -> int:
    """Return the size of the sample model's adapter on every matrix of its blocks, in MB of 16-bit weights."""
    weights = adapter_parameters(presets()[SAMPLE_MODEL].architecture, BLOCK_LINEARS, SAMPLE_RANK)
    return rounded(Decimal(weights * BYTES_PER_ADAPTER_WEIGHT) / 10**6)


_READ_ON = date(2026, 11, 30)
FINE_TUNING = UseCase(
    slug="fine-tuning",
    groups={"rows": SLUGS},
    also=("mi325x", "b300"),
    values=tuning_values,
    work=tuning_work,
    facts=tuning_facts,
    rule_version=RULE_VERSION,
    rule={
        "percent": rounded(USABLE_SHARE * 100),
        "lora_bytes": LORA_BYTES,
        "qlora_bytes": QLORA_BYTES,
        "full_bytes": BYTES_PER_PARAMETER,
    },
    pairs={
        "rtx4090_l40s": ("rtx-4090", "l40s"),
        "a100_l40s": ("a100-sxm-80gb", "l40s"),
        "pro6000_a100": ("rtx-pro-6000-blackwell-server", "a100-sxm-80gb"),
        "rtx5090_rtx4090": ("rtx-5090", "rtx-4090"),
    },
    sample=Sample(slug="l40s", gpu_count=1, hours=24),
    sources=(
        Source(title="Unsloth, requirements", url=UNSLOTH, read_on=_READ_ON),
        Source(title="LoRA, arXiv:2106.09685", url="https://arxiv.org/abs/2106.09685", read_on=_READ_ON),
        Source(title="QLoRA, arXiv:2305.14314", url="https://arxiv.org/abs/2305.14314", read_on=_READ_ON),
        Source(title="Hugging Face PEFT", url="https://huggingface.co/docs/peft/index", read_on=_READ_ON),
        Source(
            title="PyTorch, CUDA memory",
            url="https://docs.pytorch.org/docs/stable/torch_cuda_memory.html",
            read_on=_READ_ON,
        ),
        Source(
            title="ROCm, PyTorch",
            url="https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/3rd-party/pytorch-install.html",
            read_on=_READ_ON,
        ),
    ),
)
