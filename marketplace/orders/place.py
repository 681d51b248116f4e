"""Place an order: take what fits now, rest with the remainder, or leave with nothing done.

Steps, in one transaction: lock the book and the wallet and read both (one round trip), decide (`matching`), write the
order, its fills, holds, leases, rentals and the best ask (one round trip). The rate is read before the lock; the first
purchase of an organisation decides its tax and begins anew. Lock order: book, wallet. Nothing is kept when anything
refuses. A second call is a second order, but with the `order_id` of the first it finds that one and changes nothing.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, transaction
from uuid6 import uuid7

from billing.books import BooksStopped
from billing.ledger import InsufficientFunds, reason_of
from catalog.queries import median_elsewhere
from marketplace.book import OpenBook, WalletState, open_book, write
from marketplace.limits import MOST_RESTING_ORDERS
from marketplace.matching import Bid, fill
from marketplace.models import Order, Quote
from marketplace.orders.instruction import Instruction, InstructionRefused, check, expiry
from marketplace.orders.rows import Fillable, fill_row, held_by
from marketplace.pricing import Terms, hold_micros, is_far_above, reference_price
from marketplace.rates import OrderRate, order_rate
from marketplace.tax import NotSold, order_tax_percent
from marketplace.webhooks import order_filled


class NotARenter(Exception):
    """Only renters order: a provider never buys, so nobody ever trades with themselves."""


class OrganisationFrozen(Exception):
    """A frozen organisation places no order."""


class ReceivableOpen(Exception):
    """The organisation owes us money, in whatever currency: it is paid first."""


class TooManyOrders(Exception):
    """The organisation has as many resting orders as one may have."""


class NotEnoughMoney(Exception):
    """The order needs `needed_micros`, the wallet has `available_micros`."""

    def __init__(self, *, needed_micros: int, available_micros: int) -> None:
        super().__init__("The wallet has too little available.")
        self.needed_micros = needed_micros
        self.available_micros = available_micros


class QuoteExpired(Exception):
    """The quote's minute is over."""


@dataclass(frozen=True, kw_only=True)
class Placed:
    """What became of an order at once; `held_micros` is what it and its rentals set aside."""

    order_id: UUID
    state: str
    filled_servers: int
    held_micros: int


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """An instruction with who asks, under which id, and the rate and fee it is made with."""

    order_id: UUID
    organisation_id: int
    placed_by_id: int | None
    instruction: Instruction
    rate: OrderRate
    fee_percent: Decimal
    now: datetime


class _TaxUndecided(Exception):
    """How the organisation is taxed was never decided."""


def place_order(
    *,
    organisation_id: int,
    instruction: Instruction,
    now: datetime,
    placed_by_id: int | None = None,
    order_id: UUID | None = None,
) -> Placed:
    """Place an order and return what became of it. `order_id`: the id it gets, where the caller made one.

    Raises InstructionRefused, FxTooOld, QuoteExpired, NotARenter, OrganisationFrozen, ReceivableOpen, NotSold,
    TooManyOrders, BooksStopped, NotEnoughMoney; then nothing was written and nothing is held.
    """
    if order_id is not None and (known := _known(order_id, organisation_id)):
        return known
    check(instruction, now=now)
    rate, fee_percent = _promised(organisation_id, instruction, now)
    asked = _Asked(
        order_id=order_id or uuid7(),
        organisation_id=organisation_id,
        placed_by_id=placed_by_id,
        instruction=instruction,
        rate=rate,
        fee_percent=fee_percent,
        now=now,
    )
    try:
        return _place(asked)
    except _TaxUndecided:
        order_tax_percent(organisation_id, now=now)
        return _place(asked)


def _known(order_id: UUID, organisation_id: int) -> Placed | None:
    order = Order.objects.filter(pk=order_id, organisation_id=organisation_id).first()
    if order is None:
        return None
    held = [order.hold, *(rental.hold for rental in order.rentals.select_related("hold"))]
    return Placed(
        order_id=order_id,
        state=order.state,
        filled_servers=order.filled_servers,
        held_micros=sum(hold.remaining_micros for hold in held if hold is not None),
    )


