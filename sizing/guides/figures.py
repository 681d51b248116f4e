"""The kinds of figures a guide may name, each drawn from the catalogue, the prices of today, or the engine.

A kind is a function of the facts and of its arguments; None where the figure is not there today. A kind or an argument
that does not exist raises UnknownToken, which a test looks for in every guide and language.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.utils.translation import gettext as _

from catalog.compared import price_ratio, ratio
from catalog.freshness import DATED_FOR, FRESH_FOR, LIVE_FOR, SHOWN_FOR
from catalog.models import Cloud, Gpu
from catalog.queries import NO_PRICES, GpuPrices
from catalog.what_fits import FIT_RULES, GPU_COUNTS, what_fits
from common import formats
from common.shown_currency import current
from sizing.engine.cost import checkpoint_bytes, spot_waste
from sizing.engine.measured_bf16 import measured_percent
from sizing.engine.simple_rule import (
    BYTES_PER_PARAMETER,
    SERVING_BYTES,
    USABLE_SHARE,
    Precision,
    decode_ceiling_tokens_per_s,
)
from sizing.guides.tokens import Token, ValueOf
from sizing.use_cases.llm_training import (
    PCIE_5_X16_GB_S,
    REACHED,
    SAMPLE_B_PARAMS,
    SAMPLE_B_TOKENS,
    all_reduce_ms,
    training_hours,
)
from sizing.use_cases.rows import one_way

HOUR, HOUR_SECONDS = timedelta(hours=1), 3600
# One 400 Gb/s port per GPU, in GB/s one way. Source: NVIDIA DGX H100 user guide, "network connections".
NETWORK_GB_S = Decimal(50)
GPU_FIGURES = frozenset(
    ("memory_gb", "memory_bandwidth_gb_s", "bf16_dense_tflops", "fp8_dense_tflops", "fp64_tflops", "tdp_w")
)
RULES: dict[str, Decimal | int] = {
    "bytes_per_parameter": BYTES_PER_PARAMETER,
    "usable_percent": int(USABLE_SHARE * 100),
    "lora_bytes": FIT_RULES["lora_bytes"],
    "qlora_bytes": FIT_RULES["qlora_bytes"],
    "serving_percent": FIT_RULES["serving_percent"],
    "checkpoint_bytes": int(checkpoint_bytes(trainable_parameters=1, is_adapted=False)),
    "reached_percent": int(REACHED * 100),
    "sample_b_params": SAMPLE_B_PARAMS,
    "sample_b_tokens": SAMPLE_B_TOKENS,
    "pcie_gb_s": PCIE_5_X16_GB_S,
    "network_gb_s": NETWORK_GB_S,
    "fresh_hours": FRESH_FOR // HOUR,
    "live_hours": LIVE_FOR // HOUR,
    "shown_hours": SHOWN_FOR // HOUR,
    "dated_days": DATED_FOR.days,
}


class UnknownToken(ValueError):
    """A guide names a figure that nobody can give."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What figures are drawn from, by GPU slug, when, and the language they are written in."""

    now: datetime
    gpus: Mapping[str, Gpu]
    prices: Mapping[str, GpuPrices]
    clouds: Sequence[Cloud]
    language: str

    def number(self, value: Decimal | int | None, *, decimals: int = 2) -> str | None:
        """Write a figure."""
        return None if value is None else formats.figure(value, language=self.language, decimals=decimals)

    def money(self, value: Decimal | None) -> str | None:
        """Write a price per hour in the page's currency."""
        shown = current()
        return None if value is None else formats.money(shown.of(value), shown.code, language=self.language)

    def total(self, value: Decimal | None) -> str | None:
        """Write a sum of money in the page's currency."""
        shown = current()
        return None if value is None else formats.total(shown.of(value), shown.code, language=self.language)

    def hour_usd(self, slug: str) -> Decimal | None:
        """Return the headline price."""
        headline = self.prices.get(slug, NO_PRICES).headline
        return headline.price_usd_per_gpu_hour if headline else None


def value_of(facts: Facts) -> ValueOf:
    """Return what writes a token. It raises UnknownToken."""

    def write(token: Token) -> str | None:
        kind = KINDS.get(token.kind)
        if kind is None:
            raise UnknownToken(f"no kind of figure: {token.kind}")
        try:
            return kind(facts, *token.arguments)
        except (TypeError, ValueError, KeyError, IndexError) as wrong:
            raise UnknownToken(f"{token.kind}:{'.'.join(token.arguments)}: {wrong}") from wrong

    return write


def _gpu(facts: Facts, slug: str, name: str) -> str | None:
    gpu = facts.gpus.get(slug)
    if name == "label":
        return gpu.label if gpu else None
    if name not in GPU_FIGURES:
        raise UnknownToken(name)
    return facts.number(getattr(gpu, name)) if gpu else None


