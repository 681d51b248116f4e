"""What shall have happened in a sample book before the demo opens, and which bids rest in it. Pure and seeded.

Prices begin a little off, move with the whole book twice and end where the data file has them. Trades are spread
over the days, the last ones at the final prices. Every trade's rental is given back within ten minutes: no machine
stood behind it, and nothing was charged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from random import Random

from marketplace.sample_market.rows import SampleServer

SEED = "sample market 1"
HISTORY = timedelta(days=5)
RENTERS = 3
# The story of these books ends earlier: what the demo's own renter rented comes after it.
ENDS_EARLIER = {"rtx-pro-6000-blackwell": timedelta(hours=14), "rtx-a6000": timedelta(hours=14)}
_SLOT = timedelta(minutes=20)
_SLOTS = HISTORY // _SLOT
_DAY = timedelta(days=1) // _SLOT
_BEGAN_AT = (Decimal("1.02"), Decimal("1.06"))
_WENT_TO = (Decimal("0.97"), Decimal("0.98"), Decimal("1.02"), Decimal("1.03"))
_HOURS = (1, 2, 3, 4, 6, 8, 12, 24)
_BID_HOURS = (12, 24, 48, 72, 168, None)
_DEAREST_BID_USD = 3000


@dataclass(frozen=True, kw_only=True)
class SampleBid:
    """An order that rests. `renter`: which of the sample renters; `limit` in USD per GPU-hour; `hours` None: open-ended."""

    renter: int
    gpu_count: int
    server_count: int
    hours: int | None
    limit: Decimal


@dataclass(frozen=True, kw_only=True)
class Reprice:
    """Every server of the book gets a new price; `before` the opening, as in all steps. `is_awaited`: by an order."""

    before: timedelta
    prices: Mapping[str, Decimal]
    is_awaited: bool


@dataclass(frozen=True, kw_only=True)
class Trade:
    """A renter takes the best offer, of the whole book or of one country."""

    before: timedelta
    renter: int
    gpu_count: int
    hours: int
    limit: Decimal
    country: str


@dataclass(frozen=True, kw_only=True)
class Rest:
    """A renter places an order that waits."""

    before: timedelta
    bid: SampleBid


@dataclass(frozen=True, kw_only=True)
class GiveBack:
    """The rentals of sample renters in this book end."""

    before: timedelta


Step = Reprice | Trade | Rest | GiveBack


@dataclass(frozen=True, kw_only=True)
class BookPlan:
    """A book from its first listing to the opening. `prices`: what each server asks at first; steps in order of time.

    `bids`: those that rest at the opening and are renewed from then on.
    """

    gpu: str
    servers: Sequence[SampleServer]
    prices: Mapping[str, Decimal]
    steps: Sequence[Step]
    bids: Sequence[SampleBid]


@dataclass(frozen=True, kw_only=True)
class _Moves:
    """When the book's prices move, in slots before the opening, and what they are times the final ones before that."""

    slots: tuple[int, int]
    factors: tuple[Decimal, Decimal]

    def price(self, server: SampleServer, slot: int) -> Decimal:
        """Return what a server asks in a slot."""
        final = server.price_usd_per_gpu_hour
        ahead = (factor for moved, factor in zip(self.slots, self.factors, strict=True) if slot > moved)
        return rounded(final * next(ahead, Decimal(1)))

    def falls(self, server: SampleServer) -> bool:
        """Whether the last move makes a server cheaper."""
        return self.price(server, self.slots[-1]) < self.price(server, self.slots[-1] + 1)


def plan_book(servers: Sequence[SampleServer], *, seed: str = SEED) -> BookPlan:
    """Return the plan of one book; `servers` of one GPU, the best offer first. The same for the same seed."""
    gpu = servers[0].gpu
    rng = Random(f"{seed}: {gpu}")  # noqa: S311  # a story, not a secret
    moves = _moves(rng)
    bids = [_resting_bid(servers, rng) for _ in range(len(servers) + rng.randint(1, 2))]
    steps: list[Step] = [_reprice(servers, moves, slot) for slot in moves.slots]
    steps += _waited_for(servers[0], moves, rng)
    slots = _trade_slots(moves, rng, trades=2 + len(servers))
    for slot in slots:
        country = "" if slot == min(slots) or rng.random() < 0.6 else rng.choice(servers).country
        steps += _trade(servers, moves, slot, country, rng)
    for bid, slot in zip(bids, rng.sample(range(1, moves.slots[-1]), len(bids)), strict=True):
        steps.append(Rest(before=slot * _SLOT - timedelta(minutes=19), bid=bid))
    return BookPlan(
        gpu=gpu,
        servers=servers,
        prices={server.name: moves.price(server, _SLOTS) for server in servers},
        steps=sorted(steps, key=lambda step: -step.before),
        bids=bids,
    )


