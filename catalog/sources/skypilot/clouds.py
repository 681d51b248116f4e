"""What is odd about each cloud's file: one small rule per cloud, applied to a line before it becomes an offer.

Repaired here is what only this catalogue does to a cloud's data: memory figures, counts of slices, missing names, spot
prices that are none, and who sells the machine (aggregators). Which card a cloud means by a name is `catalog.names`'.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from catalog.names import cloud_slug
from catalog.sources.base import Availability
from catalog.sources.skypilot.listing import Listing

# Names that stand in the accelerator column and are no GPU of any kind; kept out with the reason.
NOT_GPUS = {
    "Virtex UltraScale (VU9P)": "field-programmable gate array",
    "Virtex UltraScale+ (VU47P)": "field-programmable gate array",
    "Alveo U250": "field-programmable gate array",
    "U250": "field-programmable gate array",
    "U30": "video transcoder",
    "Xilinx U30": "video transcoder",
    "Qualcomm AI100": "inference card without a published GPU specification",
    "AI100": "inference card without a published GPU specification",
}
# Clouds whose SizeInMiB holds one GPU's memory (in MiB, or in GB where it is a small number). The rest is left out:
# aws sums it for the g6 families, vast sums it for all, primeintellect multiplies twice, verda states what is usable
# (B300: 262 of 288), azure, ibm and paperspace state none.
ONE_GPUS_MEMORY = {
    "cudo", "digitalocean", "fluidstack", "gcp", "hyperbolic", "hyperstack", "jarvislabs", "lambda", "nebius", "oci",
    "ovhcloud", "runpod", "scaleway", "scp", "seeweb", "shadeform",
}  # fmt: skip
COUNTS_IN_NAMES = {
    "cudo": r"_(\d+)x\d+v",
    "digitalocean": r"x(\d+)-\d+gb$",
    "fluidstack": r"::(\d+)$",
    "gcp": r"gpu-(\d+)g$",
    "hyperbolic": r"^(\d+)x-",
    "hyperstack": r"x(\d+)(?:-NVLink)?$",
    "jarvislabs": r"^(\d+)x_",
    "lambda": r"^gpu_(\d+)x_",
    "nebius": r"_(\d+)gpu-",
    "oci": r"\.(\d+)$",
    "paperspace": r"x(\d+)$",
    "primeintellect": r"__(\d+)x",
    "runpod": r"^(\d+)x_",
    "scaleway": r"^H100-(\d+)-",
    "shadeform": r"x(\d+)(?:-NVLINK)?$",
    "vast": r"^(\d+)x-",
    "verda": r"^(\d+)[A-Z]",
}


def as_sold(listing: Listing) -> Listing:
    """Return the line with its cloud's rule applied and every hint set that the cloud's naming supports."""
    known = RULES.get(listing.document, _unchanged)(listing)
    pattern = COUNTS_IN_NAMES.get(known.document, "")
    count = re.search(pattern, known.instance_type) if pattern else None
    return replace(
        known,
        gpu_memory_gb=known.gpu_memory_gb or (known.stated_memory_gb if known.document in ONE_GPUS_MEMORY else None),
        form_factor=form_factor_in(f"{known.instance_type} {known.upstream_type} {known.info_name}")
        or known.form_factor,
        gpu_count_in_name=Decimal(count[1]) if count else None,
    )


def form_factor_in(text: str) -> str:
    """Return the form factor that names itself in an instance type or a driver's name.

    >>> form_factor_in("gpu_1x_h100_sxm5"), form_factor_in("intel-ice-lake-a100-pci_1x2v4gb"), form_factor_in("H100_NVL")
    ('SXM', 'PCIe', 'NVL')
    >>> form_factor_in("n3-A100x8-NVLink"), form_factor_in("NVIDIA-H100-80GB-HBM3")
    ('', 'SXM')
    """
    if re.search(r"sxm|80GB.HBM3", text, re.IGNORECASE):
        return "SXM"
    if re.search(r"pcie|pci_", text, re.IGNORECASE):
        return "PCIe"
    return "NVL" if re.search(r"nvl(?!ink)", text, re.IGNORECASE) else ""


def _unchanged(listing: Listing) -> Listing:
    return listing


AWS_SLICES = {"g6f.large": 8, "g6f.xlarge": 8, "g6f.2xlarge": 4, "g6f.4xlarge": 2, "gr6f.4xlarge": 2}


def _aws(listing: Listing) -> Listing:
    """g6f sells parts of an L4 and says 0 of it; the memory of the other g6 families is that of all their GPUs."""
    parts = AWS_SLICES.get(listing.instance_type)
    is_summed = listing.instance_type.startswith(("g6", "gr6"))
    return replace(
        listing,
        gpu_count=Decimal(1) / parts if parts else listing.gpu_count,
        gpu_memory_gb=None if is_summed else listing.stated_memory_gb,
    )


AZURE_UNNAMED = (
    (r"ND96isr?_MI300X_v5", "MI300X", Decimal(8)),
    (r"ND128isr_NDR_GB200_v6", "GB200", Decimal(4)),
)
# Cards sold in parts: the instance's vCPUs against those of a whole card give the part. The file says 1, or nothing.
AZURE_SHARED_CARDS = (
    (r"NV(\d+)as_v4", "MI25", 32),
    (r"NV(\d+)adm?s_V710_v5", "Radeon PRO V710", 24),
    (r"NG(\d+)adm?s_V620_v1", "Radeon PRO V620", 32),
)


def _azure(listing: Listing) -> Listing:
    """Some sizes have no accelerator name, and some are slices that say 1."""
    size = listing.instance_type.removeprefix("Standard_")
    for pattern, name, count in AZURE_UNNAMED:
        if re.fullmatch(pattern, size):
            listing = replace(listing, gpu_name=name, gpu_count=count)
    for pattern, name, vcpus_per_card in AZURE_SHARED_CARDS:
        part = re.fullmatch(pattern, size)
        if part:
            share = min(Decimal(1), Decimal(part[1]) / vcpus_per_card)
            listing = replace(listing, gpu_name=listing.gpu_name or name, gpu_count=share)
    return listing


def _lambda(listing: Listing) -> Listing:
    return replace(listing, form_factor=lambda_form_factor(listing.instance_type))


def lambda_form_factor(instance_type: str) -> str:
    """Return the form factor Lambda's type stands for: eight of a kind are a board, the bare A100 is the PCIe card.

    >>> lambda_form_factor("gpu_8x_v100"), lambda_form_factor("gpu_2x_a100"), lambda_form_factor("gpu_1x_h100_sxm5")
    ('SXM', 'PCIe', '')
    """
    if re.match(r"gpu_8x_[ahv]100", instance_type):
        return "SXM"
    return "PCIe" if re.fullmatch(r"gpu_[124]x_a100", instance_type) else ""


def _vast(listing: Listing) -> Listing:
    """The fetcher strips Ti, S, D, SXM from the name and sums the memory; the instance type has the host's own name.

    A spot price of zero is none.
    """
    found = re.fullmatch(r"\d+x-(.+)-\d+-\d+", listing.instance_type)
    of_all, count = listing.stated_memory_gb, listing.gpu_count
    return replace(
        listing,
        gpu_name=found[1].replace("_", " ") if found else listing.gpu_name,
        gpu_memory_gb=(of_all / count).quantize(Decimal("0.01")) if of_all and count > 0 else None,
        spot=listing.spot or None,
        region=listing.region.strip(", "),
    )


def _runpod(listing: Listing) -> Listing:
    """The fetcher fills in half the list price as spot where there is no quote."""
    invented = listing.spot is not None and listing.price is not None and listing.spot * 2 == listing.price
    return replace(listing, spot=None) if invented else listing


def _seeweb(listing: Listing) -> Listing:
    """A blank region means: not available anywhere now. The price is taken as the USD the format promises."""
    return listing if listing.region else replace(listing, availability=Availability.NO)


def _primeintellect(listing: Listing) -> Listing:
    """An aggregator. Spot machines are own lines with a suffix; only the name's memory can be trusted."""
    memory = re.search(r"_(\d+)GB__", listing.instance_type)
    return _of_underlying_cloud(
        replace(
            listing,
            cloud=cloud_slug(listing.instance_type.partition("__")[0]),
            instance_type=listing.instance_type.removesuffix("__SPOT"),
            gpu_memory_gb=Decimal(memory[1]) if memory else None,
        )
    )


def _shadeform(listing: Listing) -> Listing:
    """An aggregator: the instance type begins with the cloud that runs the machine."""
    return _of_underlying_cloud(replace(listing, cloud=cloud_slug(listing.instance_type.partition("_")[0])))


def _of_underlying_cloud(listing: Listing) -> Listing:
    """Hyperstack says SXM5 where its H100 is one; Lambda's own type tells the form."""
    is_pcie = listing.cloud == "hyperstack" and listing.gpu_name == "H100"
    return replace(listing, form_factor="PCIe" if is_pcie else lambda_form_factor(listing.upstream_type))


RULES: dict[str, Callable[[Listing], Listing]] = {
    "aws": _aws,
    "azure": _azure,
    "lambda": _lambda,
    "primeintellect": _primeintellect,
    "runpod": _runpod,
    "seeweb": _seeweb,
    "shadeform": _shadeform,
    "vast": _vast,
}
