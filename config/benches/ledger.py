"""The ledger against one prepared statement that does the least a transfer must: lock two rows in order, check, write, commit.

`synchronous_commit` is off, so that CPU and round trips are measured and not the disk's flush. Every measurement runs
in a database of its own, made and dropped here.
"""

import itertools
import statistics
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import connection

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line
from billing.models import Account
from config.benches.own_database import own_database, set_commit
from config.benches.paired import SLICES, measure
from config.benches.raw_transfer import RawTransfers
from users.models import Organisation

FLOOR, AIM = 0.60, 0.80
HOT_FLOOR, HOT_AIM = 0.60, 0.90
READ_FLOOR, READ_AIM = 2.0, 1.2
SLICE_SECONDS = 1.0


def run() -> dict[str, Any]:
    """Return JSON-ready results: posting with 1 and 4 clients, one hot account, balance reads, counted trips."""
    with own_database():
        books = _Books()
        one, four = _one_client(books), _clients(books, 4)
        return {
            "name": "ledger",
            "limit": round(one["limit"]),
            "ours": round(one["ours"]),
            "ratio": round(one["ratio"], 3),
            "unit": "transfers per second, 1 client, synchronous_commit=off",
            "floor": FLOOR,
            "aim": AIM,
            "four_clients": {name: round(value, 3) for name, value in four.items()},
            "hot_account": {**_hot_account(books), "floor": HOT_FLOOR, "aim": HOT_AIM},
            "balance_read": {**_balance_reads(books), "floor": READ_FLOOR, "aim": READ_AIM},
            "counted": _counted(books),
        }


class _Books:
    """Wallets with money, one house account, and calls that move a micro from one to the next."""

    def __init__(self) -> None:
        self.gateway = open_account(kind=Account.Kind.GATEWAY, currency="EUR").pk
        self.wallets = [self._wallet(number) for number in range(64)]
        self.raw = RawTransfers()
        self._numbers = itertools.count()

    def _wallet(self, number: int) -> int:
        owner = Organisation.objects.create(name=f"bench {number}", kind="renter", type="business", country="NL")
        wallet = open_account(kind=Account.Kind.WALLET, currency="EUR", owner_id=owner.pk)
        lines = [Line(wallet.pk, 10**12), Line(self.gateway, -(10**12))]
        ledger.post(key=f"fund {number}", kind="topup", lines=lines, effective_at=wallet.opened_at)
        self.at = wallet.opened_at
        return wallet.pk

    def ours(self, client: int = 0) -> None:
        lines = [Line(self.wallets[2 * client], -1), Line(self.wallets[2 * client + 1], 1)]
        ledger.post(key=f"o{next(self._numbers)}", kind="transfer", lines=lines, effective_at=self.at)

    def to_house(self, client: int = 0) -> None:
        lines = [Line(self.wallets[client], -1), Line(self.gateway, 1)]
        ledger.post(key=f"h{next(self._numbers)}", kind="transfer", lines=lines, effective_at=self.at)


def _one_client(books: _Books) -> dict[str, float]:
    pair = measure(books.raw, books.ours, slice_seconds=SLICE_SECONDS)
    return {"limit": 1 / pair.limit_seconds, "ours": 1 / pair.ours_seconds, "ratio": pair.share_of_speed}


def _clients(books: _Books, count: int) -> dict[str, float]:
    slices = [(_rate(books.raw, count), _rate(books.ours, count)) for _ in range(SLICES)]
    limit, ours = (statistics.median(column) for column in zip(*slices, strict=True))
    return {"limit": limit, "ours": ours, "ratio": ours / limit, "floor": FLOOR, "aim": AIM}


def _hot_account(books: _Books) -> dict[str, float]:
    """Everybody posts to one house account, against everybody to their own wallets; 8 clients, flushed commits."""
    slices = [(_rate(books.ours, 8, flushed=True), _rate(books.to_house, 8, flushed=True)) for _ in range(SLICES)]
    spread, hot = (statistics.median(column) for column in zip(*slices, strict=True))
    return {"spread": round(spread), "hot": round(hot), "ratio": round(hot / spread, 3)}


def _rate(call: Callable[[int], None], clients: int, *, flushed: bool = False) -> float:
    """Return calls per second of `clients` threads with a connection each."""
    done, started, stop = [0] * clients, threading.Barrier(clients + 1), threading.Event()

    def work(client: int) -> None:
        try:
            set_commit(flushed=flushed)
            call(client)
            started.wait(30)
            while not stop.is_set():
                call(client)
                done[client] += 1
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[client]) for client in range(clients)]
    for thread in threads:
        thread.start()
    started.wait(30)
    begun = time.perf_counter()
    time.sleep(SLICE_SECONDS)
    stop.set()
    passed = time.perf_counter() - begun
    for thread in threads:
        thread.join()
    return sum(done) / passed


def _balance_reads(books: _Books) -> dict[str, float]:
    """Read a wallet's and the house's balance after a thousand entries and after a million, rolled up as in production."""
    _fill(books, 1_000, "few")
    few = _read_seconds(books)
    _fill(books, 1_000_000, "many")
    many = _read_seconds(books)
    return {"at_1k_us": round(few * 1e6, 1), "at_1m_us": round(many * 1e6, 1), "ratio": round(many / few, 2)}


def _fill(books: _Books, entries: int, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO billing_journalentry (key, content_sha256, kind, reference_type, reference_id, description,"
            " effective_at, created_at) SELECT %s || n, ''::bytea, 'topup', '', '', '', now(), now()"
            " FROM generate_series(1, %s::bigint) AS n",
            [f"{name} ", entries],
        )
        cursor.execute(
            "INSERT INTO billing_posting (entry_id, account_id, currency, amount_micros)"
            " SELECT id, line.account, 'EUR', line.amount FROM billing_journalentry,"
            " (VALUES (%s::bigint, 1), (%s::bigint, -1)) AS line (account, amount) WHERE key LIKE %s",
            [books.wallets[0], books.gateway, f"{name} %"],
        )
    ledger.roll_up(books.gateway)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE billing_posting, billing_account")


def _read_seconds(books: _Books) -> float:
    return max(
        statistics.median(_seconds(partial(ledger.balance_micros, account)) for _ in range(1000))
        for account in (books.gateway, books.wallets[0])
    )


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _counted(books: _Books) -> dict[str, float]:
    """Count what a post costs: statements from us, and transactions begun in the whole server (others' included)."""
    trips: list[str] = []

    def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        trips.append(sql)
        return execute(sql, params, many, context)

    before = _transactions()
    with connection.execute_wrapper(count):
        for _ in range(1000):
            books.ours()
    return {
        "round_trips_per_post": len(trips) / 1000,
        "transactions_per_post": round((_transactions() - before) / 1000, 2),
    }


def _transactions() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        return int(cursor.fetchone()[0])
