"""From decisions to rows: what `marketplace_write` takes for an order and for each fill. Pure but for new ids."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid6 import uuid7

from marketplace.matching import Ask, Match, hours_at_first, lease_until
from marketplace.pricing import Terms, hold_micros


@dataclass(frozen=True, kw_only=True)
class Fillable:
    """What the fills of an order are made from. `release_micros`: what one of them takes from the hold it rests with."""

    order_id: UUID
    terms: Terms
    release_micros: int | None = None


def fill_row(match: Match, *, order: Fillable, ask: Ask, now: datetime) -> dict[str, Any]:
    """Return one fill with what its rental, leases, hold and held hours do not take from its order."""
    return {
        "id": uuid7(),
        "rental_id": uuid7(),
        "order_id": order.order_id,
        "listing_id": match.listing_id,
        "server_id": match.server_id,
        "gpu_count": order.terms.gpu_count,
        "price_usd_per_gpu_hour": match.price,
        "device_ids": f"{{{','.join(map(str, match.device_ids))}}}",
        "lease_until": lease_until(ask, hours=order.terms.hours, filled_at=now),
        "first_hours": hours_at_first(order.terms.hours),
        "hold_micros": hold_micros(match.price, order.terms),
        "release_micros": order.release_micros,
    }


def held_by(fills: list[dict[str, Any]]) -> int:
    """Return the micros that fills set aside."""
    return sum(fill["hold_micros"] for fill in fills)
