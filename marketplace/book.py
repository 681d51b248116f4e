"""The book of a GPU: read under its lock, written in one statement. What is decided in between is `matching`'s.

Whoever changes a book holds its lock from the first read to the commit: a book is one line of events. Reading alone
(pages, quotes) takes no lock.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from marketplace.limits import FILLS_FOR_A_REFERENCE
from marketplace.matching import Ask, Bid, hours_at_first, lasts_until
from marketplace.pricing import Traded

_ASK_COLUMNS = (
    "listing_id, server_id, price, priority, device_ids AS free_device_ids, min_gpus, max_hours, available_until,"
    " country, interconnect, ram_gb, vcpus, disk_gb"
)
_OPEN_COLUMNS = (
    "place, is_known, is_told, resting_orders, account_id, available_micros, owes_anything, is_frozen, is_renter,"
    " are_books_stopped, is_tax_decided, tax_rate_percent, traded_fills, traded_gpus, traded_value, median_ask, asks"
)
_WALLET_COLUMNS = "account_id, available_micros, owes_anything, is_frozen, is_renter, are_books_stopped"
_WALLET_NAMES = tuple(_WALLET_COLUMNS.split(", "))


@dataclass(frozen=True, kw_only=True)
class WalletState:
    """What an organisation may spend in a currency, and what stands in its way. `account_id` None: no wallet yet."""

    account_id: int | None
    available_micros: int
    owes_anything: bool
    is_frozen: bool
    are_books_stopped: bool
    is_renter: bool = True


@dataclass(frozen=True, kw_only=True)
class OpenBook:
    """A locked book as one order sees it: the asks that fit it, best first and no more than it wants, and its wallet.

    `sequence`: its place in line; `is_known`: an order of its id was placed before; `is_told`: a webhook of
    its organisation may ask about it; `tax_rate_percent` None: nothing is
    sold to its organisation, or that is not decided yet; `resting_orders`: how many that has; `traded`: the fills of 24
    hours; `median_ask`: of all live asks, where there were too few fills.
    """

    sequence: int
    is_known: bool
    is_told: bool
    wallet: WalletState
    is_tax_decided: bool
    tax_rate_percent: Decimal | None
    resting_orders: int
    asks: Sequence[Ask]
    traded: Traded
    median_ask: Decimal | None


def open_book(bid: Bid, *, gpu_id: int, organisation_id: int, currency: str, now: datetime) -> OpenBook:
    """Lock the book until the commit and read what an order needs. One round trip; call it inside a transaction.

    The bid's own place in line is not looked at: it gets one here.
    """
    wishes = bid.filters
    found = _row(
        _OPEN_COLUMNS,
        "marketplace_open_book(%s::bigint, %s::timestamptz, %s::uuid, %s::bigint, %s::text, %s::numeric,"
        " %s::integer, %s::integer, %s::integer, %s::timestamptz, %s::text[], %s::text, %s::integer, %s::integer,"
        " %s::integer, %s::integer)",
        [
            gpu_id,
            now,
            bid.order_id,
            organisation_id,
            currency,
            bid.limit,
            bid.gpu_count,
            bid.open_servers,
            hours_at_first(bid.hours),
            lasts_until(bid, now=now),
            sorted(wishes.countries),
            wishes.interconnect,
            wishes.min_ram_gb,
            wishes.min_vcpus,
            wishes.min_disk_gb,
            FILLS_FOR_A_REFERENCE,
        ],
    )
    return OpenBook(
        sequence=found["place"],
        is_known=found["is_known"],
        is_told=found["is_told"],
        wallet=WalletState(**{name: found[name] for name in _WALLET_NAMES}),
        is_tax_decided=found["is_tax_decided"],
        tax_rate_percent=found["tax_rate_percent"],
        resting_orders=found["resting_orders"],
        asks=[_ask_of(row) for row in json.loads(found["asks"])],
        traded=Traded(
            fills=found["traded_fills"] or 0, gpus=found["traded_gpus"] or 0, value=found["traded_value"] or Decimal(0)
        ),
        median_ask=found["median_ask"],
    )


def wallet_state(organisation_id: int, currency: str) -> WalletState:
    """Return what an organisation may spend in a currency now, without a lock."""
    return WalletState(
        **_row(_WALLET_COLUMNS, "billing_wallet_state(%s::bigint, %s::text)", [organisation_id, currency])
    )


def lock_book(gpu_id: int, *, now: datetime) -> int:
    """Lock the book until the commit and return the next place in its line. Call it inside a transaction.

    Servers that were not heard of for a minute have left the book when this returns.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT marketplace_lock_book(%s::bigint, %s::timestamptz)", [gpu_id, now])
        return int(cursor.fetchone()[0])


