"""Images and video: whether a model loads whole, in fewer bits, or in parts, by what was measured or stated of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from catalog.models import Gpu
from sizing.engine.cards import Card
from sizing.engine.diffusion import REFERENCES, resident_bytes
from sizing.engine.units import gib
from sizing.engine.verdict import GENERATION_INTERVAL
from sizing.estimates import card_of
from sizing.use_cases.rows import Row, Sample, Source, UseCase, Value, pflops, rounded

RULE_VERSION = 1
SLUGS = (
    "rtx-4090",
    "rtx-5090",
    "l40s",
    "rtx-6000-ada",
    "rtx-pro-6000-blackwell-server",
    "a100-sxm-80gb",
    "h100-sxm",
    "h200-sxm",
    "b200",
)

Loading = Literal["whole", "quantised", "offload", "no"]
# The upper end of the engine's interval for generation: a measurement must fit with this much above it.
MARGIN = GENERATION_INTERVAL[1]

FLUX2 = "https://github.com/black-forest-labs/flux2/blob/main/docs/flux2_dev_hf.md"
HUNYUAN = "https://github.com/Tencent/HunyuanVideo/blob/main/README.md"
WAN = "https://github.com/Wan-Video/Wan2.2/blob/main/README.md"
# Transformer of 32 B and text encoder of 24 B parameters. Source: FLUX2.
FLUX2_B_PARAMS = 56
SECONDS_PER_IMAGE = 10


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to load a model: `gib` that it takes at its peak, or the smallest card in GB that its makers name."""

    loading: Loading
    gib: float | None = None
    card_gb: int | None = None

    def fits(self, card: Card) -> bool:
        """Whether the card takes it: a measurement with its margin in real memory, a named size by the card's name."""
        if self.gib is not None:
            return self.gib * MARGIN <= card.usable_gib
        return self.card_gb is not None and card.memory_gb >= self.card_gb


def _measured_gib(model: str, setting: str) -> float:
    return next(
        reference.measured_gib
        for reference in REFERENCES
        if reference.model == model and reference.task == "inference" and reference.setting == setting
    )


# Best first. SDXL: 7 GB of 16-bit weights, 12 GB recommended for the whole pipeline. Source: its model card.
SDXL_CARD_GB = 12
FLUX1_GIB = _measured_gib("FLUX.1-dev", "bf16, all components resident")
FLUX1_4_BIT_GIB = _measured_gib("FLUX.1-dev", "transformer and T5 in NF4")
VIDEO_GIB = _measured_gib("HunyuanVideo", "720p, 129 frames")
# FLUX.2 in 4 bits with its encoder set aside; Wan 2.2 TI2V-5B at 720p with parts set aside. Sources: FLUX2, WAN.
FLUX2_4_BIT_CARD_GB, VIDEO_OFFLOAD_CARD_GB = 24, 24
WAYS: dict[str, tuple[Way, ...]] = {
    "sdxl": (Way(loading="whole", card_gb=SDXL_CARD_GB),),
    "flux1": (Way(loading="whole", gib=FLUX1_GIB), Way(loading="quantised", gib=FLUX1_4_BIT_GIB)),
    "flux2": (
        Way(loading="whole", gib=gib(resident_bytes(b_params=FLUX2_B_PARAMS))),
        Way(loading="quantised", card_gb=FLUX2_4_BIT_CARD_GB),
    ),
    "video": (Way(loading="whole", gib=VIDEO_GIB), Way(loading="offload", card_gb=VIDEO_OFFLOAD_CARD_GB)),
}


def loading(model: str, card: Card) -> Loading:
    """Return the first way of a model that fits the card.

    >>> small = Card(slug="rtx-4090", memory_gb=24)
    >>> [loading(model, small) for model in WAYS], loading("video", Card(slug="x", memory_gb=80, memory_type="HBM3"))
    (['whole', 'quantised', 'quantised', 'offload'], 'whole')
    """
    return next((way.loading for way in WAYS[model] if way.fits(card)), "no")


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """Every number of the page's sentences. Memory in GiB where measured, in GB where it is a card's size."""

    flux1_whole_on: Row
    flux2_whole_on: Row
    video_whole_on: Row
    base: Row
    seconds_per_image: int
    images_per_hour: int
    image_usd: Decimal | None


