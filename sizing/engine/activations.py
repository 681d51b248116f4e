"""Bytes that the forward pass leaves for the backward pass, per token and layer, with fused attention.

Read off Hugging Face's modelling code tensor by tensor and held against operator-level accounting of real training
steps (the tracked rows). h hidden, q and k query and key widths, i intermediate width (times active experts).
Reference form without fusion: Korthikanti et al., arXiv:2205.05198, section 4.
"""

from sizing.engine.adapters import target_widths
from sizing.engine.architecture import Architecture
from sizing.engine.job import Job, Target
from sizing.engine.profiles import PROFILES

COMPILED_SHARE = 0.75  # torch.compile fuses norms and activations: measured on torchtune's and torchtitan's tables
UNCOMPILED_SELECTIVE = 1.15  # eager kernels keep a little more than the saved operators' outputs


def block_bytes(arch: Architecture, job: Job) -> float:
    """Return bytes per token that one layer keeps without checkpointing."""
    norms, attention, mlp = base_parts(arch, job)
    total = norms + attention + mlp + adapter_bytes(arch, job) + attention_score_bytes(arch, job)
    total *= COMPILED_SHARE if job.is_compiled else 1.0
    return total / job.layout.tensor


def base_parts(arch: Architecture, job: Job) -> tuple[float, float, float]:
    """Return what norms, attention and MLP keep.

    RMSNorm in full training keeps its float32 input 4h, the normalised 2h and its output 2h; frozen only the first.
    Attention keeps queries, keys, values and its output; a gated MLP gate, up, activated gate and product.
    """
    h, q, k, i = arch.hidden, arch.q_width, arch.kv_width, arch.mlp_width
    out = arch.output_width
    if keeps_fp32_stream(job):
        copies = 2 * (5 * h + out) + 2 * i  # the 4-bit product casts its input to 16 bits and keeps it
        return norm_bytes(arch, job), 4.0 * (q + 2 * k + out), mlp_bytes(arch, job) * 2 + copies
    attention = 2.0 * (q + 2 * k + out) + 4 * arch.heads  # + float32 log-sum-exp, FlashAttention, arXiv:2205.14135
    copies_q, copies_k = PROFILES[job.framework].attention_copies_bytes
    attention += copies_q * q + copies_k * k
    return norm_bytes(arch, job), attention, mlp_bytes(arch, job) + quantised_input_bytes(arch, job)


def quantised_input_bytes(arch: Architecture, job: Job) -> float:
    """Return what 4-bit products keep of their inputs: those of q k v, of the output, of the MLP and of its end."""
    if job.task != "qlora" or is_gptq(job):
        return 0.0
    inputs = arch.hidden * min(arch.block_norms, 2) + arch.output_width + arch.mlp_width
    return PROFILES[job.framework].quantised_input_bytes * inputs


def keeps_fp32_stream(job: Job) -> bool:
    """Whether the residual stream is float32: PEFT's k-bit preparation casts norms, embedding and head."""
    return job.task == "qlora" and PROFILES[job.framework].prepares_kbit and not is_gptq(job)


def holds_fp32(job: Job) -> bool:
    """Whether float32 weights make the residual stream float32 (FSDP2's mixed precision casts to 16 bits before)."""
    return job.precision in ("mixed", "fp32") and job.framework != "torchtitan"


def is_gptq(job: Job) -> bool:
    """Whether the base comes quantised in GPTQ or AWQ form: loaded in 16 bits around it, not prepared."""
    return job.quantization in ("int4_gptq", "int4_awq", "int8_gptq")


def norm_bytes(arch: Architecture, job: Job) -> float:
    """Return what the norms of one layer keep per token, bytes."""
    h = arch.hidden
    if arch.norm == "layer":
        kept = 2 if job.is_adapted else (6 if holds_fp32(job) else 4)
        return float(kept * h * max(arch.block_norms, 1)) * (2 if keeps_fp32_stream(job) else 1)
    total = (4 if job.is_adapted else 8) * h * arch.block_norms
    if holds_fp32(job) and not job.is_adapted:
        total += (3 + 2) * 2 * h  # autocast casts anew for each of q, k, v, gate and up
    if arch.norm == "gemma" and not job.is_adapted and job.precision != "mixed":
        total += 2 * h * min(arch.block_norms, 2)  # the scale is float32: the product stays in 4 bytes
    if arch.has_qk_norm:
        total += 4 * (arch.q_width + arch.kv_width) if job.is_adapted else 6 * (arch.q_width + arch.kv_width)
    return float(total)


