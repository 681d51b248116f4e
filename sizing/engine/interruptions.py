"""What interruptions of a spot machine cost, and how often they may come before spot stops being cheaper.

>>> usual = Interruptions()
>>> round(usual.waste(8), 3), round(usual.waste(16), 3)
(0.088, 0.133)
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from sizing.engine.cost import spot_waste

GPUS_PER_MACHINE = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Interruptions:
    """How a spot machine is taken to behave: hours between interruptions on average, seconds to save and to restart."""

    mean_s: float = 6 * 3600.0
    checkpoint_s: float = 60.0
    restart_s: float = 300.0

    def waste(self, gpu_count: int) -> float:
        """Return the share of time that is wasted; machines of eight GPUs are interrupted one by one."""
        return spot_waste(
            checkpoint_s=self.checkpoint_s,
            interruption_mean_s=self.mean_s,
            restart_s=self.restart_s,
            instances=machines(gpu_count),
        )

    def break_even_mean_s(self, gpu_count: int, *, spot: Decimal, on_demand: Decimal) -> float | None:
        """Return how long a machine must live on average for spot to cost the same; None where it can never.

        The waste that makes both cost the same is w = 1 - spot / on_demand. With x = 1 / sqrt(M) and n machines,
        sqrt(2 d n) x + R n x^2 = w.

        >>> seconds = Interruptions().break_even_mean_s(1, spot=Decimal(1), on_demand=Decimal(2))
        >>> round(Interruptions(mean_s=seconds).waste(1), 6)
        0.5
        """
        wasted = 1 - float(spot / on_demand) if on_demand else 0.0
        if wasted <= 0:
            return None
        count = machines(gpu_count)
        linear, square = math.sqrt(2 * self.checkpoint_s * count), self.restart_s * count
        if square == 0:
            return (linear / wasted) ** 2
        root = (math.sqrt(linear**2 + 4 * square * wasted) - linear) / (2 * square)
        return 1 / root**2


def machines(gpu_count: int) -> int:
    """Return how many machines so many GPUs are."""
    return -(-gpu_count // GPUS_PER_MACHINE)
