"""The loss chain: bytes per logit from the head's output to the gradient of the logits.

Plain PyTorch: log-softmax in float32 (4) and two float32 gradients (8), logits freed; a caller that still holds the
16-bit logits adds 2, float32 logits 4. Chunked and fused losses never hold them all (Liger, arXiv:2410.10989;
cut cross entropy, arXiv:2411.09009). Checkpointing never shrinks this: it decides most modern verdicts.
"""

from sizing.engine.activations import is_gptq, keeps_fp32_stream
from sizing.engine.architecture import Architecture
from sizing.engine.job import Job
from sizing.engine.profiles import PROFILES

PLAIN, HELD_16, HELD_32, FP16_HELD = 12.0, 14.0, 16.0, 9.0
CHUNKED, CHUNKED_COMPILED, FUSED, COMPILED = 6.0, 2.5, 1.0, 7.0


def loss_bytes(arch: Architecture, job: Job) -> float:
    """Return the bytes of the loss chain of one micro-batch on one GPU."""
    per_logit = bytes_per_logit(arch, job)
    return per_logit * job.tokens * arch.vocab / job.layout.tensor


def bytes_per_logit(arch: Architecture, job: Job) -> float:
    """Return bytes per logit.

    >>> from sizing.engine.architecture import Architecture
    >>> tiny = Architecture(family="llama", layers=1, hidden=8, heads=1, kv_heads=1, head_dim=8, intermediate=8, vocab=8)
    >>> [bytes_per_logit(tiny, Job(task="full", loss=kind)) for kind in ("plain", "held", "chunked", "fused")]
    [12.0, 14.0, 6.0, 1.0]
    """
    cap = 2.0 if arch.has_logit_cap and job.loss in ("plain", "held") else 0.0
    if job.loss == "fused":
        return FUSED
    if job.loss == "chunked":
        return CHUNKED_COMPILED if job.is_compiled else CHUNKED
    if job.is_compiled and PROFILES[job.framework].compiles_loss:
        return COMPILED
    if job.task == "qlora" and is_gptq(job) and arch.concatenates_cache:
        return FP16_HELD
    if job.loss == "plain":
        return PLAIN + cap
    return (HELD_32 if keeps_fp32_stream(job) else HELD_16) + cap
