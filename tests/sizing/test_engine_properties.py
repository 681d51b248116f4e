"""What must hold for every job: more work never needs less memory, more shards never need more, parts add up."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.engine.allocator import shown_bytes
from sizing.engine.architecture import Architecture, Experts, LatentAttention
from sizing.engine.job import ATTENTION_LINEARS, BLOCK_LINEARS, Job, Layout
from sizing.engine.parameters import count_parameters
from sizing.engine.peak import peak_memory
from sizing.engine.quantisation import WEIGHT_BYTES, base_bytes
from sizing.engine.typical_shape import typical_architecture
from sizing.engine.verdict import interval


@st.composite
def architectures(draw):
    heads, share, head_dim = draw(st.sampled_from([8, 16, 32])), draw(st.sampled_from([1, 2, 4])), 64
    experts = Experts(count=8, active=2, intermediate=512) if draw(st.booleans()) else None
    latent = LatentAttention(q_rank=256, kv_rank=128, nope_dim=64, rope_dim=32, value_dim=64)
    norm = draw(st.sampled_from(["rms", "gemma", "layer"]))
    window = draw(st.sampled_from([None, 256]))
    layers = draw(st.integers(8, 40))
    return Architecture(
        family="drawn",
        layers=layers,
        hidden=heads * head_dim,
        heads=heads,
        kv_heads=heads // share,
        head_dim=head_dim,
        intermediate=draw(st.integers(256, 8192)),
        vocab=draw(st.integers(1_000, 200_000)),
        is_tied=draw(st.booleans()),
        mlp_matrices=draw(st.sampled_from([2, 3])),
        activation=draw(st.sampled_from(["fused", "gelu_steps"])),
        norm=norm,
        block_norms=draw(st.sampled_from([1, 2, 4])),
        has_qk_norm=norm != "layer" and draw(st.booleans()),
        sliding_window=window,
        sliding_layers=layers // 2 if window else 0,
        experts=experts,
        latent=latent if draw(st.booleans()) else None,
    )


@st.composite
def layouts(draw):
    sharding = draw(st.sampled_from(["none", "ddp", "zero1", "zero2", "zero3", "fsdp", "tp"]))
    count = draw(st.sampled_from([1, 2, 4, 8]))
    return Layout(gpu_count=count, sharding=sharding, tensor=count if sharding == "tp" else 1)


@st.composite
def jobs(draw):
    task = draw(st.sampled_from(["full", "lora", "qlora", "inference"]))
    quantised = draw(st.sampled_from(["nf4", "nf4_dq", "int4_gptq", "int8"]))
    of_task = {"qlora": quantised, "inference": draw(st.sampled_from(["none", quantised]))}
    return Job(
        task=task,
        framework=draw(
            st.sampled_from(["hf_trainer", "torchtune", "torchtitan", "litgpt", "unsloth", "deepspeed", "vllm"])
        ),
        seq_len=draw(st.integers(1, 32_768)),
        micro_batch=draw(st.integers(1, 16)),
        precision=draw(st.sampled_from(["bf16", "mixed"])) if task in ("full", "lora") else "bf16",
        optimizer=draw(st.sampled_from(["adamw", "adamw_fused", "adamw_8bit", "paged_adamw_8bit", "sgd"])),
        fuses_step=draw(st.booleans()),
        checkpointing=draw(st.sampled_from(["none", "selective", "full", "offload"])),
        loss=draw(st.sampled_from(["plain", "held", "chunked", "fused"])),
        attention=draw(st.sampled_from(["fused", "eager"])),
        is_compiled=draw(st.booleans()),
        lora_rank=draw(st.integers(1, 256)),
        lora_targets=draw(st.sampled_from([BLOCK_LINEARS, ATTENTION_LINEARS, frozenset({"q", "v"})])),
        quantization=of_task.get(task, "none"),
        batch=draw(st.integers(1, 64)),
        layout=draw(layouts()),
    )


def needed(arch, job):
    return peak_memory(arch, job).total


@given(arch=architectures(), job=jobs(), factor=st.integers(2, 5))
def test_more_of_anything_never_needs_less(arch, job, factor):
    before = needed(arch, job)
    for name in ("seq_len", "micro_batch", "batch", "lora_rank"):
        more = replace(job, **{name: getattr(job, name) * factor})
        assert needed(arch, more) >= before * (1 - 1e-12), name


@given(arch=architectures(), job=jobs(), extra=st.integers(1, 64))
def test_more_parameters_never_need_less(arch, job, extra):
    before = needed(arch, job)
    assert needed(replace(arch, layers=arch.layers + extra), job) >= before * (1 - 1e-12)
    assert needed(replace(arch, vocab=arch.vocab + extra), job) >= before * (1 - 1e-12)
    assert needed(replace(arch, intermediate=arch.intermediate + extra), job) >= before * (1 - 1e-12)


@given(arch=architectures(), job=jobs())
def test_more_shards_never_need_more(arch, job):
    layouts = (replace(job.layout, gpu_count=2**n) for n in range(7))
    if job.layout.sharding == "tp":
        layouts = (Layout(gpu_count=2**n, sharding="tp", tensor=2**n) for n in range(1, 4))
    sizes = [needed(arch, replace(job, layout=layout)) for layout in layouts]
    assert all(a >= b * (1 - 1e-12) for a, b in pairwise(sizes))


@given(arch=architectures(), kind=st.sampled_from([kind for kind in WEIGHT_BYTES if kind != "none"]))
def test_a_quantised_model_never_weighs_more_than_its_16_bit_form(arch, kind):
    parameters = count_parameters(arch)
    assert base_bytes(parameters, kind) <= base_bytes(parameters, "none") == 2 * parameters.total


@given(arch=architectures(), job=jobs(), kind=st.sampled_from(["int4_gptq", "int4_awq", "int8_gptq", "int8", "fp8"]))
def test_a_quantised_generation_never_needs_more_than_its_16_bit_form(arch, job, kind):
    plain = replace(job, task="inference", quantization="none")
    assert needed(arch, replace(plain, quantization=kind)) <= needed(arch, plain)


@given(arch=architectures(), job=jobs())
def test_the_parts_add_up_and_no_part_is_negative(arch, job):
    peak = peak_memory(arch, job)
    assert peak.total == pytest.approx(sum(peak.parts.values()))
    assert all(size >= 0 for size in peak.parts.values())
    shown = shown_bytes(peak.total, job)
    assert shown.allocated <= shown.reserved <= shown.nvidia_smi
    low, high = interval(arch, job)
    assert low < 1 < high


@given(arch=architectures(), job=jobs())
def test_checkpointing_never_needs_more_than_keeping_all(arch, job):
    kept = needed(arch, replace(job, task="full", precision="bf16", checkpointing="none", is_compiled=False))
    saved = needed(arch, replace(job, task="full", precision="bf16", checkpointing="full", is_compiled=False))
    assert saved <= kept * 1.05


@given(small=st.floats(0.2, 900), factor=st.floats(1.01, 10))
def test_a_typical_model_of_more_parameters_has_more_of_them(small, factor):
    few = count_parameters(typical_architecture(small)).total
    assert few == pytest.approx(small * 1e9, rel=0.02)
    assert count_parameters(typical_architecture(small * factor)).total > few
