"""A provider as a renter sees it: who it is, since when it sells, and what became of what it sold."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Min, Q, Sum

from marketplace.models import Listing, Provider, Rental, Server, Settlement

_SECONDS_PER_HOUR = 3600
_PUBLIC = (Provider.State.APPROVED, Provider.State.SUSPENDED, Provider.State.CLOSED)


@dataclass(frozen=True, kw_only=True)
class Seller:
    """A provider with its record. Hours are GPU-hours; credits are what renters got back of settled hours, net, in USD.

    `first_sold_at` None: nothing was sold yet. `silent` is time without a sign of life, never billed.
    """

    provider: Provider
    first_sold_at: datetime | None
    rentals: int
    failed_starts: int
    interrupted: int
    delivered_hours: Decimal
    silent_hours: Decimal
    credited_hours: Decimal
    credited_micros: int
    servers: int
    countries: tuple[str, ...]
    gpus: tuple[str, ...]

    @property
    def failed_hours(self) -> Decimal:
        """Hours that were sold and not delivered: silence, and what was given back."""
        return self.silent_hours + self.credited_hours

    @property
    def percent_delivered(self) -> int | None:
        """Delivered hours of all that were sold and settled, in whole per cent, rounded down; None before the first."""
        sold = self.delivered_hours + self.failed_hours
        return int(100 * self.delivered_hours / sold) if sold else None


def seller_of(organisation_id: int) -> Seller | None:
    """Return a provider that sells, or did, with its record; None for any other organisation. Four queries."""
    provider = (
        Provider.objects.select_related("organisation")
        .filter(pk=organisation_id, state__in=_PUBLIC, approved_at__isnull=False)
        .first()
    )
    if provider is None:
        return None
    hours, rentals = _hours(organisation_id), _rentals(organisation_id)
    here = Server.objects.filter(
        provider_id=organisation_id,
        withdrawn_at=None,
        verified_at__isnull=False,
        listings__state=Listing.State.ACTIVE,
    )
    servers = list(here.order_by("gpu__position", "country").values_list("gpu__label", "country"))
    return Seller(
        provider=provider,
        first_sold_at=rentals["first"],
        rentals=rentals["count"],
        failed_starts=rentals["failed"],
        interrupted=rentals["interrupted"],
        delivered_hours=_hours_in(hours["delivered"]),
        silent_hours=_hours_in(hours["silent"]),
        credited_hours=_hours_in(hours["credited"]),
        credited_micros=int(hours["credits"] or 0),
        servers=len(servers),
        countries=tuple(sorted({country for _, country in servers})),
        gpus=tuple(dict.fromkeys(label for label, _ in servers)),
    )


def _hours(provider_id: int) -> dict[str, int | None]:
    billed, gap = F("billed_seconds") * F("rental__gpu_count"), F("gap_seconds") * F("rental__gpu_count")
    stands, is_back = Q(reversed_at__isnull=True), Q(reversed_at__isnull=False)
    return Settlement.objects.filter(rental__server__provider_id=provider_id).aggregate(
        delivered=Sum(billed, filter=stands),
        silent=Sum(gap),
        credited=Sum(billed, filter=is_back),
        credits=Sum("usd_net_micros", filter=is_back),
    )


def _rentals(provider_id: int) -> dict[str, Any]:
    return Rental.objects.filter(server__provider_id=provider_id).aggregate(
        first=Min("ready_at"),
        count=Count("pk"),
        failed=Count("pk", filter=Q(state=Rental.State.FAILED)),
        interrupted=Count("pk", filter=Q(state=Rental.State.INTERRUPTED)),
    )


def _hours_in(gpu_seconds: int | None) -> Decimal:
    return Decimal(gpu_seconds or 0) / _SECONDS_PER_HOUR
