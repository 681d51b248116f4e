"""From tensors to what tools show: allocated, reserved by torch's caching allocator, and nvidia-smi.

Reserved is 1.08 times allocated in the middle of what was measured (1.02 to 1.25); 1.04 in a generation, whose blocks
are few and large. nvidia-smi adds the CUDA context (0.3 to 0.6 GiB), in training the libraries' workspaces too, and
about one GiB for NCCL where GPUs talk to each other.
"""

from dataclasses import dataclass

from sizing.engine.job import Job
from sizing.engine.units import GIB

TRAINING_RESERVED_SHARE, GENERATION_RESERVED_SHARE = 1.08, 1.04
GENERATION_CONTEXT_BYTES, TRAINING_CONTEXT_BYTES, NCCL_BYTES = 0.5 * GIB, 0.8 * GIB, 1.0 * GIB


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """The same peak as three tools see it, bytes on one GPU; `outside` lies beyond torch's own memory."""

    allocated: float
    reserved: float
    nvidia_smi: float
    outside: float


def shown_bytes(allocated: float, job: Job) -> Shown:
    """Return what each tool shows for a peak of `allocated` bytes of tensors.

    >>> shown = shown_bytes(10 * GIB, Job(task="full"))
    >>> round(shown.reserved / GIB, 1), round(shown.nvidia_smi / GIB, 1)
    (10.8, 11.6)
    """
    is_generation = job.task == "inference"
    is_steady = is_generation and job.prefill_logits == "last"
    reserved = allocated * (GENERATION_RESERVED_SHARE if is_steady else TRAINING_RESERVED_SHARE)
    outside = GENERATION_CONTEXT_BYTES if is_generation else TRAINING_CONTEXT_BYTES
    if not job.layout.is_alone and not (is_generation and job.layout.tensor == 1):
        outside += NCCL_BYTES
    return Shown(allocated=allocated, reserved=reserved, nvidia_smi=reserved + outside, outside=outside)
