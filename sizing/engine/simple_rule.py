"""The published simple rule for full training: 80 % of memory at 16 bytes per parameter, rounded down.

Mixed-precision Adam keeps about 16 bytes per parameter before activations (ZeRO, arXiv:1910.02054, section 3.1:
2 for weights, 2 for gradients, 12 for the optimiser's float32 states). 80 % of memory leaves room for the rest.

>>> full_training_b_params(memory_gb=Decimal(80), gpu_count=1)
4
>>> full_training_b_params(memory_gb=Decimal(80), gpu_count=8)
30
>>> full_training_b_params(memory_gb=Decimal(288), gpu_count=8)
110
"""

from decimal import Decimal

RULE_VERSION = 1
BYTES_PER_PARAMETER = 16
USABLE_SHARE = Decimal("0.80")


def full_training_b_params(*, memory_gb: Decimal, gpu_count: int) -> int:
    """Return the largest model, in billions of parameters, that trains on `gpu_count` GPUs of `memory_gb` each."""
    return floor_to_step(USABLE_SHARE * memory_gb * gpu_count / BYTES_PER_PARAMETER)


def floor_to_step(b_params: Decimal) -> int:
    """Round down to a whole number below 10, to fives below 100, to tens from there.

    >>> [floor_to_step(Decimal(n)) for n in ("0.9", "9.99", "14.4", "99.9", "115.2")]
    [0, 9, 10, 95, 110]
    """
    step = 1 if b_params < 10 else 5 if b_params < 100 else 10
    return int(b_params // step) * step
