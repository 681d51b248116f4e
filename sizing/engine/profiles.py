"""What each framework does with memory: facts of its code that the equations need and a user need not know.

Sources: PEFT (adapters kept in float32, autocast on their inputs), torchtune and litgpt recipes (bfloat16
throughout), torchtitan FSDP2 mixed precision (float32 shards), DeepSpeed (float32 master copy and gradients),
unsloth (fused cross entropy), vLLM (preallocated cache).
"""

from dataclasses import dataclass, replace

from sizing.engine.job import Checkpointing, Framework, Loss, Optimizer, Precision


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """One framework. `default_*` fill what a user leaves out; the rest are facts of its code.

    `attention_copies_bytes`: bytes per query and per key width that attention keeps beyond queries, keys, values and
    output. `adapter_input_bytes`: bytes that an adapter keeps of its input (dropout keeps its mask and its result).
    `quantised_input_bytes`: bytes that a 4-bit product keeps of each distinct input where the stream is 16-bit.
    """

    default_loss: Loss
    default_precision: Precision = "bf16"
    default_checkpointing: Checkpointing = "full"
    default_optimizer: Optimizer = "adamw"
    default_accumulation: int = 1
    default_lora_rank: int = 16
    has_fp32_adapters: bool = False
    autocasts_adapters: bool = False
    prepares_kbit: bool = False
    adapter_input_bytes: float = 2.0
    shares_mlp_input: bool = True
    attention_copies_bytes: tuple[float, float] = (0.0, 0.0)
    quantised_input_bytes: float = 0.0
    writes_gelu_out: bool = False
    unties_head: bool = False
    unpacks_head: bool = False
    double_quantises: bool = False
    shards_ends_apart: bool = False
    compiles_loss: bool = True


PEFT = Profile(default_loss="held", has_fp32_adapters=True, autocasts_adapters=True, writes_gelu_out=True)
PROFILES: dict[Framework, Profile] = {
    "hf_trainer": replace(PEFT, prepares_kbit=True),
    "llama_factory": PEFT,
    "deepspeed": replace(PEFT, prepares_kbit=True),
    "unsloth": replace(PEFT, default_loss="fused", default_checkpointing="offload", default_optimizer="adamw_8bit"),
    "torchtune": Profile(
        default_loss="chunked", default_optimizer="adamw_fused", double_quantises=True, shards_ends_apart=True
    ),
    "litgpt": Profile(
        default_loss="chunked",
        default_checkpointing="none",
        default_accumulation=8,
        adapter_input_bytes=3.0,
        shares_mlp_input=False,
        attention_copies_bytes=(6.0, 2.0),
        quantised_input_bytes=3.5,  # 2 in older versions of its bitsandbytes, 4 in newer ones
        unties_head=True,
        unpacks_head=True,
    ),
    "torchtitan": Profile(
        default_loss="plain", default_precision="mixed", default_checkpointing="selective", compiles_loss=False
    ),
    "vllm": PEFT,
}
