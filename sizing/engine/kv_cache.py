"""Keys and values of a generation, bytes per token.

2 x layers x kv width x bytes (GQA, arXiv:2305.13245). Latent attention keeps one compressed vector and the rotary
part instead, on every tensor-parallel rank (MLA, arXiv:2405.04434, section 2.1.2). Layers with a sliding window keep
no more tokens than the window.
"""

from sizing.engine.architecture import Architecture
from sizing.engine.job import Job


def cache_bytes(arch: Architecture, job: Job) -> float:
    """Return the bytes of the KV cache on one GPU for all tokens of the job."""
    total = job.cache_tokens
    per_layer = layer_bytes_per_token(arch, job) / job.layout.pipeline
    if not arch.sliding_window:
        return total * arch.layers * per_layer
    sequences = max(1, job.batch)
    inside = sequences * min(arch.sliding_window, -(-total // sequences))
    full_layers = arch.layers - arch.sliding_layers
    return per_layer * (full_layers * total + arch.sliding_layers * min(total, inside))


def layer_bytes_per_token(arch: Architecture, job: Job) -> float:
    """Return bytes per token and layer on one tensor-parallel rank: each holds its share, but at least one head.

    >>> from sizing.engine.architecture import LatentAttention
    >>> deepseek = Architecture(family="deepseek_v3", layers=61, hidden=7168, heads=128, kv_heads=128, head_dim=56,
    ...     intermediate=18432, vocab=129280,
    ...     latent=LatentAttention(q_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128))
    >>> round(61 * 8192 * layer_bytes_per_token(deepseek, Job(task="inference")) / 2**20)
    549
    """
    if arch.latent:
        return (arch.latent.kv_rank + arch.latent.rope_dim) * job.kv_bytes
    heads = max(arch.kv_heads / job.layout.tensor, 1)
    return 2 * heads * arch.head_dim * job.kv_bytes
