"""An estimate with the catalogue's cards and prices: one flow for the API and the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from catalog.models import Gpu
from catalog.queries import NO_PRICES, GpuPrices, price_table
from sizing.engine.cards import Card
from sizing.engine.cost import cost_usd
from sizing.engine.estimate import Estimate, Fit, PerGpu, Request, estimate
from sizing.engine.interruptions import Interruptions
from sizing.engine.request import read_request
from sizing.facts import presets

USUAL_INTERRUPTIONS = Interruptions()
SPOT_ASSUMPTION = "spot: interrupted every 6 h on average, 1 min to save, 5 min to restart (Young 1974, Daly 2006)"
STACKS = ("CUDA", "ROCm")


@dataclass(frozen=True, kw_only=True)
class Market:
    """The GPUs that programs of this kind run on, in the catalogue's order, with their prices of this moment."""

    gpus: Sequence[Gpu]
    prices: Mapping[str, GpuPrices]

    def estimate(self, request: Request) -> Estimate:
        """Return a request's estimate over all these GPUs."""
        return estimate(replace(request, cards=tuple(card_of(gpu) for gpu in self.gpus)))


def market_now(*, now: datetime) -> Market:
    """Return the GPUs and their prices. Five queries."""
    gpus = list(Gpu.objects.filter(software_stack__in=STACKS).order_by("position"))
    return Market(gpus=gpus, prices=price_table(now=now, gpu_slugs=[gpu.slug for gpu in gpus]) if gpus else {})


def answer_estimate(fields: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return the answer to a request's fields, as the contract has it. Raises RequestError."""
    request = read_request(fields, presets=presets())
    market = market_now(now=now)
    return answer_body(market.estimate(request), market.prices)


def card_of(gpu: Gpu) -> Card:
    """Return a catalogue row as the engine sees it."""
    return Card(
        slug=gpu.slug,
        memory_gb=float(gpu.memory_gb),
        vendor=gpu.vendor,
        architecture=gpu.architecture,
        memory_type=gpu.memory_type,
        has_ecc=bool(gpu.ecc),
        bandwidth_gb_s=figure(gpu.memory_bandwidth_gb_s),
        bf16_tflops=figure(gpu.bf16_dense_tflops),
        fp16_tflops=figure(gpu.fp16_dense_tflops),
        nvlink_gb_s=figure(gpu.nvlink_gb_s),
        max_per_board=gpu.max_gpus_per_board or 1,
    )


def figure(value: Decimal | None) -> float | None:
    """Return a published figure, None where there is none."""
    return None if value is None else float(value)


def answer_body(answer: Estimate, prices: Mapping[str, GpuPrices]) -> dict[str, Any]:
    """Return the answer in the contract's words; null price fields where there is no price."""
    fits = [fit_body(fit, prices.get(fit.gpu, NO_PRICES)) for fit in answer.fits]
    has_spot = any(fit["spot_cost_usd"] is not None for fit in fits)
    return {
        "parameters": answer.parameters,
        "per_gpu": [per_gpu_body(row) for row in answer.per_gpu],
        "fits": fits,
        "assumptions": [*answer.assumptions, *([SPOT_ASSUMPTION] if has_spot else [])],
        "method_version": answer.method_version,
    }


def per_gpu_body(row: PerGpu) -> dict[str, Any]:
    """Return one GPU count's memory."""
    return {
        "gpu_count": row.gpu_count,
        "allocated_gib": row.allocated_gib,
        "reserved_gib": row.reserved_gib,
        "nvidia_smi_gib": row.nvidia_smi_gib,
        "low_gib": row.low_gib,
        "high_gib": row.high_gib,
        "phase": row.phase,
        "parts": row.parts,
    }


def fit_body(fit: Fit, prices: GpuPrices) -> dict[str, Any]:
    """Return one card's verdict with its price, and what the run costs there."""
    headline, spot = prices.headline, prices.elsewhere["spot"]
    price = headline.price_usd_per_gpu_hour if headline else None
    return {
        "gpu": fit.gpu,
        "gpu_count": fit.gpu_count,
        "verdict": fit.verdict,
        "headroom_gib": fit.headroom_gib,
        "tokens_per_s": fit.tokens_per_s,
        "hours": fit.hours,
        "cost_usd": cost_of(fit, price, waste=0.0),
        "price_usd_per_gpu_hour": None if price is None else f"{price:f}",
        "price_kind": headline.kind if headline else None,
        "spot_price_usd_per_gpu_hour": f"{spot.min:f}" if spot else None,
        "spot_cost_usd": cost_of(fit, spot.min if spot else None, waste=USUAL_INTERRUPTIONS.waste(fit.gpu_count)),
    }


def cost_of(fit: Fit, price: Decimal | None, *, waste: float) -> str | None:
    """Return the cost of the run in USD as text, None without hours or without a price."""
    if price is None or fit.hours is None:
        return None
    return f"{cost_usd(hours=fit.hours, gpu_count=fit.gpu_count, price_usd_per_gpu_hour=price, waste=waste):f}"
