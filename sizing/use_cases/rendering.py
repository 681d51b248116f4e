"""3D rendering: ray-tracing cores, memory and FP32. A benchmark's score stands here only once it has been read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from catalog.models import Gpu
from sizing.use_cases.rows import Row, Sample, Source, UseCase, Value, rounded

RULE_VERSION = 1
RAY_TRACING_SLUGS = (
    "rtx-5090",
    "rtx-pro-6000-blackwell-server",
    "rtx-4090",
    "l40s",
    "rtx-6000-ada",
    "rtx-a6000",
    "rtx-3090",
    "l4",
)
WITHOUT_SLUGS = ("a100-sxm-80gb", "h100-sxm")

# Ray-tracing cores, one to a multiprocessor. Source: the makers' architecture papers and sheets, linked in each row.
RT_CORES = {
    "rtx-5090": 170,
    "rtx-pro-6000-blackwell-server": 188,
    "rtx-4090": 128,
    "l40s": 142,
    "rtx-6000-ada": 142,
    "rtx-a6000": 84,
    "rtx-3090": 82,
}
# A score is the median of at least this many results of one Blender version, samples per minute over three scenes.
LEAST_RESULTS = 10
SCENES = ("monster", "junkshop", "classroom")
# Source: Blender manual, GPU rendering.
OPTIX_COMPUTE_CAPABILITY, OPTIX_DRIVER = Decimal("5.0"), 535
MINUTES_PER_FRAME = 6


@dataclass(frozen=True, kw_only=True)
class RenderingFacts:
    """Every number of the page's sentences."""

    optix_compute_capability: Decimal
    optix_driver: int
    smallest: Row
    middle: Row
    largest: Row
    minutes_per_frame: int
    frame_usd: Decimal | None
    without: Row
    without_fp32_percent: int


def rendering_values(gpu: Gpu) -> dict[str, Value]:
    """Return a row's figures. Score and score per USD are None until a median of enough results has been read."""
    return {
        "memory": gpu.memory_gb,
        "ecc": gpu.ecc,
        "rt": rt_cores(gpu.slug, has_cores=gpu.rt_cores),
        "fp32": gpu.fp32_tflops,
        "score": None,
        "score_per_usd": None,
    }


def rt_cores(slug: str, *, has_cores: bool | None) -> int | None:
    """Return the number of ray-tracing cores: 0 on cards built without, None where it is not published.

    >>> rt_cores("rtx-4090", has_cores=True), rt_cores("h100-sxm", has_cores=False), rt_cores("l4", has_cores=True)
    (128, 0, None)
    """
    return 0 if has_cores is False else RT_CORES.get(slug)


def rendering_work(gpu: Gpu) -> Decimal | None:
    """Return one for a card with ray-tracing cores: without scores, an hour is all that can be compared."""
    return Decimal(1) if gpu.rt_cores else None


def rendering_facts(rows: Mapping[str, Row]) -> RenderingFacts:
    """Compute the numbers of the page's sentences, from the rows by slug."""
    base, without = rows["rtx-4090"], rows["a100-sxm-80gb"]
    price = base.prices.headline.price_usd_per_gpu_hour if base.prices.headline else None
    assert without.gpu.fp32_tflops
    assert base.gpu.fp32_tflops
    return RenderingFacts(
        optix_compute_capability=OPTIX_COMPUTE_CAPABILITY,
        optix_driver=OPTIX_DRIVER,
        smallest=base,
        middle=rows["l40s"],
        largest=rows["rtx-pro-6000-blackwell-server"],
        minutes_per_frame=MINUTES_PER_FRAME,
        frame_usd=None if price is None else price * MINUTES_PER_FRAME / 60,
        without=without,
        without_fp32_percent=rounded(100 * without.gpu.fp32_tflops / base.gpu.fp32_tflops),
    )


_READ_ON = date(2026, 11, 30)
RENDERING = UseCase(
    slug="rendering",
    groups={"ray_tracing": RAY_TRACING_SLUGS, "without": WITHOUT_SLUGS},
    values=rendering_values,
    work=rendering_work,
    facts=rendering_facts,
    rule_version=RULE_VERSION,
    rule={"least_results": LEAST_RESULTS, "scenes": ", ".join(SCENES)},
    pairs={
        "rtx5090_rtx4090": ("rtx-5090", "rtx-4090"),
        "pro6000_rtx6000ada": ("rtx-pro-6000-blackwell-server", "rtx-6000-ada"),
        "l40s_rtx4090": ("l40s", "rtx-4090"),
    },
    sample=Sample(slug="rtx-4090", gpu_count=1, hours=24),
    sources=(
        Source(
            title="Blender manual, GPU rendering",
            url="https://docs.blender.org/manual/en/latest/render/cycles/gpu_rendering.html",
            read_on=_READ_ON,
        ),
        Source(
            title="Blender manual, system preferences",
            url="https://docs.blender.org/manual/en/latest/editors/preferences/system.html",
            read_on=_READ_ON,
        ),
        Source(title="Blender Open Data", url="https://opendata.blender.org/", read_on=_READ_ON),
        Source(title="NVIDIA OptiX", url="https://developer.nvidia.com/rtx/ray-tracing/optix", read_on=_READ_ON),
        Source(
            title="NVIDIA Ada architecture",
            url="https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf",
            read_on=_READ_ON,
        ),
        Source(
            title="NVIDIA RTX Blackwell architecture",
            url="https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf",
            read_on=_READ_ON,
        ),
    ),
)