def _promised(organisation_id: int, instruction: Instruction, now: datetime) -> tuple[OrderRate, Decimal]:
    """Return the rate and the fee of the quote, or those of now."""
    if instruction.quote_id is None:
        return order_rate(instruction.currency, now=now), settings.PROVIDER_FEE_PERCENT
    quote = Quote.objects.filter(pk=instruction.quote_id, organisation_id=organisation_id).first()
    if quote is None or quote.currency != instruction.currency or quote.gpu_id != instruction.gpu_id:
        raise InstructionRefused("quote", "unknown", "There is no such quote for this GPU and wallet.")
    if quote.expires_at < now:
        raise QuoteExpired
    return OrderRate(rate=quote.fx_rate, on=quote.fx_on, margin=quote.fx_margin), quote.fee_percent


def _place(asked: _Asked) -> Placed:
    instruction, now, bid = asked.instruction, asked.now, _bid(asked)
    with transaction.atomic():
        book = open_book(
            bid,
            gpu_id=instruction.gpu_id,
            organisation_id=asked.organisation_id,
            currency=instruction.currency,
            now=now,
        )
        if book.is_known and (known := _known(asked.order_id, asked.organisation_id)):
            return known
        _refuse_unless_permitted(book, rests=instruction.time_in_force == Order.TimeInForce.GTC)
        _refuse_far_above(instruction, book, now)
        terms = _terms(asked, book)
        fills = _fill_rows(replace(bid, sequence=book.sequence), book, terms, now)
        row = _order_row(asked, book, terms, len(fills))
        held_micros = held_by(fills) + row["rest_micros"]
        _afford(book.wallet, held_micros, row)
        _write(asked, book, row, fills)
    return Placed(order_id=asked.order_id, state=row["state"], filled_servers=len(fills), held_micros=held_micros)


def _bid(asked: _Asked) -> Bid:
    instruction = asked.instruction
    return Bid(
        order_id=asked.order_id,
        limit=instruction.limit,
        sequence=0,  # it gets its place with the lock
        gpu_count=instruction.gpu_count,
        open_servers=instruction.server_count,
        hours=instruction.hours,
        filters=instruction.filters,
        all_or_nothing=instruction.time_in_force == "fok",
    )


def _refuse_unless_permitted(book: OpenBook, *, rests: bool) -> None:
    """Raise what keeps this organisation from ordering."""
    wallet = book.wallet
    if not wallet.is_renter:
        raise NotARenter
    if wallet.are_books_stopped:
        raise BooksStopped("the books are being checked")
    if wallet.is_frozen:
        raise OrganisationFrozen
    if wallet.owes_anything:
        raise ReceivableOpen
    if not book.is_tax_decided:
        raise _TaxUndecided
    if book.tax_rate_percent is None:
        raise NotSold
    if rests and book.resting_orders >= MOST_RESTING_ORDERS:
        raise TooManyOrders


def _refuse_far_above(instruction: Instruction, book: OpenBook, now: datetime) -> None:
    if instruction.confirm_price:
        return
    reference = reference_price(traded=book.traded, median_ask=book.median_ask, elsewhere=None)
    if reference is None:
        reference = median_elsewhere(instruction.gpu_id, now=now)
    if is_far_above(instruction.limit, reference=reference):
        raise InstructionRefused(
            "limit_price_usd_per_gpu_hour",
            "price_far_above_reference",
            f"This is far above the market's {reference:.4f}. Confirm it with confirm_price if you mean it.",
        )


def _terms(asked: _Asked, book: OpenBook) -> Terms:
    return Terms(
        gpu_count=asked.instruction.gpu_count,
        hours=asked.instruction.hours,
        fx_rate=asked.rate.rate,
        tax_rate_percent=book.tax_rate_percent or Decimal(0),
    )


