"""Who fills whom: price-time priority over whole servers. Pure, so that every fill can be proved again later.

An ask fits a bid when the price is at or under the limit, enough devices are free for the bid and for the ask's own
minimum, the hours are within what the ask allows, and the bid's filters hold. Among those that fit: best price, then
oldest. A fill trades at the price of the side that was there first. Prices are USD per GPU-hour.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from marketplace.limits import OPEN_ENDED_HOURS_AT_FIRST, START_WITHIN

HOUR = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What a renter asks of a server. Empty or zero: no wish."""

    countries: frozenset[str] = frozenset()
    interconnect: str = ""
    min_ram_gb: int = 0
    min_vcpus: int = 0
    min_disk_gb: int = 0


NO_WISHES = Filters()


@dataclass(frozen=True, kw_only=True)
class Ask:
    """The free devices of a listing at its price. `priority`: lower came first; devices in the order of their index."""

    listing_id: UUID
    server_id: UUID
    price: Decimal
    priority: int
    free_device_ids: tuple[int, ...]
    min_gpus: int
    max_hours: int
    available_until: datetime | None
    country: str
    interconnect: str
    ram_gb: int
    vcpus: int
    disk_gb: int


@dataclass(frozen=True, kw_only=True)
class Bid:
    """An order as far as it is open. `sequence`: its place in line, comparable with an ask's priority."""

    order_id: UUID
    limit: Decimal
    sequence: int
    gpu_count: int
    open_servers: int
    hours: int | None
    filters: Filters = NO_WISHES
    all_or_nothing: bool = False
    used_server_ids: frozenset[UUID] = field(default_factory=frozenset)


@dataclass(frozen=True, kw_only=True)
class Match:
    """One fill to be written."""

    order_id: UUID
    listing_id: UUID
    server_id: UUID
    price: Decimal
    device_ids: tuple[int, ...]


def match_book(bids: Iterable[Bid], asks: Iterable[Ask], *, now: datetime) -> list[Match]:
    """Return every fill that brings the book to rest: afterwards no open bid has an ask that fits.

    Bids are served by limit, then by age; one that is served in part keeps its place.
    """
    on_offer = {ask.listing_id: ask for ask in asks}
    matches: list[Match] = []
    for bid in sorted(bids, key=lambda each: (-each.limit, each.sequence)):
        for match in fill(bid, on_offer.values(), now=now):
            matches.append(match)
            ask = on_offer[match.listing_id]
            left = tuple(device for device in ask.free_device_ids if device not in match.device_ids)
            on_offer[match.listing_id] = replace(ask, free_device_ids=left)
    return matches


def fill(bid: Bid, asks: Iterable[Ask], *, now: datetime) -> list[Match]:
    """Return the fills of one bid: distinct servers, best price first, then oldest; none when all-or-nothing falls short."""
    fitting = sorted((ask for ask in asks if not misfits(ask, bid, now=now)), key=lambda ask: (ask.price, ask.priority))
    taken = fitting[: bid.open_servers]
    if bid.all_or_nothing and len(taken) < bid.open_servers:
        return []
    return [
        Match(
            order_id=bid.order_id,
            listing_id=ask.listing_id,
            server_id=ask.server_id,
            price=trade_price(ask, bid),
            device_ids=ask.free_device_ids[: bid.gpu_count],
        )
        for ask in taken
    ]


def trade_price(ask: Ask, bid: Bid) -> Decimal:
    """Return the price of the side that was in the book first."""
    return ask.price if ask.priority < bid.sequence else bid.limit


def misfits(ask: Ask, bid: Bid, *, now: datetime) -> Sequence[str]:
    """Return why an ask does not fit a bid, as names of what stands in the way; empty when it fits."""
    wishes = bid.filters
    reasons = {
        "price": ask.price > bid.limit,
        "free_devices": len(ask.free_device_ids) < bid.gpu_count,
        "min_gpus": bid.gpu_count < ask.min_gpus,
        "max_hours": ask.max_hours < hours_at_first(bid.hours),
        "available_until": not _lasts(ask, bid, now),
        "countries": bool(wishes.countries) and ask.country not in wishes.countries,
        "interconnect": bool(wishes.interconnect) and ask.interconnect != wishes.interconnect,
        "min_ram_gb": ask.ram_gb < wishes.min_ram_gb,
        "min_vcpus": ask.vcpus < wishes.min_vcpus,
        "min_disk_gb": ask.disk_gb < wishes.min_disk_gb,
        "server_used": ask.server_id in bid.used_server_ids,
    }
    return [name for name, stands_in_the_way in reasons.items() if stands_in_the_way]


def hours_at_first(hours: int | None) -> int:
    """Return how long a server must be there at least: all hours of a lot, one for an open-ended order."""
    return OPEN_ENDED_HOURS_AT_FIRST if hours is None else hours


def lasts_until(bid: Bid, *, now: datetime) -> datetime:
    """Return until when a server must be there at least for a bid: ten minutes to start, then its first hours."""
    return now + START_WITHIN + hours_at_first(bid.hours) * HOUR


def lease_until(ask: Ask, *, hours: int | None, filled_at: datetime) -> datetime:
    """Return to when a fill claims its devices: ten minutes to start, then the hours; open-ended as far as the ask goes."""
    if hours is not None:
        return filled_at + START_WITHIN + hours * HOUR
    longest = filled_at + START_WITHIN + ask.max_hours * HOUR
    return longest if ask.available_until is None else min(longest, ask.available_until)


def _lasts(ask: Ask, bid: Bid, now: datetime) -> bool:
    if ask.available_until is None:
        return True
    return ask.available_until >= lasts_until(bid, now=now)
