"""Bring a book to rest: fill resting orders with what now fits them, close those that may no longer trade.

Called when an ask gains devices, gets cheaper, or its server beats again, and by the sweep. Steps, in the caller's
transaction or one of its own: lock the book, read open orders and live asks, decide (`matching`), write fills and
closings in one statement. Orders past their time, of frozen and of owing organisations are closed first, so that no
order is ever passed over; what closing gives back pays a receivable first. Lock order: book, accounts by id, holds of
orders (which only the book's lock holder touches). A second call finds the book at rest and writes nothing but the
best ask.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction

from billing.ledger import lock_accounts
from billing.receivables import owing_among, pay_receivable
from marketplace.book import live_asks, lock_book, refresh_best_ask, write
from marketplace.matching import Ask, Bid, Filters, Match, match_book
from marketplace.models import Order, Rental
from marketplace.orders.rows import Fillable, fill_row
from marketplace.pricing import Terms
from marketplace.webhooks import order_expired, order_filled


@dataclass(frozen=True, kw_only=True)
class Closing:
    """The end of a resting order as `marketplace_write` takes it, and what webhooks are told of it."""

    change: dict[str, Any]
    told: tuple[dict[str, Any], ...] = ()


def bring_to_rest(gpu_id: int, *, now: datetime, also_locked: Collection[int] = ()) -> int:
    """Fill what fits, close what is over and write the best ask; return the number of fills.

    `also_locked`: accounts the caller moves afterwards; all are locked together, by id, with those of the orders.
    """
    with transaction.atomic():
        lock_book(gpu_id, now=now)
        resting = _resting(gpu_id)
        closings = _closings(resting, now)
        orders = {pk: order for pk, order in resting.items() if pk not in closings}
        asks = live_asks(gpu_id, now=now) if orders else []
        matches = match_book(_bids(orders), asks, now=now)
        touched = {*closings, *(match.order_id for match in matches)}
        if wallets := {*also_locked, *(resting[pk].wallet_id for pk in touched)}:
            lock_accounts(list(wallets))
        if touched:
            _write(gpu_id, matches, orders, asks, closings, now)
        else:
            refresh_best_ask(gpu_id, now=now)
        for pk in closings:
            pay_receivable(organisation_id=resting[pk].organisation_id, currency=resting[pk].currency, now=now)
    return len(matches)


def resting_bids(gpu_id: int, *, now: datetime) -> list[Bid]:
    """Return the open orders of a book as the matcher sees them, but those that are over and wait to be closed."""
    resting = _resting(gpu_id)
    closings = _closings(resting, now)
    return _bids({pk: order for pk, order in resting.items() if pk not in closings})


def bid_of(order: Order) -> Bid:
    """Return an open order as the matcher sees it."""
    return _bid(order, _used_servers({order.pk: order})[order.pk])


def cancelled(order: Order, *, reason: str) -> Closing:
    """Return the end of a resting order that is taken back."""
    return Closing(change=_change(order, Order.State.CANCELLED, order.filled_servers, reason))


def expired(order: Order) -> Closing:
    """Return the end of a resting order whose time is over."""
    change = _change(order, Order.State.EXPIRED, order.filled_servers, "expired")
    return Closing(change=change, told=(order_expired({**vars(order), **change}),))


def _resting(gpu_id: int) -> dict[UUID, Order]:
    resting = Order.objects.filter(gpu_id=gpu_id, state__in=Order.RESTING).select_related("organisation")
    return {order.pk: order for order in resting.order_by("-limit_price_usd_per_gpu_hour", "sequence")}


def _closings(resting: dict[UUID, Order], now: datetime) -> dict[UUID, Closing]:
    """Return what becomes of orders that may no longer trade, by their ids."""
    owing = owing_among({order.organisation_id for order in resting.values()}) if resting else set()
    closings = {}
    for pk, order in resting.items():
        if order.expires_at is not None and order.expires_at <= now:
            closings[pk] = expired(order)
        elif order.organisation.frozen_at is not None:
            closings[pk] = cancelled(order, reason="frozen")
        elif order.organisation_id in owing:
            closings[pk] = cancelled(order, reason="receivable_open")
    return closings


def _used_servers(orders: dict[UUID, Order]) -> dict[UUID, frozenset[UUID]]:
    used: dict[UUID, set[UUID]] = defaultdict(set)
    filled = [pk for pk, order in orders.items() if order.filled_servers]
    if filled:
        for order_id, server_id in Rental.objects.filter(order__in=filled).values_list("order_id", "server_id"):
            used[order_id].add(server_id)
    return defaultdict(frozenset, {pk: frozenset(servers) for pk, servers in used.items()})


def _bids(orders: dict[UUID, Order]) -> list[Bid]:
    used = _used_servers(orders)
    return [_bid(order, used[order.pk]) for order in orders.values()]


def _bid(order: Order, used: frozenset[UUID]) -> Bid:
    return Bid(
        order_id=order.pk,
        limit=order.limit_price_usd_per_gpu_hour,
        sequence=order.sequence,
        gpu_count=order.gpu_count,
        open_servers=order.open_servers,
        hours=order.hours,
        filters=Filters(
            countries=frozenset(order.countries),
            interconnect=order.interconnect,
            min_ram_gb=order.min_ram_gb,
            min_vcpus=order.min_vcpus,
            min_disk_gb=order.min_disk_gb,
        ),
        used_server_ids=used,
    )


def _write(
    gpu_id: int,
    matches: Sequence[Match],
    orders: dict[UUID, Order],
    asks: Sequence[Ask],
    closings: dict[UUID, Closing],
    now: datetime,
) -> None:
    by_listing = {ask.listing_id: ask for ask in asks}
    filled: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for match in matches:
        order = orders[match.order_id]
        filled[order.pk].append(fill_row(match, order=_fillable(order), ask=by_listing[match.listing_id], now=now))
    changes = {pk: _filled(orders[pk], len(fills)) for pk, fills in filled.items()}
    told = [order_filled({**vars(orders[pk]), **change}, filled[pk]) for pk, change in changes.items()]
    write(
        gpu_id=gpu_id,
        now=now,
        fills=[fill for fills in filled.values() for fill in fills],
        orders=[*(closing.change for closing in closings.values()), *changes.values()],
        told=[*(event for closing in closings.values() for event in closing.told), *told],
    )


def _fillable(order: Order) -> Fillable:
    terms = Terms(
        gpu_count=order.gpu_count,
        hours=order.hours,
        fx_rate=order.fx_rate,
        tax_rate_percent=Decimal(order.tax_rate_percent),
    )
    return Fillable(order_id=order.pk, terms=terms, release_micros=order.hold_per_server_micros)


def _filled(order: Order, servers: int) -> dict[str, Any]:
    filled = order.filled_servers + servers
    state = Order.State.FILLED if filled == order.server_count else Order.State.PARTLY_FILLED
    return _change(order, state, filled, "")


def _change(order: Order, state: Order.State, filled_servers: int, reason: str) -> dict[str, Any]:
    return {"id": order.pk, "state": state.value, "filled_servers": filled_servers, "close_reason": reason}
