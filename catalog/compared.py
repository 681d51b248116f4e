"""Two GPUs set side by side: what the first is to the second, in figures and in price. Pure; nothing is read here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from catalog.models import Gpu
from catalog.pairs import KnownPair, Reason
from catalog.queries import GpuPrices, Headline
from sizing.engine.simple_rule import full_training_b_params

CLOSE = Decimal("0.05")


@dataclass(frozen=True, kw_only=True)
class Side:
    """One GPU of a comparison with its prices."""

    gpu: Gpu
    prices: GpuPrices

    @property
    def trains_on_1(self) -> int:
        """Largest model, in billions of parameters, that trains on one of it."""
        return full_training_b_params(memory_gb=self.gpu.memory_gb, gpu_count=1)

    @property
    def live_price(self) -> Decimal | None:
        """USD per GPU-hour, where the headline is live."""
        headline = self.prices.headline
        return headline.price_usd_per_gpu_hour if headline and headline.is_live else None

    @property
    def usd_per_pflop_hour(self) -> Decimal | None:
        """Price of the work: USD per hour of 1000 dense BF16 TFLOPS; None without a price or a figure."""
        headline, tflops = self.prices.headline, self.gpu.bf16_dense_tflops
        return headline.price_usd_per_gpu_hour * 1000 / tflops if headline and tflops else None


@dataclass(frozen=True, kw_only=True)
class ComparedPair:
    """What the first is to the second: ratios are first / second, None where one has no published figure.

    `price_ratio` is set only where both prices are of one kind, live with live or list with list.
    """

    first: Side
    second: Side
    reason: Reason | None
    bf16_ratio: Decimal | None
    bandwidth_ratio: Decimal | None
    price_ratio: Decimal | None

    @property
    def extra_gb(self) -> Decimal:
        """GB that the first has more; negative where it has less."""
        return self.first.gpu.memory_gb - self.second.gpu.memory_gb

    @property
    def less_gb(self) -> Decimal:
        """GB that the first has less."""
        return -self.extra_gb

    @property
    def extra_memory_percent(self) -> int:
        """Memory that the first has more, in percent of the second's."""
        share = (self.first.gpu.memory_gb / self.second.gpu.memory_gb - 1) * 100
        return int(share.to_integral_value(rounding=ROUND_HALF_UP))

    @property
    def price_is_close(self) -> bool:
        """Whether the prices differ by less than a twentieth."""
        return self.price_ratio is not None and abs(self.price_ratio - 1) < CLOSE


def compare(first: Side, second: Side, *, reason: Reason | None = None) -> ComparedPair:
    """Compare two GPUs."""
    return ComparedPair(
        first=first,
        second=second,
        reason=reason,
        bf16_ratio=ratio(first.gpu.bf16_dense_tflops, second.gpu.bf16_dense_tflops),
        bandwidth_ratio=ratio(first.gpu.memory_bandwidth_gb_s, second.gpu.memory_bandwidth_gb_s),
        price_ratio=price_ratio(first.prices.headline, second.prices.headline),
    )


def compare_known(
    pairs: Iterable[KnownPair], *, gpus: Mapping[str, Gpu], prices: Mapping[str, GpuPrices]
) -> list[ComparedPair]:
    """Compare those of `pairs` that the catalogue holds, in their order."""
    return [
        compare(*(Side(gpu=gpus[slug], prices=prices[slug]) for slug in pair.slugs), reason=pair.reason)
        for pair in pairs
        if all(slug in gpus for slug in pair.slugs)
    ]


def ratio(first: Decimal | None, second: Decimal | None) -> Decimal | None:
    """Return first / second; None where either is not published.

    >>> ratio(Decimal(37), Decimal("1.25")), ratio(None, Decimal(1))
    (Decimal('29.6'), None)
    """
    return first / second if first and second else None


def price_ratio(first: Headline | None, second: Headline | None) -> Decimal | None:
    """Return how many times dearer the first is; None unless both are live or both are list prices."""
    if first is None or second is None or first.is_live != second.is_live:
        return None
    return first.price_usd_per_gpu_hour / second.price_usd_per_gpu_hour
