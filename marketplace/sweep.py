"""What time alone changes: servers that fall silent, rentals and orders whose time is over, orders that may no longer trade.

Every part asks what is due and may run twice or late. The platform's own up time is noted too: a minute without a
sweep ends a span, and what happens outside the spans is never a gap.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction

from marketplace.models import Listing, Order, Quote, UpSpan
from marketplace.orders.close import expire_orders
from marketplace.orders.match import bring_to_rest
from marketplace.rentals.sweep import sweep_rentals

UP_WITHIN = timedelta(seconds=60)
QUOTES_KEPT_FOR = timedelta(days=1)
log = logging.getLogger(__name__)


def sweep(*, now: datetime) -> dict[str, int]:
    """Do everything that is due and return how much of each there was."""
    note_up(now=now)
    rentals = sweep_rentals(now=now)
    parts: dict[str, Callable[..., int]] = {
        "orders_expired": expire_orders,
        "books_confirmed": confirm_best_asks,
        "quotes_forgotten": forget_quotes,
    }
    return {**rentals, **{name: part(now=now) for name, part in parts.items()}}


def note_up(*, now: datetime) -> None:
    """Note that the platform is up: prolong the present span, or begin one after a minute of silence."""
    with transaction.atomic():
        UpSpan.objects.select_for_update().order_by("-started_at").first()
        latest = UpSpan.objects.order_by("-started_at").first()  # another sweep may have begun one while we waited
        if latest is not None and latest.last_seen_at >= now - UP_WITHIN:
            UpSpan.objects.filter(pk=latest.pk, last_seen_at__lt=now).update(last_seen_at=now)
        else:
            UpSpan.objects.get_or_create(started_at=now, defaults={"last_seen_at": now})


def confirm_best_asks(*, now: datetime) -> int:
    """Bring every book to rest: silent servers and orders that may no longer trade leave it, its best ask is confirmed.

    Returns the number of books. One that fails is logged and tried again with the next sweep; the others go on.
    """
    listed = Listing.objects.exclude(state=Listing.State.ENDED).order_by().values_list("gpu_id", flat=True)
    wanted = Order.objects.filter(state__in=Order.RESTING).order_by().values_list("gpu_id", flat=True)
    return sum(_confirm(gpu_id, now) for gpu_id in sorted({*listed.distinct(), *wanted.distinct()}))


def forget_quotes(*, now: datetime) -> int:
    """Delete quotes that expired a day ago and led to no order; return how many."""
    return Quote.objects.filter(expires_at__lte=now - QUOTES_KEPT_FOR, orders__isnull=True).delete()[0]


def _confirm(gpu_id: int, now: datetime) -> bool:
    try:
        bring_to_rest(gpu_id, now=now)
    except DatabaseError:
        log.exception("The book of GPU %s was not brought to rest", gpu_id)
        return False
    return True
