"""The published simple rules: what one memory figure tells about training, tuning and serving, rounded down.

Full training: mixed-precision Adam keeps about 16 bytes per parameter before activations (ZeRO, arXiv:1910.02054,
section 3.1: 2 for weights, 2 for gradients, 12 for the optimiser's float32 states). 80 % of memory leaves room for the
rest. LoRA on a 16-bit base: 2.5 bytes, the weights and what adapters and activations add to them (LoRA,
arXiv:2106.09685). QLoRA: 0.75 bytes, a 4-bit base with its scales, adapters and activations (arXiv:2305.14314).
Serving: weights in 70 % of memory, the rest for conversations and the runtime; 4-bit formats store scales too.

>>> full_training_b_params(memory_gb=Decimal(80), gpu_count=1)
4
>>> full_training_b_params(memory_gb=Decimal(80), gpu_count=8)
30
>>> full_training_b_params(memory_gb=Decimal(288), gpu_count=8)
110
"""

from decimal import ROUND_FLOOR, Decimal
from typing import Literal

RULE_VERSION = 1
BYTES_PER_PARAMETER = 16
USABLE_SHARE = Decimal("0.80")
LORA_BYTES, QLORA_BYTES = Decimal("2.5"), Decimal("0.75")
SERVING_SHARE = Decimal("0.70")

Precision = Literal["fp16", "fp8", "int4"]
SERVING_BYTES: dict[Precision, Decimal] = {"fp16": Decimal(2), "fp8": Decimal(1), "int4": Decimal("0.55")}


def full_training_b_params(*, memory_gb: Decimal, gpu_count: int) -> int:
    """Return the largest model, in billions of parameters, that trains on `gpu_count` GPUs of `memory_gb` each."""
    return floor_to_step(USABLE_SHARE * memory_gb * gpu_count / BYTES_PER_PARAMETER)


def lora_b_params(*, memory_gb: Decimal) -> int:
    """Return the largest model, in billions of parameters, that is tuned with LoRA on one GPU, its base in 16 bits.

    >>> lora_b_params(memory_gb=Decimal(80)), lora_b_params(memory_gb=Decimal(24))
    (25, 7)
    """
    return floor_to_step(USABLE_SHARE * memory_gb / LORA_BYTES)


def qlora_b_params(*, memory_gb: Decimal) -> int:
    """Return the largest model, in billions of parameters, that is tuned with QLoRA on one GPU, its base in 4 bits.

    >>> qlora_b_params(memory_gb=Decimal(80)), qlora_b_params(memory_gb=Decimal(24))
    (85, 25)
    """
    return floor_to_step(USABLE_SHARE * memory_gb / QLORA_BYTES)


def serving_b_params(*, memory_gb: Decimal, gpu_count: int, precision: Precision) -> int:
    """Return the largest model, in billions of parameters, that is served from `gpu_count` GPUs.

    >>> [serving_b_params(memory_gb=Decimal(80), gpu_count=1, precision=p) for p in ("fp16", "fp8", "int4")]
    [25, 55, 100]
    """
    return floor_to_step(SERVING_SHARE * memory_gb * gpu_count / SERVING_BYTES[precision])


def decode_ceiling_tokens_per_s(*, bandwidth_gb_s: Decimal, b_params: int, precision: Precision) -> int:
    """Return the most tokens per second of one conversation: every token reads all weights once. Real kernels reach less.

    >>> decode_ceiling_tokens_per_s(bandwidth_gb_s=Decimal(3350), b_params=8, precision="fp16")
    209
    """
    read_gb = b_params * SERVING_BYTES[precision]
    return int((bandwidth_gb_s / read_gb).to_integral_value(rounding=ROUND_FLOOR))


def floor_to_step(b_params: Decimal) -> int:
    """Round down to a whole number below 10, to fives below 100, to tens from there.

    >>> [floor_to_step(Decimal(n)) for n in ("0.9", "9.99", "14.4", "99.9", "115.2")]
    [0, 9, 10, 95, 110]
    """
    step = 1 if b_params < 10 else 5 if b_params < 100 else 10
    return int(b_params // step) * step