def live_asks(gpu_id: int, *, now: datetime) -> list[Ask]:
    """Return every ask of live servers with free devices, best first."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_ASK_COLUMNS} FROM marketplace_offers(%s::bigint, %s::timestamptz) AS offer"  # noqa: S608  # fixed column names
            " CROSS JOIN LATERAL marketplace_free_devices(offer.server_id) ORDER BY price, priority",
            [gpu_id, now],
        )
        names = [column.name for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [Ask(**{**row, "free_device_ids": tuple(row["free_device_ids"])}) for row in rows]


def write(
    *,
    gpu_id: int,
    now: datetime,
    order: dict[str, Any] | None = None,
    fills: Sequence[dict[str, Any]] = (),
    orders: Sequence[dict[str, Any]] = (),
    told: Sequence[dict[str, Any]] = (),
) -> None:
    """Write what was decided and the best ask that follows from it. One round trip, in the lock holder's transaction.

    The shapes are those of `marketplace/sql/20_orders.sql`. Raises the ledger's own refusals as the database names them.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT marketplace_write(%s::bigint, %s::timestamptz, %s::jsonb, %s::jsonb, %s::jsonb, %s::jsonb)",
            [
                gpu_id,
                now,
                None if order is None else _json(order),
                _json(list(fills)),
                _json(list(orders)),
                _json(list(told)),
            ],
        )


def write_terms(listing_id: UUID, *, now: datetime) -> None:
    """End the listing's terms so far and write those of now. The book is locked by the caller."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT marketplace_write_terms(%s::uuid, %s::timestamptz)", [listing_id, now])


def close_leases(rental_id: UUID, *, now: datetime) -> None:
    """Give a rental's devices back to their book, whose lock the caller holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT marketplace_close_leases(%s::uuid, %s::timestamptz)", [rental_id, now])


def refresh_best_ask(gpu_id: int, *, now: datetime) -> None:
    """Write the GPU's best ask anew."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT marketplace_refresh_best_ask(%s::bigint, %s::timestamptz)", [gpu_id, now])


@contextmanager
def one_moment() -> Iterator[None]:
    """Read several things as they were at one moment, whatever is traded meanwhile.

    Inside another transaction the block sees what that one sees.
    """
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", None)
        yield


def _row(columns: str, call: str, parameters: list[Any]) -> dict[str, Any]:
    """Return the one row of a function by the names of its columns."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {call}", parameters)  # noqa: S608  # fixed names
        return dict(zip(columns.split(", "), cursor.fetchone(), strict=True))


def _ask_of(row: list[Any]) -> Ask:
    """Return the ask that `marketplace_open_book` told, by the places of its values."""
    listing_id, server_id, price, priority, device_ids, min_gpus, max_hours, until, *machine = row
    country, interconnect, ram_gb, vcpus, disk_gb = machine
    return Ask(
        listing_id=UUID(listing_id),
        server_id=UUID(server_id),
        price=Decimal(price),
        priority=priority,
        free_device_ids=tuple(device_ids),
        min_gpus=min_gpus,
        max_hours=max_hours,
        available_until=None if until is None else datetime.fromisoformat(until),
        country=country,
        interconnect=interconnect,
        ram_gb=ram_gb,
        vcpus=vcpus,
        disk_gb=disk_gb,
    )


def _json(value: Any) -> str:
    return json.dumps(value, default=str)  # decimals, ids and times by their own full text
