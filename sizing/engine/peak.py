"""The peak of a step on one GPU: a maximum over phases, not a sum.

    weights + optimiser + buffers + max(activations + loss chain,        start of the backward pass, no gradients yet
                                        activations + one block + head,  recompute of the last block
                                        gradients + one block,           end of the backward pass
                                        gradients + step temporary)      optimiser step

With gradient accumulation, or an engine that keeps gradients, all phases carry them. On the tracked Llama, Qwen2 and
Mistral steps these equations meet the operator-level peak with a median error below 1 %.
"""

from dataclasses import dataclass

from sizing.engine.activations import backward_bytes, block_bytes, edge_bytes, gathered_bytes, kept_bytes
from sizing.engine.architecture import Architecture
from sizing.engine.inference import generation_parts
from sizing.engine.job import Job
from sizing.engine.loss import loss_bytes
from sizing.engine.parameters import ParameterCount, count_parameters
from sizing.engine.profiles import PROFILES
from sizing.engine.quantisation import head_width, unpacked_bytes
from sizing.engine.sharding import buffer_bytes
from sizing.engine.state import State, training_state

FORWARD_SHARE = 10 / 12  # logits, their float32 copy and log-softmax, before the two gradients exist


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """Bytes that tensors take at the worst moment, on one GPU, by part; and which phase that is."""

    phase: str
    parts: dict[str, float]

    @property
    def total(self) -> float:
        """Sum of the parts."""
        return sum(self.parts.values())


def peak_memory(arch: Architecture, job: Job) -> Peak:
    """Return the peak of a training step or a generation."""
    parameters = count_parameters(arch)
    if job.task == "inference":
        return Peak(phase="generation", parts=generation_parts(arch, parameters, job))
    state = training_state(arch, parameters, job)
    buffers = buffer_bytes(arch, parameters, job, state)
    lasting = {"weights": state.weights, "optimizer": state.optimizer, "buffers": buffers}
    phases = training_phases(arch, parameters, job, state)
    phase, parts = max(phases.items(), key=lambda item: sum(item[1].values()))
    return Peak(phase=phase, parts={**lasting, **parts})


def training_phases(
    arch: Architecture, parameters: ParameterCount, job: Job, state: State
) -> dict[str, dict[str, float]]:
    """Return the changing parts of each phase, bytes."""
    kept = arch.layers * kept_bytes(arch, job) * job.tokens
    activations = kept + (edge_bytes(arch, job) + gathered_bytes(arch, job)) * job.tokens
    is_recomputed = job.checkpointing in ("full", "offload")
    block = (block_bytes(arch, job) + backward_bytes(arch, job)) * job.tokens if is_recomputed else 0.0
    gradients = lasting_gradients(parameters, job, state)
    cached = head_cache(parameters, state) if is_recomputed else state.cached
    loss = loss_bytes(arch, job)
    kept_early = gradients if keeps_gradients(job) else 0.0
    head = 0.0 if job.is_adapted else embedding_gradient(parameters, state, job)
    tied = 2 * head if arch.is_tied else 0.0
    first = head if parameters.head and not job.fuses_step else 0.0
    last_block = block + kept / arch.layers
    return {
        "loss": {
            "gradients": kept_early,
            "activations": activations + cached + 2.0 * arch.hidden * head_width(arch, job) / job.layout.tensor,
            "loss": loss,
        },
        "forward end": {
            "gradients": kept_early,
            "activations": activations + state.cached,
            "loss": loss * FORWARD_SHARE,
        },
        "recompute": {
            "gradients": max(kept_early, min(head, gradients)),
            "activations": activations + block + unpacked_bytes(arch, job) + cached,
        },
        "backward end": {"gradients": gradients + max(tied, last_block - first, 0.0)},
        "optimizer step": {"gradients": gradients, "step": state.step},
    }


def head_cache(parameters: ParameterCount, state: State) -> float:
    """Return what is left of autocast's 16-bit copies after a checkpointed forward pass: the head's."""
    return min(state.cached, 2.0 * (parameters.head or parameters.embedding))


def keeps_gradients(job: Job) -> bool:
    """Whether gradients outlive the optimiser step: accumulation adds to them, DeepSpeed holds its partitions."""
    steps = job.gradient_accumulation or PROFILES[job.framework].default_accumulation
    return steps > 1 or job.uses_deepspeed or job.layout.pipeline > 1


def lasting_gradients(parameters: ParameterCount, job: Job, state: State) -> float:
    """Return the gradients of a whole pass; with the step fused in, only the largest piece lives at a time."""
    if not job.fuses_step:
        return state.gradients
    return min(state.gradients, state.gradient_bytes * max(parameters.embedding, parameters.head, 1))


def embedding_gradient(parameters: ParameterCount, state: State, job: Job) -> float:
    """Return the bytes of the embedding's gradient on one GPU."""
    share = 1 if job.layout.sharding in ("none", "ddp", "zero1") else job.layout.shards
    return state.gradient_bytes * parameters.embedding / share / (job.layout.tensor * job.layout.pipeline)
