"""Tokens per second: arithmetic per token over what the card reaches of its peak, or bytes per token over bandwidth.

Training: 6N operations per token, 2N for a forward pass (Kaplan et al., arXiv:2001.08361, section 2.1), and attention
12 L q s halved by the causal mask (PaLM, arXiv:2204.02311, appendix B). A frozen base needs no weight gradients: 4N.
Recomputing adds a forward pass on the hardware, not in model FLOPs. Shares of the dense peak: published runs
(sizing/data/throughput.csv).
"""

from sizing.engine.architecture import Architecture
from sizing.engine.cards import Card
from sizing.engine.job import Job
from sizing.engine.kv_cache import layer_bytes_per_token
from sizing.engine.parameters import ParameterCount
from sizing.engine.quantisation import base_bytes

A100_SHARE, USUAL_SHARE, LITTLE_MEASURED_SHARE = 0.50, 0.40, 0.35
HF_TRAINER_FACTOR, QLORA_FACTOR, ACROSS_NODES_FACTOR, NO_NVLINK_FACTOR = 0.7, 0.5, 0.9, 0.6
EAGER_S_PER_LAYER, EAGER_BANDWIDTH_SHARE = 0.0005, 0.8
SERVER_S_PER_TOKEN, SERVER_BANDWIDTH_SHARE = 0.0016, 0.45
FOUR_BIT_FACTOR = 0.5  # unpacking: 4-bit weights are read at about half the speed of 16-bit ones


def training_flops_per_token(arch: Architecture, parameters: ParameterCount, job: Job) -> float:
    """Return model FLOPs per trained token.

    >>> from sizing.engine.parameters import count_parameters
    >>> llama = Architecture(family="llama", layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128,
    ...                      intermediate=14336, vocab=128256)
    >>> round(training_flops_per_token(llama, count_parameters(llama), Job(task="full", seq_len=8192)) / 1e9, 1)
    51.5
    """
    per_parameter = 4 if job.is_adapted else 6
    attention = 12 * arch.layers * arch.q_width * job.seq_len / 2
    return per_parameter * parameters.per_token + attention * per_parameter / 6


def training_tokens_per_s(arch: Architecture, parameters: ParameterCount, job: Job, card: Card) -> float | None:
    """Return tokens per second of all GPUs together, or None where the card's peak is not published."""
    peak_tflops = card.bf16_tflops or card.fp16_tflops
    if not peak_tflops:
        return None
    per_gpu = training_share(job, card) * peak_tflops * 1e12 / training_flops_per_token(arch, parameters, job)
    return per_gpu * job.layout.gpu_count


def training_share(job: Job, card: Card) -> float:
    """Return the share of the dense peak that the job reaches."""
    share = A100_SHARE if card.slug.startswith(("a100", "a800")) else USUAL_SHARE
    share = LITTLE_MEASURED_SHARE if card.is_little_measured else share
    if job.task == "qlora":
        share *= QLORA_FACTOR
    elif job.framework in ("hf_trainer", "llama_factory", "deepspeed"):
        share *= HF_TRAINER_FACTOR
    if job.layout.gpu_count > max(card.max_per_board, 8):
        share *= ACROSS_NODES_FACTOR
    if job.layout.gpu_count > 1 and job.layout.sharding not in ("none", "ddp") and not card.nvlink_gb_s:
        share *= NO_NVLINK_FACTOR
    return share


def generation_tokens_per_s(arch: Architecture, parameters: ParameterCount, job: Job, card: Card) -> float | None:
    """Return generated tokens per second of the whole batch, or None where figures are not published.

    Each step reads the active weights and the cache once: time = a + bytes / (share x bandwidth), or the arithmetic
    2 N b where the batch is large.
    """
    peak_tflops = card.bf16_tflops or card.fp16_tflops
    if not card.bandwidth_gb_s or not peak_tflops:
        return None
    ranks = job.layout.tensor
    active = ParameterCount(
        linears=parameters.active_linears, embedding=0, head=parameters.head or parameters.embedding, other=0,
        active_linears=0,
    )  # fmt: skip
    weights = base_bytes(active, job.quantization) / ranks
    cache = job.cache_tokens * arch.layers * layer_bytes_per_token(arch, job)
    is_server = job.framework == "vllm"
    fixed_s = SERVER_S_PER_TOKEN if is_server else EAGER_S_PER_LAYER * arch.layers
    share = SERVER_BANDWIDTH_SHARE if is_server else EAGER_BANDWIDTH_SHARE
    if job.quantization in ("nf4", "nf4_dq", "int4_gptq", "int4_awq"):
        weights /= FOUR_BIT_FACTOR
    memory_s = fixed_s + (weights + cache) / (share * card.bandwidth_gb_s * 1e9)
    arithmetic_s = 2 * parameters.per_token * job.batch / (USUAL_SHARE * peak_tflops * 1e12 * ranks)
    return job.batch / max(memory_s, arithmetic_s)
