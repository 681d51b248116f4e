"""At what speed the dearer of two GPUs costs less, and what the makers' figures say about it. Pure."""

from dataclasses import dataclass
from decimal import Decimal

from catalog.compared import ComparedPair, Side, ratio


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """Two prices of one kind. The dearer costs less wherever it is more than `factor` times as fast; `factor` >= 1.

    `compute` and `bandwidth`: how many times the other's BF16 and bandwidth it has, None where not published.
    """

    dearer: Side
    other: Side
    factor: Decimal
    compute: Decimal | None
    bandwidth: Decimal | None

    @property
    def cheaper_for_compute(self) -> Side | None:
        """The one that arithmetic costs less on, by the dense figures; None without them, or where both cost the same."""
        return self._cheaper(self.compute)

    @property
    def cheaper_for_bandwidth(self) -> Side | None:
        """The one that reading memory costs less on."""
        return self._cheaper(self.bandwidth)

    def _cheaper(self, speed: Decimal | None) -> Side | None:
        if speed is None or speed == self.factor:
            return None
        return self.dearer if speed > self.factor else self.other


def break_even(pair: ComparedPair) -> BreakEven | None:
    """Return at what speed the dearer of two pays; None unless both prices are live or both are list prices."""
    if pair.price_ratio is None:
        return None
    is_first_dearer = pair.price_ratio >= 1
    dearer, other = (pair.first, pair.second) if is_first_dearer else (pair.second, pair.first)
    return BreakEven(
        dearer=dearer,
        other=other,
        factor=pair.price_ratio if is_first_dearer else 1 / pair.price_ratio,
        compute=ratio(dearer.gpu.bf16_dense_tflops, other.gpu.bf16_dense_tflops),
        bandwidth=ratio(dearer.gpu.memory_bandwidth_gb_s, other.gpu.memory_bandwidth_gb_s),
    )


def cheapest_work(*sides: Side) -> Side | None:
    """Return the one to mark: the fewest USD per unit of dense BF16 work among live prices, or None."""
    live = [(side.usd_per_pflop_hour, side.gpu.position, side) for side in sides if side.live_price is not None]
    return min(((usd, position, side) for usd, position, side in live if usd is not None), default=(0, 0, None))[2]
