"""Placing an order against the raw transfer: lock, decide, hold, and every row that follows, next to one statement.

One book of 20 servers that all clients share. As books go, about half of the orders cross: every other one takes a
device at the best offer, the ones between rest below it. Both kinds are told by themselves too. What was taken or
rests is given back between batches, outside the clock. Everything happens in a database of its own; commits do not
wait for the disk's flush.
"""

import itertools
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line
from billing.models import Account
from billing.tax.record import decide_for
from catalog.models import Gpu
from config.benches.own_database import own_database, set_commit
from config.benches.paired import SLICES
from config.benches.raw_transfer import RawTransfers
from fx.models import Rate
from marketplace.listings import Offered, list_server
from marketplace.models import Provider
from marketplace.orders.instruction import Instruction
from marketplace.orders.place import place_order
from marketplace.servers import Machine, beat, enrol_server, verify_server
from users.models import Organisation

FLOOR, AIM = 0.10, 0.30
TRIPS_FLOOR, TRIPS_AIM = 6, 4
TAIL_FLOOR, TAIL_AIM = 4.0, 2.5
CLIENTS = 8
_SERVERS, _DEVICES = 20, 8
_BATCH = _SERVERS * _DEVICES // 2  # the book is half empty at the end of a batch
_BATCHES_PER_SLICE = 4
_TURNS = 30
_WALLET_MICROS = 10**15


def run() -> dict[str, Any]:
    """Return JSON-ready results: the share of the limit's speed, counted round trips, and the tail of eight clients."""
    with own_database():
        raw, market = RawTransfers(), _Market()
        slices = [_slice(raw, market) for _ in range(SLICES)]
        limit, ours = statistics.median(each[0] for each in slices), statistics.median(each[1] for each in slices)
        ratio, filled, resting = (
            round(statistics.median(each[0] / each[kind] for each in slices), 3) for kind in (1, 2, 3)
        )
        return {
            "name": "orders",
            "limit": round(1 / limit),
            "ours": round(1 / ours),
            "ratio": ratio,
            "unit": "orders placed per second, every other one fills, 1 client, synchronous_commit=off",
            "floor": FLOOR,
            "aim": AIM,
            "by_kind": {"filled": filled, "resting": resting},
            "round_trips": {**market.round_trips(), "floor": TRIPS_FLOOR, "aim": TRIPS_AIM},
            "eight_clients": {**market.tail(), "floor": TAIL_FLOOR, "aim": TAIL_AIM},
        }


