"""What the model families add to the numbers of their config.json: facts of their published modelling code.

Source of each row: the family's `configuration_*.py` and `modeling_*.py` in Hugging Face transformers 4.57 and 5.x,
or the code that its authors ship with the weights (qwen, chatglm).
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Defaults of one `model_type`; `sliding` says which layers a given window holds for when nothing lists them."""

    is_tied: bool = False
    mlp_matrices: Literal[2, 3] = 3
    gelu_steps: bool = False
    norm: Literal["rms", "gemma", "layer"] = "rms"
    block_norms: int = 2
    has_final_norm: bool = True
    has_qk_norm: bool = False
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    has_mlp_bias: bool = False
    has_head_bias: bool = False
    head_dim: int | None = None
    learns_positions: bool = False
    sliding: Literal["none", "all", "every_second", "five_of_six", "if_used"] = "none"
    mlp_in_two_halves: bool = False
    concatenates_cache: bool = False
    has_shared_gate: bool = False


LLAMA = Family()
FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": Family(sliding="all"),
    "ministral": Family(sliding="all"),
    "mixtral": Family(sliding="all"),
    "qwen": Family(has_qkv_bias=True, mlp_in_two_halves=True, concatenates_cache=True),
    "qwen2": Family(has_qkv_bias=True, sliding="if_used"),
    "qwen2_moe": Family(has_qkv_bias=True, sliding="if_used", has_shared_gate=True),
    "qwen3": Family(has_qk_norm=True, sliding="if_used"),
    "qwen3_moe": Family(has_qk_norm=True, sliding="if_used"),
    "gemma": Family(is_tied=True, norm="gemma", head_dim=256),
    "gemma2": Family(is_tied=True, norm="gemma", block_norms=4, head_dim=256, sliding="every_second"),
    "gemma3": Family(is_tied=True, norm="gemma", block_norms=4, head_dim=256, has_qk_norm=True, sliding="five_of_six"),
    "gemma3_text": Family(
        is_tied=True, norm="gemma", block_norms=4, head_dim=256, has_qk_norm=True, sliding="five_of_six"
    ),
    "phi": Family(
        mlp_matrices=2, gelu_steps=True, norm="layer", block_norms=1,
        has_qkv_bias=True, has_output_bias=True, has_mlp_bias=True, has_head_bias=True,
    ),
    "phi3": Family(sliding="all"),
    "phimoe": Family(norm="layer", has_qkv_bias=True, has_output_bias=True, has_head_bias=True),
    "gpt2": Family(
        is_tied=True, mlp_matrices=2, gelu_steps=True, norm="layer", learns_positions=True,
        has_qkv_bias=True, has_output_bias=True, has_mlp_bias=True,
    ),
    "gpt_neox": Family(
        mlp_matrices=2, norm="layer", has_qkv_bias=True, has_output_bias=True, has_mlp_bias=True
    ),
    "falcon": Family(is_tied=True, mlp_matrices=2, norm="layer", block_norms=1),
    "deepseek_v2": LLAMA,
    "deepseek_v3": LLAMA,
    "glm": Family(has_qkv_bias=True),
    "glm4": Family(block_norms=4),
    "chatglm": Family(has_qkv_bias=True),
    "stablelm": Family(norm="layer"),
    "olmo2": Family(has_qk_norm=True),
    "granite": Family(is_tied=True),
    "starcoder2": Family(
        is_tied=True, mlp_matrices=2, norm="layer", has_qkv_bias=True, has_output_bias=True, has_mlp_bias=True,
        sliding="all",
    ),
    "vit": Family(
        mlp_matrices=2, norm="layer", learns_positions=True, has_qkv_bias=True, has_output_bias=True, has_mlp_bias=True
    ),
}  # fmt: skip
# Names that configs use for a family above.
SAME_AS = {
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "qwen2_5": "qwen2",
    "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2",
    "kimi_k2": "deepseek_v3",
    "llama4_text": "llama",
}
