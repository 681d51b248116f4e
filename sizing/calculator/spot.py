"""Spot or not: what interruptions waste, what the job costs all the same, and where the two cost the same. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from sizing.calculator.answer import Row
from sizing.engine.cost import cost_usd
from sizing.engine.interruptions import Interruptions

MOST_ROWS = 6


@dataclass(frozen=True, kw_only=True)
class SpotRow:
    """A card's set at its spot price beside its usual one. Costs and prices in USD, waste in percent of the time paid.

    `break_even_usd`: the spot price per GPU-hour at which both cost the same. `break_even_mean_s`: how long a machine
    must live on average for spot to pay at today's price; None where it never does.
    """

    slug: str
    gpu_count: int
    spot_usd_per_gpu_hour: Decimal
    spot_cost_usd: Decimal
    cost_usd: Decimal
    waste_percent: Decimal
    break_even_usd: Decimal
    break_even_mean_s: float | None

    @property
    def is_cheaper(self) -> bool:
        """Whether spot costs less with its waste paid."""
        return self.spot_cost_usd < self.cost_usd

    @property
    def saved_usd(self) -> Decimal:
        """What the cheaper of the two saves."""
        return abs(self.cost_usd - self.spot_cost_usd)


def spot_rows(rows: Sequence[Row], interruptions: Interruptions) -> tuple[SpotRow, ...]:
    """Return the rows that have both prices, the cheapest spot first."""
    found = [spot_row(row, interruptions) for row in rows]
    return tuple(sorted((row for row in found if row), key=lambda row: row.spot_cost_usd)[:MOST_ROWS])


def spot_row(row: Row, interruptions: Interruptions) -> SpotRow | None:
    """Return one card at its spot price, None where it has none or its set has no cost."""
    best, spot, usual = row.best, row.price.spot_usd_per_gpu_hour, row.price.usd_per_gpu_hour
    if best is None or best.cost_usd is None or best.hours is None or spot is None or usual is None:
        return None
    waste = interruptions.waste(best.gpu_count)
    return SpotRow(
        slug=row.slug,
        gpu_count=best.gpu_count,
        spot_usd_per_gpu_hour=spot,
        spot_cost_usd=cost_usd(
            hours=float(best.hours), gpu_count=best.gpu_count, price_usd_per_gpu_hour=spot, waste=waste
        ),
        cost_usd=best.cost_usd,
        waste_percent=Decimal(repr(round(100 * waste, 1))),
        break_even_usd=(usual * (1 - Decimal(repr(waste)))).quantize(Decimal("0.0001"), rounding=ROUND_DOWN),
        break_even_mean_s=interruptions.break_even_mean_s(best.gpu_count, spot=spot, on_demand=usual),
    )
