"""The best matrix multiply in BF16 that was found on a card, against the maker's dense figure.

Source: ml-engineering, accelerator tables ("maximum achievable matmul"), August 2026. A training run reaches less.

>>> measured_percent("h100-sxm", bf16_dense_tflops=Decimal(989)), measured_percent("l4", bf16_dense_tflops=None)
(80, None)
"""

from decimal import ROUND_HALF_UP, Decimal

MEASURED_SOURCE = "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md"
MEASURED_BF16_TFLOPS = {
    "b300": 1769,
    "b200": 1745,
    "mi355x": 1565,
    "mi325x": 785,
    "mi300x": 668,
    "h100-sxm": 795,
    "a100-sxm-80gb": 271,
}


def measured_percent(slug: str, *, bf16_dense_tflops: Decimal | None) -> int | None:
    """Return the measured figure in percent of the dense one; None where either is not published."""
    measured = MEASURED_BF16_TFLOPS.get(slug)
    if measured is None or not bf16_dense_tflops:
        return None
    return int((100 * measured / bf16_dense_tflops).to_integral_value(rounding=ROUND_HALF_UP))
