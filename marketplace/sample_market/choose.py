"""Which offer a sample renter takes next, so that the market moves and nothing a visitor wants is gone. Pure.

Never the last device at the best ask; never a best ask that is to stay as it is; never a server that is not a sample.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from random import Random
from uuid import UUID, uuid4

from marketplace.matching import Ask, Bid, Filters, fill

_HOURS = (1, 2, 3, 4, 6, 8, 12, 24)
_MOST_GPUS = 4
_LAST_IN_LINE = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Take:
    """What to order: so many devices of one server in one country, at its price."""

    gpu_count: int
    hours: int
    limit: Decimal
    country: str


def choose_take(
    asks: Sequence[Ask], *, playable: Collection[UUID], spares_best: bool, rng: Random, now: datetime
) -> Take | None:
    """Return a take that this book can bear, None where it has none. `playable`: listings that may be taken from.

    `spares_best`: the best ask is left alone whole.
    """
    candidates = [ask for ask in asks if ask.listing_id in playable]
    rng.shuffle(candidates)
    best = min((ask.price for ask in asks), default=None)
    for ask in candidates:
        spare = len(ask.free_device_ids) - 1
        if spare < ask.min_gpus or (spares_best and ask.price == best):
            continue
        take = Take(
            gpu_count=rng.randint(ask.min_gpus, max(ask.min_gpus, min(spare, _MOST_GPUS))),
            hours=rng.choice([hours for hours in _HOURS if hours <= ask.max_hours]),
            limit=ask.price,
            country=ask.country,
        )
        if _taken_from(take, asks, now) == ask.listing_id:
            return take
    return None


def _taken_from(take: Take, asks: Sequence[Ask], now: datetime) -> UUID | None:
    bid = Bid(
        order_id=uuid4(),
        limit=take.limit,
        sequence=_LAST_IN_LINE,
        gpu_count=take.gpu_count,
        open_servers=1,
        hours=take.hours,
        filters=Filters(countries=frozenset([take.country])),
    )
    return next((match.listing_id for match in fill(bid, asks, now=now)), None)
