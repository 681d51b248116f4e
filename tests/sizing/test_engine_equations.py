"""Every equation against a case worked by hand. The hand: hidden 1024, 16 heads of 64, 4 for keys, MLP 4096, 8 layers."""

from dataclasses import replace
from decimal import Decimal

import pytest

from sizing.engine.activations import block_bytes, kept_bytes
from sizing.engine.adapters import adapter_parameters
from sizing.engine.allocator import shown_bytes
from sizing.engine.architecture import Architecture, Experts
from sizing.engine.cards import Card, smallest_standard_card
from sizing.engine.cost import checkpoint_bytes, cost_usd, hours_for, spot_waste
from sizing.engine.diffusion import REFERENCES, resident_bytes
from sizing.engine.estimate import Request, default_sharding, estimate
from sizing.engine.inference import generation_parts
from sizing.engine.job import BLOCK_LINEARS, Job, Layout
from sizing.engine.loss import bytes_per_logit, loss_bytes
from sizing.engine.parameters import count_parameters
from sizing.engine.peak import peak_memory
from sizing.engine.sharding import buffer_bytes
from sizing.engine.state import training_state
from sizing.engine.throughput import generation_tokens_per_s, training_flops_per_token, training_tokens_per_s
from sizing.engine.units import GIB
from sizing.engine.verdict import interval, known_gaps, verdict

HAND = Architecture(
    family="llama", layers=8, hidden=1024, heads=16, kv_heads=4, head_dim=64, intermediate=4096, vocab=32_000
)
PARAMETERS = count_parameters(HAND)
LINEARS = 8 * (1024 * (2 * 1024 + 2 * 256) + 3 * 1024 * 4096)
FULL = Job(task="full", seq_len=1000, micro_batch=2, checkpointing="none", loss="plain", optimizer="adamw")
H100 = Card(
    slug="h100-sxm", memory_gb=80, memory_type="HBM3", bandwidth_gb_s=3350, bf16_tflops=989, nvlink_gb_s=900
)  # fmt: skip


def test_parameters_of_the_hand():
    assert PARAMETERS.linears == LINEARS == 121_634_816
    assert PARAMETERS.embedding == PARAMETERS.head == 32_768_000
    assert PARAMETERS.other == 8 * 2 * 1024 + 1024
    assert PARAMETERS.per_token == LINEARS + 32_768_000


@pytest.mark.parametrize(
    ("changes", "weights", "gradients", "optimizer", "step"),
    [
        ({}, 2, 2, 4, 2),
        ({"optimizer": "adamw_fused"}, 2, 2, 4, 0),
        ({"optimizer": "adamw_8bit"}, 2, 2, 2.03, 0),
        ({"optimizer": "adamw_4bit"}, 2, 2, 1.06, 0),
        ({"optimizer": "sgd"}, 2, 2, 2, 2),
        ({"precision": "mixed"}, 4, 4, 8, 4),
        ({"precision": "mixed", "framework": "torchtitan"}, 4, 4, 8, 0),
        ({"framework": "deepspeed"}, 2, 4, 12, 0),
    ],
)
def test_bytes_per_parameter_of_each_profile(changes, weights, gradients, optimizer, step):
    state = training_state(HAND, PARAMETERS, replace(FULL, **changes))
    total = PARAMETERS.total
    assert (state.weights, state.gradients) == (weights * total, gradients * total)
    assert state.optimizer == pytest.approx(optimizer * total)
    assert state.step == step * total


@pytest.mark.parametrize(
    ("sharding", "weights", "gradients", "optimizer"),
    [("ddp", 1, 1, 1), ("zero1", 1, 1, 4), ("zero2", 1, 4, 4), ("zero3", 4, 4, 4), ("fsdp", 4, 4, 4)],
)
def test_what_each_stage_divides(sharding, weights, gradients, optimizer):
    whole = training_state(HAND, PARAMETERS, replace(FULL, framework="deepspeed"))
    layout = Layout(gpu_count=4, sharding=sharding)
    part = training_state(HAND, PARAMETERS, replace(FULL, framework="deepspeed", layout=layout))
    assert whole.weights / part.weights == weights
    assert whole.gradients / part.gradients == gradients
    assert whole.optimizer / part.optimizer == optimizer


def test_activations_of_full_training_are_16h_4q_4k_8i():
    expected = 16 * 1024 + 4 * 1024 + 4 * 256 + 8 * 4096 + 4 * 16  # + log-sum-exp
    assert block_bytes(HAND, FULL) == expected


def test_autocast_keeps_a_copy_for_each_of_q_k_v_gate_and_up():
    assert block_bytes(HAND, replace(FULL, precision="mixed")) == (16 + 10) * 1024 + 4 * 1024 + 4 * 256 + 8 * 4096 + 64


def test_a_frozen_base_keeps_8h_4q_4k_6i_and_its_adapters_inputs():
    job = replace(FULL, task="lora", lora_rank=8, uses_autocast=False)
    frozen = 8 * 1024 + 4 * 1024 + 4 * 256 + 6 * 4096 + 64
    adapters = 4 * (6 * 1024 + 4096) + 4 * 8 * 7
    assert block_bytes(HAND, job) == frozen + adapters
    assert block_bytes(HAND, replace(job, uses_autocast=True)) == frozen + adapters - 2 * (6 * 1024 + 4096)


