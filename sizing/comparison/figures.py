"""The figures of several GPUs, a line each, with what a page needs to draw and to mark them."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog.models import Gpu
from sizing.engine.measured_bf16 import MEASURED_BF16_TFLOPS

FIGURES: tuple[tuple[Promise, str, str], ...] = (
    (_("Memory"), "memory_gb", "GB"),
    (_("Bandwidth"), "memory_bandwidth_gb_s", "GB/s"),
    (_("BF16, dense"), "bf16_dense_tflops", "TFLOPS"),
    (_("BF16, measured"), "measured", "TFLOPS"),
    (_("FP8, dense"), "fp8_dense_tflops", "TFLOPS"),
    (_("FP4, dense"), "fp4_dense_tflops", "TFLOPS"),
    (_("FP32"), "fp32_tflops", "TFLOPS"),
    (_("FP64"), "fp64_tflops", "TFLOPS"),
    (_("Link, both directions"), "nvlink_gb_s", "GB/s"),
    (_("Power"), "tdp_w", "W"),
)
LESS_IS_BETTER = frozenset(("tdp_w",))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One GPU's value, None where it is not published; `share` of the line's largest, in percent."""

    value: Decimal | None
    share: int
    is_best: bool


@dataclass(frozen=True, kw_only=True)
class FigureLine:
    """One figure of all GPUs. `ratio`: first / second, None where one of them is not published."""

    label: str | Promise
    unit: str
    cells: tuple[Cell, ...]
    ratio: Decimal | None


def figure_lines(gpus: Sequence[Gpu]) -> list[FigureLine]:
    """Return the lines that at least one of `gpus` has a figure for."""
    lines = ((label, name, unit, [_value(gpu, name) for gpu in gpus]) for label, name, unit in FIGURES)
    return [
        _line(label, unit, values, is_less_better=name in LESS_IS_BETTER)
        for label, name, unit, values in lines
        if any(values)
    ]


def _value(gpu: Gpu, name: str) -> Decimal | None:
    value = MEASURED_BF16_TFLOPS.get(gpu.slug) if name == "measured" else getattr(gpu, name)
    return None if value is None else Decimal(value)


def _line(label: Promise, unit: str, values: Sequence[Decimal | None], *, is_less_better: bool) -> FigureLine:
    told = [value for value in values if value]
    largest = max(told)
    best = min(told) if is_less_better else largest
    is_decided = len(told) > 1 and len(set(told)) > 1
    return FigureLine(
        label=label,
        unit=unit,
        cells=tuple(
            Cell(
                value=value,
                share=max(1, round(100 * value / largest)) if value else 0,
                is_best=is_decided and value == best,
            )
            for value in values
        ),
        ratio=values[0] / values[1] if len(values) > 1 and values[0] and values[1] else None,
    )
