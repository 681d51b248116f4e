"""One line of a SkyPilot catalogue file as a typed value, before any cloud's own rules are applied to it.

`GpuInfo` is text in five dialects (a Python dict, the same with JSON's null, JSON, lower-case keys, a bare name).
Only its name and memory are read, and they are hints: a dialect nobody knows costs a hint, never a price.
"""

import ast
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from catalog.sources.base import Availability, BodyRejected, read_csv, read_price

REQUIRED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
LONGEST_GPU_INFO = 2000
MIB_PER_GB = 1024


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One line. Prices in USD per hour for the whole instance; `None` = the file states none.

    `document` is the cloud whose file it is, `cloud` the one that sells the machine: they differ at aggregators.
    `stated_memory_gb` is what the file says about one GPU; `gpu_memory_gb` is set where that is to be trusted.
    """

    document: str
    cloud: str
    instance_type: str
    gpu_name: str
    gpu_count: Decimal
    price: Decimal | None
    spot: Decimal | None
    region: str
    zone: str = ""
    upstream_type: str = ""
    info_name: str = ""
    stated_memory_gb: Decimal | None = None
    gpu_slug: str = ""
    gpu_count_in_name: Decimal | None = None
    gpu_memory_gb: Decimal | None = None
    form_factor: str = ""
    vcpus: Decimal | None = None
    ram_gb: Decimal | None = None
    disk_gb: Decimal | None = None
    availability: Availability = Availability.UNKNOWN


def read_listings(slug: str, content: bytes) -> list[Listing]:
    """Return every line of the file of cloud `slug`, lines without a GPU included.

    Raises BodyRejected when the body is not a whole catalogue file.
    """
    repaired = unquoted_generation_joined if slug == "azure" else None
    listings = [_listing(slug, row) for row in read_csv(content, required=REQUIRED, repaired=repaired)]
    if not listings:
        raise BodyRejected("the file has a header and no rows")
    return listings


def _listing(slug: str, row: dict[str, str]) -> Listing:
    name, memory_mib = read_gpu_info(row.get("GpuInfo", ""))
    return Listing(
        document=slug,
        cloud=slug,
        instance_type=row["InstanceType"],
        gpu_name=row["AcceleratorName"],
        gpu_count=read_price(row["AcceleratorCount"]) or Decimal(0),
        price=read_price(row["Price"]),
        spot=read_price(row.get("SpotPrice", "")),
        region=row["Region"],
        zone=row.get("AvailabilityZone", ""),
        upstream_type=row.get("UpstreamCloudId", ""),
        info_name=name,
        stated_memory_gb=memory_gb(memory_mib),
        vcpus=read_price(row.get("vCPUs", "")),
        ram_gb=read_price(row.get("MemoryGiB", "")),
        disk_gb=read_price(row.get("StorageGiB", "")),
    )


def unquoted_generation_joined(cells: list[str]) -> list[str]:
    """Return an Azure row whose `V1,V2` was written without quotes, so that it fits its header again.

    >>> unquoted_generation_joined(["A10", "V1", "V2", "1.1"])
    ['A10', 'V1,V2', '1.1']
    """
    for position, pair in enumerate(pairwise(cells)):
        if pair == ("V1", "V2"):
            return [*cells[:position], "V1,V2", *cells[position + 2 :]]
    return cells


def read_gpu_info(text: str) -> tuple[str, int]:
    """Return the first GPU's name and memory in MiB as the file states them; "" and 0 for what it does not state.

    >>> read_gpu_info("{'Gpus': [{'Name': 'L4', 'Manufacturer': null, 'MemoryInfo': {'SizeInMiB': 24576}}]}")
    ('L4', 24576)
    >>> read_gpu_info("H100")
    ('H100', 0)
    """
    if not text.startswith("{"):
        return text, 0
    gpus = _lower_keys(_parsed(text)).get("gpus")
    first = gpus[0] if isinstance(gpus, list) and gpus and isinstance(gpus[0], dict) else {}
    memory = first.get("memoryinfo")
    size = memory.get("sizeinmib") if isinstance(memory, dict) else None
    name = first.get("name")
    return name if isinstance(name, str) else "", size if isinstance(size, int) and not isinstance(size, bool) else 0


def _parsed(text: str) -> dict[str, Any]:
    if len(text) > LONGEST_GPU_INFO:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = ast.literal_eval(re.sub(r"\bnull\b", "None", text))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return {}
    return found if isinstance(found, dict) else {}


def _lower_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key).lower(): _lower_keys(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_lower_keys(inner) for inner in value]
    return value


def memory_gb(size: int) -> Decimal | None:
    """Return a `SizeInMiB` in GB. Some fetchers write GB into it: no GPU here has under 1 GB, so those are told apart.

    >>> memory_gb(81920), memory_gb(80), memory_gb(0)
    (Decimal('80.00'), Decimal('80'), None)
    """
    if size <= 0:
        return None
    if size < MIB_PER_GB:
        return Decimal(size)
    return (Decimal(size) / MIB_PER_GB).quantize(Decimal("0.01"))
