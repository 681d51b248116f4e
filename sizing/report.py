"""The accuracy report: every published row through the engine, and how far off it is. One flow, read from the top."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sizing.engine.allocator import shown_bytes
from sizing.engine.cards import STANDARD_CARDS_GIB, Card, smallest_standard_card
from sizing.engine.estimate import METHOD_VERSION
from sizing.engine.job import ATTENTION_LINEARS, BLOCK_LINEARS, Job
from sizing.engine.peak import peak_memory
from sizing.engine.units import GIB, gib
from sizing.engine.verdict import PART_INTERVAL, interval
from sizing.facts import presets, read_rows
from sizing.stated_facts import Question, Row, question_of

SCORED_QUALITIES = frozenset("AB")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The engine's answer to one measured row, GiB on one GPU. `figure_gib` is the one the row's tool shows."""

    row: Row
    question: Question
    allocated_gib: float
    reserved_gib: float
    nvidia_smi_gib: float
    figure_gib: float
    high_gib: float
    smallest_card_gb: int | None


def make_report(*, measured: Path | None, tracked: Path | None) -> dict[str, Any]:
    """Return the report: `method_version`, `rows`, `summary`. A row that cannot be answered says why."""
    rows: list[dict[str, Any]] = []
    answers: list[Answer] = []
    measured_rows = read_rows(measured) if measured else []
    for row in measured_rows:
        try:
            answer = answer_row(row)
        except ValueError as reason:  # NotAnswerable, or a cell that is no number
            rows.append(unanswered(row, str(reason)))
        else:
            answers.append(answer)
            rows.append(answered(answer))
    tracked_rows = [tracked_row(row) for row in (read_rows(tracked) if tracked else [])]
    return {
        "method_version": METHOD_VERSION,
        "rows": rows + [row for row, _ in tracked_rows],
        "summary": {
            "measured": summary_of(answers, measured_rows),
            "tracked": tracked_summary([(row, error) for row, error in tracked_rows if error is not None]),
        },
    }


def answer_row(row: Row) -> Answer:
    """Return the engine's answer to a measured row. Raises NotAnswerable."""
    question = question_of(row)
    peak = peak_memory(question.architecture, question.job)
    if question.scope == "peak":
        shown = shown_bytes(peak.total, question.job)
        figures = {"allocated": shown.allocated, "reserved": shown.reserved, "nvidia_smi": shown.nvidia_smi}
    else:
        figures = dict.fromkeys(("allocated", "reserved", "nvidia_smi"), peak.parts[question.scope])
    high = interval(question.architecture, question.job, is_stated=question.is_stated)[1]
    high = high if question.scope == "peak" else PART_INTERVAL[1]
    figure = figures[question.measure]
    return Answer(
        row=row,
        question=question,
        allocated_gib=gib(figures["allocated"]),
        reserved_gib=gib(figures["reserved"]),
        nvidia_smi_gib=gib(figures["nvidia_smi"]),
        figure_gib=gib(figure),
        high_gib=gib(high * figure),
        smallest_card_gb=smallest_standard_card(high * figure / GIB),
    )


def answered(answer: Answer) -> dict[str, Any]:
    """Return an answer as the report's row."""
    return {
        "id": answer.row["id"],
        "answered": True,
        "allocated_gib": answer.allocated_gib,
        "reserved_gib": answer.reserved_gib,
        "nvidia_smi_gib": answer.nvidia_smi_gib,
        "high_gib": answer.high_gib,
        "smallest_card_gb": answer.smallest_card_gb,
    }


def unanswered(row: Row, reason: str) -> dict[str, Any]:
    """Return a row that has no answer, with the reason."""
    figures = ("allocated_gib", "reserved_gib", "nvidia_smi_gib", "high_gib", "smallest_card_gb")
    return {"id": row["id"], "answered": False, **dict.fromkeys(figures), "reason": reason}


def summary_of(answers: list[Answer], rows: Iterable[Row]) -> dict[str, Any]:
    """Return the figures over rows of quality A and B, in all, by task and by framework."""
    scored = [answer for answer in answers if answer.row["quality"] in SCORED_QUALITIES]
    asked = sum(row["quality"] in SCORED_QUALITIES for row in rows)
    by_task: dict[str, list[Answer]] = defaultdict(list)
    by_framework: dict[str, list[Answer]] = defaultdict(list)
    for answer in scored:
        by_task[answer.row["task"]].append(answer)
        by_framework[answer.question.job.framework].append(answer)
    return {
        "scorable": asked,
        "answered": len(scored),
        "answered_share": round(len(scored) / asked, 3) if asked else None,
        **figures_of(scored),
        "by_task": {task: figures_of(group) for task, group in sorted(by_task.items())},
        "by_framework": {name: figures_of(group) for name, group in sorted(by_framework.items())},
    }


