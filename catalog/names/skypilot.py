"""The other way round: what SkyPilot calls a GPU of ours. One name for one product, so that two never mix in one search.

SkyPilot's files write "H100" for three products; here the plain name is kept for the one that most rows of its files
mean, and the others get the spelling that some file has for them alone. Counted over the accelerator names of
github.com/skypilot-org/skypilot-catalog, schema v5 to v8, November 2026. `resolve` reads each name back.

>>> skypilot_name("h100-sxm", label="H100 SXM"), skypilot_name("h100-nvl", label="H100 NVL")
('H100', 'H100-NVL')
>>> skypilot_name("mi325x", label="MI325X"), skypilot_name("rtx-4080-super", label="RTX 4080 Super")
('MI325X', 'RTX-4080-Super')
"""

_NAMES = {
    "a100-pcie-40gb": "A100-PCIe-40GB",
    "a100-pcie-80gb": "A100-80G-PCIe",
    "a100-sxm-40gb": "A100",
    "a100-sxm-80gb": "A100-80GB",
    "a800-pcie-80gb": "A800",
    "gaudi-1": "Gaudi HL-205",
    "gh200-96gb": "GH200",
    "h100-nvl": "H100-NVL",
    "h100-pcie": "H100-80G-PCIe",
    "h100-sxm": "H100",
    "h200-sxm": "H200",
    "inferentia-1": "Inferentia",
    "inferentia-2": "Inferentia2",
    "p100-pcie": "P100",
    "quadro-rtx-6000": "RTX6000",
    "radeon-pro-v520": "Radeon Pro V520",
    "rtx-3060": "RTX3060",
    "rtx-3070": "RTX3070",
    "rtx-3090": "RTX3090",
    "rtx-4000-ada": "RTX4000-Ada",
    "rtx-4090": "RTX4090",
    "rtx-5000-ada": "RTX5000-Ada",
    "rtx-5070": "RTX5070",
    "rtx-5090": "RTX5090",
    "rtx-5880-ada": "RTX5880-Ada",
    "rtx-6000-ada": "RTX6000-Ada",
    "rtx-a4000": "RTXA4000",
    "rtx-a4500": "RTXA4500",
    "rtx-a5000": "RTXA5000",
    "rtx-a6000": "RTXA6000",
    "rtx-pro-6000-blackwell": "RTXPRO6000WS",
    "rtx-pro-6000-blackwell-maxq": "RTXPRO6000-MaxQ",
    "rtx-pro-6000-blackwell-server": "RTXPRO6000",
    "t4g": "T4g",
    "trainium-1": "Trainium",
    "v100-sxm2-16gb": "V100",
    "v100-sxm2-32gb": "V100-32GB",
}


def skypilot_name(slug: str, *, label: str) -> str:
    """Return SkyPilot's name of a GPU; for one that its files do not have, our label without spaces."""
    return _NAMES.get(slug, label.replace(" ", "-"))
