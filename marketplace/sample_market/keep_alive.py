"""Sample renters keep the books alive: give machines back, renew resting orders, and trade a little.

Every part asks the database what is due and may run twice or late. An order that the exchange refuses is left out and
tried again later.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from uuid import UUID, uuid5

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from billing.books import BooksStopped
from catalog.models import Gpu
from marketplace.book import live_asks, lock_book, wallet_state
from marketplace.matching import Filters
from marketplace.models import Listing, Order
from marketplace.orders.close import cancel_order
from marketplace.orders.instruction import Instruction, InstructionRefused
from marketplace.orders.place import NotEnoughMoney, OrganisationFrozen, ReceivableOpen, place_order
from marketplace.sample_market.choose import choose_take
from marketplace.sample_market.give_back import give_back
from marketplace.sample_market.history import instruction_of
from marketplace.sample_market.people import CURRENCY, sample_renters
from marketplace.sample_market.plan import HISTORY, SEED, plan_book
from marketplace.sample_market.rows import FLAKY, reference_gpus, sample_books
from marketplace.tax import NotSold
from users.models import Membership

FIRST_DAY = timedelta(days=1)
GIVEN_BACK_AFTER = timedelta(minutes=6)
RENEWED_BEFORE = timedelta(days=1)
_TRADE_EVERY = timedelta(minutes=12)
_TRADE_WITHIN = timedelta(minutes=8)
_BOOKS_TRIED = 5
_SERIES = UUID("7a4f2a0a-64a3-4b0e-9b0c-0c6d7a1d8e52")  # of the ids of trades, one for each twelve minutes
_REFUSED = (NotEnoughMoney, OrganisationFrozen, ReceivableOpen, BooksStopped, NotSold, InstructionRefused)

log = logging.getLogger(__name__)


def keep_alive(*, now: datetime) -> dict[str, int]:
    """Do what is due and return how much of each there was."""
    renters = sample_renters()
    done = {"given_back": give_back(renters, filled_before=now - GIVEN_BACK_AFTER, now=now)}
    if not renters or not all(_has_wallet(renter) for renter in renters):
        return done
    return {**done, "bids_placed": renew_bids(renters, now=now), "trades": trade_a_little(renters, now=now)}


def renew_bids(renters: Sequence[Membership], *, now: datetime) -> int:
    """Place again what no longer rests or soon expires; return how many were placed.

    A bid's order has one id an hour: what was filled or cancelled comes back with the next hour, doubled tasks place it
    once.
    """
    gpu_ids = dict(Gpu.objects.filter(slug__in=sample_books()).values_list("slug", "pk"))
    resting = _resting(renters)
    placed = 0
    for slug, servers in sample_books().items():
        for bid in plan_book(servers).bids:
            renter, instruction = renters[bid.renter], instruction_of(bid, gpu_id=gpu_ids[slug])
            order = resting.get((renter.organisation_id, *_terms_of(instruction)))
            if order is not None and order.expires_at is not None and order.expires_at > now + RENEWED_BEFORE:
                continue
            if order is not None:
                cancel_order(organisation_id=renter.organisation_id, order_id=order.pk, now=now)
            order_id = uuid5(_SERIES, f"{slug} {bid} {now:%Y-%m-%d %H}")
            placed += _place(renter, instruction, order_id=order_id, now=now)
    return placed


def trade_a_little(renters: Sequence[Membership], *, now: datetime) -> int:
    """Take one offer every twelve minutes; return how many were taken. A take has one id: doubled tasks take once."""
    turn, since_seconds = divmod(int(now.timestamp()), int(_TRADE_EVERY.total_seconds()))
    rng = Random(f"{SEED}: {turn}")  # noqa: S311  # a story, not a secret
    if since_seconds < rng.randrange(int(_TRADE_WITHIN.total_seconds())):
        return 0
    order_id = uuid5(_SERIES, f"trade {turn}")
    if Order.objects.filter(pk=order_id).exists():
        return 0
    renter = rng.choice(renters)
    gpus = list(Gpu.objects.filter(slug__in=sample_books()).order_by("pk"))
    rng.shuffle(gpus)
    return int(any(_trade_in(gpu, renter, order_id=order_id, rng=rng, now=now) for gpu in gpus[:_BOOKS_TRIED]))


def _trade_in(gpu: Gpu, renter: Membership, *, order_id: UUID, rng: Random, now: datetime) -> bool:
    """Choose and take under the book's lock, so that what was chosen is what is taken."""
    with transaction.atomic():
        lock_book(gpu.pk, now=now)
        listings = Listing.objects.filter(gpu=gpu, server__is_sample=True)
        steady = listings.filter(state=Listing.State.ACTIVE).exclude(server__name=FLAKY)
        playable = set(steady.values_list("pk", flat=True))
        if not playable:
            return False
        take = choose_take(
            live_asks(gpu.pk, now=now),
            playable=playable,
            spares_best=gpu.slug in reference_gpus() and now < _opened_at(listings) + FIRST_DAY,
            rng=rng,
            now=now,
        )
        if take is None:
            return False
        instruction = Instruction(
            gpu_id=gpu.pk,
            gpu_count=take.gpu_count,
            hours=take.hours,
            limit=take.limit,
            currency=CURRENCY,
            time_in_force="ioc",
            filters=Filters(countries=frozenset([take.country])),
        )
        return _place(renter, instruction, order_id=order_id, now=now)


def _opened_at(listings: QuerySet[Listing]) -> datetime:
    """Return when this book's demo was opened first: so long after the oldest listing of its history."""
    return min(listings.values_list("listed_at", flat=True)) + HISTORY


def _has_wallet(renter: Membership) -> bool:
    """Whether money was ever paid in: where payments go to Stripe itself, nobody pays for the samples."""
    return wallet_state(renter.organisation_id, CURRENCY).account_id is not None


def _resting(renters: Sequence[Membership]) -> dict[tuple[object, ...], Order]:
    organisations = [renter.organisation_id for renter in renters]
    orders = Order.objects.filter(organisation__in=organisations, state__in=Order.RESTING)
    return {
        (
            order.organisation_id,
            order.gpu_id,
            order.limit_price_usd_per_gpu_hour,
            order.gpu_count,
            order.server_count,
            order.hours,
        ): order
        for order in orders
    }


def _terms_of(instruction: Instruction) -> tuple[object, ...]:
    return (
        instruction.gpu_id,
        instruction.limit,
        instruction.gpu_count,
        instruction.server_count,
        instruction.hours,
    )


def _place(renter: Membership, instruction: Instruction, *, order_id: UUID, now: datetime) -> bool:
    """Place an order unless it was placed before or is refused; return whether it was."""
    if Order.objects.filter(pk=order_id).exists():
        return False
    try:
        place_order(
            organisation_id=renter.organisation_id,
            instruction=instruction,
            placed_by_id=renter.user_id,
            order_id=order_id,
            now=now,
        )
    except (*_REFUSED, IntegrityError) as refused:
        log.warning("The sample order %s was not placed: %r", order_id, refused)
        return False
    return True
