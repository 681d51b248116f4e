"""Prove every fill of a book again from its history. Pure: the past comes as rows, the decision is `matching`'s.

The book's line is walked once, place by place, and the book kept as it was: which terms held, which devices were free,
which orders were open. Proved are: what an order took when it was placed is what the rules choose from that book, all
of it; every later fill is the one they choose for its order; and no order ahead in line could have had the same
devices. Clocks are asked for nothing but what depends on time by its nature: until when a server is there.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from uuid import UUID

from marketplace.limits import CLOCKS_DIFFER_BY
from marketplace.matching import Ask, Bid, fill, misfits


@dataclass(frozen=True, kw_only=True)
class PastAsk:
    """Terms of a listing over a part of the book's line; `ask.free_device_ids` are all devices of its server."""

    ask: Ask
    from_sequence: int
    to_sequence: int | None


@dataclass(frozen=True, kw_only=True)
class PastLease:
    """A device taken over a part of the line."""

    device_id: int
    taken_sequence: int
    closed_sequence: int | None


@dataclass(frozen=True, kw_only=True)
class PastBid:
    """An order as it was placed; `bid.open_servers` all it asked for. One that never rested closed at its own place."""

    bid: Bid
    placed_at: datetime
    expires_at: datetime | None
    closed_sequence: int | None


@dataclass(frozen=True, kw_only=True)
class PastFill:
    """A fill as it was written."""

    order_id: UUID
    listing_id: UUID
    server_id: UUID
    price: Decimal
    device_ids: tuple[int, ...]
    sequence: int
    filled_at: datetime


@dataclass(frozen=True, kw_only=True)
class History:
    """All that ever happened in one book."""

    asks: Sequence[PastAsk]
    leases: Sequence[PastLease]
    bids: Sequence[PastBid]
    fills: Sequence[PastFill]


def differences(history: History) -> Iterator[str]:
    """Yield in words each fill, or fill that is missing, that the rules do not explain; nothing when all is proved."""
    book, fills = _Book(), sorted(history.fills, key=lambda past: past.sequence)
    for _, _, event in _line(history):
        match event:
            case PastBid():
                yield from _at_its_place(event, book, fills)
                book.orders[event.bid.order_id] = event
                if event.closed_sequence != event.bid.sequence:
                    book.resting[event.bid.order_id] = event
            case PastFill():
                yield from _other_choice(event, book)
                yield from _passed_over(event, book)
                book.used[event.order_id].add(event.server_id)
                book.fills_seen += 1
            case _:
                book.change(event)


def rebuilt_asks(history: History) -> list[Ask]:
    """Return the asks of the book as its rows make it at the end of its line, best first."""
    book = _Book()
    for _, _, event in _line(history):
        if not isinstance(event, PastBid | PastFill):
            book.change(event)
    return sorted(book.asks(), key=lambda ask: (ask.price, ask.priority))


class _Rank(IntEnum):
    """What comes first at one place: what ends there, what begins, an order, its fill, the devices that takes."""

    ENDED = 0
    BEGUN = 1
    PLACED = 2
    FILLED = 3
    TAKEN = 4


@dataclass(frozen=True, kw_only=True)
class _TermsEnded:
    listing_id: UUID


@dataclass(frozen=True, kw_only=True)
class _LeaseEnded:
    device_id: int


@dataclass(frozen=True, kw_only=True)
class _OrderEnded:
    order_id: UUID


_Change = PastAsk | PastLease | _TermsEnded | _LeaseEnded | _OrderEnded
_Event = PastBid | PastFill | _Change


