"""The calculator's words: names of choices, parts, phases and remedies, what was assumed, and what is wrong."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sizing.engine.request import CHOICES, RequestError

Words = str | Promise

CHOICE_NAMES: dict[str, dict[str, Words]] = {
    "task": {
        "full": _("Full training"),
        "lora": _("LoRA fine-tuning"),
        "qlora": _("QLoRA fine-tuning"),
        "inference": _("Inference"),
    },
    "framework": {
        "hf_trainer": "HF Trainer",
        "llama_factory": "LLaMA-Factory",
        "torchtune": "torchtune",
        "torchtitan": "torchtitan",
        "litgpt": "LitGPT",
        "unsloth": "Unsloth",
        "deepspeed": "DeepSpeed",
        "vllm": "vLLM",
    },
    "precision": {"bf16": "BF16", "fp16": "FP16", "fp32": "FP32", "mixed": _("FP32 weights with autocast")},
    "optimizer": {
        "adamw": "AdamW",
        "adamw_fused": _("AdamW, fused"),
        "adamw_8bit": _("AdamW, 8 bits"),
        "adamw_4bit": _("AdamW, 4 bits"),
        "paged_adamw": _("AdamW, paged"),
        "paged_adamw_8bit": _("AdamW, paged, 8 bits"),
        "adafactor": "Adafactor",
        "lion": "Lion",
        "sgd": "SGD",
    },
    "checkpointing": {
        "none": _("None"),
        "selective": _("Selective"),
        "full": _("Every block"),
        "offload": _("Every block, kept in host memory"),
    },
    "loss": {
        "plain": _("Plain"),
        "held": _("Plain, logits kept"),
        "chunked": _("In chunks"),
        "fused": _("Fused with the head"),
    },
    "quantization": {
        "none": _("None, 16 bits"),
        "nf4": "NF4",
        "nf4_dq": _("NF4, double"),
        "int4_gptq": _("GPTQ, 4 bits"),
        "int4_awq": _("AWQ, 4 bits"),
        "int8_gptq": _("GPTQ, 8 bits"),
        "int8": "INT8",
        "fp8": "FP8",
    },
    "sharding": {
        "none": _("None"),
        "ddp": _("DDP, a copy on each"),
        "zero1": "ZeRO-1",
        "zero2": "ZeRO-2",
        "zero3": "ZeRO-3",
        "fsdp": "FSDP",
        "tp": _("Tensor parallel"),
    },
}
QUESTIONS = {
    "model": _("Model"),
    "params_b": _("or parameters, billions"),
    "config": _("config.json"),
    "task": _("Task"),
    "seq_len": _("Tokens per sequence"),
    "batch": _("Sequences at once"),
    "tokens": _("Tokens in all"),
    "gpu_counts": _("Numbers of GPUs"),
    "framework": _("Framework"),
    "precision": _("Precision"),
    "optimizer": _("Optimiser"),
    "checkpointing": _("Checkpointing"),
    "loss": _("Loss"),
    "quantization": _("Quantised base"),
    "sharding": _("Sharding"),
    "gradient_accumulation": _("Accumulated batches"),
    "lora_rank": _("LoRA rank"),
    "interruption_hours": _("Hours between interruptions"),
    "save_seconds": _("Seconds to save"),
    "restart_seconds": _("Seconds to restart"),
}
PARTS: dict[str, Words] = {
    "weights": _("Weights"),
    "optimizer": _("Optimiser states"),
    "gradients": _("Gradients"),
    "buffers": _("Buffers of sharding"),
    "kv_cache": _("Key and value cache"),
    "activations": _("Activations"),
    "loss": _("Loss: the logits of all tokens"),
    "step": _("Temporary copy in the optimiser step"),
    "allocator": _("Held by the allocator"),
    "context": _("CUDA context and libraries"),
}
PHASES: dict[str, Words] = {
    "loss": _("at the loss, when the backward pass begins"),
    "forward end": _("at the end of the forward pass"),
    "recompute": _("while a block is computed again"),
    "backward end": _("at the end of the backward pass"),
    "optimizer step": _("in the optimiser step"),
    "generation": _("when the cache is full"),
}
REMEDIES: dict[str, Words] = {
    "as_asked": _("As asked for"),
    "checkpointing": _("Checkpoint every block"),
    "smaller_batch": _("Half the batch"),
    "optimizer_8bit": _("AdamW in 8 bits"),
    "fused_loss": _("A loss fused with the head"),
    "shorter_sequence": _("Sequences half as long"),
    "lora": _("LoRA instead of all weights"),
    "qlora": _("QLoRA on a 4-bit base"),
    "fp8": _("Weights in FP8"),
    "int4": _("Weights in 4 bits"),
    "full_sharding": _("Shard weights, gradients and states"),
    "more_gpus": _("Twice the GPUs, sharded"),
}
_CONFIG_TROUBLE: dict[str, Words] = {
    "too_large": _("The config.json is larger than 256 KB."),
    "not_json": _("This is not JSON. Give the content of a config.json as it stands."),
    "not_an_object": _("A config.json is one JSON object; this is something else."),
    "too_long": _("What describes the model is too long for an address."),
}
_NOTES: tuple[tuple[str, Words], ...] = (
    ("only text_config is counted", _("Only the language part of the model is counted, without image or sound.")),
    ("model_type ", _("The family of the model is not known here: it is taken as Llama-shaped.")),
    ("only the number of parameters", _("The shape of a typical Llama-like model of that size is assumed.")),
    ("the sequence length of the training run", _("The length of the sequences is assumed: the interval is wider.")),
    ("seq_len exceeds", _("The sequences are longer than the model was made for.")),
    ("vLLM fills 90 %", _("vLLM fills nine tenths of the card with its cache; what is shown here is what it needs.")),
    ("a paged optimiser", _("A paged optimiser moves its states to host memory when room is short.")),
    ("tensor and pipeline parallel", _("Few have measured tensor parallel training: the interval is wider.")),
    ("training a mixture of experts", _("Few have measured the training of experts: the interval is wider.")),
    ("the model family is not one", _("No published run of this model family was found: the interval is wider.")),
)
_SHARDED = "sharding on several GPUs"


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """A question that was left open and what was taken for it; or, without a question, a sentence."""

    question: Words
    answer: Words


def choices_of(name: str) -> list[tuple[str, Words]]:
    """Return the choices of a question, in the engine's order."""
    return [(word, CHOICE_NAMES[name].get(word, word)) for word in CHOICES[name]]


