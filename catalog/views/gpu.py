"""`/gpus/<slug>/`: one GPU with its price, what it trains, its offers, its data sheet and its relatives."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from catalog.compared import compare_known
from catalog.models import Gpu
from catalog.pairs import pairs_of
from catalog.queries import GpuPrices, offers_of_gpu, price_table
from catalog.views.history import headline_trends
from catalog.views.kept import kept_page
from catalog.views.machine_use import describe_gpu, page_picture
from catalog.what_fits import FIT_RULES, GPU_COUNTS, decode_ceilings, what_fits
from fx.chosen import in_chosen_currency
from sizing.engine.measured_bf16 import MEASURED_BF16_TFLOPS, MEASURED_SOURCE, measured_percent

OTHERS = 4
BLOCK_GB = 8
BLOCKS = 36
BLOCK_ROWS = 6
BLOCK_HEIGHT = 18
# What a name adds to its family: how the card is built, how much memory it has, which edition it is.
EDITION_WORDS = frozenset(("sxm", "sxm2", "pcie", "nvl", "server", "maxq", "sff"))
MEMORY_SIZE = re.compile(r"\d+gb")


@dataclass(frozen=True, kw_only=True)
class Relative:
    """Another GPU with what tells it apart: GB more (or less), and its BF16 as a multiple where both publish one."""

    gpu: Gpu
    prices: GpuPrices
    extra_gb: Decimal
    bf16_ratio: Decimal | None

    @property
    def less_gb(self) -> Decimal:
        """GB less, where it has less."""
        return -self.extra_gb


@dataclass(frozen=True, kw_only=True)
class MemoryBlock:
    """A block of memory in the drawing, 8 GB when full; `fill` is its filled height in drawing units, from below."""

    x: int
    y: int
    fill: int

    @property
    def fill_y(self) -> int:
        """Where the filled part begins."""
        return self.y + BLOCK_HEIGHT - self.fill


@kept_page
@in_chosen_currency
def show_gpu(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one GPU; an unknown slug is a 404."""
    now = datetime.now(UTC)
    gpu = get_object_or_404(Gpu, slug=slug)
    everything = list(Gpu.objects.order_by("position"))
    variants = [other for other in everything if family(other.slug) == family(slug) and other != gpu]
    others = nearest(gpu, [other for other in everything if other not in variants])
    pairs = pairs_of(slug)
    shown = [slug, *(other.slug for other in [*variants, *others]), *(pair.other(slug) for pair in pairs)]
    prices = price_table(now=now, gpu_slugs=shown)
    offers = offers_of_gpu(gpu=gpu, now=now)
    context = {
        "now": now,
        "gpu": gpu,
        "prices": prices[slug],
        "trend": headline_trends(now=now, prices={slug: prices[slug]}).get(slug),
        **sizes(gpu),
        "pairs": compare_known(pairs, gpus={other.slug: other for other in everything}, prices=prices),
        "offers": offers,
        "json_ld": describe_gpu(request, gpu, prices=prices[slug], offers=offers),
        "variants": [relative(gpu, other, prices[other.slug]) for other in variants],
        "others": [relative(gpu, other, prices[other.slug]) for other in others],
        "blocks": memory_blocks(gpu.memory_gb),
        "block_gb": BLOCK_GB,
        "is_card": gpu.form_factor == "PCIe",
        "picture": page_picture(request, "catalog:gpu-picture", gpu),
    }
    return render(request, "catalog/gpu.html", context)


def sizes(gpu: Gpu) -> dict[str, object]:
    """Return what fits on a GPU, how fast it speaks at most, and how much of its BF16 was measured."""
    return {
        "gpu_counts": GPU_COUNTS,
        "fits": what_fits(gpu.memory_gb),
        "fit_rules": FIT_RULES,
        "ceilings": decode_ceilings(memory_gb=gpu.memory_gb, bandwidth_gb_s=gpu.memory_bandwidth_gb_s),
        "measured_tflops": MEASURED_BF16_TFLOPS.get(gpu.slug),
        "measured_percent": measured_percent(gpu.slug, bf16_dense_tflops=gpu.bf16_dense_tflops),
        "measured_source": MEASURED_SOURCE,
    }


def family(slug: str) -> str:
    """Return the part of a slug that its variants share.

    >>> family("h100-sxm"), family("a100-pcie-80gb"), family("rtx-4060-ti-16gb"), family("v100-sxm2-32gb")
    ('h100', 'a100', 'rtx-4060-ti', 'v100')
    """
    words = slug.split("-")
    return "-".join(word for word in words if word not in EDITION_WORDS and not MEMORY_SIZE.fullmatch(word))


def nearest(gpu: Gpu, candidates: Iterable[Gpu]) -> Sequence[Gpu]:
    """Return the few GPUs of the same maker and memory class that stand next to `gpu` in the catalogue."""
    peers = [other for other in candidates if other != gpu and other.memory_gb * 2 >= gpu.memory_gb]
    by_distance = sorted(peers, key=lambda other: (other.vendor != gpu.vendor, abs(other.position - gpu.position)))
    return sorted(by_distance[:OTHERS], key=lambda other: other.position)


def relative(gpu: Gpu, other: Gpu, prices: GpuPrices) -> Relative:
    """Compare `other` with `gpu`."""
    ratio = None
    if gpu.bf16_dense_tflops and other.bf16_dense_tflops:
        ratio = other.bf16_dense_tflops / gpu.bf16_dense_tflops
    return Relative(gpu=other, prices=prices, extra_gb=other.memory_gb - gpu.memory_gb, bf16_ratio=ratio)


def memory_blocks(memory_gb: Decimal) -> list[MemoryBlock]:
    """Place the drawing's memory blocks left and right of the die, those next to it first, and fill them with `memory_gb`.

    >>> [block.fill for block in memory_blocks(Decimal(12))][:3]
    [18, 9, 0]
    """
    blocks = []
    for number in range(BLOCKS):
        column, row = divmod(number // 2, BLOCK_ROWS)
        full = min(max(memory_gb / BLOCK_GB - number, Decimal(0)), Decimal(1))
        x = 64 - 14 * column if number % 2 == 0 else 164 + 14 * column
        blocks.append(MemoryBlock(x=x, y=27 + 22 * row, fill=round(full * BLOCK_HEIGHT)))
    return blocks
