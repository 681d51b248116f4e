"""The public entry: a request in, memory per GPU count and a verdict per card out.

>>> llama = Architecture(family="llama", layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128,
...                      intermediate=14336, vocab=128256)
>>> answer = estimate(Request(architecture=llama, job=Job(task="inference", framework="vllm"), gpu_counts=(1,)))
>>> answer.parameters, answer.per_gpu[0].parts["weights"]
(8030261248, 14.958)
"""

from dataclasses import dataclass, replace

from sizing.engine.allocator import shown_bytes
from sizing.engine.architecture import Architecture
from sizing.engine.cards import Card
from sizing.engine.cost import hours_for
from sizing.engine.job import Job, Layout, Sharding
from sizing.engine.parameters import count_parameters
from sizing.engine.peak import peak_memory
from sizing.engine.throughput import generation_tokens_per_s, training_tokens_per_s
from sizing.engine.units import gib
from sizing.engine.verdict import Verdict, interval, known_gaps, verdict

METHOD_VERSION = "2026.11"
LITTLE_MEASURED_SHARE = 1.1  # on cards that hardly any published run used, the upper end is wider by this


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What to estimate. `sharding` None: one GPU alone; more by the task's default. `tokens`: of the whole run."""

    architecture: Architecture
    job: Job
    gpu_counts: tuple[int, ...] = (1, 2, 4, 8)
    sharding: Sharding | None = None
    cards: tuple[Card, ...] = ()
    tokens: int | None = None
    assumptions: tuple[str, ...] = ()
    is_stated: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class PerGpu:
    """Memory of one GPU of `gpu_count`, GiB. `high_gib` is what must be there for the verdict "fits"."""

    gpu_count: int
    allocated_gib: float
    reserved_gib: float
    nvidia_smi_gib: float
    low_gib: float
    high_gib: float
    needed_gib: float
    phase: str
    parts: dict[str, float]
    job: Job


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """One card and count. `headroom_gib` is the card's real memory less what nvidia-smi would show."""

    gpu: str
    gpu_count: int
    verdict: Verdict
    headroom_gib: float
    tokens_per_s: float | None
    hours: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """The answer."""

    parameters: int
    per_gpu: tuple[PerGpu, ...]
    fits: tuple[Fit, ...]
    assumptions: tuple[str, ...]
    method_version: str = METHOD_VERSION


def estimate(request: Request) -> Estimate:
    """Return memory per GPU for each count, and per card the verdict, speed and hours."""
    rows = tuple(per_gpu(request, count) for count in request.gpu_counts)
    fits = tuple(fit(request, card, row) for card in request.cards for row in rows)
    gaps = known_gaps(request.architecture, rows[-1].job if rows else request.job)
    return Estimate(
        parameters=count_parameters(request.architecture).total,
        per_gpu=rows,
        fits=fits,
        assumptions=tuple(dict.fromkeys((*request.assumptions, *request.architecture.notes, *gaps))),
    )


def per_gpu(request: Request, gpu_count: int) -> PerGpu:
    """Return the memory of one of `gpu_count` GPUs."""
    job = replace(request.job, layout=layout_for(request, gpu_count))
    peak = peak_memory(request.architecture, job)
    shown = shown_bytes(peak.total, job)
    low, high = interval(request.architecture, job, is_stated=request.is_stated)
    return PerGpu(
        gpu_count=gpu_count,
        allocated_gib=gib(shown.allocated),
        reserved_gib=gib(shown.reserved),
        nvidia_smi_gib=gib(shown.nvidia_smi),
        low_gib=gib(low * shown.allocated),
        high_gib=gib(high * shown.allocated + shown.outside),
        needed_gib=gib(shown.allocated + shown.outside),
        phase=peak.phase,
        parts={name: gib(size) for name, size in peak.parts.items()},
        job=job,
    )


def layout_for(request: Request, gpu_count: int) -> Layout:
    """Return how the job lies on `gpu_count` GPUs."""
    sharding = request.sharding or default_sharding(request.job, gpu_count)
    return replace(
        request.job.layout,
        gpu_count=gpu_count,
        sharding=sharding,
        tensor=gpu_count if sharding == "tp" else request.job.layout.tensor,
    )


def default_sharding(job: Job, gpu_count: int) -> Sharding:
    """Return the sharding where none is stated: nothing on one GPU, tensor parallel for generation, else full shards."""
    if job.framework == "deepspeed":
        return "zero3"
    if gpu_count == 1:
        return "none"
    return "tp" if job.task == "inference" else "fsdp"


def fit(request: Request, card: Card, row: PerGpu) -> Fit:
    """Return the verdict for one card, with speed and hours where it can run at all."""
    high_gib = row.high_gib * (LITTLE_MEASURED_SHARE if card.is_little_measured else 1.0)
    found = verdict(needed_gib=row.needed_gib, high_gib=high_gib, usable_gib=card.usable_gib)
    speed = None if found == "no" else tokens_per_s(request, card, row)
    hours = hours_for(tokens=request.tokens, tokens_per_s=speed) if request.tokens and speed else None
    return Fit(
        gpu=card.slug,
        gpu_count=row.gpu_count,
        verdict=found,
        headroom_gib=round(card.usable_gib - row.nvidia_smi_gib, 2),
        tokens_per_s=round(speed, 1) if speed else None,
        hours=round(hours, 2) if hours else None,
    )


def tokens_per_s(request: Request, card: Card, row: PerGpu) -> float | None:
    """Return tokens per second of all GPUs together."""
    parameters = count_parameters(request.architecture)
    speed = generation_tokens_per_s if row.job.task == "inference" else training_tokens_per_s
    return speed(request.architecture, parameters, row.job, card)
