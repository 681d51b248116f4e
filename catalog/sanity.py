"""Whether a price may be shown: a pure decision on one offer, with the reason in words when it is held back.

Placeholders, mistyped counts and wrong units occur in every source. A price is compared with the median of its GPU in
the same market over 30 days; with fewer than five such prices, with the median of the reference snapshot; without
either the band is skipped, and the verdict says so. `docs/decisions/0004-sanity-band.md` has the choices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median as median_of

LEAST_SHARE = Decimal("0.2")
MOST_SHARE = Decimal(5)
PLACEHOLDER_USD_PER_GPU_HOUR = Decimal("0.01")
FEWEST_PRICES = 5
# Machines sold as one instance have up to 16 GPUs; 64 leaves room and still catches a memory size written as a count.
MOST_GPUS = Decimal(64)
MOST_TPU_CHIPS = Decimal(16_384)
SPOT = "spot"


@dataclass(frozen=True, kw_only=True)
class Quoted:
    """An offer as far as the decision looks at it; prices in USD per hour for the whole instance.

    `on_demand_usd_per_hour` is the on-demand price of the same cloud, instance and region, for a spot offer that has
    one. `gpu_count_in_name` is what the instance name says, where the source's naming is known.
    """

    gpu_slug: str
    gpu_count: Decimal
    price_usd_per_hour: Decimal
    market: str
    gpu_count_in_name: Decimal | None = None
    on_demand_usd_per_hour: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class Band:
    """The median a price is compared with, USD per GPU-hour, and what it was made of, in words.

    `checks_low_side` is False where the median is of another market: a spot price far below on-demand is ordinary.
    """

    median_usd_per_gpu_hour: Decimal
    made_of: str
    checks_low_side: bool = True


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`reason` is "" for a price to show, else `code: what is wrong`. `band_skipped`: there was no median."""

    reason: str
    band_skipped: bool


def hold_back_reason(quoted: Quoted, band: Band | None) -> Verdict:
    """Return why the price is held back, if it is: the first of price, count, placeholder, spot and band that fails."""
    reason = (
        _price_reason(quoted)
        or _count_reason(quoted)
        or _placeholder_reason(quoted)
        or _spot_reason(quoted)
        or (_band_reason(quoted, band) if band else "")
    )
    return Verdict(reason=reason, band_skipped=band is None)


def band_for(
    *,
    market: str,
    recent_usd_per_gpu_hour: Sequence[Decimal],
    reference_usd_per_gpu_hour: Sequence[Decimal],
) -> Band | None:
    """Return the band of one GPU and market: from the last 30 days, else the reference snapshot, else none.

    `recent` holds prices of that market, one per cloud and instance type, so that a machine listed in thirty regions
    does not outvote the others; `reference` the snapshot's on-demand list prices.
    """
    if len(recent_usd_per_gpu_hour) >= FEWEST_PRICES:
        return Band(
            median_usd_per_gpu_hour=median_of(recent_usd_per_gpu_hour),
            made_of=f"{len(recent_usd_per_gpu_hour)} prices of 30 days",
        )
    if reference_usd_per_gpu_hour:
        return Band(
            median_usd_per_gpu_hour=median_of(reference_usd_per_gpu_hour),
            made_of="the reference list prices",
            checks_low_side=market != SPOT,
        )
    return None


def _price_reason(quoted: Quoted) -> str:
    if quoted.price_usd_per_hour <= 0:
        return f"zero_price: the source says {_shown(quoted.price_usd_per_hour)}"
    return ""


def _count_reason(quoted: Quoted) -> str:
    count = quoted.gpu_count
    most = MOST_TPU_CHIPS if quoted.gpu_slug.startswith("tpu-") else MOST_GPUS
    if count <= 0 or count > most or (count > 1 and count % 1):
        return f"wrong_count: {_shown(count)} GPUs in one instance"
    if quoted.gpu_count_in_name is not None and quoted.gpu_count_in_name != count:
        return (
            f"wrong_count: the instance name says {_shown(quoted.gpu_count_in_name)} GPUs, the source {_shown(count)}"
        )
    return ""


def _placeholder_reason(quoted: Quoted) -> str:
    price = quoted.price_usd_per_hour / quoted.gpu_count
    if price <= PLACEHOLDER_USD_PER_GPU_HOUR:
        return f"placeholder: {_shown(price)} USD per GPU-hour is no price"
    return ""


def _spot_reason(quoted: Quoted) -> str:
    on_demand = quoted.on_demand_usd_per_hour
    if quoted.market == SPOT and on_demand is not None and quoted.price_usd_per_hour > on_demand:
        return f"spot_above_on_demand: {_shown(quoted.price_usd_per_hour)} against {_shown(on_demand)} USD per hour on demand"
    return ""


def _band_reason(quoted: Quoted, band: Band) -> str:
    price, median = quoted.price_usd_per_hour / quoted.gpu_count, band.median_usd_per_gpu_hour
    is_low = band.checks_low_side and price < median * LEAST_SHARE
    if is_low or price > median * MOST_SHARE:
        return (
            f"out_of_band: {_shown(price)} USD per GPU-hour is outside {LEAST_SHARE} to {MOST_SHARE} times "
            f"{_shown(median)}, the median of {band.made_of}"
        )
    return ""


def _shown(number: Decimal) -> str:
    """Return a number without its trailing zeros, at most six decimals.

    >>> _shown(Decimal("8.0000")), _shown(Decimal("0.333333333"))
    ('8', '0.333333')
    """
    return f"{number:.6f}".rstrip("0").rstrip(".")
