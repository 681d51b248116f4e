"""From a published row to the engine's inputs: the one place where its words are read.

A row states facts that a user could state: model shape, task, framework, sequence, batch, precision, method,
layout. What it leaves out takes the defaults below. Ids and names never reach an equation; a page's address only tells
which framework's own page it is, where the row does not say so itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sizing.engine.architecture import Architecture
from sizing.engine.config_reader import ConfigError, read_config
from sizing.engine.job import (
    ATTENTION_LINEARS,
    BLOCK_LINEARS,
    Checkpointing,
    Framework,
    Job,
    Layout,
    Loss,
    Optimizer,
    Precision,
    Quantization,
    Sharding,
    Target,
    Task,
)
from sizing.engine.parameters import count_parameters
from sizing.engine.profiles import PROFILES
from sizing.facts import presets_by_hf_id

Row = Mapping[str, str]
Measure = Literal["allocated", "reserved", "nvidia_smi"]
Scope = Literal["peak", "weights", "kv_cache"]

UNSTATED_SEQ_LEN = 512  # unpacked instruction sets: the longest of a batch, not the limit
UNSTATED_GENERATION = 256
UNSTATED_RANK = 8
PAGES_OF: tuple[tuple[str, Framework], ...] = (
    ("torchtune", "torchtune"),
    ("torchtitan", "torchtitan"),
    ("litgpt", "litgpt"),
    ("unsloth", "unsloth"),
    ("llama-factory", "llama_factory"),
    ("vllm", "vllm"),
)
FAMILY_WORDS: tuple[tuple[str, str], ...] = (
    ("qwen3", "qwen3"), ("qwen2", "qwen2"), ("qwen-", "qwen"), ("gemma-3", "gemma3_text"), ("gemma-2-", "gemma2"),
    ("gemma", "gemma"), ("phi-3", "phi3"), ("phi-4", "phi3"), ("phi", "phi"), ("falcon", "falcon"),
    ("pythia", "gpt_neox"), ("neox", "gpt_neox"), ("stablelm", "gpt_neox"), ("gpt2", "gpt2"), ("vit", "vit"),
    ("glm-4", "glm4"), ("chatglm", "chatglm"), ("mixtral", "mixtral"), ("mistral", "mistral"),
)  # fmt: skip


class NotAnswerable(ValueError):
    """The row asks for something the engine does not claim to know."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a row asks: the model, the job, which part of memory, and with which tool it was read.

    `is_stated`: whether sequence length and checkpointing are the row's own.
    """

    architecture: Architecture
    job: Job
    scope: Scope
    measure: Measure
    is_stated: bool


def question_of(row: Row) -> Question:
    """Return the question a row asks. Raises NotAnswerable with the reason."""
    task = task_of(row)
    framework = framework_of(row, task)
    return Question(
        architecture=architecture_of(row),
        job=job_of(row, task, framework),
        scope={"weights": "weights", "kv_cache": "kv_cache"}.get(row["task"], "peak"),  # type: ignore[arg-type]
        measure=measure_of(row),
        is_stated=bool(row["seq_len"] and row["activation_checkpointing"]),
    )


def task_of(row: Row) -> Task:
    """Return the task."""
    tasks: dict[str, Task] = {
        "full": "full", "lora": "lora", "lora_emb": "lora", "qlora": "qlora",
        "inference": "inference", "weights": "inference", "kv_cache": "inference",
    }  # fmt: skip
    if row["task"] not in tasks:
        raise NotAnswerable(f"no equation for the task {row['task']}")
    return tasks[row["task"]]


def architecture_of(row: Row) -> Architecture:
    """Return the model's shape: that of a known Hugging Face id, else the row's own columns."""
    preset = presets_by_hf_id().get(row["hf_id"].lower())
    if preset:
        return preset.architecture
    try:
        arch = read_config(config_of(row))
    except (ConfigError, ValueError) as problem:
        raise NotAnswerable(f"the model's shape is not stated: {problem}") from problem
    tied = replace(arch, is_tied=True)
    stated = float(row["params_b"] or 0) * 1e9
    untied = replace(arch, is_tied=False)
    return min((untied, tied), key=lambda one: abs(count_parameters(one).total - stated))


def config_of(row: Row) -> dict[str, object]:
    """Return the row's architecture columns under the names of a config.json."""
    name = f"{row['hf_id']} {row['model_name']}".lower()
    family = next((family for word, family in FAMILY_WORDS if word in name), "llama")
    columns = {
        "hidden_size": "hidden", "num_hidden_layers": "layers", "num_attention_heads": "heads",
        "num_key_value_heads": "kv_heads", "intermediate_size": "intermediate", "vocab_size": "vocab",
    }  # fmt: skip
    config: dict[str, object] = {field: int(row[column]) for field, column in columns.items() if row[column]}
    if family == "vit":
        config.setdefault("vocab_size", 1)
    if family == "qwen":
        config["intermediate_size"] = 2 * int(row["intermediate"])
    if family in ("qwen3", "glm4"):
        config["head_dim"] = 128
    return {"model_type": family, **config}