def rounded(price: Decimal) -> Decimal:
    """Return a price as people ask it: in cents, below a dollar in tenths of a cent.

    >>> rounded(Decimal("2.9376")), rounded(Decimal("0.4794"))
    (Decimal('2.94'), Decimal('0.479'))
    """
    return price.quantize(Decimal("0.01") if price >= 1 else Decimal("0.001"))


def _moves(rng: Random) -> _Moves:
    return _Moves(
        slots=(rng.randrange(130, 300), rng.randrange(28, 52)),
        factors=(rng.choice(_BEGAN_AT), rng.choice(_WENT_TO)),
    )


def _reprice(servers: Sequence[SampleServer], moves: _Moves, slot: int) -> Reprice:
    return Reprice(
        before=slot * _SLOT,
        prices={server.name: moves.price(server, slot) for server in servers},
        is_awaited=slot == moves.slots[-1] and moves.falls(servers[0]),
    )


def _waited_for(best: SampleServer, moves: _Moves, rng: Random) -> list[Step]:
    """Return, where the last move is downward, an order that waits for it and is filled by it."""
    if not moves.falls(best):
        return []
    moved = moves.slots[-1]
    bid = SampleBid(
        renter=rng.randrange(RENTERS),
        gpu_count=1,
        server_count=1,
        hours=rng.choice(_HOURS),
        limit=moves.price(best, moved),
    )
    return [
        Rest(before=(moved + 3) * _SLOT - timedelta(minutes=rng.randrange(20)), bid=bid),
        GiveBack(before=moved * _SLOT - timedelta(minutes=6)),
    ]


def _trade_slots(moves: _Moves, rng: Random, *, trades: int) -> list[int]:
    """Return when trades happen: a third of them at the final prices, at least one more than a day before the opening."""
    last = moves.slots[-1]
    recent = rng.sample(range(2, last), max(1, trades // 3))
    old = [slot for slot in range(last + 4, _SLOTS - 3) if slot not in moves.slots]
    oldest = rng.choice([slot for slot in old if slot > _DAY])
    old.remove(oldest)
    return [*recent, oldest, *rng.sample(old, trades - len(recent) - 1)]


def _trade(servers: Sequence[SampleServer], moves: _Moves, slot: int, country: str, rng: Random) -> list[Step]:
    """Return one trade in a slot, with its end. The last one of a book is at its best offer, wherever that is."""
    gpu_count = min(rng.choice((1, 1, 1, 2, 2, 4)), servers[0].devices)
    fitting = [server for server in servers if not server.is_flaky and server.min_gpus <= gpu_count <= server.devices]
    if country not in {server.country for server in fitting}:
        country = ""
    limit = min(moves.price(server, slot) for server in fitting if country in ("", server.country))
    before = slot * _SLOT - timedelta(minutes=rng.randrange(2, 9), seconds=rng.randrange(60))
    trade = Trade(
        before=before,
        renter=rng.randrange(RENTERS),
        gpu_count=gpu_count,
        hours=rng.choice(_HOURS),
        limit=limit,
        country=country,
    )
    return [trade, GiveBack(before=before - timedelta(minutes=rng.randrange(4, 9), seconds=rng.randrange(60)))]


def _resting_bid(servers: Sequence[SampleServer], rng: Random) -> SampleBid:
    """Return an order under the best offer, small enough for a sample wallet."""
    best = servers[0]
    gpu_count = rng.choice([count for count in (1, 1, 2, 4, 8) if count <= best.devices])
    hours = rng.choice(_BID_HOURS)
    limit = rounded(best.price_usd_per_gpu_hour * Decimal(rng.randrange(860, 985)) / 1000)
    if limit * gpu_count * (hours or 1) > _DEAREST_BID_USD:
        hours = _BID_HOURS[0]
    return SampleBid(
        renter=rng.randrange(RENTERS),
        gpu_count=gpu_count,
        server_count=2 if len(servers) > 1 and rng.random() < 0.2 else 1,
        hours=hours,
        limit=limit,
    )