def _link(facts: Facts, slug: str) -> str | None:
    """One way, GB/s: makers print the sum of both directions."""
    return facts.number(_one_way(facts, slug))


def _one_way(facts: Facts, slug: str) -> Decimal | None:
    gpu = facts.gpus.get(slug)
    return one_way(gpu.nvlink_gb_s) if gpu else None


def _network_times(facts: Facts, slug: str) -> str | None:
    return facts.number(ratio(_one_way(facts, slug), NETWORK_GB_S), decimals=1)


def _ratio(facts: Facts, first: str, second: str, name: str) -> str | None:
    if name not in GPU_FIGURES:
        raise UnknownToken(name)
    one, other = facts.gpus.get(first), facts.gpus.get(second)
    return facts.number(ratio(getattr(one, name), getattr(other, name)), decimals=1) if one and other else None


def _fits(facts: Facts, slug: str, task: str, count: str) -> str | None:
    place = GPU_COUNTS.index(int(count))
    gpu = facts.gpus.get(slug)
    if gpu is None:
        return None
    sizes = {fit.task: fit.sizes for fit in what_fits(gpu.memory_gb)}
    return facts.number({str(name): found for name, found in sizes.items()}[task][place])


def _ceiling(facts: Facts, slug: str, b_params: str, precision: Precision) -> str | None:
    gpu = facts.gpus.get(slug)
    SERVING_BYTES[precision]
    if gpu is None or gpu.memory_bandwidth_gb_s is None:
        return None
    return facts.number(
        decode_ceiling_tokens_per_s(
            bandwidth_gb_s=gpu.memory_bandwidth_gb_s, b_params=int(b_params), precision=precision
        )
    )


def _measured(facts: Facts, slug: str) -> str | None:
    gpu = facts.gpus.get(slug)
    return facts.number(measured_percent(slug, bf16_dense_tflops=gpu.bf16_dense_tflops)) if gpu else None


def _need(facts: Facts, b_params: str) -> str | None:
    """GB for weights, gradients and optimiser states."""
    return facts.number(int(b_params) * BYTES_PER_PARAMETER)


def _need_gpus(facts: Facts, b_params: str, slug: str) -> str | None:
    gpu = facts.gpus.get(slug)
    needed_gb = Decimal(int(b_params) * BYTES_PER_PARAMETER)
    return facts.number(math.ceil(needed_gb / (USABLE_SHARE * gpu.memory_gb))) if gpu else None


def _weights(facts: Facts, b_params: str, precision: Precision) -> str | None:
    """GB that are read for each token."""
    return facts.number(int(b_params) * SERVING_BYTES[precision])


def _sum_ms(facts: Facts, gradients_gb: str, gpu_count: str, over: str) -> str | None:
    """Least time to sum gradients over a GPU's own link, over the slot ("pcie") or over the network ("network")."""
    links = {"pcie": PCIE_5_X16_GB_S, "network": NETWORK_GB_S}
    link = links.get(over) or _one_way(facts, over)
    if link is None:
        return None
    return facts.number(all_reduce_ms(int(gradients_gb), gpu_count=int(gpu_count), link_gb_s=link))


def _run_hours(facts: Facts, slug: str, gpu_count: str) -> str | None:
    return facts.number(_hours(facts, slug, int(gpu_count)))


def _hours(facts: Facts, slug: str, gpu_count: int) -> int | None:
    gpu = facts.gpus.get(slug)
    return training_hours(gpu.bf16_dense_tflops, gpu_count=gpu_count) if gpu and gpu.bf16_dense_tflops else None


def _run_cost(facts: Facts, slug: str, gpu_count: str) -> str | None:
    hours, hour_usd = _hours(facts, slug, int(gpu_count)), facts.hour_usd(slug)
    return facts.total(hours * int(gpu_count) * hour_usd) if hours and hour_usd else None


def _price(facts: Facts, slug: str) -> str | None:
    return facts.money(facts.hour_usd(slug))


def _kind(facts: Facts, slug: str) -> str | None:
    """Say which kind of price the headline is, and how old."""
    headline = facts.prices.get(slug, NO_PRICES).headline
    if headline is None:
        return None
    if headline.is_live:
        return _("live, read %(ago)s") % {
            "ago": formats.age(headline.observed_at, now=facts.now, language=facts.language)
        }
    if headline.priced_on is None:
        return _("list price")
    return _("list price of %(on)s") % {"on": formats.day(headline.priced_on, language=facts.language)}


def _spot(facts: Facts, slug: str) -> str | None:
    found = facts.prices.get(slug, NO_PRICES).elsewhere["spot"]
    return facts.money(found.min) if found else None


def _on_demand(facts: Facts, slug: str) -> str | None:
    found = facts.prices.get(slug, NO_PRICES).elsewhere["on_demand"]
    return facts.money(found.min) if found else None


