"""Reads a request's fields strictly: the one door of the API and of the command line.

>>> read_request({"params_b": 7, "task": "sing"}, presets={})
Traceback (most recent call last):
    ...
sizing.engine.request.RequestError: task: must be one of full, lora, qlora, inference
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from sizing.engine.architecture import Architecture
from sizing.engine.config_reader import ConfigError, read_config
from sizing.engine.estimate import Request, default_sharding
from sizing.engine.job import (
    BLOCK_LINEARS,
    Checkpointing,
    Framework,
    Job,
    Loss,
    Optimizer,
    Precision,
    Quantization,
    Sharding,
    Target,
    Task,
)
from sizing.engine.parameters import count_parameters
from sizing.engine.presets import Preset
from sizing.engine.profiles import PROFILES, Profile
from sizing.engine.typical_shape import typical_architecture

MODEL_FIELDS = ("model", "config", "params_b")
CHOICES: dict[str, tuple[str, ...]] = {
    "task": get_args(Task),
    "precision": get_args(Precision),
    "optimizer": get_args(Optimizer),
    "checkpointing": get_args(Checkpointing),
    "framework": get_args(Framework),
    "quantization": get_args(Quantization),
    "sharding": get_args(Sharding),
    "loss": get_args(Loss),
}
# Whole numbers with the largest value that anybody could mean.
LIMITS: dict[str, int] = {
    "seq_len": 16_777_216,
    "micro_batch": 65_536,
    "gradient_accumulation": 65_536,
    "lora_rank": 8_192,
    "kv_cache_tokens": 10**12,
    "batch": 1_000_000,
    "tokens": 10**18,
}
MOST_COUNTS, MOST_GPUS, MOST_B_PARAMS, MOST_PARAMETERS = 16, 16_384, 100_000, 10**14
FIELDS = (*MODEL_FIELDS, *CHOICES, *LIMITS, "gpu_counts", "lora_targets", "is_compiled")


class RequestError(ValueError):
    """A field is wrong. `code` is short and stable, for programs."""

    def __init__(self, field: str, code: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field, self.code, self.message = field, code, message


@dataclass(frozen=True, kw_only=True)
class Model:
    """The model of a request and what had to be assumed about it."""

    architecture: Architecture
    assumptions: tuple[str, ...] = ()


def read_request(fields: Mapping[str, Any], *, presets: Mapping[str, Preset]) -> Request:
    """Return the request, defaults filled in and said. Raises RequestError that names the field at fault."""
    for name in fields:
        if name not in FIELDS:
            printable = str(name).encode("ascii", "backslashreplace").decode()[:100]
            raise RequestError(printable, "unknown_field", "there is no field of this name")
    values = {name: value for name, value in fields.items() if value is not None}
    model = read_model(values, presets)
    said: list[str] = list(model.assumptions)
    task: Task = read_choice(values, "task", "full", said)
    framework: Framework = read_choice(values, "framework", "vllm" if task == "inference" else "hf_trainer", said)
    if framework == "vllm" and task != "inference":
        raise RequestError("framework", "contradicts", "vllm generates; it does not train")
    job = read_job(values, task, framework, said)
    counts = read_counts(values, said)
    sharding: Sharding | None = read_choice(values, "sharding", None, said)
    if sharding is None:
        said.append(f"sharding on several GPUs: {default_sharding(job, 2)}")
    request = Request(
        architecture=model.architecture,
        job=job,
        gpu_counts=counts,
        sharding=sharding,
        tokens=read_number(values, "tokens", None, said),
        is_stated="seq_len" in values or task == "inference",
    )
    return replace(request, assumptions=(*said, *warnings_of(request)))


def read_model(values: Mapping[str, Any], presets: Mapping[str, Preset]) -> Model:
    """Return the model, given as exactly one of a preset's name, a config.json or a number of parameters."""
    given = [name for name in MODEL_FIELDS if name in values]
    if not given:
        raise RequestError("model", "required", "give one of model, config and params_b")
    if len(given) > 1:
        raise RequestError(given[1], "contradicts", f"give one of model, config and params_b, not {given[0]} as well")
    readers: dict[str, Callable[[Any], Model]] = {
        "model": lambda value: preset_model(value, presets),
        "config": config_model,
        "params_b": sized_model,
    }
    return readers[given[0]](values[given[0]])


