"""What a provider earned, hour by hour, how much of its time it sold, and at which prices its market traded.

Amounts are micros of USD. A line that was taken back keeps its figures and has `credited_micros`: what the provider
does not get, because the renter got the hour back.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Min, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from marketplace.models import Fill, Rental, Server, Settlement
from marketplace.price_spread import PriceSpread, spread_of

LOOKS_BACK = timedelta(days=30)
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class EarnedHour:
    """One settled hour of a rental, as its provider sees it."""

    rental_id: UUID
    hour: datetime
    server: str
    gpu: str
    gpu_label: str
    gpu_count: int
    price: Decimal
    billed_seconds: int
    gap_seconds: int
    net_micros: int
    fee_micros: int
    payable_micros: int
    credited_micros: int
    settled_at: datetime

    @property
    def left_micros(self) -> int:
        """What of it is owed to the provider."""
        return self.payable_micros - self.credited_micros


@dataclass(frozen=True, kw_only=True)
class Earned:
    """The sum of some hours."""

    hours: int
    net_micros: int
    fee_micros: int
    payable_micros: int
    credited_micros: int

    @property
    def left_micros(self) -> int:
        """What of it is owed to the provider."""
        return self.payable_micros - self.credited_micros


@dataclass(frozen=True, kw_only=True)
class ServerUse:
    """How much of a server's device time of the last 30 days, from its first listing on, was sold and settled."""

    server: Server
    sold_seconds: int
    listed_seconds: int

    @property
    def sold_hours(self) -> Decimal:
        """The GPU-hours that were sold."""
        return Decimal(self.sold_seconds) / _SECONDS_PER_HOUR

    @property
    def percent(self) -> int | None:
        """The share in whole per cent, rounded down; None for a server that was never listed."""
        return 100 * self.sold_seconds // self.listed_seconds if self.listed_seconds else None


def settled_hours(
    provider_id: int, *, since: datetime | None = None, until: datetime | None = None
) -> QuerySet[Settlement]:
    """Return a provider's settled hours that start in [since, until), newest first, with rental, GPU and server."""
    lines = Settlement.objects.filter(rental__server__provider_id=provider_id)
    if since is not None:
        lines = lines.filter(hour__gte=since)
    if until is not None:
        lines = lines.filter(hour__lt=until)
    return lines.select_related("rental__gpu", "rental__server").order_by("-hour", "-pk")


def earned_hour(line: Settlement) -> EarnedHour:
    """Return a settled hour as its provider sees it. No query where it came from `settled_hours`."""
    rental = line.rental
    return EarnedHour(
        rental_id=rental.pk,
        hour=line.hour,
        server=rental.server.name,
        gpu=rental.gpu.slug,
        gpu_label=rental.gpu.label,
        gpu_count=rental.gpu_count,
        price=rental.price_usd_per_gpu_hour,
        billed_seconds=line.billed_seconds,
        gap_seconds=line.gap_seconds,
        net_micros=line.usd_net_micros,
        fee_micros=line.fee_micros,
        payable_micros=line.payable_micros,
        credited_micros=line.payable_micros if line.reversed_at is not None else 0,
        settled_at=line.settled_at,
    )


def earned(provider_id: int, *, since: datetime | None = None, until: datetime | None = None) -> Earned:
    """Return the sum of a provider's settled hours that start in [since, until). One query."""
    found = (
        settled_hours(provider_id, since=since, until=until)
        .order_by()
        .aggregate(
            hours=Count("pk"),
            net=Coalesce(Sum("usd_net_micros"), Value(0)),
            fee=Coalesce(Sum("fee_micros"), Value(0)),
            payable=Coalesce(Sum("payable_micros"), Value(0)),
            credited=Coalesce(Sum("payable_micros", filter=Q(reversed_at__isnull=False)), Value(0)),
        )
    )
    return Earned(
        hours=found["hours"],
        net_micros=int(found["net"]),
        fee_micros=int(found["fee"]),
        payable_micros=int(found["payable"]),
        credited_micros=int(found["credited"]),
    )


def sold_rentals(provider_id: int) -> QuerySet[Rental, Any]:
    """Return a provider's rentals, newest first, with `settled_hours`, `net`, `fee`, `payable` and `credited` (micros)."""
    lines = Settlement.objects.filter(rental=OuterRef("pk")).order_by().values("rental")

    def total(column: str, condition: Q | None = None) -> Coalesce:
        return Coalesce(Subquery(lines.annotate(found=Sum(column, filter=condition)).values("found")), Value(0))

    rentals: QuerySet[Rental, Any] = (
        Rental.objects.filter(server__provider_id=provider_id)
        .select_related("gpu", "server")
        .annotate(
            settled_hours=Coalesce(Subquery(lines.annotate(found=Count("pk")).values("found")), Value(0)),
            net=total("usd_net_micros"),
            fee=total("fee_micros"),
            payable=total("payable_micros"),
            credited=total("payable_micros", Q(reversed_at__isnull=False)),
        )
        .order_by("-filled_at", "-pk")
    )
    return rentals


def use_of_servers(provider_id: int, *, now: datetime) -> list[ServerUse]:
    """Return the use of each server that is not withdrawn, by name. One query.

    Counted in whole UTC hours: from the later of 30 days ago and the hour of the first listing to the present hour.
    """
    until = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    since = until - LOOKS_BACK
    sold = (
        Settlement.objects.filter(
            rental__server=OuterRef("pk"), hour__gte=since, hour__lt=until, reversed_at__isnull=True
        )
        .order_by()
        .values("rental__server")
        .annotate(found=Sum(F("billed_seconds") * F("rental__gpu_count")))
        .values("found")
    )
    servers: QuerySet[Server, Any] = (
        Server.objects.filter(provider_id=provider_id, withdrawn_at=None)
        .annotate(sold=Coalesce(Subquery(sold), Value(0)), first_listed_at=Min("listings__listed_at"))
        .order_by("name")
    )
    return [
        ServerUse(
            server=server,
            sold_seconds=int(server.sold),
            listed_seconds=_hours_since(server.first_listed_at, since=since, until=until)
            * _SECONDS_PER_HOUR
            * server.device_count,
        )
        for server in servers
    ]


def fills_of_30_days(gpu_id: int, *, now: datetime) -> PriceSpread | None:
    """Return at which prices a GPU traded in the last 30 days, weighed by GPUs; None without a fill. One query."""
    rows = (
        Fill.objects.filter(gpu=gpu_id, filled_at__gt=now - LOOKS_BACK, filled_at__lte=now)
        .order_by()
        .values_list("price_usd_per_gpu_hour")
        .annotate(gpus=Sum("gpu_count"))
    )
    return spread_of(rows)


def _hours_since(first_listed_at: datetime | None, *, since: datetime, until: datetime) -> int:
    if first_listed_at is None:
        return 0
    start = max(since, first_listed_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0))
    return max(0, (until - start) // timedelta(hours=1))