def image_values(gpu: Gpu) -> dict[str, Value]:
    """Return a row's figures; the way that each model loads."""
    card = card_of(gpu)
    return {
        "memory": gpu.memory_gb,
        "bf16": gpu.bf16_dense_tflops,
        "fp8": gpu.fp8_dense_tflops,
        **{model: loading(model, card) for model in WAYS},
    }


def image_work(gpu: Gpu) -> Decimal | None:
    """Return the dense BF16 PFLOPS: PFLOP-hours of an hour."""
    return pflops(gpu.bf16_dense_tflops)


def image_facts(rows: Mapping[str, Row]) -> ImageFacts:
    """Compute the numbers of the page's sentences, from the rows by slug."""
    base = rows[SLUGS[0]]
    price = base.prices.headline.price_usd_per_gpu_hour if base.prices.headline else None
    listed = [rows[slug] for slug in SLUGS]
    return ImageFacts(
        flux1_whole_on=smallest_whole("flux1", listed),
        flux2_whole_on=smallest_whole("flux2", listed),
        video_whole_on=smallest_whole("video", listed),
        base=base,
        seconds_per_image=SECONDS_PER_IMAGE,
        images_per_hour=3600 // SECONDS_PER_IMAGE,
        image_usd=None if price is None else price * SECONDS_PER_IMAGE / 3600,
    )


def smallest_whole(model: str, rows: list[Row]) -> Row:
    """Return the row of least memory that holds the model whole."""
    return min((row for row in rows if row.values[model] == "whole"), key=lambda row: row.gpu.memory_gb)


_READ_ON = date(2026, 11, 30)
IMAGE_VIDEO = UseCase(
    slug="image-video",
    groups={"rows": SLUGS},
    values=image_values,
    work=image_work,
    facts=image_facts,
    rule_version=RULE_VERSION,
    rule={
        "margin_percent": rounded(Decimal(str(MARGIN)) * 100) - 100,
        "sdxl_card_gb": SDXL_CARD_GB,
        "flux1_gib": Decimal(str(FLUX1_GIB)),
        "flux1_4_bit_gib": Decimal(str(FLUX1_4_BIT_GIB)),
        "flux2_b_params": FLUX2_B_PARAMS,
        "flux2_gib": round(gib(resident_bytes(b_params=FLUX2_B_PARAMS))),
        "flux2_card_gb": FLUX2_4_BIT_CARD_GB,
        "video_gib": round(VIDEO_GIB),
        "video_card_gb": VIDEO_OFFLOAD_CARD_GB,
    },
    pairs={
        "rtx5090_rtx4090": ("rtx-5090", "rtx-4090"),
        "l40s_rtx6000ada": ("l40s", "rtx-6000-ada"),
        "h100_pro6000": ("h100-sxm", "rtx-pro-6000-blackwell-server"),
    },
    sample=Sample(slug="rtx-4090", gpu_count=1, hours=8),
    sources=(
        Source(
            title="Diffusers, reduce memory usage",
            url="https://huggingface.co/docs/diffusers/optimization/memory",
            read_on=_READ_ON,
        ),
        Source(
            title="Hugging Face, quantization backends in Diffusers",
            url="https://huggingface.co/blog/diffusers-quantization",
            read_on=_READ_ON,
        ),
        Source(title="FLUX.2, running the model with diffusers", url=FLUX2, read_on=_READ_ON),
        Source(title="HunyuanVideo", url=HUNYUAN, read_on=_READ_ON),
        Source(title="Wan 2.2", url=WAN, read_on=_READ_ON),
        Source(
            title="SDXL base 1.0",
            url="https://huggingface.co/stabilityai/stable-diffusion-xl-base-1.0",
            read_on=_READ_ON,
        ),
        Source(
            title="ComfyUI, workflow templates",
            url="https://docs.comfy.org/interface/features/template",
            read_on=_READ_ON,
        ),
    ),
)
