"""What a model is made of: the widths and counts that every equation here reads.

>>> tiny = Architecture(family="llama", layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=128, vocab=100)
>>> tiny.q_width, tiny.kv_width, tiny.mlp_width
(64, 32, 128)
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts:
    """The sparse part of a mixture of experts.

    `count` experts of width `intermediate`, of which `active` see each token; `shared_intermediate` is the summed
    width of those that see all; the first `dense_layers` layers keep the plain MLP.
    """

    count: int
    active: int
    intermediate: int
    shared_intermediate: int = 0
    has_shared_gate: bool = False
    dense_layers: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): ranks and head parts."""

    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """A transformer's shape. Widths in elements; `mlp_matrices` is 3 for gated MLPs and 2 for plain ones.

    `block_norms` counts the norms of one layer; `sliding_layers` of the layers see only `sliding_window` tokens.
    `concatenates_cache` says that the model's own code grows its KV cache by copying and returns the logits of all
    positions. `is_known` is false when the family is not one of ours; `notes` then say what was assumed.
    """

    family: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    is_tied: bool = False
    mlp_matrices: Literal[2, 3] = 3
    activation: Literal["fused", "gelu_steps"] = "fused"
    norm: Literal["rms", "gemma", "layer"] = "rms"
    block_norms: int = 2
    has_final_norm: bool = True
    has_qk_norm: bool = False
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    has_mlp_bias: bool = False
    has_head_bias: bool = False
    has_logit_cap: bool = False
    has_attention_cap: bool = False
    learned_positions: int = 0
    max_positions: int | None = None
    sliding_window: int | None = None
    sliding_layers: int = 0
    experts: Experts | None = None
    latent: LatentAttention | None = None
    concatenates_cache: bool = False
    is_known: bool = True
    notes: tuple[str, ...] = ()

    @property
    def q_width(self) -> int:
        """Width of all queries: heads times head size (which is not always hidden / heads)."""
        if self.latent:
            return self.heads * (self.latent.nope_dim + self.latent.rope_dim)
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all keys: grouped-query attention has fewer than queries (arXiv:2305.13245)."""
        return self.q_width if self.latent else self.kv_heads * self.head_dim

    @property
    def output_width(self) -> int:
        """Width of what the attention gives to its output projection."""
        return self.heads * self.latent.value_dim if self.latent else self.heads * self.head_dim

    @property
    def sparse_layers(self) -> int:
        """Number of layers with experts."""
        return self.layers - self.experts.dense_layers if self.experts else 0

    @property
    def mlp_width(self) -> int:
        """Intermediate width that one token passes in a layer of the commonest kind."""
        if self.experts:
            return self.experts.active * self.experts.intermediate + self.experts.shared_intermediate
        return self.intermediate