def preset_model(value: Any, presets: Mapping[str, Preset]) -> Model:
    """Return a known model by its name here or its Hugging Face id."""
    if not isinstance(value, str) or len(value) > 200:
        raise RequestError("model", "invalid", "must be the name of a known model")
    wanted = value.lower()
    for preset in presets.values():
        if wanted in (preset.name, preset.hf_id.lower()):
            return Model(architecture=preset.architecture)
    raise RequestError("model", "unknown_model", f"{value!r} is not known here; give its config.json as config")


def config_model(value: Any) -> Model:
    """Return the model of a config.json."""
    if not isinstance(value, Mapping):
        raise RequestError("config", "invalid", "must be a JSON object: the content of a config.json")
    try:
        architecture = read_config(value)
    except ConfigError as problem:
        field = "config" if problem.field == "config" else f"config.{problem.field}"
        raise RequestError(field, "invalid", problem.message) from problem
    if count_parameters(architecture).total > MOST_PARAMETERS:
        raise RequestError("config", "too_large", "describes more than 100,000 billion parameters")
    return Model(architecture=architecture)


def sized_model(value: Any) -> Model:
    """Return a typical model of so many billion parameters."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise RequestError("params_b", "invalid", "must be a number: billions of parameters")
    if not 0.001 <= value <= MOST_B_PARAMS:
        raise RequestError("params_b", "out_of_range", f"must lie between 0.001 and {MOST_B_PARAMS:,}")
    return Model(architecture=typical_architecture(float(value)))


def read_job(values: Mapping[str, Any], task: Task, framework: Framework, said: list[str]) -> Job:
    """Return the job; what is left out takes the framework's or the task's default."""
    profile = PROFILES[framework]
    is_training = task != "inference"
    used = said if is_training else []  # a default that plays no part is not worth a line
    for_generation = [] if is_training else said
    return Job(
        task=task,
        framework=framework,
        seq_len=read_number(values, "seq_len", 2048, said),
        micro_batch=read_number(values, "micro_batch", 1, used),
        gradient_accumulation=read_number(values, "gradient_accumulation", profile.default_accumulation, used),
        precision=read_choice(values, "precision", default_precision(task, profile), said),
        optimizer=read_choice(values, "optimizer", profile.default_optimizer, used),
        checkpointing=read_choice(values, "checkpointing", profile.default_checkpointing, used),
        loss=read_choice(values, "loss", profile.default_loss, used),
        is_compiled=read_flag(values, "is_compiled"),
        lora_rank=read_number(
            values, "lora_rank", profile.default_lora_rank, said if task in ("lora", "qlora") else []
        ),
        lora_targets=read_targets(values),
        quantization=read_quantization(values, task, said),
        batch=read_number(values, "batch", 1, for_generation),
        kv_cache_tokens=read_number(values, "kv_cache_tokens", None, []),
    )


def default_precision(task: Task, profile: Profile) -> Precision:
    """Only full training follows the framework's own habit; all else runs in bfloat16."""
    return profile.default_precision if task == "full" else "bf16"


def read_choice(values: Mapping[str, Any], name: str, default: Any, said: list[str]) -> Any:
    """Return one of a field's words, or its default, which is then said."""
    value = values.get(name)
    if value is None:
        if default is not None:
            said.append(f"{name}: {default}")
        return default
    if not isinstance(value, str) or value not in CHOICES[name]:
        raise RequestError(name, "invalid_choice", f"must be one of {', '.join(CHOICES[name])}")
    return value


