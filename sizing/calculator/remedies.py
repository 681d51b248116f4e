"""What would make it fit: one change at a time, each with the memory that is left, the cards that hold it, the cost.

Pure. Each remedy is the same request with other fields, estimated anew; nothing is guessed from a percentage.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sizing.calculator.answer import Answer
from sizing.engine.estimate import Estimate, PerGpu
from sizing.engine.job import Job
from sizing.engine.request import MOST_GPUS

LEAST_SAVED = 0.01  # a remedy that saves less than this share is not one
SMALL_OPTIMIZERS = ("adamw_8bit", "adamw_4bit", "paged_adamw_8bit", "adafactor", "sgd")
SHORTEST_SEQUENCE = 512
FULL_SHARDS = ("fsdp", "zero3", "tp")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change: its name, the fields of the request that differ (None: left out), and on how many GPUs it is run."""

    name: str
    fields: Mapping[str, Any]
    gpu_count: int


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What a change does to one GPU: GiB as nvidia-smi shows them, and how many models of GPUs it fits on then.

    `cheapest_slug` and `cost_usd`: the job for the least money on one of them; None where no price is known.
    """

    change: Change
    total_gib: Decimal
    saved_gib: Decimal
    cards: int
    cheapest_slug: str | None
    cost_usd: Decimal | None


# Answers the request's fields with those of a change: the estimate, and the answer with prices.
Estimator = Callable[[Mapping[str, Any]], tuple[Estimate, Answer]]


def remedies_for(
    fields: Mapping[str, Any], base: Estimate, *, largest_gib: float, estimator: Estimator
) -> tuple[Remedy, ...]:
    """Return what was asked for as it is, then each change that saves memory, the largest saving first."""
    row = base_row(base.per_gpu, largest_gib=largest_gib)
    found = [_remedy(change, fields, row, estimator) for change in changes(row.job, row.gpu_count)]
    as_asked = _remedy(Change(name="as_asked", fields={}, gpu_count=row.gpu_count), fields, row, estimator)
    worth = [remedy for remedy in found if float(remedy.saved_gib) >= LEAST_SAVED * row.nvidia_smi_gib]
    return (as_asked, *sorted(worth, key=lambda remedy: remedy.total_gib))


def base_row(rows: Sequence[PerGpu], *, largest_gib: float) -> PerGpu:
    """Return the number of GPUs where a remedy can matter: the smallest at which twice the largest card would do."""
    return next((row for row in rows if row.nvidia_smi_gib <= 2 * largest_gib), rows[-1])


def changes(job: Job, gpu_count: int) -> Iterator[Change]:
    """Yield the changes that a job leaves open."""
    found = _generation_changes(job) if job.task == "inference" else _training_changes(job)
    for name, fields in found:
        yield Change(name=name, fields=fields, gpu_count=gpu_count)
    if job.task != "inference" and gpu_count > 1 and job.layout.sharding not in FULL_SHARDS:
        yield Change(name="full_sharding", fields={"sharding": "fsdp"}, gpu_count=gpu_count)
    if 2 * gpu_count <= MOST_GPUS:
        yield Change(name="more_gpus", fields={"gpu_counts": [2 * gpu_count]}, gpu_count=2 * gpu_count)


def _training_changes(job: Job) -> Iterator[tuple[str, dict[str, Any]]]:
    if job.checkpointing not in ("full", "offload"):
        yield "checkpointing", {"checkpointing": "full"}
    if job.micro_batch > 1:
        yield "smaller_batch", {"micro_batch": job.micro_batch // 2}
    if job.optimizer not in SMALL_OPTIMIZERS:
        yield "optimizer_8bit", {"optimizer": "adamw_8bit"}
    if job.loss != "fused":
        yield "fused_loss", {"loss": "fused"}
    if job.seq_len > SHORTEST_SEQUENCE:
        yield "shorter_sequence", {"seq_len": job.seq_len // 2}
    if job.task == "full":
        yield "lora", {"task": "lora"}
    if job.task in ("full", "lora"):
        yield "qlora", {"task": "qlora", "quantization": None}


def _generation_changes(job: Job) -> Iterator[tuple[str, dict[str, Any]]]:
    if job.quantization == "none":
        yield "fp8", {"quantization": "fp8"}
    if job.quantization in ("none", "fp8", "int8", "int8_gptq"):
        yield "int4", {"quantization": "int4_awq"}
    if job.batch > 1:
        yield "smaller_batch", {"batch": job.batch // 2}
    if job.seq_len > SHORTEST_SEQUENCE:
        yield "shorter_sequence", {"seq_len": job.seq_len // 2}


def _remedy(change: Change, fields: Mapping[str, Any], row: PerGpu, estimator: Estimator) -> Remedy:
    changed = {**fields, **change.fields, "gpu_counts": [change.gpu_count]}
    estimate, answer = estimator({name: value for name, value in changed.items() if value is not None})
    after, cheapest = estimate.per_gpu[0], answer.cheapest
    return Remedy(
        change=change,
        total_gib=Decimal(repr(after.nvidia_smi_gib)),
        saved_gib=Decimal(repr(round(row.nvidia_smi_gib - after.nvidia_smi_gib, 3))),
        cards=sum(fit.verdict == "fits" for fit in estimate.fits),
        cheapest_slug=cheapest.slug if cheapest else None,
        cost_usd=cheapest.best.cost_usd if cheapest and cheapest.best else None,
    )
