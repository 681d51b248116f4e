"""A quote: what an order would cost all in, as a maximum, for a minute. It reserves nothing.

Reads rates, tax, the wallet and the book without a lock, decides as the matcher would, and stores the promise: rate,
fee and the price of the worst fill. An order at that limit can never settle above the quote's hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from uuid6 import uuid7

from common.money import MICROS, round_to_micros
from marketplace.book import WalletState, live_asks, wallet_state
from marketplace.limits import QUOTE_FOR
from marketplace.matching import Ask, Bid, Match, fill, lease_until
from marketplace.models import Quote
from marketplace.orders.instruction import Instruction, check
from marketplace.orders.place import NotARenter
from marketplace.pricing import Terms, gross_per_hour, hold_micros, net_per_hour
from marketplace.rates import OrderRate, order_rate
from marketplace.tax import order_tax_percent
from marketplace.why import ANY_PRICE, Why, explain

_LAST_IN_LINE = 2**63 - 1
_A_LONG_TIME = timedelta(days=3650)


@dataclass(frozen=True, kw_only=True)
class QuotedFill:
    """One server of a quote."""

    country: str
    gpu_count: int
    price: Decimal
    until: datetime


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """What keeps the order from filling whole now: `reason`, and figures that belong to it."""

    reason: str
    why: Why | None = None
    needed_micros: int = 0
    available_micros: int = 0


@dataclass(frozen=True, kw_only=True)
class Quoted:
    """A quote as it is told. Micros of the wallet per hour for all servers; `quote` None when nothing can be promised.

    `runs_until`: lease's end, for an open-ended order no later than the money lasts at this price.
    """

    quote: Quote | None
    price: Decimal | None
    fills: Sequence[QuotedFill]
    net_per_hour_micros: int
    tax_per_hour_micros: int
    gross_per_hour_micros: int
    hold_micros: int
    currency: str
    rate: OrderRate
    tax_rate_percent: Decimal
    available_micros: int
    runs_until: datetime | None
    obstacle: Obstacle | None


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What an order is priced from: the live asks of its book, and the rates and the wallet of who asks."""

    asks: Sequence[Ask]
    rate: OrderRate
    tax_rate_percent: Decimal
    wallet: WalletState


@dataclass(frozen=True, kw_only=True)
class _Priced:
    """An instruction with what fits it now, at whatever price."""

    instruction: Instruction
    seen: Circumstances
    bid: Bid
    matches: Sequence[Match]
    terms: Terms

    @property
    def is_whole(self) -> bool:
        return len(self.matches) == self.instruction.server_count

    @property
    def worst_price(self) -> Decimal | None:
        return max((match.price for match in self.matches), default=None)

    @property
    def held_micros(self) -> int:
        if self.worst_price is None:
            return 0
        return hold_micros(self.worst_price, self.terms) * self.instruction.server_count


def quote_order(*, organisation_id: int, instruction: Instruction, now: datetime) -> Quoted:
    """Price an instruction (its limit is not looked at) and store the promise.

    Raises InstructionRefused, NotARenter, FxTooOld, NotSold; then nothing is stored.
    """
    check(replace(instruction, limit=Decimal(1)), now=now)
    wallet = wallet_state(organisation_id, instruction.currency)
    if not wallet.is_renter:
        raise NotARenter
    seen = Circumstances(
        rate=order_rate(instruction.currency, now=now),
        asks=live_asks(instruction.gpu_id, now=now),
        tax_rate_percent=order_tax_percent(organisation_id, now=now),
        wallet=wallet,
    )
    return quote_seen(organisation_id=organisation_id, instruction=instruction, seen=seen, now=now)


def quote_seen(*, organisation_id: int, instruction: Instruction, seen: Circumstances, now: datetime) -> Quoted:
    """Price an instruction from what was read already, and store the promise. Raises InstructionRefused."""
    check(replace(instruction, limit=Decimal(1)), now=now)
    quoted = price_order(instruction, seen, now=now)
    if quoted.price is None or len(quoted.fills) < instruction.server_count:
        return quoted
    return replace(quoted, quote=_store(organisation_id, instruction, quoted, quoted.price, now))


