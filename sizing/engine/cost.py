"""Hours, cost, and what interruptions waste.

Spot waste: a checkpoint costs d, interruptions come every M on average, a restart costs R. Saving every
tau = sqrt(2 d M) is best (Young 1974; Daly 2006); then waste = sqrt(2 d / M) + R / M. n independent instances are
interrupted n times as often. Where a warning leaves time to save, nothing done is lost: d / tau + R / M.
"""

import math
from decimal import Decimal


def hours_for(*, tokens: float, tokens_per_s: float) -> float:
    """Return hours.

    >>> hours_for(tokens=3_600_000, tokens_per_s=1000)
    1.0
    """
    return tokens / tokens_per_s / 3600


def cost_usd(*, hours: float, gpu_count: int, price_usd_per_gpu_hour: Decimal, waste: float = 0.0) -> Decimal:
    """Return the cost in USD, net of tax, to the cent; wasted time is paid too.

    >>> cost_usd(hours=10, gpu_count=8, price_usd_per_gpu_hour=Decimal("2.00"))
    Decimal('160.00')
    """
    paid_hours = Decimal(repr(hours)) / (1 - Decimal(repr(waste)))
    return (paid_hours * gpu_count * price_usd_per_gpu_hour).quantize(Decimal("0.01"))


def spot_waste(
    *, checkpoint_s: float, interruption_mean_s: float, restart_s: float, instances: int = 1, is_warned: bool = False
) -> float:
    """Return the share of time that interruptions waste, at the best checkpoint interval, at most 0.95.

    >>> round(spot_waste(checkpoint_s=60, interruption_mean_s=6 * 3600, restart_s=300), 3)
    0.088
    """
    mean_s = interruption_mean_s / instances
    saving = math.sqrt(2 * checkpoint_s / mean_s) * (0.5 if is_warned else 1.0)
    return min(0.95, saving + restart_s / mean_s)


def checkpoint_bytes(*, trainable_parameters: float, is_adapted: bool) -> float:
    """Return what a checkpoint writes: 14 bytes per parameter (2 weights + 12 states), adapters 12.

    >>> checkpoint_bytes(trainable_parameters=1e9, is_adapted=False)
    14000000000.0
    """
    return trainable_parameters * (12 if is_adapted else 14)