def _work(facts: Facts, slug: str) -> str | None:
    """Price of 1000 dense BF16 TFLOPS for an hour."""
    gpu, hour_usd = facts.gpus.get(slug), facts.hour_usd(slug)
    return facts.total(hour_usd * 1000 / gpu.bf16_dense_tflops) if gpu and gpu.bf16_dense_tflops and hour_usd else None


def _break_even(facts: Facts, first: str, second: str) -> str | None:
    """How many times dearer the first is; only where it is, and both prices are of one kind."""
    one, other = (facts.prices.get(slug, NO_PRICES).headline for slug in (first, second))
    found = price_ratio(one, other)
    return facts.number(found) if found is not None and found > 1 else None


def _billed(facts: Facts, slug: str, runs: str, minutes: str, step_seconds: str) -> str | None:
    """What short runs cost when each is rounded up to the billing step."""
    hour_usd, step = facts.hour_usd(slug), int(step_seconds)
    paid_seconds = math.ceil(int(minutes) * 60 / step) * step * int(runs)
    return facts.total(hour_usd * paid_seconds / HOUR_SECONDS) if hour_usd else None


def _checkpoint_gb(facts: Facts, b_params: str) -> str | None:
    return facts.number(_checkpoint(b_params), decimals=0)


def _checkpoint(b_params: str) -> Decimal:
    return Decimal(checkpoint_bytes(trainable_parameters=float(b_params) * 1e9, is_adapted=False)) / 10**9


def _checkpoint_s(facts: Facts, b_params: str, gb_s: str) -> str | None:
    """Seconds to write a checkpoint at a throughput in GB/s."""
    return facts.number(_checkpoint(b_params) / int(gb_s), decimals=0)


def _waste(facts: Facts, save_s: str, mean_hours: str, restart_s: str) -> str | None:
    """Percent of time that interruptions waste."""
    wasted = spot_waste(
        checkpoint_s=float(save_s), interruption_mean_s=float(mean_hours) * HOUR_SECONDS, restart_s=float(restart_s)
    )
    return facts.number(Decimal(repr(wasted)) * 100, decimals=1)


def _interval(facts: Facts, save_s: str, mean_hours: str) -> str | None:
    """Minutes between checkpoints that lose least: the root of 2 x save time x mean time between interruptions."""
    seconds = Decimal(2 * int(save_s) * int(mean_hours) * HOUR_SECONDS).sqrt()
    return facts.number(seconds / 60, decimals=0)


def _clouds(facts: Facts, what: str) -> str | None:
    """How many clouds say so of themselves; None while no cloud does."""
    counted: dict[str, Callable[[Cloud], bool]] = {
        "all": lambda cloud: cloud.pk is not None,
        "with_step": lambda cloud: cloud.billing_step_seconds is not None,
        "by_second": lambda cloud: cloud.billing_step_seconds == 1,
        "by_minute": lambda cloud: cloud.billing_step_seconds == 60,
        "by_hour": lambda cloud: cloud.billing_step_seconds == HOUR_SECONDS,
        "multi_node": lambda cloud: cloud.multi_node is True,
        "persistent_volumes": lambda cloud: cloud.persistent_volumes is True,
        "free_egress": lambda cloud: cloud.egress_usd_per_gb == 0,
    }
    says = counted[what]
    return facts.number(sum(1 for cloud in facts.clouds if says(cloud)) or None)


def _notice(facts: Facts, which: str) -> str | None:
    """The shortest and the longest warning that clouds give before they take a spot machine, in seconds."""
    choose = {"shortest": min, "longest": max}[which]
    told = [cloud.spot_notice_seconds for cloud in facts.clouds if cloud.spot_notice_seconds]
    return facts.number(choose(told)) if told else None


def _rule(facts: Facts, name: str) -> str | None:
    return facts.number(RULES[name])


KINDS: dict[str, Callable[..., str | None]] = {
    "gpu": _gpu,
    "link": _link,
    "network_times": _network_times,
    "ratio": _ratio,
    "fits": _fits,
    "ceiling": _ceiling,
    "measured": _measured,
    "need": _need,
    "need_gpus": _need_gpus,
    "weights": _weights,
    "sum_ms": _sum_ms,
    "run_hours": _run_hours,
    "run_cost": _run_cost,
    "price": _price,
    "kind": _kind,
    "spot": _spot,
    "on_demand": _on_demand,
    "work": _work,
    "break_even": _break_even,
    "billed": _billed,
    "checkpoint_gb": _checkpoint_gb,
    "checkpoint_s": _checkpoint_s,
    "waste": _waste,
    "interval": _interval,
    "clouds": _clouds,
    "notice": _notice,
    "rule": _rule,
}