def figures_of(answers: list[Answer]) -> dict[str, Any]:
    """Return errors, dangers, bigger-than-needed cards and out-of-memory rows that were called "fits".

    A danger: the smallest standard card that the upper end allows cannot hold what was measured.
    """
    ran = [answer for answer in answers if answer.row["outcome"] == "ok" and answer.row["measured_gib"]]
    needed = [smallest_standard_card(float(answer.row["measured_gib"])) or 10**6 for answer in ran]
    picked = [answer.smallest_card_gb or 10**6 for answer in ran]
    failed = [answer for answer in answers if answer.row["outcome"] == "oom"]
    return {
        "rows": len(ran),
        **errors_of([abs(answer.figure_gib / float(answer.row["measured_gib"]) - 1) for answer in ran]),
        "danger_share": share(sum(p < n for p, n in zip(picked, needed, strict=True)), len(ran)),
        "bigger_card_share": share(sum(p > n for p, n in zip(picked, needed, strict=True)), len(ran)),
        "oom_rows": len(failed),
        "oom_called_fits": sum(answer.high_gib <= stated_card_gib(answer.row) for answer in failed),
    }


def stated_card_gib(row: Row) -> float:
    """Return the real memory of the card that a row names: its size, less what error correction takes on an A10."""
    name = row["gpu"].lower()
    if name.startswith("a10") and not name.startswith("a100"):
        return Card(slug="a10", memory_gb=24).usable_gib
    sizes = [size for size in STANDARD_CARDS_GIB if f"{size}gb" in name.replace(" ", "")]
    return STANDARD_CARDS_GIB[sizes[-1]] if sizes else STANDARD_CARDS_GIB[80]


def tracked_row(row: Mapping[str, str]) -> tuple[dict[str, Any], float | None]:
    """Return a tracked row's answer and its error against the operator-level peak; None where we claim none."""
    preset = presets().get(row["model"])
    if preset is None:
        return unanswered(row, f"no equation for {row['model']}"), None
    peak = peak_memory(preset.architecture, tracked_job(row)).total
    size = gib(peak)
    answer = {"id": row["id"], "answered": True, **dict.fromkeys(("allocated_gib", "reserved_gib"), size)}
    high = interval(preset.architecture, tracked_job(row))[1] * peak / GIB
    answer |= {"nvidia_smi_gib": size, "high_gib": round(high, 3), "smallest_card_gb": smallest_standard_card(high)}
    return answer, abs(size / float(row["peak_total_foreach_gib"]) - 1)


def tracked_job(row: Mapping[str, str]) -> Job:
    """Return the step that was tracked: torch's default AdamW, logits released before the backward pass."""
    return Job(
        task=row["task"],  # type: ignore[arg-type]
        seq_len=int(row["seq"]),
        micro_batch=int(row["micro_batch"]),
        precision="mixed" if row["precision"] == "amp" else "bf16",
        uses_autocast=row["precision"] == "amp_bf16base",
        checkpointing="full" if row["act_ckpt"] == "1" else "none",
        attention="eager" if row["attn"] == "eager" else "fused",
        loss="plain",
        lora_rank=int(row["lora_r"] or 1),
        lora_targets=ATTENTION_LINEARS if row["lora_targets"] == "attn" else BLOCK_LINEARS,
        quantization="nf4_dq" if row["task"] == "qlora" else "none",
    )


def tracked_summary(rows: list[tuple[dict[str, Any], float]]) -> dict[str, Any]:
    """Return the errors over the tracked rows that have an answer."""
    return {"rows": len(rows), **errors_of([error for _, error in rows])}


def errors_of(errors: list[float]) -> dict[str, float | None]:
    """Return median and 90th percentile of relative errors.

    >>> errors_of([0.01, 0.02, 0.03])
    {'median_error': 0.02, 'p90_error': 0.028}
    """
    if len(errors) < 2:
        return {"median_error": round(errors[0], 4) if errors else None, "p90_error": None}
    p90 = statistics.quantiles(errors, n=10, method="inclusive")[-1]
    return {"median_error": round(statistics.median(errors), 4), "p90_error": round(p90, 4)}


def share(count: int, total: int) -> float | None:
    """Return a share, None of nothing."""
    return round(count / total, 4) if total else None