class _Market:
    """One book with servers, renters with money, and orders that take a device each."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)
        self.gpu_id = Gpu.objects.create(
            slug="bench",
            vendor="bench",
            name="bench",
            label="bench",
            position=1,
            architecture="bench",
            form_factor="bench",
            memory_gb=80,
            memory_type="HBM3",
            memory_bandwidth_gb_s=3350,
            software_stack="CUDA",
            source_url="https://example.com/",
        ).pk
        day = self.now.date()
        Rate(day=day, currency="USD", units_per_eur=Decimal("1.1476"), origin="sample", stored_at=self.now).save()
        self._list_servers()
        self.renters = [self._renter(number) for number in range(CLIENTS)]
        self.orders = itertools.count()
        self.seconds_per_order(self.place)  # plans are made, caches are warm

    def place(self, client: int = 0) -> None:
        """Place an order: in turn one that fills, and one that rests."""
        (self.rest if next(self.orders) % 2 else self.take)(client)

    def take(self, client: int = 0, *, currency: str = "USD") -> None:
        """Place an order that fills at once."""
        if self._place(client, limit=Decimal("3.00"), time_in_force="ioc", currency=currency) != "filled":
            raise RuntimeError("The bench's book is empty.")

    def rest(self, client: int = 0) -> None:
        """Place an order that rests."""
        self._place(client, limit=Decimal("1.90"), time_in_force="gtc", currency="USD")

    def give_back(self) -> None:
        """End every rental and take every order back, so that all devices and money are free."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT marketplace_close_leases(id, %s::timestamptz) FROM marketplace_rental WHERE state = 'pending'",
                [self.now],
            )
            cursor.execute("UPDATE marketplace_rental SET state = 'failed', ended_at = now() WHERE state = 'pending'")
            cursor.execute(
                "SELECT marketplace_change_order(id, 'cancelled', 0, 'cancelled', %s::timestamptz)"
                " FROM marketplace_order WHERE state = 'open'",
                [self.now],
            )

    def seconds_per_order(self, place: Callable[[], None]) -> float:
        """Return the mean of some batches of orders."""
        total = 0.0
        for _ in range(_BATCHES_PER_SLICE):
            total += _timed(place, _BATCH)
            self.give_back()
        return total / (_BATCHES_PER_SLICE * _BATCH)

    def round_trips(self) -> dict[str, int]:
        """Count the statements of an order, the transaction's begin and end among them."""
        counted = {}
        for currency in ("USD", "EUR"):
            with CaptureQueriesContext(connection) as statements:
                self.take(currency=currency)
            counted[currency.lower()] = len(statements)
        self.give_back()
        return counted

    def tail(self) -> dict[str, float]:
        """Return how long an order takes when eight clients place them in one book, and how uneven that is."""
        turn = threading.Barrier(CLIENTS + 1)
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(self._place_in_turns, client, turn) for client in range(CLIENTS)]
            busy = sum(self._one_turn(turn) for _ in range(_TURNS))
        seconds = [each for client in clients for each in client.result()]
        p50, p99 = statistics.median(seconds), statistics.quantiles(seconds, n=100)[-1]
        return {
            "orders_per_second": round(_TURNS * _BATCH / busy),
            "p50_ms": round(p50 * 1000, 2),
            "p99_ms": round(p99 * 1000, 2),
            "ratio": round(p99 / p50, 2),
        }

    def _one_turn(self, turn: threading.Barrier) -> float:
        """Let all clients place a batch together and give the devices back; return the seconds of the batch."""
        turn.wait(60)
        begun = time.perf_counter()
        turn.wait(60)
        passed = time.perf_counter() - begun
        self.give_back()
        return passed

    def _place_in_turns(self, client: int, turn: threading.Barrier) -> list[float]:
        """Place this client's part of each batch; return how long each order took, but for those of the first."""
        seconds: list[float] = []
        try:
            set_commit(flushed=False)
            for _ in range(_TURNS):
                turn.wait(60)
                seconds += [_timed(lambda: self.place(client), 1) for _ in range(_BATCH // CLIENTS)]
                turn.wait(60)
        finally:
            connection.close()
        return seconds[_BATCH // CLIENTS :]  # a new connection makes its plans first

    def _place(self, client: int, *, limit: Decimal, time_in_force: str, currency: str) -> str:
        instruction = Instruction(
            gpu_id=self.gpu_id,
            gpu_count=1,
            hours=1,
            limit=limit,
            currency=currency,
            time_in_force=time_in_force,
        )
        return place_order(organisation_id=self.renters[client], instruction=instruction, now=self.now).state

    def _list_servers(self) -> None:
        seller = Organisation.objects.create(name="bench seller", kind="provider", type="business", country="NL")
        provider = Provider.objects.create(
            organisation=seller, state="approved", approved_at=self.now, created_at=self.now
        )
        for number in range(_SERVERS):
            machine = Machine(
                name=f"bench {number}",
                gpu_id=self.gpu_id,
                device_uuids=[f"GPU-{number}-{index}" for index in range(_DEVICES)],
                country="NL",
                vcpus=64,
                ram_gb=512,
                disk_gb=2000,
                network_mbit_s=10_000,
                interconnect="nvlink",
            )
            server = enrol_server(provider=provider, machine=machine, now=self.now)
            verify_server(server_id=server.pk, now=self.now)
            beat(server_id=server.pk, now=self.now)
            list_server(server=server, offered=Offered(price=2 + Decimal(number) / 100), now=self.now)

    def _renter(self, number: int) -> int:
        renter = Organisation.objects.create(name=f"bench {number}", kind="renter", type="business", country="NL")
        for currency in ("USD", "EUR"):
            wallet = open_account(kind=Account.Kind.WALLET, currency=currency, owner_id=renter.pk)
            gateway = open_account(kind=Account.Kind.GATEWAY, currency=currency)
            lines = [Line(gateway.pk, -_WALLET_MICROS), Line(wallet.pk, _WALLET_MICROS)]
            ledger.post(key=f"fund {currency} {number}", kind="topup", lines=lines, effective_at=self.now)
        decide_for(organisation=renter, now=self.now)
        return renter.pk


def _slice(raw: RawTransfers, market: _Market) -> tuple[float, float, float, float]:
    """Return the seconds of a transfer, of an order, of one that fills and of one that rests, measured in turn."""
    kinds = (market.place, market.take, market.rest)
    transfer = _transfers(raw)
    order, taken, rested = (market.seconds_per_order(kind) for kind in kinds)
    return transfer, order, taken, rested


def _transfers(raw: RawTransfers) -> float:
    calls = _BATCHES_PER_SLICE * _BATCH
    return _timed(raw, calls) / calls


def _timed(call: Callable[[], object], calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - begun