def framework_of(row: Row, task: Task) -> Framework:
    """Return the framework: what the row says, else whose page it is, else what its precision gives away."""
    if row.get("framework", "") in PROFILES:
        return row["framework"]  # type: ignore[return-value]
    stated = " ".join(row[c] for c in ("notes", "attention_impl", "activation_checkpointing", "parallelism")).lower()
    named = named_framework(stated)
    if named:
        return named
    if "deepspeed" in stated and task == "full":
        return "deepspeed"
    return named_framework(row["source_url"].lower()) or framework_by_precision(row)


def named_framework(text: str) -> Framework | None:
    """Return the framework that a text names."""
    return next((framework for word, framework in PAGES_OF if word in text), None)


def framework_by_precision(row: Row) -> Framework:
    """Return the framework whose habits a row's precision shows: adapters and states in bfloat16, or FSDP's mix."""
    precision = row["precision"].lower()
    if "fsdp mixed precision" in precision:
        return "torchtitan"
    if "bf16 pure" in precision and "fp32 adapters" not in precision:
        return "torchtune" if "active" in row["what_was_measured"] else "litgpt"
    return "hf_trainer"


def job_of(row: Row, task: Task, framework: Framework) -> Job:
    """Return the job with the row's facts; what it leaves out takes the framework's defaults."""
    layout = layout_of(row, task)
    is_generation = task == "inference"
    seq_len = seq_len_of(row, task)
    micro_batch = int(row["micro_batch"] or 1)
    if layout.pipeline > 1 and not is_generation:
        micro_batch = max(1, micro_batch // layout.pipeline)
    rank = re.search(r"r=(\d+)", row["trainable"])
    optimizer = row["optimizer"].lower()
    return Job(
        task=task,
        framework=framework,
        seq_len=seq_len,
        micro_batch=micro_batch,
        gradient_accumulation=int(row["grad_accum"]) if row["grad_accum"] else None,
        precision=precision_of(row, task),
        optimizer=optimizer_of(optimizer, framework),
        fuses_step="fused in backward" in optimizer,
        checkpointing=checkpointing_of(row, framework),
        loss=loss_of(row, framework),
        is_compiled=is_compiled(row),
        lora_rank=int(rank[1]) if rank else UNSTATED_RANK,
        lora_targets=targets_of(row["trainable"]),
        trains_embeddings=row["task"] == "lora_emb",
        uses_autocast=False if "fp32 adapters" in row["precision"] else None,
        quantization=quantization_of(row, task),
        batch=micro_batch if is_generation else 1,
        kv_bytes=1.0 if "int8 kv" in row["precision"].lower() or "fp8 kv" in row["precision"].lower() else 2.0,
        prefill_logits="all" if is_prefill_heavy(row) else "last",
        layout=layout,
    )


def seq_len_of(row: Row, task: Task) -> int:
    """Return the sequence in tokens. A stated limit on unpacked samples is halved: few of them reach it."""
    if row["seq_len"]:
        return int(row["seq_len"])
    if task == "inference":
        whole = "cache preallocated" in row["notes"].lower()
        return (architecture_of(row).max_positions or UNSTATED_GENERATION) if whole else UNSTATED_GENERATION
    packed = re.search(r"seq (\d+) pack", row["notes"].lower())
    limit = re.search(r"max_length (\d+)", row["notes"].lower())
    return int(packed[1]) if packed else int(limit[1]) // 2 if limit else UNSTATED_SEQ_LEN


def layout_of(row: Row, task: Task) -> Layout:
    """Return how the job lies on its GPUs."""
    text = row["parallelism"].lower()
    count = int(row["n_gpus"] or 1)
    degrees = {word: int(n) for word, n in re.findall(r"\b(tp|pp|cp) ?(\d+)", text)}
    stage = re.search(r"zero-?(\d)", text)
    sharding: Sharding = "none"
    if stage:
        sharding = {"1": "zero1", "2": "zero2", "3": "zero3"}[stage[1]]  # type: ignore[assignment]
    elif "deepspeed" in text:
        sharding = "zero3"
    elif "fsdp" in text or (degrees and task != "inference"):
        sharding = "fsdp"
    elif "ddp" in text:
        sharding = "ddp"
    elif "tp" in degrees:
        sharding = "tp"
    return Layout(
        gpu_count=count,
        sharding=sharding,
        tensor=degrees.get("tp", 1),
        pipeline=count if "layer split" in text else degrees.get("pp", 1),
        context=degrees.get("cp", 1),
        is_offloaded="cpu offload" in text or "cpu offload" in row["optimizer"].lower(),
    )


def precision_of(row: Row, task: Task) -> Precision:
    """Return the precision of weights and arithmetic."""
    text = row["precision"].lower()
    if task == "full" and ("fp32 params" in text or "amp" in text.split()):
        return "mixed"
    if "mixed" in text:
        return "mixed"
    return "fp32" if text.startswith("fp32") else "bf16"


def optimizer_of(text: str, framework: Framework) -> Optimizer:
    """Return the optimiser."""
    is_paged = "paged" in text
    if re.search(r"8-?bit", text):
        return "paged_adamw_8bit" if is_paged else "adamw_8bit"
    if re.search(r"4-?bit", text):
        return "adamw_4bit"
    if is_paged:
        return "paged_adamw"
    if "adafactor" in text:
        return "adafactor"
    return "adamw_fused" if re.search(r"fused(?! in backward)", text) else PROFILES[framework].default_optimizer


def checkpointing_of(row: Row, framework: Framework) -> Checkpointing:
    """Return the activation checkpointing; unstated: the framework's default."""
    text = row["activation_checkpointing"].lower()
    if "offload" in text:
        return "offload"
    for kind in ("none", "selective", "full"):
        if text.startswith(kind):
            return kind
    return PROFILES[framework].default_checkpointing


def loss_of(row: Row, framework: Framework) -> Loss:
    """Return how the loss is computed."""
    text = row["notes"].lower()
    if "liger" in text and "no liger" not in text:
        return "fused"
    if "logits not chunked" in text:
        return "plain"
    if "chunked" in text:
        return "chunked"
    return PROFILES[framework].default_loss


def is_compiled(row: Row) -> bool:
    """Whether torch.compile is on; a cumulative table keeps what its earlier lines switched on."""
    text = row["notes"].lower()
    return "compile" in text or ("cumulative" in text and not re.search("eager|unpacked", text))


def targets_of(text: str) -> frozenset[Target]:
    """Return the adapted matrices: "q,v", "q,k,v,o", "q,v,o + MLP", "all linear + output"; unstated: all.

    >>> sorted(targets_of("lora r=8 q,v"))
    ['q', 'v']
    """
    words = set(re.findall(r"[a-z]+", re.sub(r"r=\d+", "", text.lower())))
    targets: set[Target] = {t for t in ATTENTION_LINEARS if t in words}
    if "mlp" in words:
        targets |= {"gate", "up", "down"}
    if not targets or ({"all", "linear"} <= words and "embedding" not in words):
        targets |= BLOCK_LINEARS
    if words & {"head", "output"} and "embedding" not in words:
        targets.add("head")
    return frozenset(targets)


def quantization_of(row: Row, task: Task) -> Quantization:
    """Return how the base is quantised."""
    text = f"{row['trainable']} {row['precision']}".lower() if task == "qlora" else row["precision"].lower()
    if task not in ("qlora", "inference"):
        return "none"
    text = text.replace("int8 kv", "")
    if "gptq" in text:
        return "int8_gptq" if "int8" in text else "int4_gptq"
    for word, kind in (("awq", "int4_awq"), ("fp8", "fp8"), ("int8", "int8")):
        if word in text:
            return kind  # type: ignore[return-value]
    if "nf4" in text or "4-bit" in text or task == "qlora":
        return "nf4_dq" if "dq" in text or "double" in text else "nf4"
    return "none"


def is_prefill_heavy(row: Row) -> bool:
    """Whether a long prompt is read and the logits of all its positions are held."""
    text = row["notes"].lower()
    return "logits for all positions" in text or "sequence length sweep" in text


def measure_of(row: Row) -> Measure:
    """Return which tool's figure the row gives; an unnamed tool reads as nvidia-smi."""
    text = row["what_was_measured"].lower()
    if "reserved" in text:
        return "reserved"
    return "allocated" if re.search(r"alloc|active|weights|kv pool", text) else "nvidia_smi"
