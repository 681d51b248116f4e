"""Science and simulation: double precision first, then bandwidth. The newest card is not always the one to take."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from catalog.compared import ratio
from catalog.models import Gpu
from sizing.use_cases.rows import Estimated, Row, Sample, Source, UseCase, Value, one_way, rounded

RULE_VERSION = 1
FULL_SLUGS = (
    "mi300x",
    "mi325x",
    "mi355x",
    "b200",
    "h200-sxm",
    "h100-sxm",
    "h100-nvl",
    "a100-sxm-80gb",
)
WARNED_SLUGS = ("b300", "l40s", "rtx-pro-6000-blackwell-server", "rtx-4090")

# Matrix units in double precision, TFLOPS per GPU. Source: the maker's sheet, linked in each row.
FP64_MATRIX_TFLOPS = {
    "mi300x": Decimal("163.4"),
    "mi325x": Decimal("163.4"),
    "mi355x": Decimal("78.6"),
    "b200": Decimal(37),
    "h200-sxm": Decimal(67),
    "h100-sxm": Decimal(67),
    "h100-nvl": Decimal(60),
    "a100-sxm-80gb": Decimal("19.5"),
}
# Graphics chips run double precision at this share of FP32. Source: NVIDIA Ada architecture paper, appendix A.
GRAPHICS_FP64_DIVISOR = 64
SERVER_GPUS = 8


@dataclass(frozen=True, kw_only=True)
class ScienceFacts:
    """Every number of the page's sentences. TFLOPS of double precision, ratios and percent."""

    strong: Row
    weak: Row
    strong_tflops: Decimal
    weak_tflops: Decimal
    fp64_ratio: Decimal
    weak_server_tflops: Decimal
    server_gpus: int
    faster_memory: Row
    slower_memory: Row
    bandwidth_percent: int


def science_values(gpu: Gpu) -> dict[str, Value]:
    """Return a row's figures: TFLOPS of double precision, bandwidth and link in GB/s."""
    return {
        "vector": fp64_vector(fp64=gpu.fp64_tflops, fp32=gpu.fp32_tflops, is_graphics=bool(gpu.rt_cores)),
        "matrix": FP64_MATRIX_TFLOPS.get(gpu.slug),
        "bandwidth": gpu.memory_bandwidth_gb_s,
        "memory": gpu.memory_gb,
        "ecc": gpu.ecc,
        "link": one_way(gpu.nvlink_gb_s),
        "mig": gpu.mig,
    }


def fp64_vector(*, fp64: Decimal | None, fp32: Decimal | None, is_graphics: bool) -> Decimal | Estimated | None:
    """Return the published double precision; of a graphics chip without one, 1/64 of its FP32, to a tenth.

    >>> fp64_vector(fp64=None, fp32=Decimal("82.6"), is_graphics=True)
    Estimated(value=Decimal('1.3'))
    >>> fp64_vector(fp64=Decimal(34), fp32=Decimal(67), is_graphics=False)
    Decimal('34')
    """
    if fp64 is not None or fp32 is None or not is_graphics:
        return fp64
    return Estimated(value=(fp32 / GRAPHICS_FP64_DIVISOR).quantize(Decimal("0.1")))


def science_work(gpu: Gpu) -> Decimal | None:
    """Return the TFLOPS of double precision: TFLOPS-hours of an hour."""
    vector = fp64_vector(fp64=gpu.fp64_tflops, fp32=gpu.fp32_tflops, is_graphics=bool(gpu.rt_cores))
    return vector.value if isinstance(vector, Estimated) else vector


def science_facts(rows: Mapping[str, Row]) -> ScienceFacts:
    """Compute the numbers of the page's sentences, from the rows by slug."""
    strong, weak, faster, slower = rows["b200"], rows["b300"], rows["h200-sxm"], rows["h100-sxm"]
    fp64_ratio = ratio(strong.gpu.fp64_tflops, weak.gpu.fp64_tflops)
    bandwidth = ratio(faster.gpu.memory_bandwidth_gb_s, slower.gpu.memory_bandwidth_gb_s)
    assert fp64_ratio
    assert bandwidth
    assert strong.gpu.fp64_tflops
    assert weak.gpu.fp64_tflops
    return ScienceFacts(
        strong=strong,
        weak=weak,
        strong_tflops=strong.gpu.fp64_tflops,
        weak_tflops=weak.gpu.fp64_tflops,
        fp64_ratio=fp64_ratio,
        weak_server_tflops=weak.gpu.fp64_tflops * SERVER_GPUS,
        server_gpus=SERVER_GPUS,
        faster_memory=faster,
        slower_memory=slower,
        bandwidth_percent=rounded((bandwidth - 1) * 100),
    )


_READ_ON = date(2026, 11, 30)
SCIENCE = UseCase(
    slug="science",
    groups={"full": FULL_SLUGS, "warned": WARNED_SLUGS},
    values=science_values,
    work=science_work,
    facts=science_facts,
    rule_version=RULE_VERSION,
    rule={"divisor": GRAPHICS_FP64_DIVISOR},
    pairs={
        "h200_mi300x": ("h200-sxm", "mi300x"),
        "b200_b300": ("b200", "b300"),
        "a100_h100": ("a100-sxm-80gb", "h100-sxm"),
    },
    sample=Sample(slug="h200-sxm", gpu_count=1, hours=24),
    sources=(
        Source(title="NVIDIA DGX B300", url="https://www.nvidia.com/en-us/data-center/dgx-b300/", read_on=_READ_ON),
        Source(title="NVIDIA H200", url="https://www.nvidia.com/en-us/data-center/h200/", read_on=_READ_ON),
        Source(
            title="AMD Instinct MI300X",
            url="https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html",
            read_on=_READ_ON,
        ),
        Source(
            title="GROMACS manual, performance",
            url="https://manual.gromacs.org/current/user-guide/mdrun-performance.html",
            read_on=_READ_ON,
        ),
        Source(
            title="NVIDIA CUDA, floating point",
            url="https://docs.nvidia.com/cuda/floating-point/index.html",
            read_on=_READ_ON,
        ),
        Source(
            title="AMD CDNA 3 white paper",
            url="https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/white-papers/amd-cdna-3-white-paper.pdf",
            read_on=_READ_ON,
        ),
    ),
)