def test_k_bit_preparation_makes_the_stream_float32():
    job = replace(FULL, task="qlora", quantization="nf4", lora_rank=8)
    base = 8 * 1024 + 8 * 1024 + 8 * 256 + 12 * 4096
    copies = 2 * (5 * 1024 + 1024) + 2 * 4096
    adapters = 4 * (1024 + 1024 + 4096) + 4 * 8 * 7
    assert block_bytes(HAND, job) == base + copies + adapters


def test_eager_attention_keeps_scores():
    eager = block_bytes(HAND, replace(FULL, attention="eager"))
    assert eager - block_bytes(HAND, FULL) == 6 * 16 * 1000 + 4 * (1024 - 256)


@pytest.mark.parametrize(
    ("checkpointing", "expected"),
    [("full", 2 * 1024), ("offload", 2 * 2 * 1024 / 8), ("selective", 1.15 * (4 * 1024 + 2 * 1280 + 2 * 4096))],
)
def test_what_checkpointing_keeps(checkpointing, expected):
    assert kept_bytes(HAND, replace(FULL, checkpointing=checkpointing)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "per_logit"),
    [
        ({"loss": "plain"}, 12),
        ({"loss": "held"}, 14),
        ({"loss": "held", "task": "qlora", "quantization": "nf4"}, 16),
        ({"loss": "chunked"}, 6),
        ({"loss": "chunked", "is_compiled": True}, 2.5),
        ({"loss": "fused"}, 1),
        ({"loss": "plain", "is_compiled": True}, 7),
    ],
)
def test_bytes_per_logit(changes, per_logit):
    job = replace(FULL, **changes)
    assert bytes_per_logit(HAND, job) == per_logit
    assert loss_bytes(HAND, job) == per_logit * 2000 * 32_000


def test_checkpointing_never_shrinks_the_loss_chain():
    kept = peak_memory(HAND, FULL)
    saved = peak_memory(HAND, replace(FULL, checkpointing="full"))
    assert kept.phase == saved.phase == "loss"
    assert kept.parts["loss"] == saved.parts["loss"] == 12 * 2000 * 32_000


def test_the_peak_is_the_worst_phase_and_not_their_sum():
    peak = peak_memory(HAND, FULL)
    edges = 8 * 1024 + 24
    assert peak.parts["gradients"] == 0
    assert peak.total == 6 * PARAMETERS.total + 2000 * (8 * block_bytes(HAND, FULL) + edges) + 12 * 2000 * 32_000
    short = peak_memory(HAND, replace(FULL, seq_len=1, micro_batch=1))
    assert short.phase == "optimizer step"
    assert short.total == 10 * PARAMETERS.total  # 8 bytes of states and one copy by foreach


def test_accumulated_gradients_lie_beside_the_activations():
    once = peak_memory(HAND, FULL).total
    assert peak_memory(HAND, replace(FULL, gradient_accumulation=4)).total - once == 2 * PARAMETERS.total


def test_adapters_have_r_times_both_widths():
    per_layer = (1024 + 1024) + 2 * (1024 + 256) + (1024 + 1024) + 3 * (1024 + 4096)
    assert adapter_parameters(HAND, BLOCK_LINEARS, 8) == 8 * 8 * per_layer
    assert adapter_parameters(HAND, frozenset({"q", "head"}), 8) == 8 * (8 * 2048 + 1024 + 32_000)


def test_buffers_of_each_sharding():
    def buffers(sharding, **changes):
        job = replace(FULL, layout=Layout(gpu_count=4, sharding=sharding), **changes)
        return buffer_bytes(HAND, PARAMETERS, job, training_state(HAND, PARAMETERS, job))

    block = LINEARS / 8
    assert buffers("none") == 0
    assert buffers("ddp") == 2 * PARAMETERS.total
    assert buffers("fsdp") == 2 * 2 * block + 2 * 2 * 32_768_000 + 2 * block
    assert buffers("zero2") == 4 * PARAMETERS.total
    assert buffers("zero3") == 6 * PARAMETERS.total


def test_a_generation_is_weights_cache_and_the_last_logits():
    parts = generation_parts(HAND, PARAMETERS, Job(task="inference", seq_len=1000, batch=3))
    assert parts["weights"] == 2 * PARAMETERS.total
    assert parts["kv_cache"] == 3000 * 2 * 8 * 256 * 2
    assert parts["activations"] == 2 * 3 * 32_000
    split = generation_parts(
        HAND, PARAMETERS, Job(task="inference", layout=Layout(gpu_count=8, sharding="tp", tensor=8))
    )
    assert split["kv_cache"] == 2048 * 2 * 8 * 64 * 2  # four heads on eight ranks: each keeps one


def test_what_tools_show_on_several_gpus():
    alone = shown_bytes(10 * GIB, FULL)
    together = shown_bytes(10 * GIB, replace(FULL, layout=Layout(gpu_count=2, sharding="fsdp")))
    assert together.nvidia_smi - alone.nvidia_smi == GIB
    assert alone.reserved == 10.8 * GIB