def _fill_rows(bid: Bid, book: OpenBook, terms: Terms, now: datetime) -> list[dict[str, Any]]:
    asks = {ask.listing_id: ask for ask in book.asks}
    order = Fillable(order_id=bid.order_id, terms=terms)
    return [
        fill_row(match, order=order, ask=asks[match.listing_id], now=now) for match in fill(bid, book.asks, now=now)
    ]


def _order_row(asked: _Asked, book: OpenBook, terms: Terms, filled: int) -> dict[str, Any]:
    instruction, rate, filters = asked.instruction, asked.rate, asked.instruction.filters
    state, close_reason = _outcome(instruction, filled)
    per_server = hold_micros(instruction.limit, terms)
    rests = state in Order.RESTING
    return {
        "id": asked.order_id,
        "organisation_id": asked.organisation_id,
        "wallet_id": book.wallet.account_id,
        "currency": instruction.currency,
        "gpu_id": instruction.gpu_id,
        "gpu_count": instruction.gpu_count,
        "server_count": instruction.server_count,
        "hours": instruction.hours,
        "limit_price_usd_per_gpu_hour": instruction.limit,
        "time_in_force": instruction.time_in_force,
        "expires_at": expiry(instruction, now=asked.now),
        "countries": sorted(filters.countries),
        "interconnect": filters.interconnect,
        "min_ram_gb": filters.min_ram_gb,
        "min_vcpus": filters.min_vcpus,
        "min_disk_gb": filters.min_disk_gb,
        "only_verified": True,
        "image": instruction.image,
        "ssh_public_key": instruction.ssh_public_key,
        "state": state,
        "filled_servers": filled,
        "fx_rate": rate.rate,
        "fx_on": rate.on,
        "fx_margin": rate.margin,
        "tax_rate_percent": terms.tax_rate_percent,
        "fee_percent": asked.fee_percent,
        "hold_per_server_micros": per_server,
        "rest_micros": per_server * (instruction.server_count - filled) if rests else 0,
        "quote_id": instruction.quote_id,
        "placed_by_id": asked.placed_by_id,
        "placed_at": asked.now,
        "sequence": book.sequence,
        "closed_at": None if rests else asked.now,
        "closed_sequence": None if rests else book.sequence,
        "close_reason": close_reason,
    }


def _outcome(instruction: Instruction, filled: int) -> tuple[str, str]:
    if filled == instruction.server_count:
        return "filled", ""
    if instruction.time_in_force != "gtc":
        return "cancelled", "no_more_fits" if filled else "nothing_fits"
    return ("partly_filled" if filled else "open"), ""


def _afford(wallet: WalletState, held_micros: int, row: dict[str, Any]) -> None:
    """Raise where the money is too little, or where there is no wallet: then for what the order could have held."""
    if wallet.account_id is None:
        most_micros = row["hold_per_server_micros"] * row["server_count"]
        raise NotEnoughMoney(needed_micros=held_micros or most_micros, available_micros=0)
    if held_micros > wallet.available_micros:
        raise NotEnoughMoney(needed_micros=held_micros, available_micros=wallet.available_micros)


def _write(asked: _Asked, book: OpenBook, row: dict[str, Any], fills: list[dict[str, Any]]) -> None:
    """Write it all. The database judges the money once more, and would refuse what overdraws the wallet."""
    told = [order_filled(row, fills)] if fills and book.is_told else []
    try:
        write(gpu_id=asked.instruction.gpu_id, now=asked.now, order=row, fills=fills, told=told)
    except DatabaseError as refused:
        if not isinstance(reason_of(refused), InsufficientFunds):
            raise
        needed_micros = held_by(fills) + row["rest_micros"]
        raise NotEnoughMoney(needed_micros=needed_micros, available_micros=book.wallet.available_micros) from refused
