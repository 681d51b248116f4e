"""Reads a Hugging Face `config.json` into an `Architecture`, strictly: a wrong field is named, never guessed over.

>>> read_config({"model_type": "llama", "hidden_size": 64})
Traceback (most recent call last):
    ...
sizing.engine.config_reader.ConfigError: num_hidden_layers: is missing
"""

from collections.abc import Mapping
from typing import Any

from sizing.engine.architecture import Architecture, Experts, LatentAttention
from sizing.engine.families import FAMILIES, LLAMA, SAME_AS, Family

# Each fact, the names that configs give it, and the largest value that any real model comes near.
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num")
HEAD_DIM = ("head_dim", "kv_channels")
INTERMEDIATE = ("intermediate_size", "ffn_hidden_size", "n_inner")
VOCAB = ("padded_vocab_size", "vocab_size")
POSITIONS = ("max_position_embeddings", "n_positions", "seq_length")
EXPERT_COUNT = ("num_local_experts", "num_experts", "n_routed_experts")
EXPERTS_ACTIVE = ("num_experts_per_tok", "num_experts_per_token", "moe_topk")
MOST_LAYERS, MOST_WIDTH, MOST_HEADS, MOST_VOCAB = 1_000, 262_144, 2_048, 4_000_000
MOST_POSITIONS, MOST_EXPERTS, MOST_INTERMEDIATE = 2**31, 2_048, 4_000_000


class ConfigError(ValueError):
    """A field of the config is missing, absurd or contradicts another."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field, self.message = field, message


def read_config(config: Mapping[str, Any]) -> Architecture:
    """Return the architecture of a config.json. Raises ConfigError that names the field at fault."""
    notes: list[str] = []
    config = text_part(config, notes)
    name, family = family_of(config, notes)
    layers = number(config, LAYERS, most=MOST_LAYERS)
    hidden = number(config, HIDDEN, most=MOST_WIDTH)
    heads = number(config, HEADS, most=MOST_HEADS)
    latent = read_latent(config)
    kv_heads = read_kv_heads(config, name, heads)
    experts = read_experts(config, family, layers)
    window, sliding_layers = read_window(config, family, layers)
    positions = optional(config, POSITIONS, most=MOST_POSITIONS)
    return Architecture(
        family=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=read_head_dim(config, family, hidden=hidden, heads=heads, is_latent=latent is not None),
        intermediate=read_intermediate(config, family, hidden=hidden, experts=experts),
        vocab=number(config, VOCAB, most=MOST_VOCAB),
        is_tied=flag(config, "tie_word_embeddings", default=family.is_tied),
        mlp_matrices=family.mlp_matrices,
        activation="gelu_steps" if family.gelu_steps else "fused",
        norm=family.norm,
        block_norms=falcon_norms(config) if name == "falcon" else family.block_norms,
        has_final_norm=family.has_final_norm,
        has_qk_norm=flag(config, "use_qk_norm", default=family.has_qk_norm),
        has_qkv_bias=has_qkv_bias(config, family),
        has_output_bias=flag(config, "attention_bias", default=False) if name == "llama" else family.has_output_bias,
        has_mlp_bias=flag(config, "mlp_bias", default=family.has_mlp_bias),
        has_head_bias=family.has_head_bias,
        has_logit_cap=config.get("final_logit_softcapping") is not None,
        has_attention_cap=config.get("attn_logit_softcapping") is not None,
        learned_positions=(positions or 0) if family.learns_positions else 0,
        max_positions=positions,
        sliding_window=window,
        sliding_layers=sliding_layers,
        experts=experts,
        latent=latent,
        concatenates_cache=family.concatenates_cache,
        is_known=not notes,
        notes=tuple(notes),
    )


def text_part(config: Mapping[str, Any], notes: list[str]) -> Mapping[str, Any]:
    """Return the part that describes the language model: multi-modal configs keep it in `text_config`."""
    if not isinstance(config, Mapping):
        raise ConfigError("config", "must be a JSON object")
    part = config.get("text_config")
    if part is None:
        return config
    if not isinstance(part, Mapping):
        raise ConfigError("text_config", "must be a JSON object")
    notes.append("only text_config is counted: image or audio parts are left out")
    return {"model_type": config.get("model_type"), **part}


def family_of(config: Mapping[str, Any], notes: list[str]) -> tuple[str, Family]:
    """Return the family's name and facts; an unknown one is taken as Llama-shaped and said so."""
    name = config.get("model_type", "")
    if not isinstance(name, str) or len(name) > 100:
        raise ConfigError("model_type", "must be a short text")
    name = SAME_AS.get(name, name)
    if name in FAMILIES:
        return name, FAMILIES[name]
    notes.append(f"model_type {name or 'missing'!r} is not known: estimated from its fields as a Llama-shaped model")
    return name or "unknown", LLAMA


def number(config: Mapping[str, Any], names: tuple[str, ...], *, most: int, least: int = 1) -> int:
    """Return a whole number given under one of its names."""
    value = optional(config, names, most=most, least=least)
    if value is None:
        raise ConfigError(names[0] if names != VOCAB else "vocab_size", "is missing")
    return value


def optional(config: Mapping[str, Any], names: tuple[str, ...], *, most: int, least: int = 1) -> int | None:
    """Return a whole number or None where no name is given; two names with different values contradict."""
    found: tuple[str, int] | None = None
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(name, "must be a whole number")
        if not least <= value <= most:
            raise ConfigError(name, f"must lie between {least} and {most}")
        if found and found[1] != value and names is not VOCAB:
            raise ConfigError(name, f"contradicts {found[0]}, which is {found[1]}")
        found = found or (name, value)
    return found[1] if found else None


def flag(config: Mapping[str, Any], name: str, *, default: bool) -> bool:
    """Return a yes or no."""
    value = config.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(name, "must be true or false")
    return value


