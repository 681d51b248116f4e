"""Listings: a server put up for rent, its price and terms, pause and resume. What is sold never changes.

Each change locks the book, changes the row, writes its terms with their place in the book's line, and brings the book
to rest. A new price goes to the end of the line at that price; other terms keep their place. Lock order: book, rows.
Repeating a change with the same values writes nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from uuid6 import uuid7

from marketplace.book import lock_book, refresh_best_ask, write_terms
from marketplace.limits import MOST_LISTED_HOURS, TICK_USD, USUAL_LISTED_HOURS
from marketplace.models import Device, Lease, Listing, Server
from marketplace.orders.match import bring_to_rest

_HIGHEST_PRICE_USD = Decimal(100_000)


class TermsRefused(ValueError):
    """A term is out of place: `field` as in the API, a `code`, and words."""

    def __init__(self, field: str, code: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.code = code


class AlreadyListed(Exception):
    """The server has a listing that has not ended."""


class ListingUnknown(LookupError):
    """The provider has no such listing, or it has ended."""


@dataclass(frozen=True, kw_only=True)
class Offered:
    """What a provider asks for a server: USD per GPU-hour, the smallest slice, the longest rental, until when."""

    price: Decimal
    min_gpus: int = 1
    max_hours: int = USUAL_LISTED_HOURS
    available_until: datetime | None = None


def list_server(*, server: Server, offered: Offered, now: datetime, listing_id: UUID | None = None) -> Listing:
    """Put a server up for rent. Raises TermsRefused, AlreadyListed; NotApproved is the caller's to ask before.

    `listing_id`: the id it gets, where the caller made one.
    """
    _check(offered, server=server, now=now)
    try:
        with transaction.atomic():
            sequence = lock_book(server.gpu_id, now=now)
            listing = Listing.objects.create(
                id=listing_id or uuid7(),
                server=server,
                gpu_id=server.gpu_id,
                price_usd_per_gpu_hour=offered.price,
                min_gpus=offered.min_gpus,
                max_hours=offered.max_hours,
                available_until=offered.available_until,
                priority=sequence,
                free_count=_free_count(server),
                listed_at=now,
                priced_at=now,
            )
            write_terms(listing.pk, now=now)
            bring_to_rest(server.gpu_id, now=now)
    except IntegrityError as refused:
        if "one_listing_per_server" in str(refused):
            raise AlreadyListed from refused
        raise
    return listing


def change_terms(*, provider_id: int, listing_id: UUID, offered: Offered, now: datetime) -> Listing:
    """Change price and terms for what is not sold yet. Raises TermsRefused, ListingUnknown."""
    with transaction.atomic():
        listing, sequence = _locked(provider_id, listing_id, now)
        _check(offered, server=listing.server, now=now)
        if offered == _offered(listing):
            return listing
        if offered.price != listing.price_usd_per_gpu_hour:
            listing.priority, listing.priced_at = sequence, now
        listing.price_usd_per_gpu_hour = offered.price
        listing.min_gpus = offered.min_gpus
        listing.max_hours = offered.max_hours
        listing.available_until = offered.available_until
        listing.save()
        write_terms(listing.pk, now=now)
        bring_to_rest(listing.gpu_id, now=now)
    return listing


def pause(*, provider_id: int, listing_id: UUID, now: datetime) -> Listing:
    """Sell nothing more for now. Raises ListingUnknown."""
    return _set_state(provider_id, listing_id, Listing.State.PAUSED, now)


def resume(*, provider_id: int, listing_id: UUID, now: datetime) -> Listing:
    """Sell again, at the old place in line. Raises ListingUnknown."""
    return _set_state(provider_id, listing_id, Listing.State.ACTIVE, now)


def end_listing(*, provider_id: int, listing_id: UUID, now: datetime) -> Listing:
    """Take a listing away for good; what is sold goes on. Raises ListingUnknown."""
    return _set_state(provider_id, listing_id, Listing.State.ENDED, now)


def _free_count(server: Server) -> int:
    leased = Lease.objects.filter(device=OuterRef("pk"), closed_sequence__isnull=True)
    return Device.objects.filter(~Exists(leased), server=server).count()


def _set_state(provider_id: int, listing_id: UUID, state: Listing.State, now: datetime) -> Listing:
    with transaction.atomic():
        listing, _ = _locked(provider_id, listing_id, now)
        if listing.state == state:
            return listing
        Listing.objects.filter(pk=listing.pk).update(state=state)
        listing.state = state
        write_terms(listing.pk, now=now)
        if state == Listing.State.ACTIVE:
            bring_to_rest(listing.gpu_id, now=now)
        else:
            refresh_best_ask(listing.gpu_id, now=now)  # nothing fits now that did not before
    return listing


def _locked(provider_id: int, listing_id: UUID, now: datetime) -> tuple[Listing, int]:
    listing = Listing.objects.filter(pk=listing_id, server__provider_id=provider_id).first()
    if listing is None:
        raise ListingUnknown
    sequence = lock_book(listing.gpu_id, now=now)
    listing = Listing.objects.select_related("server").get(pk=listing_id)
    if listing.state == Listing.State.ENDED:
        raise ListingUnknown
    return listing, sequence


def _offered(listing: Listing) -> Offered:
    return Offered(
        price=listing.price_usd_per_gpu_hour,
        min_gpus=listing.min_gpus,
        max_hours=listing.max_hours,
        available_until=listing.available_until,
    )


def _check(offered: Offered, *, server: Server, now: datetime) -> None:
    price = offered.price
    if not price.is_finite() or not 0 < price <= _HIGHEST_PRICE_USD:
        raise TermsRefused("price_usd_per_gpu_hour", "out_of_range", f"Above 0, at most {_HIGHEST_PRICE_USD}.")
    if price % TICK_USD:
        raise TermsRefused("price_usd_per_gpu_hour", "too_fine", f"Prices go in steps of {TICK_USD}.")
    if not 1 <= offered.min_gpus <= server.device_count:
        raise TermsRefused("min_gpus", "out_of_range", f"Between 1 and the server's {server.device_count}.")
    if not 1 <= offered.max_hours <= MOST_LISTED_HOURS:
        raise TermsRefused("max_hours", "out_of_range", f"Between 1 and {MOST_LISTED_HOURS}.")
    if offered.available_until is not None and offered.available_until <= now:
        raise TermsRefused("available_until", "in_the_past", "A time to come, or none.")