def read_number(values: Mapping[str, Any], name: str, default: Any, said: list[str]) -> Any:
    """Return a whole number of at least 1 (a cache may be empty), or its default, which is then said."""
    value = values.get(name)
    if value is None:
        if default is not None:
            said.append(f"{name}: {default}")
        return default
    least = 0 if name == "kv_cache_tokens" else 1
    if isinstance(value, bool) or not isinstance(value, int):
        raise RequestError(name, "invalid", "must be a whole number")
    if not least <= value <= LIMITS[name]:
        raise RequestError(name, "out_of_range", f"must lie between {least} and {LIMITS[name]:,}")
    return value


def read_flag(values: Mapping[str, Any], name: str) -> bool:
    """Return a yes or no; left out means no."""
    value = values.get(name, False)
    if not isinstance(value, bool):
        raise RequestError(name, "invalid", "must be true or false")
    return value


def read_targets(values: Mapping[str, Any]) -> frozenset[Target]:
    """Return the adapted matrices; left out: all linear layers of the blocks."""
    value = values.get("lora_targets")
    if value is None:
        return BLOCK_LINEARS
    known = get_args(Target)
    if not isinstance(value, list) or not value or not all(isinstance(t, str) and t in known for t in value):
        raise RequestError("lora_targets", "invalid_choice", f"must be a list of {', '.join(known)}")
    return frozenset(value)


def read_counts(values: Mapping[str, Any], said: list[str]) -> tuple[int, ...]:
    """Return the GPU counts to answer for, each once, in the order given."""
    value = values.get("gpu_counts")
    if value is None:
        said.append("gpu_counts: 1, 2, 4, 8")
        return (1, 2, 4, 8)
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_COUNTS:
        raise RequestError("gpu_counts", "invalid", f"must be a list of 1 to {MOST_COUNTS} whole numbers")
    for count in value:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_GPUS:
            raise RequestError("gpu_counts", "out_of_range", f"each must be a whole number from 1 to {MOST_GPUS:,}")
    return tuple(dict.fromkeys(value))


def read_quantization(values: Mapping[str, Any], task: Task, said: list[str]) -> Quantization:
    """Return the quantisation of the base; a contradiction with the task is refused."""
    default = "nf4" if task == "qlora" else "none"
    if task == "inference":
        default = config_quantization(values.get("config"))
    quantization: Quantization = read_choice(values, "quantization", default, said)
    if task in ("full", "lora") and quantization != "none":
        raise RequestError("quantization", "contradicts", f"task {task} trains on a 16-bit base: use qlora or none")
    if task == "qlora" and quantization == "none":
        raise RequestError(
            "quantization", "contradicts", "task qlora needs a quantised base: use lora or another value"
        )
    return quantization


def config_quantization(config: Any) -> Quantization:
    """Return the quantisation that a config.json says its weights have."""
    stated = config.get("quantization_config") if isinstance(config, Mapping) else None
    if not isinstance(stated, Mapping):
        return "none"
    methods: dict[Any, Quantization] = {
        "fp8": "fp8",
        "awq": "int4_awq",
        "gptq": "int8_gptq" if stated.get("bits") == 8 else "int4_gptq",
        "bitsandbytes": "int8" if stated.get("load_in_8bit") is True else "nf4",
    }
    method = stated.get("quant_method")
    return methods.get(method, "none") if isinstance(method, str) else "none"


def warnings_of(request: Request) -> list[str]:
    """Return what a reader should know beyond defaults."""
    job, arch = request.job, request.architecture
    found = []
    if not request.is_stated:
        found.append("the sequence length of the training run is assumed: the interval is wider")
    if arch.max_positions and job.seq_len > arch.max_positions:
        found.append(f"seq_len exceeds the {arch.max_positions:,} positions that the model was made for")
    if job.framework == "vllm" and job.task == "inference":
        found.append("vLLM fills 90 % of the card with its cache: nvidia-smi shows that, not this need")
    if job.optimizer.startswith("paged"):
        found.append("a paged optimiser moves its states to host memory under pressure: a quarter byte is counted")
    return found