@dataclass(kw_only=True)
class _Book:
    """The book at a place in its line."""

    present: dict[UUID, Ask] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    orders: dict[UUID, PastBid] = field(default_factory=dict)
    resting: dict[UUID, PastBid] = field(default_factory=dict)
    used: dict[UUID, set[UUID]] = field(default_factory=lambda: defaultdict(set))
    fills_seen: int = 0

    def change(self, event: _Change) -> None:
        """Let terms and leases begin and end, and resting orders end."""
        match event:
            case PastAsk(ask=ask):
                self.present[ask.listing_id] = ask
            case PastLease(device_id=device_id):
                self.taken.add(device_id)
            case _TermsEnded(listing_id=listing_id):
                self.present.pop(listing_id, None)
            case _LeaseEnded(device_id=device_id):
                self.taken.discard(device_id)
            case _OrderEnded(order_id=order_id):
                self.resting.pop(order_id, None)

    def asks(self) -> list[Ask]:
        """Return what is for rent."""
        free = (
            replace(ask, free_device_ids=tuple(device for device in ask.free_device_ids if device not in self.taken))
            for ask in self.present.values()
        )
        return [ask for ask in free if ask.free_device_ids]

    def open_bid(self, past: PastBid) -> Bid:
        """Return an order as far as it is open."""
        used = frozenset(self.used[past.bid.order_id])
        return replace(past.bid, open_servers=past.bid.open_servers - len(used), used_server_ids=used)


def _line(history: History) -> list[tuple[int, _Rank, _Event]]:
    """Return all events in the order of their places."""
    line: list[tuple[int, _Rank, _Event]] = []
    for ask in history.asks:
        line.append((ask.from_sequence, _Rank.BEGUN, ask))
        if ask.to_sequence is not None:
            line.append((ask.to_sequence, _Rank.ENDED, _TermsEnded(listing_id=ask.ask.listing_id)))
    for lease in history.leases:
        line.append((lease.taken_sequence, _Rank.TAKEN, lease))
        if lease.closed_sequence is not None:
            line.append((lease.closed_sequence, _Rank.ENDED, _LeaseEnded(device_id=lease.device_id)))
    for bid in history.bids:
        line.append((bid.bid.sequence, _Rank.PLACED, bid))
        if bid.closed_sequence is not None:
            line.append((bid.closed_sequence, _Rank.ENDED, _OrderEnded(order_id=bid.bid.order_id)))
    line.extend((past.sequence, _Rank.FILLED, past) for past in history.fills)
    return sorted(line, key=lambda event: event[:2])


def _at_its_place(past: PastBid, book: _Book, fills: Sequence[PastFill]) -> Iterator[str]:
    """An order takes at once all that fits it: the book's next fills are exactly those."""
    chosen = fill(past.bid, book.asks(), now=past.placed_at)
    written = fills[book.fills_seen : book.fills_seen + len(chosen)]
    for match, made in zip(chosen, [*written, *[None] * (len(chosen) - len(written))], strict=True):
        if made is None or (made.order_id, made.listing_id) != (past.bid.order_id, match.listing_id):
            yield f"order {past.bid.order_id} did not take {match.listing_id} at {match.price}, which fitted it"


def _other_choice(past: PastFill, book: _Book) -> Iterator[str]:
    if past.order_id not in book.orders:
        yield f"fill {past.sequence}: its order {past.order_id} comes later"
        return
    bid = replace(book.open_bid(book.orders[past.order_id]), all_or_nothing=False)
    chosen = next(iter(fill(bid, book.asks(), now=past.filled_at)), None)
    if chosen is None:
        yield f"fill {past.sequence}: nothing fitted order {past.order_id} then"
    elif (chosen.listing_id, chosen.price, chosen.device_ids) != (past.listing_id, past.price, past.device_ids):
        yield (
            f"fill {past.sequence}: written {past.listing_id} at {past.price} {past.device_ids},"
            f" the rules choose {chosen.listing_id} at {chosen.price} {chosen.device_ids}"
        )


def _passed_over(past: PastFill, book: _Book) -> Iterator[str]:
    ask = next((each for each in book.asks() if each.listing_id == past.listing_id), None)
    own = book.orders.get(past.order_id)
    if ask is None or own is None:
        return
    surely = past.filled_at + CLOCKS_DIFFER_BY
    for other in book.resting.values():
        bid = book.open_bid(other)
        is_ahead = (-bid.limit, bid.sequence) < (-own.bid.limit, own.bid.sequence)
        rests = bid.open_servers > 0 and other.expires_at is not None and other.expires_at > surely
        if is_ahead and rests and not misfits(ask, bid, now=surely):
            yield f"fill {past.sequence}: order {bid.order_id} was ahead in line and fitted"
