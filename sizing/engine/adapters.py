"""Low-rank adapters: which matrices they sit on and how many parameters they add.

An adapter of rank r on a matrix from `a` to `b` has r (a + b) parameters (LoRA, arXiv:2106.09685, section 4.1).
"""

from sizing.engine.architecture import Architecture
from sizing.engine.job import Target


def target_widths(arch: Architecture) -> dict[Target, tuple[int, int]]:
    """Return each matrix's input and output width. A mixture of experts adapts the experts that a token passes."""
    h, width = arch.hidden, arch.mlp_width
    widths: dict[Target, tuple[int, int]] = {
        "q": (h, arch.q_width),
        "k": (h, arch.kv_width),
        "v": (h, arch.kv_width),
        "o": (arch.output_width, h),
        "up": (h, width),
        "down": (width, h),
    }
    if arch.mlp_matrices == 3:
        widths["gate"] = (h, width)
    return widths


def adapter_parameters(arch: Architecture, targets: frozenset[Target], rank: int) -> int:
    """Return the trainable parameters of all adapters.

    >>> llama = Architecture(family="llama", layers=16, hidden=2048, heads=32, kv_heads=8, head_dim=64,
    ...                      intermediate=8192, vocab=128256)
    >>> adapter_parameters(llama, frozenset({"q", "k", "v", "o", "gate", "up", "down"}), 16)
    11272192
    """
    widths = target_widths(arch)
    per_layer = sum(a + b for target, (a, b) in widths.items() if target in targets)
    head = arch.hidden + arch.vocab if "head" in targets else 0
    return rank * (arch.layers * per_layer + head)
