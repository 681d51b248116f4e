"""How many parameters a model has, split by what happens to them.

Each count follows the published layer by layer description of its family; the tests hold the sums against the counts
that the makers publish (Llama 3.1 8B: 8,030,261,248).
"""

from dataclasses import dataclass

from sizing.engine.architecture import Architecture


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterCount:
    """Parameters by kind. `linears` are the block matrices, the only ones that weight quantisation touches."""

    linears: int
    embedding: int
    head: int
    other: int
    active_linears: int

    @property
    def total(self) -> int:
        """All parameters that lie in memory: every expert counts."""
        return self.linears + self.embedding + self.head + self.other

    @property
    def unquantised(self) -> int:
        """What stays in 16 or 32 bits in a quantised model: embeddings, head, norms and biases."""
        return self.embedding + self.head + self.other

    @property
    def per_token(self) -> int:
        """Parameters that multiply one token: the active experts and the head, not the embedding table."""
        return self.active_linears + (self.head or self.embedding)


def count_parameters(arch: Architecture) -> ParameterCount:
    """Count a model's parameters.

    >>> llama = Architecture(family="llama", layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128,
    ...                      intermediate=14336, vocab=128256)
    >>> count_parameters(llama).total
    8030261248
    """
    attention = attention_linears(arch)
    dense = arch.mlp_matrices * arch.hidden * arch.intermediate
    dense_layers = arch.layers - arch.sparse_layers
    linears = arch.layers * attention + dense_layers * dense
    active = linears
    if arch.experts:
        linears += arch.sparse_layers * expert_linears(arch, seen=arch.experts.count)
        active += arch.sparse_layers * expert_linears(arch, seen=arch.experts.active)
    return ParameterCount(
        linears=linears,
        embedding=arch.vocab * arch.hidden,
        head=0 if arch.is_tied else arch.vocab * arch.hidden,
        other=arch.layers * small_parameters(arch) + outside_parameters(arch),
        active_linears=active,
    )


def attention_linears(arch: Architecture) -> int:
    """Return the weights of one layer's attention: h(2q + 2k), or the latent form's projections.

    Source: GQA, arXiv:2305.13245; MLA, DeepSeek-V2, arXiv:2405.04434, section 2.1.2.
    """
    h = arch.hidden
    if arch.latent is None:
        return h * 2 * (arch.q_width + arch.kv_width)
    mla = arch.latent
    queries = h * mla.q_rank + mla.q_rank * arch.q_width if mla.q_rank else h * arch.q_width
    down = h * (mla.kv_rank + mla.rope_dim)
    up = mla.kv_rank * arch.heads * (mla.nope_dim + mla.value_dim)
    return queries + down + up + arch.output_width * h


def expert_linears(arch: Architecture, *, seen: int) -> int:
    """Return the weights of one sparse layer with `seen` of its experts, the shared ones and the router."""
    if arch.experts is None:
        return 0
    width = seen * arch.experts.intermediate + arch.experts.shared_intermediate
    return arch.mlp_matrices * arch.hidden * width + arch.hidden * arch.experts.count


def small_parameters(arch: Architecture) -> int:
    """Return one layer's norms and biases."""
    count = arch.block_norms * norm_parameters(arch)
    if arch.has_qk_norm:
        count += 2 * arch.head_dim
    if arch.latent:
        count += arch.latent.kv_rank + (arch.latent.q_rank or 0)
    if arch.has_qkv_bias:
        count += arch.q_width + 2 * arch.kv_width
    if arch.has_output_bias:
        count += arch.hidden
    if arch.has_mlp_bias:
        count += (arch.mlp_matrices - 1) * arch.intermediate + arch.hidden
    if arch.experts and arch.experts.has_shared_gate:
        count += arch.hidden
    return count


def outside_parameters(arch: Architecture) -> int:
    """Return what lies outside the blocks besides embedding and head: final norm, learned positions, head bias."""
    final = norm_parameters(arch) if arch.has_final_norm else 0
    return final + arch.learned_positions * arch.hidden + (arch.vocab if arch.has_head_bias else 0)


def norm_parameters(arch: Architecture) -> int:
    """Return one norm's parameters: a layer norm has a bias too."""
    return 2 * arch.hidden if arch.norm == "layer" else arch.hidden
