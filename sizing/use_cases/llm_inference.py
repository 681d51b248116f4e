"""Serving a language model: what fits with room for conversations, the ceiling of one stream, and its price."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Decimal

from catalog.compared import ratio
from catalog.models import Gpu
from sizing.engine.job import Job
from sizing.engine.kv_cache import cache_bytes
from sizing.engine.parameters import count_parameters
from sizing.engine.simple_rule import (
    RULE_VERSION,
    SERVING_BYTES,
    SERVING_SHARE,
    Precision,
    decode_ceiling_tokens_per_s,
    serving_b_params,
)
from sizing.engine.throughput import generation_tokens_per_s
from sizing.estimates import card_of
from sizing.facts import presets
from sizing.use_cases.rows import Row, Sample, Source, UseCase, Value, rounded, two_digits

SLUGS = (
    "b300",
    "b200",
    "mi355x",
    "mi325x",
    "mi300x",
    "h200-sxm",
    "h100-nvl",
    "h100-sxm",
    "a100-sxm-80gb",
    "rtx-5090",
    "rtx-pro-6000-blackwell-server",
    "rtx-4090",
    "l40s",
    "l4",
)

STREAM_B_PARAMS = 8
LARGE_B_PARAMS = 70
CONTEXT_TOKENS = 32_768
BATCH_MODEL, BATCH, BATCH_CONTEXT_TOKENS = "llama-3.1-8b", 32, 1024
LARGE_MODEL = "llama-3.1-70b"
SECONDS_PER_HOUR = 3600
BASE = "h100-sxm"


@dataclass(frozen=True, kw_only=True)
class InferenceFacts:
    """Every number of the page's sentences. Sizes are billions of parameters, prices USD per million tokens."""

    reserve_percent: int
    stream_b_params: int
    stream_gb: Decimal
    stream_tokens_per_s: int
    stream_usd: Decimal | None
    batch: int
    batch_tokens_per_s: int
    batch_usd: Decimal | None
    context_tokens: int
    context_gb: Decimal
    large_b_params: int
    large_fp8_on: Row
    large_int4_on: Row
    large_fp16_on: Row
    large_pair: Row
    large_fp16_count: int
    base: Row
    smallest: Row


def inference_values(gpu: Gpu) -> dict[str, Value]:
    """Return a row's figures: sizes in billions of parameters on one GPU, the ceiling in tokens per second."""
    return {
        "memory": gpu.memory_gb,
        "bandwidth": gpu.memory_bandwidth_gb_s,
        "formats": formats(fp8=gpu.fp8_dense_tflops, fp4=gpu.fp4_dense_tflops),
        "fp16": serving_b_params(memory_gb=gpu.memory_gb, gpu_count=1, precision="fp16"),
        "fp8": serving_b_params(memory_gb=gpu.memory_gb, gpu_count=1, precision="fp8"),
        "int4": serving_b_params(memory_gb=gpu.memory_gb, gpu_count=1, precision="int4"),
        "ceiling": stream_tokens_per_s(gpu),
    }


def formats(*, fp8: Decimal | None, fp4: Decimal | None) -> str | None:
    """Return the short formats that a GPU computes in: those its maker publishes a dense figure for.

    >>> formats(fp8=Decimal(4500), fp4=Decimal(9000)), formats(fp8=Decimal(733), fp4=None), formats(fp8=None, fp4=None)
    ('FP8, FP4', 'FP8', None)
    """
    named = [name for name, figure in (("FP8", fp8), ("FP4", fp4)) if figure]
    return ", ".join(named) or None


def stream_tokens_per_s(gpu: Gpu) -> int | None:
    """Return the most tokens per second of one stream of the 8 B model in 16 bits; None without a bandwidth."""
    if not gpu.memory_bandwidth_gb_s:
        return None
    return decode_ceiling_tokens_per_s(
        bandwidth_gb_s=gpu.memory_bandwidth_gb_s, b_params=STREAM_B_PARAMS, precision="fp16"
    )


def inference_work(gpu: Gpu) -> Decimal | None:
    """Return the millions of tokens that one stream at its ceiling gives in an hour."""
    tokens_per_s = stream_tokens_per_s(gpu)
    return None if tokens_per_s is None else Decimal(tokens_per_s * SECONDS_PER_HOUR) / 10**6