def assumptions_of(said: Iterable[str]) -> list[Assumption]:
    """Return what the engine assumed, in the reader's language."""
    return [_assumption(text) for text in said]


def _assumption(text: str) -> Assumption:
    name, _colon, value = text.partition(": ")
    if name == _SHARDED:
        return Assumption(question=_("Sharding on several GPUs"), answer=CHOICE_NAMES["sharding"].get(value, value))
    if name in QUESTIONS:
        return Assumption(question=QUESTIONS[name], answer=CHOICE_NAMES.get(name, {}).get(value, value))
    note = next((words for start, words in _NOTES if text.startswith(start)), text)
    return Assumption(question="", answer=note)


def config_trouble(code: str) -> Words:
    """Return what is wrong with a config that cannot be read."""
    return _CONFIG_TROUBLE[code]


def refusal(problem: RequestError, *, values: Mapping[str, object]) -> str:
    """Return what the engine refused, in the reader's language."""
    field = problem.field.removeprefix("config.")
    if problem.field.startswith("config."):
        return _config_refusal(field, problem.message)
    if problem.code == "unknown_model":
        return gettext(
            "“%(name)s” is not among the models known here. Paste its config.json, or give its parameters."
        ) % {"name": str(values.get("model", ""))[:60]}
    if problem.code == "too_large":
        return gettext("The config.json describes more parameters than any model has.")
    contradictions = {
        "framework": gettext("vLLM generates text, it does not train. Choose another framework."),
        "quantization": gettext("This task and this base exclude each other: QLoRA needs a quantised base, full training and LoRA one of 16 bits."),
    }  # fmt: skip
    return contradictions.get(field) or gettext("This cannot be used: %(field)s.") % {"field": field}


def _config_refusal(field: str, message: str) -> str:
    between = re.fullmatch(r"must lie between (\d+) and (\d+)", message)
    if message == "is missing":
        return gettext("The config.json has no %(field)s.") % {"field": field}
    if between:
        return gettext("In the config.json %(field)s must lie between %(low)s and %(high)s.") % {
            "field": field,
            "low": between[1],
            "high": between[2],
        }
    if message == "must be a whole number":
        return gettext("In the config.json %(field)s must be a whole number.") % {"field": field}
    return gettext("In the config.json %(field)s cannot be right: it contradicts another field, or is of the wrong kind.") % {"field": field}  # fmt: skip
