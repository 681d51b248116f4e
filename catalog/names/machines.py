"""What clouds put into their machines: the facts that decide a name which several cards share.

A fact says: at this cloud, in machine types whose name begins so, the card is one of these. Facts are read in order,
each narrowing what the ones before it left; one that would leave nothing does not apply (it speaks of other cards).
Sources: the rules of `data/gpu_aliases_ambiguous.csv` and the clouds' own machine type pages.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from catalog.names.cards import Card
from catalog.names.clouds import cloud_slug
from catalog.names.hints import Hints


@dataclass(frozen=True)
class Fact:
    """`machine` is how the machine types begin, as a regular expression; blank means all of the cloud's."""

    cloud: str
    machine: str
    slugs: tuple[str, ...]


@dataclass(frozen=True)
class Mislabel:
    """A machine type whose offers carry the name of another card: `means` is the card in it, None if we have no row."""

    cloud: str
    machine: str
    slug: str
    means: str | None


A100_SXM = ("a100-sxm-40gb", "a100-sxm-80gb")
A100_PCIE = ("a100-pcie-40gb", "a100-pcie-80gb")
A100_40GB = ("a100-sxm-40gb", "a100-pcie-40gb")
A100_80GB = ("a100-sxm-80gb", "a100-pcie-80gb")
V100_SXM2 = ("v100-sxm2-16gb", "v100-sxm2-32gb")

FACTS = (
    # A100
    Fact("aws", r"p4d\.", ("a100-sxm-40gb",)),
    Fact("aws", r"p4de\.", ("a100-sxm-80gb",)),
    Fact("aws", "", A100_SXM),
    Fact("gcp", r"a2-(?:highgpu|megagpu)-", ("a100-sxm-40gb",)),
    Fact("gcp", r"a2-ultragpu-", ("a100-sxm-80gb",)),
    Fact("gcp", "", A100_SXM),
    Fact("gcp", "", A100_40GB),  # its 80 GB card is always sold under a name that says so
    Fact("azure", r"Standard_ND96asr_", ("a100-sxm-40gb",)),
    Fact("azure", r"Standard_ND96amsr_", ("a100-sxm-80gb",)),
    Fact("azure", r"Standard_NC\d+ads_A100_", ("a100-pcie-80gb",)),
    Fact("oci", r"BM\.GPU4\.", ("a100-sxm-40gb",)),
    Fact("oci", r"BM\.GPU\.A100-v2", ("a100-sxm-80gb",)),
    Fact("oci", "", A100_SXM),
    Fact("lambda", r"gpu_8x_a100$", ("a100-sxm-40gb",)),
    Fact("lambda", r"gpu_\d+x_a100_80gb", A100_80GB),
    Fact("lambda", "", A100_40GB),
    Fact("verda", "", A100_SXM),
    Fact("runpod", "", A100_PCIE),
    Fact("hyperstack", "", A100_PCIE),
    Fact("seeweb", "", A100_80GB),
    Fact("cudo", "", A100_80GB),
    Fact("vultr", "", A100_80GB),
    # H100
    Fact("azure", r"Standard_NCC?\d+\w*_H100_", ("h100-nvl",)),
    Fact("azure", r"Standard_ND\w*_H100_", ("h100-sxm",)),
    Fact("runpod", "", ("h100-pcie",)),
    Fact("scaleway", r"H100-\d", ("h100-pcie",)),
    Fact("lambda", r"gpu_8x_h100", ("h100-sxm",)),
    Fact("aws", "", ("h100-sxm",)),
    Fact("gcp", "", ("h100-sxm",)),
    Fact("oci", "", ("h100-sxm",)),
    Fact("nebius", "", ("h100-sxm",)),
    Fact("verda", "", ("h100-sxm",)),
    Fact("digitalocean", "", ("h100-sxm",)),  # Shadeform lists its machines as H100-sxm5
    # GH200
    Fact("lambda", "", ("gh200-96gb",)),
    # V100
    Fact("aws", r"p3\.", ("v100-sxm2-16gb",)),
    Fact("aws", r"p3dn\.", ("v100-sxm2-32gb",)),
    Fact("aws", "", V100_SXM2),
    Fact("azure", r"Standard_NC\d+r?s_v3", ("v100-pcie-16gb",)),
    Fact("azure", r"Standard_ND40rs_v2", ("v100-sxm2-32gb",)),
    Fact("gcp", "", ("v100-sxm2-16gb",)),
    Fact("oci", "", ("v100-sxm2-16gb",)),
    Fact("verda", "", ("v100-sxm2-16gb",)),
    Fact("lambda", "", ("v100-sxm2-16gb",)),
    Fact("ovhcloud", r"t2-", ("v100-pcie-32gb",)),
    # P100. Oracle's VM.GPU2.1 is left out: our own alias calls it PCIe, the rule for Oracle says SXM2.
    Fact("gcp", "", ("p100-pcie",)),
    Fact("scaleway", "", ("p100-pcie",)),
    Fact("oci", r"(?!VM\.GPU2\.)", ("p100-sxm2",)),
    # RTX 6000
    Fact("lambda", "", ("quadro-rtx-6000",)),
    Fact("seeweb", "", ("quadro-rtx-6000",)),
)

MISLABELS = (
    # Both generations are called Inferentia in AWS price lists of 2024.
    Mislabel("aws", r"inf2\.", "inferentia-1", "inferentia-2"),
    Mislabel("aws", r"trn2", "trainium-1", "trainium-2"),
    # G7 holds the Server Edition, which is another card than the workstation's RTX PRO 4500.
    Mislabel("aws", r"g7\.", "rtx-pro-4500-blackwell", None),
)

_VAST_MACHINE = re.compile(r"\d+x-(?P<name>.+)-\d+-\d+")


def narrowed_by_machine(cards: Sequence[Card], hints: Hints) -> tuple[Card, ...]:
    """Return the cards that the cloud, and its machine type where given, leaves."""
    left = tuple(cards)
    for fact in FACTS:
        if fact.cloud == cloud_slug(hints.cloud) and re.match(fact.machine, hints.instance_type):
            left = tuple(card for card in left if card.slug in fact.slugs) or left
    return left


def mislabel(slug: str, hints: Hints) -> Mislabel | None:
    """Return what the machine type says against this card, if it does."""
    for known in MISLABELS:
        if (
            known.slug == slug
            and known.cloud == cloud_slug(hints.cloud)
            and re.match(known.machine, hints.instance_type)
        ):
            return known
    return None


def name_in_machine(hints: Hints) -> str:
    """Return the full name in a Vast machine type of SkyPilot's file (`4x-RTX_4070S_Ti-32-65536`), else blank.

    That file strips PCIE, SXM, NVL, Ti, S and D from its accelerator names, so only this one may be believed.
    """
    machine = _VAST_MACHINE.fullmatch(hints.instance_type)
    return machine["name"] if machine and cloud_slug(hints.cloud) == "vast" else ""
