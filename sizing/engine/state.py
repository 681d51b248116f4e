"""Weights, gradients and optimiser states per GPU: the lasting part of a training step.

Bytes per parameter follow ZeRO (arXiv:1910.02054, section 3): bfloat16 throughout 2 + 2 + 4; float32 weights with
autocast 4 + 4 + 8; DeepSpeed 2 + 2 + 12 and float32 gradients, 18 in all. ZeRO-1 divides the optimiser's share by the
shards, ZeRO-2 the gradients too, ZeRO-3 and FSDP all.
"""

from dataclasses import dataclass, replace

from sizing.engine.activations import keeps_fp32_stream
from sizing.engine.adapters import adapter_parameters
from sizing.engine.architecture import Architecture
from sizing.engine.job import Job, Optimizer
from sizing.engine.parameters import ParameterCount
from sizing.engine.profiles import PROFILES
from sizing.engine.quantisation import base_bytes

# Bytes per parameter of the two moments, where they do not follow the weights' type: 8 and 4 bits with their scales.
SMALL_STATES: dict[Optimizer, float] = {
    "adamw_8bit": 2.03,
    "adamw_4bit": 1.06,
    "paged_adamw": 0.25,  # pages lie outside torch's memory and go to the host under pressure
    "paged_adamw_8bit": 0.25,
    "adafactor": 0.05,
}
MOMENTS: dict[Optimizer, int] = {"adamw": 2, "adamw_fused": 2, "lion": 1, "sgd": 1}
FOREACH: frozenset[Optimizer] = frozenset({"adamw", "sgd"})  # torch's default on CUDA builds one more parameter copy


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """Bytes on one GPU. `step` is the optimiser's temporary; `cached` the 16-bit copies that autocast holds."""

    weights: float
    gradients: float
    optimizer: float
    step: float
    cached: float = 0.0
    trainable: float = 0.0
    gradient_bytes: float = 2.0


def training_state(arch: Architecture, parameters: ParameterCount, job: Job) -> State:
    """Return the state of one GPU in a training step."""
    divided = job.layout.tensor * job.layout.pipeline
    if arch.is_tied and PROFILES[job.framework].unties_head:
        parameters = replace(parameters, head=parameters.embedding)
    whole = adapted_state(arch, parameters, job) if job.is_adapted else full_state(parameters, job)
    if job.layout.is_offloaded:
        return State(weights=0, gradients=0, optimizer=0, step=0, trainable=whole.trainable)
    shards = job.layout.shards
    by_stage = {"zero1": (1, 1, shards), "zero2": (1, shards, shards)}
    w, g, o = by_stage.get(job.layout.sharding, (shards, shards, shards))
    return State(
        weights=whole.weights / divided / w,
        gradients=whole.gradients / divided / g,
        optimizer=whole.optimizer / divided / o,
        step=whole.step / divided / o,
        cached=whole.cached / divided,
        trainable=whole.trainable,
        gradient_bytes=whole.gradient_bytes,
    )


def full_state(parameters: ParameterCount, job: Job) -> State:
    """Return the state of full training on one GPU, before any sharding."""
    count = parameters.total
    if job.uses_deepspeed:
        states = states_bytes(job.optimizer, 4) + 4
        return State(weights=2 * count, gradients=4 * count, optimizer=states * count, step=0, trainable=count)
    size = 4 if job.precision in ("mixed", "fp32") else 2
    has_cache = job.precision == "mixed" and job.framework != "torchtitan"
    return State(
        weights=size * count,
        gradients=size * count,
        optimizer=states_bytes(job.optimizer, size) * count,
        step=size * count if job.optimizer in FOREACH and job.framework != "torchtitan" else 0,
        cached=2 * (parameters.linears + (parameters.head or parameters.embedding)) if has_cache else 0,
        trainable=count,
        gradient_bytes=size,
    )


def adapted_state(arch: Architecture, parameters: ParameterCount, job: Job) -> State:
    """Return the state with a frozen base: its weights, and 16 bytes per adapter parameter (8 in bfloat16 engines)."""
    profile = PROFILES[job.framework]
    adapters = adapter_parameters(arch, job.lora_targets, job.lora_rank)
    size = 4 if profile.has_fp32_adapters or job.precision == "mixed" else 2
    trainable: float = adapters
    base = frozen_bytes(parameters, job)
    weights = base + size * adapters
    gradients = float(size * adapters)
    optimizer = states_bytes(job.optimizer, size) * adapters
    if job.trains_embeddings:  # PEFT trains a copy of embedding and head in the base's own 16 bits
        copies = parameters.embedding + (parameters.head or parameters.embedding)
        weights, gradients, trainable = weights + 2 * copies, gradients + 2 * copies, trainable + copies
        optimizer += states_bytes(job.optimizer, 2) * copies
    return State(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        step=gradients if job.optimizer in FOREACH else 0,
        cached=2 * (parameters.linears + (parameters.head or parameters.embedding)) if job.precision == "mixed" else 0,
        trainable=trainable,
        gradient_bytes=size,
    )


def frozen_bytes(parameters: ParameterCount, job: Job) -> float:
    """Return the bytes of a frozen base; PEFT's k-bit preparation holds all that is not quantised in float32."""
    size = 4.0 if job.precision in ("mixed", "fp32") else 2.0
    other = 4.0 if keeps_fp32_stream(job) else size
    quantization = job.quantization
    if quantization == "nf4" and PROFILES[job.framework].double_quantises:
        quantization = "nf4_dq"
    return base_bytes(parameters, quantization, linear_bytes=size, other_bytes=other)


def states_bytes(optimizer: Optimizer, size: int) -> float:
    """Return the optimiser's bytes per trained parameter held in `size` bytes.

    >>> states_bytes("adamw", 4), states_bytes("adamw_8bit", 2)
    (8, 2.03)
    """
    if optimizer in SMALL_STATES:
        return SMALL_STATES[optimizer]
    return MOMENTS[optimizer] * size
