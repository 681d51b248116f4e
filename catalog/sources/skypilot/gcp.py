"""Google Cloud in SkyPilot's files: the accelerator and its host are separate lines, and a renter pays both.

A GPU line has no instance type and prices the GPUs alone; the host line of the same zone prices the machine. A TPU
line prices a whole slice with its host, and is named by the slice's size. Host types per GPU and count:
https://cloud.google.com/compute/docs/gpus ; slice sizes: https://cloud.google.com/tpu/docs/system-architecture-tpu-vm
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from catalog.sources.skypilot.listing import Listing

HOSTS: dict[tuple[str, int], Sequence[str]] = {
    **{("A100", count): [f"a2-highgpu-{count}g"] for count in (1, 2, 4, 8)},
    ("A100", 16): ["a2-megagpu-16g"],
    **{("A100-80GB", count): [f"a2-ultragpu-{count}g"] for count in (1, 2, 4, 8)},
    **{("H100", count): [f"a3-highgpu-{count}g"] for count in (1, 2, 4, 8)},
    ("H100-MEGA", 8): ["a3-megagpu-8g"],
    ("H200", 8): ["a3-ultragpu-8g"],
    # The a4 host line says 0.0: Google sells its B200 slice with cores and memory in the GPU's price.
    ("B200", 8): ["a4-highgpu-8g"],
    ("GB200", 4): ["a4x-highgpu-4g"],
    ("L4", 1): [f"g2-standard-{vcpus}" for vcpus in (4, 8, 12, 16, 32)],
    ("L4", 2): ["g2-standard-24"],
    ("L4", 4): ["g2-standard-48"],
    ("L4", 8): ["g2-standard-96"],
    # These attach to any N1 machine; the one here has 8 cores (T4, P4: 4) per GPU, as other clouds sell them.
    **{(name, count): [f"n1-standard-{count * 4}"] for name in ("T4", "P4") for count in (1, 2, 4)},
    **{("P100", count): [f"n1-standard-{count * 8}"] for count in (1, 2, 4)},
    **{("V100", count): [f"n1-standard-{count * 8}"] for count in (1, 2, 4, 8)},
}
# Slice names count chips, or cores of which a chip has two.
TPU_CORES_PER_CHIP = {"v2": 2, "v3": 2, "v4": 2, "v5p": 2, "v5litepod": 1, "v6e": 1}
TPU_SLUGS = {"v4": "tpu-v4", "v5p": "tpu-v5p", "v5litepod": "tpu-v5e", "v6e": "tpu-v6e"}


def with_hosts(listings: Iterable[Listing], hosts: Iterable[Listing]) -> Iterator[Listing]:
    """Yield TPU slices, and each GPU line once per host type of its zone, at the price of both.

    A GPU without a host line in its zone is left out: its price alone is no offer.
    """
    host_lines = {(host.instance_type, host.zone): host for host in hosts if host.instance_type}
    for listing in listings:
        if listing.gpu_name.startswith("tpu-"):
            yield _slice(listing)
            continue
        for host_type in HOSTS.get((listing.gpu_name, int(listing.gpu_count)), ()):
            host = host_lines.get((host_type, listing.zone))
            if host is not None:
                yield _together(listing, host)


def _together(gpu: Listing, host: Listing) -> Listing:
    attached = host.instance_type.startswith("n1-")
    return replace(
        gpu,
        instance_type=f"{host.instance_type}+{gpu.gpu_count:f}x{gpu.gpu_name}" if attached else host.instance_type,
        price=_sum(gpu.price, host.price),
        spot=_sum(gpu.spot, host.spot),
        vcpus=host.vcpus,
        ram_gb=host.ram_gb,
    )


def _sum(first: Decimal | None, second: Decimal | None) -> Decimal | None:
    return None if first is None or second is None else first + second


def _slice(listing: Listing) -> Listing:
    """Return a TPU slice with its count in chips; an unknown family keeps its name and goes to review.

    v5litepod-16 and v6e-16 are 16 chips; v5p-16 is 16 cores, which are 8 chips.
    """
    found = re.fullmatch(r"tpu-(\w+)-(\d+)", listing.gpu_name)
    family = found[1] if found else ""
    chips = Decimal(found[2]) / TPU_CORES_PER_CHIP[family] if found and family in TPU_CORES_PER_CHIP else Decimal(0)
    return replace(
        listing,
        instance_type=listing.gpu_name,
        gpu_count=chips or listing.gpu_count,
        gpu_slug=TPU_SLUGS.get(family, ""),
    )
