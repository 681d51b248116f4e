"""What webhooks are told about orders, rentals and balances, in the transaction that makes it so.

Money and prices are strings and times are RFC 3339, as in the API; `docs/webhooks.md` shows each message.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from common.money import from_micros
from marketplace.models import Rental
from users.models import EventType
from users.webhooks.events import emit, event_row
from users.webhooks.signing import rfc3339

_TOLD = {
    Rental.State.RUNNING: EventType.RENTAL_RUNNING,
    Rental.State.ENDED: EventType.RENTAL_ENDED,
    Rental.State.FAILED: EventType.RENTAL_ENDED,
    Rental.State.INTERRUPTED: EventType.RENTAL_ENDED,
}


def order_filled(order: Mapping[str, Any], fills: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the event of these fills (`orders.rows`) of an order, whose columns come by name. `book.write` takes it."""
    return event_row(
        organisation_id=order["organisation_id"],
        type=EventType.ORDER_FILLED,
        subject_id=order["id"],
        key=str(order["filled_servers"]),
        data={**_order(order), "fills": [_fill(fill) for fill in fills]},
    )


def order_expired(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of an order whose time is over. `book.write` takes it."""
    return event_row(
        organisation_id=order["organisation_id"],
        type=EventType.ORDER_EXPIRED,
        subject_id=order["id"],
        data=_order(order),
    )


def _order(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of an order but for its GPU's name, which the statement that writes it adds."""
    return {
        "id": str(order["id"]),
        "state": order["state"],
        "gpu_count": order["gpu_count"],
        "server_count": order["server_count"],
        "filled_servers": order["filled_servers"],
        "hours": order["hours"],
        "limit_price_usd_per_gpu_hour": _price(order["limit_price_usd_per_gpu_hour"]),
        "wallet": order["currency"],
    }


def _fill(fill: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rental": str(fill["rental_id"]),
        "gpu_count": fill["gpu_count"],
        "price_usd_per_gpu_hour": _price(fill["price_usd_per_gpu_hour"]),
    }


def tell_of_rental(*, rental_id: UUID, state: Rental.State, now: datetime) -> None:
    """Tell that a rental has come to this state, if that is told at all. The row has it by then."""
    if state not in _TOLD:
        return
    rental = Rental.objects.select_related("gpu").get(pk=rental_id)
    data = {
        "id": str(rental.pk),
        "order": str(rental.order_id),
        "state": state.value,
        "reason": rental.end_reason or None,
        "gpu": rental.gpu.slug,
        "gpu_count": rental.gpu_count,
        "hours": rental.hours,
        "price_usd_per_gpu_hour": _price(rental.price_usd_per_gpu_hour),
        "wallet": rental.currency,
        "filled_at": _time(rental.filled_at),
        "ready_at": _time(rental.ready_at),
        "paid_until": _time(rental.paid_until),
        "stop_requested_at": _time(rental.stop_requested_at),
        "ended_at": _time(rental.ended_at),
    }
    emit(organisation_id=rental.organisation_id, type=_TOLD[state], data=data, subject_id=rental.pk, now=now)


def tell_of_low_balance(
    *,
    organisation_id: int,
    currency: str,
    available_micros: int,
    level_seconds: int,
    lasts_until: datetime,
    now: datetime,
) -> None:
    """Tell that a wallet's money lasts for less than a level; the first rental that cannot go on stops at `lasts_until`."""
    data = {
        "wallet": currency,
        "available": str(from_micros(available_micros)),
        "level_seconds": level_seconds,
        "runway_seconds": max(int((lasts_until - now).total_seconds()), 0),
        "lasts_until": _time(lasts_until),
    }
    emit(
        organisation_id=organisation_id,
        type=EventType.BALANCE_LOW,
        data=data,
        subject_id=currency,
        key=f"{level_seconds} s at {now.isoformat()}",
        now=now,
    )


def _price(price: Decimal) -> str:
    return f"{price:.4f}"


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
