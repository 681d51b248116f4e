"""Play the plan of a book through the exchange's own functions, at times that have passed.

Servers are heard of at each moment something is matched. The steps of a book are played in order of time under one
lock, so its line and its clock agree and every fill can be proved again.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from marketplace.listings import Offered, change_terms
from marketplace.matching import NO_WISHES, Filters
from marketplace.models import Listing
from marketplace.orders.instruction import Instruction
from marketplace.orders.place import place_order
from marketplace.sample_market.give_back import give_back
from marketplace.sample_market.people import CURRENCY
from marketplace.sample_market.plan import BookPlan, GiveBack, Reprice, Rest, SampleBid, Step, Trade
from marketplace.servers import beat_all
from users.models import Membership

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where a plan is played: the book, its listings by their server's name, and the renters who have money."""

    gpu_id: int
    listings: Mapping[str, Listing]
    renters: Sequence[Membership]
    opening_at: datetime


def play(book: BookPlan, stage: Stage) -> None:
    """Play every step of a plan. Without renters only prices move."""
    for step in book.steps:
        _play(step, stage, now=stage.opening_at - step.before)


def instruction_of(bid: SampleBid, *, gpu_id: int) -> Instruction:
    """Return the order that a sample bid is; it rests for as long as an order may."""
    return Instruction(
        gpu_id=gpu_id,
        gpu_count=bid.gpu_count,
        server_count=bid.server_count,
        hours=bid.hours,
        limit=bid.limit,
        currency=CURRENCY,
    )


def _play(step: Step, stage: Stage, *, now: datetime) -> None:
    match step:
        case Reprice():
            if step.is_awaited:
                _hear(stage, now)
            _reprice(step.prices, stage, now)
        case Trade() if stage.renters:
            _hear(stage, now)
            _place(step.renter, _instruction(step, stage), stage, now)
        case Rest(bid=bid) if stage.renters:
            _place(bid.renter, instruction_of(bid, gpu_id=stage.gpu_id), stage, now)
        case GiveBack():
            give_back(stage.renters, gpu_id=stage.gpu_id, filled_before=now, now=now)
        case _:
            return


def _hear(stage: Stage, now: datetime) -> None:
    beat_all(server_ids=_servers(stage), now=now)


def _servers(stage: Stage) -> list[UUID]:
    return [listing.server_id for listing in stage.listings.values()]


def _reprice(prices: Mapping[str, Decimal], stage: Stage, now: datetime) -> None:
    for name, price in prices.items():
        listing = stage.listings[name]
        change_terms(
            provider_id=listing.server.provider_id,
            listing_id=listing.pk,
            offered=Offered(price=price, min_gpus=listing.min_gpus, max_hours=listing.max_hours),
            now=now,
        )


def _instruction(trade: Trade, stage: Stage) -> Instruction:
    return Instruction(
        gpu_id=stage.gpu_id,
        gpu_count=trade.gpu_count,
        hours=trade.hours,
        limit=trade.limit,
        currency=CURRENCY,
        time_in_force="ioc",
        filters=Filters(countries=frozenset([trade.country])) if trade.country else NO_WISHES,
    )


def _place(renter: int, instruction: Instruction, stage: Stage, now: datetime) -> None:
    membership = stage.renters[renter]
    placed = place_order(
        organisation_id=membership.organisation_id,
        instruction=instruction,
        placed_by_id=membership.user_id,
        now=now,
    )
    log.debug("%s of %s: %s", instruction, membership, placed.state)
