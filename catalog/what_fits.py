"""What fits on a GPU by the simple rules of the engine: a line per task, and how fast one conversation can be at most.

>>> [fit.sizes for fit in what_fits(Decimal(80))][:2]
[(4, 8, 15, 30), (25,)]
>>> [limit.tokens_per_s for limit in decode_ceilings(memory_gb=Decimal(80), bandwidth_gb_s=Decimal(3350))]
[209, 190, None, 87]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from sizing.engine.simple_rule import (
    LORA_BYTES,
    QLORA_BYTES,
    SERVING_BYTES,
    SERVING_SHARE,
    Precision,
    decode_ceiling_tokens_per_s,
    full_training_b_params,
    lora_b_params,
    qlora_b_params,
    serving_b_params,
)

Task = Literal["full", "lora", "qlora", "fp16", "fp8", "int4"]
GPU_COUNTS = (1, 2, 4, 8)
SERVED: tuple[Precision, ...] = ("fp16", "fp8", "int4")
# Models whose speed limit is told: size in billions of parameters, and the precision of their weights.
CEILINGS: tuple[tuple[int, Precision], ...] = ((8, "fp16"), (32, "int4"), (70, "fp8"), (70, "int4"))
# The numbers of the rules, for the sentences that state them.
FIT_RULES: dict[str, Decimal | int] = {
    "lora_bytes": LORA_BYTES,
    "qlora_bytes": QLORA_BYTES,
    "serving_percent": int(SERVING_SHARE * 100),
    **{f"{precision}_bytes": size for precision, size in SERVING_BYTES.items()},
}


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The largest models of a task, in billions of parameters, on each of `GPU_COUNTS`; on one GPU only for adapters.

    `share`: the first size in percent of the largest first size, at most 100, for a bar.
    """

    task: Task
    sizes: tuple[int, ...]
    share: int


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The most tokens per second of one conversation; None where the model does not fit or bandwidth is not published."""

    b_params: int
    precision: Precision
    tokens_per_s: int | None


def what_fits(memory_gb: Decimal) -> list[Fit]:
    """Return a line per task, from training to 4-bit serving, with bars on one scale."""
    sizes: dict[Task, tuple[int, ...]] = {
        "full": tuple(full_training_b_params(memory_gb=memory_gb, gpu_count=count) for count in GPU_COUNTS),
        "lora": (lora_b_params(memory_gb=memory_gb),),
        "qlora": (qlora_b_params(memory_gb=memory_gb),),
        **{precision: _served(memory_gb, precision) for precision in SERVED},
    }
    widest = max(found[0] for found in sizes.values()) or 1
    return [Fit(task=task, sizes=found, share=_share(found[0], widest)) for task, found in sizes.items()]


def _served(memory_gb: Decimal, precision: Precision) -> tuple[int, ...]:
    return tuple(serving_b_params(memory_gb=memory_gb, gpu_count=count, precision=precision) for count in GPU_COUNTS)


def _share(size: int, widest: int) -> int:
    return max(1, 100 * size // widest) if size else 0


def decode_ceilings(*, memory_gb: Decimal, bandwidth_gb_s: Decimal | None) -> Sequence[Ceiling]:
    """Return the speed limit of each of `CEILINGS` on one GPU."""
    return [
        Ceiling(
            b_params=b_params,
            precision=precision,
            tokens_per_s=_tokens_per_s(b_params, precision, memory_gb=memory_gb, bandwidth_gb_s=bandwidth_gb_s),
        )
        for b_params, precision in CEILINGS
    ]


def _tokens_per_s(
    b_params: int, precision: Precision, *, memory_gb: Decimal, bandwidth_gb_s: Decimal | None
) -> int | None:
    if bandwidth_gb_s is None or b_params * SERVING_BYTES[precision] > SERVING_SHARE * memory_gb:
        return None
    return decode_ceiling_tokens_per_s(bandwidth_gb_s=bandwidth_gb_s, b_params=b_params, precision=precision)
