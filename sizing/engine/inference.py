"""Memory of a generation: weights, KV cache, and what the prefill holds on top.

Recent Hugging Face code holds exactly weights and cache and the last position's logits; code that returns the logits
of all positions holds tokens x vocabulary more. A model whose own code concatenates its cache holds two copies of it
for a moment. vLLM's profile run holds 0.2 to 1.4 GiB of activations at its 2,048 to 8,192 batched tokens.
"""

from sizing.engine.architecture import Architecture
from sizing.engine.job import Job
from sizing.engine.kv_cache import cache_bytes
from sizing.engine.parameters import ParameterCount
from sizing.engine.profiles import PROFILES
from sizing.engine.quantisation import base_bytes, unpacked_bytes

VLLM_BATCHED_TOKENS = 8192


def generation_parts(arch: Architecture, parameters: ParameterCount, job: Job) -> dict[str, float]:
    """Return bytes on one GPU by part."""
    divided = job.layout.tensor * job.layout.pipeline
    linear = 4.0 if job.precision == "fp32" else 2.0
    weights = base_bytes(parameters, job.quantization, linear_bytes=linear, other_bytes=linear)
    weights = (weights + tied_head_bytes(arch, parameters, job)) / divided
    cache = cache_bytes(arch, job)
    return {
        "weights": weights,
        "kv_cache": cache,
        "activations": working_bytes(arch, job, cache=cache),
    }


def tied_head_bytes(arch: Architecture, parameters: ParameterCount, job: Job) -> float:
    """Return the second head that some frameworks keep for tied models."""
    return 2.0 * parameters.embedding if PROFILES[job.framework].unties_head and arch.is_tied else 0.0


def working_bytes(arch: Architecture, job: Job, *, cache: float) -> float:
    """Return what lives for a moment: prefill activations, logits, a copied cache, an unpacked matrix."""
    unpacked = unpacked_bytes(arch, job)
    if job.framework == "vllm":
        tokens = min(VLLM_BATCHED_TOKENS, max(job.cache_tokens, 1))
        widest = 2.0 * (2 * arch.hidden + arch.q_width + 2 * arch.kv_width + 2 * arch.mlp_width)
        return tokens * widest / job.layout.tensor + 4.0 * min(256, tokens) * arch.vocab / job.layout.tensor
    if arch.concatenates_cache:  # its code also returns float32 logits of every position of the prompt
        logits = 4.0 * job.seq_len * arch.vocab * job.batch if job.prefill_logits == "all" else 0.0
        return max(cache, logits) + unpacked
    positions = job.seq_len * job.batch if job.prefill_logits == "all" else job.batch
    return 2.0 * positions * arch.vocab / job.layout.tensor + unpacked
