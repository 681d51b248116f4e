"""Take an order out of the book: by its owner, or because its time is over.

Steps of a cancel, in one transaction: lock the book, look whether it still rests, close it and give its hold back, a
receivable first. A fill that came first stays; a second cancel changes nothing. Lock order: book, hold, account.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from billing.receivables import pay_receivable
from marketplace.book import lock_book, write
from marketplace.models import Order
from marketplace.orders.match import bring_to_rest, cancelled


class OrderUnknown(LookupError):
    """The organisation has no such order."""


def cancel_order(*, organisation_id: int, order_id: UUID, now: datetime) -> Order:
    """Cancel what is still open and return the order as it is then. Raises OrderUnknown."""
    order = Order.objects.filter(pk=order_id, organisation_id=organisation_id).first()
    if order is None:
        raise OrderUnknown
    with transaction.atomic():
        lock_book(order.gpu_id, now=now)
        order.refresh_from_db()
        if order.state in Order.RESTING:
            write(gpu_id=order.gpu_id, now=now, orders=[cancelled(order, reason="cancelled").change])
            pay_receivable(organisation_id=organisation_id, currency=order.currency, now=now)
            order.refresh_from_db()
    return order


def expire_orders(*, now: datetime) -> int:
    """Close the orders whose time is over, with their books brought to rest; return how many there were."""
    due = Order.objects.filter(state__in=Order.RESTING, expires_at__lte=now).order_by("gpu_id")
    books = list(due.values_list("gpu_id", flat=True))
    for gpu_id in dict.fromkeys(books):
        bring_to_rest(gpu_id, now=now)
    return len(books)
