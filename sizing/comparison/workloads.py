"""What decides a workload on two GPUs: the figure it hangs on, and what a unit of that work costs at today's prices.

All functions are pure. Costs are USD without tax at the headline price; None without a price or without a figure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from catalog.compared import ComparedPair, Side, ratio
from catalog.models import Gpu
from sizing.engine.simple_rule import decode_ceiling_tokens_per_s, lora_b_params

Kind = Literal["train", "tune", "serve", "render", "science"]
SERVED_B_PARAMS = 8
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How a workload is told: its figure of a GPU, and the amount of that figure that the cost is for."""

    kind: Kind
    figure: Callable[[Gpu], Decimal | None]
    cost: Callable[[Decimal, Gpu], Decimal | None]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload on two GPUs. `lead`: how many times the larger figure is the smaller, 1 where they are equal."""

    kind: Kind
    figures: tuple[Decimal | None, Decimal | None]
    costs_usd: tuple[Decimal | None, Decimal | None]
    ahead: Side | None
    lead: Decimal | None
    cheaper: Side | None


def workloads(pair: ComparedPair) -> list[Workload]:
    """Return the workloads that at least one of the two has a figure for."""
    found = [_workload(measure, pair) for measure in MEASURES]
    return [workload for workload in found if any(workload.figures)]


def _workload(measure: Measure, pair: ComparedPair) -> Workload:
    sides = (pair.first, pair.second)
    first, second = (measure.figure(side.gpu) for side in sides)
    costs = (_cost(measure, pair.first), _cost(measure, pair.second))
    lead = ratio(first, second)
    is_one_kind = pair.price_ratio is not None
    return Workload(
        kind=measure.kind,
        figures=(first, second),
        costs_usd=costs,
        ahead=_larger(sides, first, second),
        lead=lead if lead is None or lead >= 1 else 1 / lead,
        cheaper=_larger(sides, costs[1], costs[0]) if is_one_kind else None,
    )


def _cost(measure: Measure, side: Side) -> Decimal | None:
    headline = side.prices.headline
    return measure.cost(headline.price_usd_per_gpu_hour, side.gpu) if headline else None


def _larger(sides: tuple[Side, Side], first: Decimal | None, second: Decimal | None) -> Side | None:
    if first is None or second is None or first == second:
        return None
    return sides[0] if first > second else sides[1]


def usd_per_m_tokens(price_usd: Decimal, gpu: Gpu) -> Decimal | None:
    """Return what a million tokens of one conversation cost at its speed limit, an 8 B model in 16 bits."""
    tokens_per_s = _ceiling(gpu)
    return None if not tokens_per_s else price_usd * 10**6 / (tokens_per_s * SECONDS_PER_HOUR)


def _ceiling(gpu: Gpu) -> Decimal | None:
    if gpu.memory_bandwidth_gb_s is None:
        return None
    limit = decode_ceiling_tokens_per_s(
        bandwidth_gb_s=gpu.memory_bandwidth_gb_s, b_params=SERVED_B_PARAMS, precision="fp16"
    )
    return Decimal(limit)


def _for_amount(figure: Callable[[Gpu], Decimal | None], amount: int) -> Callable[[Decimal, Gpu], Decimal | None]:
    """Return how an hour's price becomes one of `amount` units of a figure."""

    def cost(price_usd: Decimal, gpu: Gpu) -> Decimal | None:
        value = figure(gpu)
        return price_usd * amount / value if value else None

    return cost


def _fp32_of_ray_tracers(gpu: Gpu) -> Decimal | None:
    # Without ray-tracing cores a renderer reaches far less than the figure says.
    return gpu.fp32_tflops if gpu.rt_cores else None


MEASURES = (
    Measure(
        kind="train",
        figure=lambda gpu: gpu.bf16_dense_tflops,
        cost=_for_amount(lambda gpu: gpu.bf16_dense_tflops, 1000),
    ),
    Measure(
        kind="tune",
        figure=lambda gpu: Decimal(lora_b_params(memory_gb=gpu.memory_gb)),
        cost=_for_amount(lambda gpu: gpu.memory_gb, 100),
    ),
    Measure(kind="serve", figure=_ceiling, cost=usd_per_m_tokens),
    Measure(kind="render", figure=_fp32_of_ray_tracers, cost=_for_amount(_fp32_of_ray_tracers, 100)),
    Measure(
        kind="science",
        figure=lambda gpu: gpu.fp64_tflops,
        cost=_for_amount(lambda gpu: gpu.fp64_tflops, 1),
    ),
)
