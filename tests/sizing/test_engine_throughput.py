"""Speed against published runs: right in the middle, and never off by more than a factor that the page admits."""

import statistics

import pytest

from sizing.engine.cards import Card
from sizing.engine.job import Job, Layout
from sizing.engine.parameters import count_parameters
from sizing.engine.throughput import generation_tokens_per_s, training_tokens_per_s
from sizing.engine.typical_shape import typical_architecture
from sizing.facts import THROUGHPUT, read_rows


def card_of(row):
    return Card(
        slug="a100-sxm-80gb" if row["gpu"].startswith("A100") else "other",
        memory_gb=80,
        bandwidth_gb_s=float(row["mem_bw_gb_s"]),
        bf16_tflops=float(row["peak_tflops_dense_bf16"]),
        nvlink_gb_s=600,
    )


def ratio_of(row, job):
    arch = typical_architecture(float(row["params_b"]))
    speed = training_tokens_per_s if row["phase"] == "train" else generation_tokens_per_s
    per_gpu = job.layout.gpu_count if row["phase"] == "train" else 1
    found: float = speed(arch, count_parameters(arch), job, card_of(row)) or 0.0
    return found / per_gpu / float(row["value"])


def rows_of(**facts):
    rows = read_rows(THROUGHPUT)
    return [row for row in rows if all(row[name] == value for name, value in facts.items()) and float(row["value"])]


def test_full_training_in_16_bits_is_right_in_the_middle():
    rows = [row for row in rows_of(phase="train", method="full", precision="bf16") if "FSDP" in row["parallelism"]]
    ratios = [
        ratio_of(
            row,
            Job(
                task="full",
                framework="torchtitan",
                seq_len=int(row["seq_len"]),
                layout=Layout(gpu_count=int(row["n_gpus"]), sharding="fsdp"),
            ),
        )
        for row in rows
    ]
    assert len(ratios) > 25
    assert statistics.median(ratios) == pytest.approx(1, abs=0.15)
    assert all(0.5 < ratio < 2 for ratio in ratios)


@pytest.mark.parametrize(("notes", "framework"), [("HF transformers", "hf_trainer"), ("SGLang", "vllm")])
def test_generation_one_by_one_is_within_a_factor_of_two(notes, framework):
    rows = [row for row in rows_of(phase="decode_b1", precision="bf16", n_gpus="1") if notes in row["notes"]]
    ratios = [ratio_of(row, Job(task="inference", framework=framework, seq_len=2048)) for row in rows]
    assert ratios
    assert 0.7 < statistics.median(ratios) < 1.4
    assert all(0.5 < ratio < 2 for ratio in ratios)
