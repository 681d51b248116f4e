"""From decisions to rows: what `marketplace_write` takes for an order and for each fill. Pure but for new ids."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from uuid6 import uuid7

from marketplace.matching import Ask, Match, hours_at_first, lease_until
from marketplace.pricing import Terms, hold_micros


@dataclass(frozen=True, kw_only=True)
class Fillable:
    """What an order passes on to the rentals it makes."""

    order_id: UUID
    organisation_id: int
    wallet_id: int
    currency: str
    gpu_id: int
    terms: Terms
    fx_on: date | None
    fee_percent: Decimal
    image: str
    ssh_public_key: str
    hold_id: int | None = None
    hold_per_server_micros: int = 0


def fill_row(match: Match, *, order: Fillable, ask: Ask, now: datetime) -> dict[str, Any]:
    """Return one fill with its rental, leases, hold and held hours. A resting order's hold gives up its share for it."""
    fill_id, rental_id = uuid7(), uuid7()
    held = hold_micros(match.price, order.terms)
    until = lease_until(ask, hours=order.terms.hours, filled_at=now)
    devices = list(match.device_ids)
    shared = {
        "order_id": order.order_id,
        "listing_id": match.listing_id,
        "gpu_id": order.gpu_id,
        "gpu_count": order.terms.gpu_count,
        "price_usd_per_gpu_hour": match.price,
        "fee_percent": order.fee_percent,
        "device_ids": devices,
        "filled_at": now,
    }
    return {
        "fill": {**shared, "id": fill_id},
        "rental": {
            **shared,
            "id": rental_id,
            "fill_id": fill_id,
            "organisation_id": order.organisation_id,
            "server_id": match.server_id,
            "wallet_id": order.wallet_id,
            "currency": order.currency,
            "hours": order.terms.hours,
            "image": order.image,
            "ssh_public_key": order.ssh_public_key,
            "state": "pending",
            "lease_until": until,
            "end_reason": "",
        },
        "held_hours": {
            "rental_id": rental_id,
            "first_hour": 0,
            "hours": hours_at_first(order.terms.hours),
            "fx_rate": order.terms.fx_rate,
            "fx_on": order.fx_on,
            "tax_rate_percent": order.terms.tax_rate_percent,
            "held_micros": held,
            "held_at": now,
        },
        "device_ids": devices,
        "lease_until": until,
        "wallet_id": order.wallet_id,
        "hold_micros": held,
        "release_hold_id": order.hold_id,
        "release_micros": order.hold_per_server_micros if order.hold_id is not None else None,
    }


def held_by(fills: list[dict[str, Any]]) -> int:
    """Return the micros that fills set aside."""
    return sum(fill["hold_micros"] for fill in fills)