def price_order(instruction: Instruction, seen: Circumstances, *, now: datetime) -> Quoted:
    """Return what a checked instruction would cost now, all in; nothing is read and nothing promised."""
    priced = _price(instruction, seen, now)
    gross = sum((gross_per_hour(match.price, priced.terms) for match in priced.matches), Decimal(0))
    net = sum((net_per_hour(match.price, priced.terms) for match in priced.matches), Decimal(0))
    return Quoted(
        quote=None,
        price=priced.worst_price,
        fills=_fills(priced, now),
        net_per_hour_micros=round_to_micros(net),
        tax_per_hour_micros=round_to_micros(gross) - round_to_micros(net),
        gross_per_hour_micros=round_to_micros(gross),
        hold_micros=priced.held_micros,
        currency=instruction.currency,
        rate=seen.rate,
        tax_rate_percent=seen.tax_rate_percent,
        available_micros=seen.wallet.available_micros,
        runs_until=_runs_until(priced, gross, now),
        obstacle=_obstacle(priced, now),
    )


def _price(instruction: Instruction, seen: Circumstances, now: datetime) -> _Priced:
    bid = Bid(
        order_id=uuid7(),
        limit=ANY_PRICE,
        sequence=_LAST_IN_LINE,
        gpu_count=instruction.gpu_count,
        open_servers=instruction.server_count,
        hours=instruction.hours,
        filters=instruction.filters,
    )
    terms = Terms(
        gpu_count=instruction.gpu_count,
        hours=instruction.hours,
        fx_rate=seen.rate.rate,
        tax_rate_percent=seen.tax_rate_percent,
    )
    return _Priced(instruction=instruction, seen=seen, bid=bid, matches=fill(bid, seen.asks, now=now), terms=terms)


def _store(organisation_id: int, instruction: Instruction, quoted: Quoted, price: Decimal, now: datetime) -> Quote:
    return Quote.objects.create(
        organisation_id=organisation_id,
        gpu_id=instruction.gpu_id,
        body=order_body(instruction),
        price_usd_per_gpu_hour=price,
        hold_micros=quoted.hold_micros,
        currency=instruction.currency,
        fx_rate=quoted.rate.rate,
        fx_on=quoted.rate.on,
        fx_margin=quoted.rate.margin,
        tax_rate_percent=quoted.tax_rate_percent,
        fee_percent=settings.PROVIDER_FEE_PERCENT,
        quoted_at=now,
        expires_at=now + QUOTE_FOR,
    )


def order_body(instruction: Instruction) -> dict[str, Any]:
    """Return what the instruction asks of a server and of time, as the API's order names it."""
    wishes = instruction.filters
    return {
        "gpu_count": instruction.gpu_count,
        "server_count": instruction.server_count,
        "hours": instruction.hours,
        "wallet": instruction.currency,
        "filters": {
            "countries": sorted(wishes.countries),
            "interconnect": wishes.interconnect,
            "min_ram_gb": wishes.min_ram_gb,
            "min_vcpus": wishes.min_vcpus,
            "min_disk_gb": wishes.min_disk_gb,
        },
    }


def _fills(priced: _Priced, now: datetime) -> list[QuotedFill]:
    asks = {ask.listing_id: ask for ask in priced.seen.asks}
    hours, gpu_count = priced.instruction.hours, priced.instruction.gpu_count
    return [
        QuotedFill(
            country=asks[match.listing_id].country,
            gpu_count=gpu_count,
            price=match.price,
            until=lease_until(asks[match.listing_id], hours=hours, filled_at=now),
        )
        for match in priced.matches
    ]


def _runs_until(priced: _Priced, gross: Decimal, now: datetime) -> datetime | None:
    ends = [filled.until for filled in _fills(priced, now)]
    if not ends:
        return None
    if priced.instruction.hours is None:
        seconds = int(priced.seen.wallet.available_micros * 3600 / (gross * MICROS))
        ends.append(now + min(timedelta(seconds=seconds), _A_LONG_TIME))
    return min(ends)


def _obstacle(priced: _Priced, now: datetime) -> Obstacle | None:
    wallet = priced.seen.wallet
    if wallet.are_books_stopped:
        return Obstacle(reason="books_stopped")
    if wallet.is_frozen:
        return Obstacle(reason="organisation_frozen")
    if wallet.owes_anything:
        return Obstacle(reason="receivable_open")
    if not priced.is_whole:
        return Obstacle(reason="nothing_fits", why=explain(priced.bid, priced.seen.asks, now=now))
    if priced.held_micros > wallet.available_micros:
        return Obstacle(
            reason="not_enough_money",
            needed_micros=priced.held_micros,
            available_micros=wallet.available_micros,
        )
    return None