def has_qkv_bias(config: Mapping[str, Any], family: Family) -> bool:
    """Return whether queries, keys and values have a bias, under the three names in use."""
    for name in ("attention_bias", "add_qkv_bias", "use_qkv_bias"):
        if config.get(name) is not None:
            return flag(config, name, default=False)
    return family.has_qkv_bias


def read_kv_heads(config: Mapping[str, Any], family: str, heads: int) -> int:
    """Return the number of key and value heads (GQA, arXiv:2305.13245); absent means one per query head."""
    kv_heads = optional(config, KV_HEADS, most=MOST_HEADS)
    if family == "falcon" and flag(config, "multi_query", default=kv_heads is None):
        is_new = flag(config, "new_decoder_architecture", default=False)
        kv_heads = kv_heads if is_new and kv_heads else 1
    if family == "chatglm" and not flag(config, "multi_query_attention", default=True):
        kv_heads = heads
    kv_heads = kv_heads or heads
    if kv_heads > heads or heads % kv_heads:
        raise ConfigError("num_key_value_heads", f"must divide num_attention_heads, which is {heads}")
    return kv_heads


def read_head_dim(config: Mapping[str, Any], family: Family, *, hidden: int, heads: int, is_latent: bool) -> int:
    """Return the head size: the config's own word first (Gemma, Qwen3 differ from hidden / heads)."""
    head_dim = optional(config, HEAD_DIM, most=MOST_WIDTH) or family.head_dim
    if head_dim is None and hidden % heads and not is_latent:
        raise ConfigError(
            "hidden_size", f"is no multiple of num_attention_heads, which is {heads}, and head_dim is missing"
        )
    return head_dim or max(1, hidden // heads)


def read_intermediate(config: Mapping[str, Any], family: Family, *, hidden: int, experts: Experts | None) -> int:
    """Return the width of the plain MLP."""
    width = optional(config, INTERMEDIATE, most=MOST_INTERMEDIATE)
    if width is None and family.mlp_matrices == 2:
        return 4 * hidden  # GPT-2, Falcon: four times the hidden width unless said otherwise
    if width is None:
        if experts is None:
            raise ConfigError(INTERMEDIATE[0], "is missing")
        return experts.intermediate
    return width // 2 if family.mlp_in_two_halves else width


def read_experts(config: Mapping[str, Any], family: Family, layers: int) -> Experts | None:
    """Return the experts, or None for a dense model."""
    count = optional(config, EXPERT_COUNT, most=MOST_EXPERTS, least=0)
    if not count or count == 1:
        return None
    active = number(config, EXPERTS_ACTIVE, most=MOST_EXPERTS)
    if active > count:
        raise ConfigError(EXPERTS_ACTIVE[0], f"exceeds the number of experts, which is {count}")
    width = optional(config, ("moe_intermediate_size",), most=MOST_INTERMEDIATE)
    width = width or number(config, INTERMEDIATE, most=MOST_INTERMEDIATE)
    shared = optional(config, ("shared_expert_intermediate_size",), most=MOST_INTERMEDIATE, least=0) or 0
    shared_count = optional(config, ("n_shared_experts",), most=MOST_EXPERTS, least=0) or 0
    dense = optional(config, ("first_k_dense_replace",), most=MOST_LAYERS, least=0) or 0
    if dense > layers:
        raise ConfigError("first_k_dense_replace", f"exceeds the number of layers, which is {layers}")
    return Experts(
        count=count,
        active=active,
        intermediate=width,
        shared_intermediate=shared or shared_count * width,
        has_shared_gate=family.has_shared_gate and shared > 0,
        dense_layers=dense,
    )


def read_latent(config: Mapping[str, Any]) -> LatentAttention | None:
    """Return the ranks of multi-head latent attention, or None (DeepSeek-V2, arXiv:2405.04434)."""
    kv_rank = optional(config, ("kv_lora_rank",), most=MOST_WIDTH)
    if kv_rank is None:
        return None
    return LatentAttention(
        q_rank=optional(config, ("q_lora_rank",), most=MOST_WIDTH),
        kv_rank=kv_rank,
        nope_dim=number(config, ("qk_nope_head_dim",), most=MOST_WIDTH),
        rope_dim=number(config, ("qk_rope_head_dim",), most=MOST_WIDTH),
        value_dim=number(config, ("v_head_dim",), most=MOST_WIDTH),
    )


def read_window(config: Mapping[str, Any], family: Family, layers: int) -> tuple[int | None, int]:
    """Return the sliding window in tokens and how many layers keep to it."""
    window = optional(config, ("sliding_window",), most=MOST_POSITIONS)
    if window is None:
        return None, 0
    kinds = config.get("layer_types")
    if kinds is not None:
        if not isinstance(kinds, list) or len(kinds) != layers or not all(isinstance(kind, str) for kind in kinds):
            raise ConfigError("layer_types", f"must name the kind of each of the {layers} layers")
        count = kinds.count("sliding_attention")
        return (window, count) if count else (None, 0)
    pattern = optional(config, ("sliding_window_pattern",), most=MOST_LAYERS) or 6
    is_used = flag(config, "use_sliding_window", default=False)
    count = {
        "none": 0,
        "all": layers,
        "every_second": (layers + 1) // 2,
        "five_of_six": layers - layers // pattern,
        "if_used": layers if is_used else 0,
    }[family.sliding]
    return (window, count) if count else (None, 0)


def falcon_norms(config: Mapping[str, Any]) -> int:
    """Falcon's layers have one norm, or two in the new form or without the parallel MLP."""
    is_new = flag(config, "new_decoder_architecture", default=False)
    return 1 if flag(config, "parallel_attn", default=True) and not is_new else 2