def mlp_bytes(arch: Architecture, job: Job) -> float:
    """Return what the MLP keeps per token, bytes at 16 bits.

    Gated: gate, up, activated gate (6i), and the product where its matrix is trained (8i). Plain with a fused GELU:
    input and output (4i; frozen 2i). GELU written out in steps keeps five more of its terms.
    """
    i = arch.mlp_width
    routed = 4.0 * arch.hidden * arch.experts.active if arch.experts else 0.0  # each expert's own input and output
    if arch.mlp_matrices == 3:
        per_width = 6 if job.is_adapted else 8
    elif arch.activation == "gelu_steps" and PROFILES[job.framework].writes_gelu_out:
        per_width = 8 if job.is_adapted else 10
    else:
        per_width = 2 if job.is_adapted else 4
    return float(per_width * i) + routed


def adapter_bytes(arch: Architecture, job: Job) -> float:
    """Return what the adapters keep per token, bytes: their inputs and the rank-wide middle.

    PEFT holds adapters in float32: each adapted matrix casts its input anew, 4 bytes, 2 under autocast. Engines in
    bfloat16 share one input among q, k, v and one between gate and up; attention's output is kept anyway.
    """
    if not job.is_adapted:
        return 0.0
    widths = {target: a for target, (a, _) in target_widths(arch).items() if target in job.lora_targets}
    profile = PROFILES[job.framework]
    middle = 4.0 * job.lora_rank * len(widths) if profile.has_fp32_adapters else 2.0 * job.lora_rank * len(widths)
    if keeps_fp32_stream(job):
        return 4.0 * distinct_inputs({t: w for t, w in widths.items() if t != "o"}) + middle
    if profile.has_fp32_adapters:
        autocast = profile.autocasts_adapters if job.uses_autocast is None else job.uses_autocast
        return (2.0 if autocast else 4.0) * sum(widths.values()) + middle
    if profile.adapter_input_bytes == 2.0:
        widths.pop("o", None)  # the attention's output is kept as it is
    shared = distinct_inputs(widths) + (0 if profile.shares_mlp_input or "up" not in widths else widths.get("gate", 0))
    return profile.adapter_input_bytes * shared + middle


def distinct_inputs(widths: dict[Target, int]) -> int:
    """Return the summed width of inputs counted once: q, k and v read the same tensor, gate and up too."""
    groups: tuple[tuple[Target, ...], ...] = (("q", "k", "v"), ("o",), ("gate", "up"), ("down",))
    return sum(max((widths[t] for t in group if t in widths), default=0) for group in groups)


def attention_score_bytes(arch: Architecture, job: Job) -> float:
    """Return the s x s terms of eager attention: float32 softmax 4, its 16-bit copy 2, a capped score 2 more.

    A fused kernel keeps none (arXiv:2205.14135). Keys and values are expanded to the query width besides.
    """
    is_eager = job.attention == "eager" or arch.has_attention_cap
    if not is_eager:
        return 0.0
    per_score = 8 if arch.has_attention_cap else 6
    expanded = 4.0 * (arch.q_width - arch.kv_width)
    return per_score * arch.heads * job.seq_len / job.layout.context + expanded


def backward_bytes(arch: Architecture, job: Job) -> float:
    """Return bytes per token of the gradients inside one block at their widest: those of gate and up, 4i."""
    size = 4 if keeps_fp32_stream(job) or holds_fp32(job) else 2
    return 2.0 * size * arch.mlp_width / job.layout.tensor


def gathered_bytes(arch: Architecture, job: Job) -> float:
    """Return bytes per token that sequence parallelism gathers again in full: about three inputs of 2h."""
    return 6.0 * arch.hidden if job.layout.tensor > 1 else 0.0


def kept_bytes(arch: Architecture, job: Job) -> float:
    """Return bytes per token and layer that stay until the backward pass, under the chosen checkpointing."""
    h, stream = arch.hidden, 4 if keeps_fp32_stream(job) or holds_fp32(job) else 2
    if job.checkpointing == "full":
        return stream * h / job.layout.tensor
    if job.checkpointing == "offload":
        return 2 * stream * h / arch.layers
    if job.checkpointing == "selective":
        share = 1.0 if job.is_compiled else UNCOMPILED_SELECTIVE
        return share * (4 * h + 2 * arch.q_width + 2 * arch.kv_width + 2 * arch.mlp_width) / job.layout.tensor
    return block_bytes(arch, job)


def edge_bytes(arch: Architecture, job: Job) -> float:
    """Return bytes per token kept outside the blocks: the final norm and the ids of input and label."""
    norm = norm_bytes(arch, job) / max(arch.block_norms, 1) if not arch.has_qk_norm else 8.0 * arch.hidden
    return norm / job.layout.tensor + 24