def inference_facts(rows: Mapping[str, Row]) -> InferenceFacts:
    """Compute the numbers of the page's sentences, from the rows by slug."""
    base, pair = rows[BASE], rows["h200-sxm"]
    listed = [rows[slug] for slug in SLUGS]
    batch_tokens_per_s = served_tokens_per_s(base.gpu)
    price = base.prices.headline.price_usd_per_gpu_hour if base.prices.headline else None
    return InferenceFacts(
        reserve_percent=100 - rounded(SERVING_SHARE * 100),
        stream_b_params=STREAM_B_PARAMS,
        stream_gb=STREAM_B_PARAMS * SERVING_BYTES["fp16"],
        stream_tokens_per_s=stream_tokens_per_s(base.gpu) or 0,
        stream_usd=base.work_usd,
        batch=BATCH,
        batch_tokens_per_s=batch_tokens_per_s,
        batch_usd=ratio(price, Decimal(batch_tokens_per_s * SECONDS_PER_HOUR) / 10**6),
        context_tokens=CONTEXT_TOKENS,
        context_gb=context_gb(),
        large_b_params=LARGE_B_PARAMS,
        large_fp8_on=smallest_serving(listed, precision="fp8"),
        large_int4_on=smallest_serving(listed, precision="int4"),
        large_fp16_on=smallest_serving(listed, precision="fp16"),
        large_pair=pair,
        large_fp16_count=gpus_serving(pair.gpu.memory_gb, precision="fp16"),
        base=base,
        smallest=rows["rtx-4090"],
    )


def smallest_serving(rows: list[Row], *, precision: Precision) -> Row:
    """Return the row of least memory whose weights' share holds the 70 B model."""
    able = [row for row in rows if SERVING_SHARE * row.gpu.memory_gb >= LARGE_B_PARAMS * SERVING_BYTES[precision]]
    return min(able, key=lambda row: row.gpu.memory_gb)


def gpus_serving(memory_gb: Decimal, *, precision: Precision) -> int:
    """Return how many GPUs hold the 70 B model together.

    >>> gpus_serving(Decimal(141), precision="fp16")
    2
    """
    return math.ceil(LARGE_B_PARAMS * SERVING_BYTES[precision] / (SERVING_SHARE * memory_gb))


def context_gb() -> Decimal:
    """Return the GB that the keys and values of one long conversation of the 70 B model take, to a tenth.

    >>> context_gb()
    Decimal('10.7')
    """
    architecture = presets()[LARGE_MODEL].architecture
    held = cache_bytes(architecture, Job(task="inference", seq_len=CONTEXT_TOKENS))
    return (Decimal(held) / 10**9).quantize(Decimal("0.1"))


def served_tokens_per_s(gpu: Gpu) -> int:
    """Return what the engine expects of a full batch on one GPU, in tokens per second, two digits kept."""
    architecture = presets()[BATCH_MODEL].architecture
    job = Job(task="inference", framework="vllm", seq_len=BATCH_CONTEXT_TOKENS, batch=BATCH)
    expected = generation_tokens_per_s(architecture, count_parameters(architecture), job, card_of(gpu)) or 0
    return two_digits(Decimal(expected), rounding=ROUND_FLOOR)


_READ_ON = date(2026, 11, 30)
LLM_INFERENCE = UseCase(
    slug="llm-inference",
    groups={"rows": SLUGS},
    values=inference_values,
    work=inference_work,
    facts=inference_facts,
    rule_version=RULE_VERSION,
    rule={
        "percent": rounded(SERVING_SHARE * 100),
        **{f"{precision}_bytes": size for precision, size in SERVING_BYTES.items()},
        "stream_b_params": STREAM_B_PARAMS,
        "stream_gb": STREAM_B_PARAMS * SERVING_BYTES["fp16"],
    },
    pairs={
        "h200_h100": ("h200-sxm", "h100-sxm"),
        "l40s_a100": ("l40s", "a100-sxm-80gb"),
        "mi300x_h100": ("mi300x", "h100-sxm"),
        "h100nvl_h100": ("h100-nvl", "h100-sxm"),
        "rtx4090_l4": ("rtx-4090", "l4"),
    },
    sample=Sample(slug=BASE, gpu_count=1, hours=24),
    sources=(
        Source(
            title="vLLM, optimization and tuning",
            url="https://docs.vllm.ai/en/stable/configuration/optimization/",
            read_on=_READ_ON,
        ),
        Source(
            title="ml-engineering, inference",
            url="https://github.com/stas00/ml-engineering/blob/master/inference/README.md",
            read_on=_READ_ON,
        ),
        Source(
            title="Artificial Analysis, system and hardware benchmarking",
            url="https://artificialanalysis.ai/methodology/system-and-hardware-benchmarking",
            read_on=_READ_ON,
        ),
        Source(title="NVIDIA H100", url="https://www.nvidia.com/en-us/data-center/h100/", read_on=_READ_ON),
        Source(
            title="AMD Instinct MI300X",
            url="https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html",
            read_on=_READ_ON,
        ),
    ),
)