def test_the_verdict_reads_the_real_memory_of_the_card():
    assert Card(slug="a10", memory_gb=24).usable_gib == 22.07
    assert Card(slug="h100-sxm", memory_gb=80, memory_type="HBM3").usable_gib == pytest.approx(79.15)
    assert Card(slug="l40s", memory_gb=48, memory_type="GDDR6", has_ecc=True).usable_gib == pytest.approx(44.14)
    assert verdict(needed_gib=21, high_gib=23, usable_gib=22.07) == "tight"
    assert smallest_standard_card(79.5) == 96


def test_known_gaps_are_said_and_widen_the_interval():
    moe = replace(HAND, experts=Experts(count=8, active=2, intermediate=4096))
    assert "mixture of experts" in known_gaps(moe, FULL)[0]
    assert interval(moe, FULL)[1] > interval(HAND, FULL)[1]
    assert interval(HAND, FULL, is_stated=False)[1] > interval(HAND, FULL)[1]
    tensor = replace(FULL, layout=Layout(gpu_count=4, sharding="tp", tensor=4))
    assert "tensor" in known_gaps(HAND, tensor)[0]


def test_cards_that_nobody_measured_need_more_room():
    job = Job(task="inference", framework="vllm", seq_len=100_000, batch=1000)
    need = estimate(Request(architecture=HAND, job=job, gpu_counts=(1,))).per_gpu[0].high_gib
    usual = Card(slug="usual", memory_gb=need * 1.05, memory_type="GDDR6")
    little = replace(usual, slug="little", vendor="AMD")
    fits = estimate(Request(architecture=HAND, job=job, gpu_counts=(1,), cards=(usual, little))).fits
    assert [fit.verdict for fit in fits] == ["fits", "tight"]


def test_default_sharding_follows_task_and_framework():
    assert default_sharding(FULL, 1) == "none"
    assert default_sharding(FULL, 8) == "fsdp"
    assert default_sharding(Job(task="inference"), 8) == "tp"
    assert default_sharding(replace(FULL, framework="deepspeed"), 1) == "zero3"


def test_flops_per_token_are_6n_and_the_causal_half_of_attention():
    assert training_flops_per_token(HAND, PARAMETERS, FULL) == 6 * PARAMETERS.per_token + 6 * 8 * 1024 * 1000
    lora = replace(FULL, task="lora")
    assert training_flops_per_token(HAND, PARAMETERS, lora) == 4 * PARAMETERS.per_token + 4 * 8 * 1024 * 1000


def test_tokens_per_second_are_the_reached_share_of_the_peak():
    job = replace(FULL, framework="torchtune")
    expected = 0.4 * 989e12 / training_flops_per_token(HAND, PARAMETERS, job)
    assert training_tokens_per_s(HAND, PARAMETERS, job, H100) == pytest.approx(expected)
    eight = replace(job, layout=Layout(gpu_count=8, sharding="fsdp"))
    assert training_tokens_per_s(HAND, PARAMETERS, eight, H100) == pytest.approx(8 * expected)
    no_link = replace(H100, nvlink_gb_s=None)
    assert training_tokens_per_s(HAND, PARAMETERS, eight, no_link) == pytest.approx(8 * 0.6 * expected)
    assert training_tokens_per_s(HAND, PARAMETERS, job, replace(H100, bf16_tflops=None)) is None


def test_a_generation_reads_active_weights_and_cache_once_per_token():
    job = Job(task="inference", framework="vllm", seq_len=1000)
    read = 2 * PARAMETERS.per_token + 1000 * 2 * 8 * 256 * 2
    expected = 1 / (0.0016 + read / (0.45 * 3350e9))
    assert generation_tokens_per_s(HAND, PARAMETERS, job, H100) == pytest.approx(expected)


def test_hours_cost_and_the_waste_of_spot():
    assert hours_for(tokens=7_200_000, tokens_per_s=1000) == 2
    assert cost_usd(hours=2, gpu_count=4, price_usd_per_gpu_hour=Decimal("1.25"), waste=0.2) == Decimal("12.50")
    # d 60 s, M 6 h, R 5 min: 7.5 % + 1.4 %
    waste = spot_waste(checkpoint_s=60, interruption_mean_s=21_600, restart_s=300)
    assert waste == pytest.approx(0.0745 + 0.0139, abs=1e-3)
    warned = spot_waste(checkpoint_s=60, interruption_mean_s=21_600, restart_s=300, is_warned=True)
    assert warned == pytest.approx(0.0373 + 0.0139, abs=1e-3)
    assert spot_waste(checkpoint_s=60, interruption_mean_s=60, restart_s=300, instances=4) == 0.95
    assert checkpoint_bytes(trainable_parameters=1e6, is_adapted=True) == 12e6


def test_diffusion_is_references_and_plain_arithmetic():
    assert resident_bytes(b_params=16.9) / GIB == pytest.approx(31.4, abs=0.1)
    assert all(reference.source_url.startswith("https://") for reference in REFERENCES)
