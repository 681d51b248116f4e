"""Bytes per weight of quantised bases, and what of a model they touch.

NF4: half a byte and one float32 scale per 64 weights = 0.5625; with the scales quantised too 0.5 + 0.0159 = 0.516
(QLoRA, arXiv:2305.14314, section 3). GPTQ and AWQ with groups of 128: half a byte, a 16-bit scale and a 4-bit zero
point per group = 0.535. Eight bits: one byte and a scale per channel or block.

>>> weight_bytes("nf4"), weight_bytes("none")
(0.5625, 2.0)
"""

from sizing.engine.architecture import Architecture
from sizing.engine.job import Job, Quantization
from sizing.engine.parameters import ParameterCount
from sizing.engine.profiles import PROFILES

WEIGHT_BYTES: dict[Quantization, float] = {
    "none": 2.0,
    "nf4": 0.5 + 4 / 64,
    "nf4_dq": 0.5 + 1 / 64 + 4 / (64 * 256),
    "int4_gptq": 0.5 + 2.5 / 128,
    "int4_awq": 0.5 + 2.5 / 128,
    "int8_gptq": 1 + 3 / 128,
    "int8": 1.004,
    "fp8": 1 + 4 / (128 * 128),
}


def weight_bytes(quantization: Quantization) -> float:
    """Return bytes per quantised weight; "none" means 16 bits."""
    return WEIGHT_BYTES[quantization]


def base_bytes(
    parameters: ParameterCount, quantization: Quantization, *, linear_bytes: float = 2.0, other_bytes: float = 2.0
) -> float:
    """Return the bytes of a model's weights. Embeddings, head, norms and biases are never quantised.

    `linear_bytes` is used for block matrices where nothing is quantised, `other_bytes` for all that never is.
    """
    per_weight = linear_bytes if quantization == "none" else weight_bytes(quantization)
    return parameters.linears * per_weight + parameters.unquantised * other_bytes


def unpacked_bytes(arch: Architecture, job: Job) -> float:
    """Return the 16-bit copy of the widest matrix that a quantised product unpacks: 2 h i, or the head's 2 h V."""
    if job.quantization == "none" or (job.task == "inference" and not job.quantization.startswith("nf4")):
        return 0.0
    width = arch.experts.intermediate if arch.experts else arch.intermediate
    widest = max(width, arch.q_width, head_width(arch, job))
    return 2.0 * arch.hidden * widest / job.layout.tensor


def head_width(arch: Architecture, job: Job) -> int:
    """Return the head's width where the framework runs the head through 4-bit products too, else 0."""
    is_unpacked = PROFILES[job.framework].unpacks_head and job.quantization.startswith("nf4")
    return arch.vocab if is_unpacked else 0
