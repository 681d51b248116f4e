"""What somebody wants to run: one frozen description, all defaults visible.

>>> Job(task="full").layout.gpu_count
1
"""

from dataclasses import dataclass, field
from typing import Literal

Task = Literal["full", "lora", "qlora", "inference"]
Framework = Literal["hf_trainer", "llama_factory", "torchtune", "torchtitan", "litgpt", "unsloth", "deepspeed", "vllm"]
Precision = Literal["bf16", "fp16", "fp32", "mixed"]
Optimizer = Literal[
    "adamw", "adamw_fused", "adamw_8bit", "adamw_4bit", "paged_adamw", "paged_adamw_8bit", "adafactor", "lion", "sgd"
]
Checkpointing = Literal["none", "selective", "full", "offload"]
Loss = Literal["plain", "held", "chunked", "fused"]
Quantization = Literal["none", "nf4", "nf4_dq", "int4_gptq", "int4_awq", "int8_gptq", "int8", "fp8"]
Sharding = Literal["none", "ddp", "zero1", "zero2", "zero3", "fsdp", "tp"]
Target = Literal["q", "k", "v", "o", "gate", "up", "down", "head"]

BLOCK_LINEARS: frozenset[Target] = frozenset({"q", "k", "v", "o", "gate", "up", "down"})
ATTENTION_LINEARS: frozenset[Target] = frozenset({"q", "k", "v", "o"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """How the job lies on its GPUs. `gpu_count` in all; the three degrees divide the model or the sequence."""

    gpu_count: int = 1
    sharding: Sharding = "none"
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    is_offloaded: bool = False

    @property
    def shards(self) -> int:
        """Ranks that share one copy of the states: what tensor and pipeline degrees leave."""
        if self.sharding in ("none", "ddp", "tp"):
            return 1
        return max(1, self.gpu_count // (self.tensor * self.pipeline))

    @property
    def is_alone(self) -> bool:
        """Whether no other GPU is spoken to."""
        return self.sharding == "none" and self.tensor == self.pipeline == self.context == 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A training step or a generation. Sequence lengths in tokens; `batch` and `kv_cache_tokens` are for inference.

    `precision` "mixed" is autocast over float32 weights. `fuses_step` applies each gradient inside the backward pass.
    `gradient_accumulation` and `uses_autocast` None: as the framework does it.
    """

    task: Task
    framework: Framework = "hf_trainer"
    seq_len: int = 2048
    micro_batch: int = 1
    gradient_accumulation: int | None = None
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    fuses_step: bool = False
    checkpointing: Checkpointing = "full"
    loss: Loss = "held"
    attention: Literal["fused", "eager"] = "fused"
    is_compiled: bool = False
    lora_rank: int = 16
    lora_targets: frozenset[Target] = BLOCK_LINEARS
    trains_embeddings: bool = False
    uses_autocast: bool | None = None
    quantization: Quantization = "none"
    batch: int = 1
    kv_cache_tokens: int | None = None
    kv_bytes: float = 2.0
    prefill_logits: Literal["last", "all"] = "last"
    layout: Layout = field(default_factory=Layout)

    @property
    def tokens(self) -> int:
        """Tokens of one micro-batch on one GPU; context parallelism cuts the sequence."""
        return -(-self.micro_batch * self.seq_len // self.layout.context)

    @property
    def uses_deepspeed(self) -> bool:
        """Whether DeepSpeed keeps the states: its own framework, or a ZeRO stage under another."""
        return self.framework == "deepspeed" or self.layout.sharding.startswith("zero")

    @property
    def cache_tokens(self) -> int:
        """Tokens whose keys and values are held at the end of a generation."""
        return self.kv_cache_tokens if self.kv_cache_tokens is not None else self.seq_len * self.batch

    @property
    def is_adapted(self) -> bool:
        """Whether only adapters are trained."""
        return self.task in ("lora", "qlora")
