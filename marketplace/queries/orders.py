"""An organisation's orders and what stands between an open one and its fill."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Prefetch, QuerySet, Sum

from catalog.models import Gpu
from marketplace.book import live_asks
from marketplace.models import Fill, Order
from marketplace.orders.match import bid_of
from marketplace.why import Why, explain
from users.models import Organisation

RECENT = timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class WhyOpen:
    """Why an order rests: what `explain` says, and how much traded at its limit or below it in the last 7 days."""

    why: Why
    fills_7d: int
    gpus_7d: int


def orders_of(organisation: Organisation) -> QuerySet[Order]:
    """Return an organisation's orders, newest first, with their fills and rentals. Two queries."""
    fills = Fill.objects.select_related("rental").order_by("sequence")
    orders = Order.objects.filter(organisation=organisation).select_related("gpu", "hold")
    return orders.prefetch_related(Prefetch("fills", queryset=fills)).order_by("-placed_at", "-pk")


def why_open(order: Order, *, now: datetime) -> WhyOpen | None:
    """Return why an order is open; None for one that is closed. Three queries."""
    if order.state not in Order.RESTING:
        return None
    recent = Fill.objects.filter(
        gpu_id=order.gpu_id,
        filled_at__gt=now - RECENT,
        price_usd_per_gpu_hour__lte=order.limit_price_usd_per_gpu_hour,
    ).aggregate(fills=Count("pk"), gpus=Sum("gpu_count"))
    return WhyOpen(
        why=explain(bid_of(order), live_asks(order.gpu_id, now=now), now=now),
        fills_7d=recent["fills"],
        gpus_7d=recent["gpus"] or 0,
    )


def open_orders_at(organisation: Organisation, gpu: Gpu) -> QuerySet[Order]:
    """Return what an organisation still wants of one GPU, newest first. One query."""
    orders = Order.objects.filter(organisation=organisation, gpu=gpu, state__in=Order.RESTING)
    return orders.select_related("gpu", "hold").order_by("-placed_at", "-pk")


def last_ssh_key(organisation: Organisation) -> str:
    """Return the key that the organisation's last order with one brought along; blank before that. One query."""
    keys = Order.objects.filter(organisation=organisation).exclude(ssh_public_key="").order_by("-placed_at")
    return keys.values_list("ssh_public_key", flat=True).first() or ""


def order_in_full(organisation: Organisation) -> QuerySet[Order]:
    """Return an organisation's orders with all that an order's page tells: fills, rentals, servers, holds. Two queries."""
    fills = Fill.objects.select_related("rental__hold", "rental__server__provider__organisation").order_by("sequence")
    orders = Order.objects.filter(organisation=organisation).select_related("gpu", "hold", "placed_by")
    return orders.prefetch_related(Prefetch("fills", queryset=fills))
