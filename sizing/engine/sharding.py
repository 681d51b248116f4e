"""Buffers that sharding and data parallelism keep on every GPU, bytes. Independent of how many GPUs share.

FSDP holds two unsharded blocks, the root group (embedding and head) and one block's gradients (PyTorch FSDP,
arXiv:2304.11277, section 3.3). DeepSpeed's ZeRO-3 holds up to 1e9 live parameters and buckets of 5e8 elements, its
defaults. DDP copies the gradients into buckets (arXiv:2006.15704, section 3.2).
"""

from sizing.engine.architecture import Architecture
from sizing.engine.job import Job
from sizing.engine.parameters import ParameterCount
from sizing.engine.profiles import PROFILES
from sizing.engine.quantisation import weight_bytes
from sizing.engine.state import State

ZERO_LIVE_PARAMETERS, ZERO_BUCKET_ELEMENTS = 10**9, 5 * 10**8


def buffer_bytes(arch: Architecture, parameters: ParameterCount, job: Job, state: State) -> float:
    """Return the bytes of communication buffers and unsharded pieces on one GPU."""
    sharding, divided = job.layout.sharding, job.layout.tensor * job.layout.pipeline
    if sharding == "ddp":
        return state.gradient_bytes * state.trainable
    if sharding == "fsdp" or job.layout.is_offloaded:
        return fsdp_bytes(arch, parameters, job, state)
    if sharding in ("zero1", "zero2"):
        return 2 * 2.0 * min(state.trainable / divided, ZERO_BUCKET_ELEMENTS)
    if sharding == "zero3":
        live = 2.0 * min(parameters.total / divided, ZERO_LIVE_PARAMETERS)
        buckets = 4.0 * min(state.trainable / divided, ZERO_BUCKET_ELEMENTS)
        return buckets + live
    return 0.0


def fsdp_bytes(arch: Architecture, parameters: ParameterCount, job: Job, state: State) -> float:
    """Return FSDP's unsharded pieces; under a pipeline all of a stage's weights and gradients stay unsharded."""
    layout = job.layout
    if layout.pipeline > 1:
        stage = parameters.total / (layout.tensor * layout.pipeline)
        return stage * (2 + 4)  # gradients accumulate in float32, the type they are reduced in
    per_weight = weight_bytes(job.quantization) if job.is_adapted else 2.0
    block = parameters.linears / arch.layers / layout.tensor
    ends = (parameters.embedding, parameters.head)
    apart = PROFILES[job.framework].shards_ends_apart
    root = 2.0 * (max(ends) if apart else sum(ends)) / layout.tensor
    gradients = 0.0 if job.is_adapted else state.gradient_bytes * block
    return 2 * per_weight * block + root + gradients
