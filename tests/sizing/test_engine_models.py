"""Architectures and parameter counts: the makers' published counts, and the mistakes that other estimators make."""

import pytest

from sizing.engine.architecture import Architecture
from sizing.engine.config_reader import ConfigError, read_config
from sizing.engine.job import Job
from sizing.engine.kv_cache import cache_bytes
from sizing.engine.parameters import count_parameters
from sizing.engine.quantisation import base_bytes
from sizing.facts import presets

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
# Exact counts: sums over the published checkpoints' tensors.
EXACT = {
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b": 7_248_023_552,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "gemma-2-2b": 2_614_341_888,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "mixtral-8x7b": 46_702_792_704,
    "deepseek-v3": 671_026_404_352,
}


def test_every_preset_has_the_parameters_that_its_makers_state():
    assert len(presets()) >= 60
    for preset in presets().values():
        count = count_parameters(preset.architecture).total / 1e9
        assert count == pytest.approx(preset.published_b_params, rel=5e-4, abs=6e-4), preset.name
        assert preset.source_url.startswith("https://")
        assert preset.architecture.is_known


@pytest.mark.parametrize("name", EXACT)
def test_counts_are_exact_to_the_last_parameter(name):
    assert count_parameters(presets()[name].architecture).total == pytest.approx(EXACT[name], rel=3e-5)


@pytest.mark.parametrize("name", [n for n in EXACT if n != "deepseek-v3"])
def test_models_without_routing_bias_are_exact(name):
    assert count_parameters(presets()[name].architecture).total == EXACT[name]


def test_grouped_queries_shrink_the_cache():
    llama = presets()["llama-3.1-8b"].architecture
    job = Job(task="inference", seq_len=1024)
    # 2 x 32 layers x 8 heads x 128 x 2 bytes = 128 KiB a token, not the 512 KiB of 32 heads
    assert cache_bytes(llama, job) == 1024 * 128 * 1024


def test_a_gated_mlp_has_three_matrices_and_gpt2_two():
    assert presets()["llama-3.1-8b"].architecture.mlp_matrices == 3
    assert presets()["gpt2"].architecture.mlp_matrices == 2


def test_tied_embeddings_are_counted_once():
    small = presets()["llama-3.2-1b"].architecture
    assert count_parameters(small).head == 0
    untied = read_config({**presets()["llama-3.2-1b"].config, "tie_word_embeddings": False})
    assert count_parameters(untied).total - count_parameters(small).total == 128_256 * 2_048


def test_embeddings_head_and_norms_are_not_quantised():
    parameters = count_parameters(presets()["qwen2.5-7b"].architecture)
    quantised = base_bytes(parameters, "nf4_dq", other_bytes=4.0)
    # a tracked step of Qwen2.5-7B holds 7.236 GiB of weights after k-bit preparation, 0.038 of them adapters
    assert quantised / 2**30 == pytest.approx(7.236 - 0.038, abs=0.005)


def test_the_head_size_comes_from_the_config():
    gemma = read_config({**LLAMA, "model_type": "gemma", "head_dim": 256, "num_attention_heads": 16})
    assert gemma.q_width == 4096
    qwen = presets()["qwen3-0.6b"].architecture
    assert (qwen.hidden, qwen.q_width) == (1024, 2048)


def test_all_experts_lie_in_memory_and_only_the_active_ones_multiply():
    mixtral = count_parameters(presets()["mixtral-8x7b"].architecture)
    assert mixtral.total == pytest.approx(46.7e9, rel=1e-2)
    assert mixtral.per_token == pytest.approx(12.7e9, rel=2e-2)


def test_latent_attention_keeps_one_compressed_vector_on_every_rank():
    deepseek = presets()["deepseek-v3"].architecture
    job = Job(task="inference", seq_len=8192)
    # the size that a llama.cpp log prints: 61 layers x 576 x 2 bytes x 8,192 tokens = 549 MiB
    assert cache_bytes(deepseek, job) / 2**20 == pytest.approx(549, abs=0.5)


def test_layers_with_a_window_keep_no_more_than_the_window():
    gemma = presets()["gemma-3-27b"].architecture
    assert (gemma.sliding_layers, gemma.sliding_window) == (52, 1024)
    per_token = 2 * gemma.kv_width * 2
    long = cache_bytes(gemma, Job(task="inference", seq_len=100_000))
    assert long == per_token * (10 * 100_000 + 52 * 1024)


def test_an_unknown_family_is_estimated_and_says_so():
    known = read_config(LLAMA)
    other = read_config({**LLAMA, "model_type": "brand_new"})
    assert known.is_known
    assert not other.is_known
    assert "brand_new" in other.notes[0]
    assert count_parameters(other) == count_parameters(known)


def test_a_multi_modal_config_is_read_for_its_text_and_says_so():
    both = read_config({"model_type": "gemma3", "text_config": {**LLAMA, "model_type": "llama"}})
    assert "text_config" in both.notes[0]
    assert both.layers == 32


def test_the_remote_code_of_qwen_halves_its_intermediate_size():
    qwen = presets()["qwen-7b"].architecture
    assert (qwen.intermediate, qwen.concatenates_cache) == (11_008, True)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"hidden_size": 4095}, "hidden_size"),
        ({"num_hidden_layers": 3.0}, "num_hidden_layers"),
        ({"num_attention_heads": False}, "num_attention_heads"),
        ({"num_key_value_heads": 64}, "num_key_value_heads"),
        ({"vocab_size": -1}, "vocab_size"),
        ({"intermediate_size": 10**12}, "intermediate_size"),
        ({"intermediate_size": None}, "intermediate_size"),
        ({"num_local_experts": 8}, "num_experts_per_tok"),
        ({"num_local_experts": 2, "num_experts_per_tok": 4}, "num_experts_per_tok"),
        ({"num_local_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 99}, "first_k_dense_replace"),
        ({"kv_lora_rank": 512}, "qk_nope_head_dim"),
        ({"sliding_window": "wide"}, "sliding_window"),
        ({"sliding_window": 512, "layer_types": ["full_attention"]}, "layer_types"),
        ({"text_config": "x"}, "text_config"),
        ({"model_type": "x" * 200}, "model_type"),
    ],
)
def test_an_absurd_missing_or_contradictory_field_is_named(change, field):
    with pytest.raises(ConfigError) as caught:
        read_config({**LLAMA, **change})
    assert caught.value.field == field


def test_the_shape_of_a_model_is_all_that_counts():
    with pytest.raises(ConfigError):
        read_config([])  # type: ignore[arg-type]
    assert isinstance(read_config({**LLAMA, "architectures": {"a": 1}, "vision": [1]}), Architecture)
