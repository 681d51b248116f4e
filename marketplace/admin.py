"""The operator's view of the exchange: everything to read, nothing to change. What changes it are its own flows."""

from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from billing.admin import ReadOnly
from common.money import from_micros
from marketplace.models import (
    Device,
    Fill,
    HeldHours,
    Lease,
    Listing,
    ListingTerms,
    Order,
    Provider,
    Quote,
    Rental,
    RentalEvent,
    RunwayAlert,
    Server,
    Settlement,
    Strike,
    UpSpan,
)


class ReadOnlyInline(admin.TabularInline[Any, Any]):
    """Rows that belong to another, to look at."""

    extra = 0
    can_delete = False
    show_change_link = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is added here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is changed here."""
        return False


def inline(model: type[Model], *fields: str) -> type[ReadOnlyInline]:
    """Return the inline of a model with these fields."""
    return type(f"{model.__name__}Inline", (ReadOnlyInline,), {"model": model, "fields": fields})


@admin.register(Provider)
class ProviderAdmin(ReadOnly):
    """Who sells, or is on the way to it."""

    list_display = ["organisation", "state", "is_sample", "approved_at"]
    list_filter = ["state", "is_sample"]
    list_select_related = ["organisation"]
    search_fields = ["organisation__name"]


@admin.register(Server)
class ServerAdmin(ReadOnly):
    """Machines, and when each was heard of."""

    list_display = [
        "name",
        "provider",
        "gpu",
        "device_count",
        "country",
        "verified_at",
        "last_beat_at",
        "is_heard",
    ]
    list_filter = ["is_heard", "country", "is_sample"]
    list_select_related = ["provider__organisation", "gpu"]
    search_fields = ["name", "devices__uuid"]
    inlines = [inline(Device, "index", "uuid")]


@admin.register(Listing)
class ListingAdmin(ReadOnly):
    """What is for rent, with all terms that it ever had."""

    list_display = [
        "server",
        "gpu",
        "price_usd_per_gpu_hour",
        "min_gpus",
        "free_count",
        "state",
        "is_for_rent",
        "priority",
    ]
    list_filter = ["state", "is_for_rent", "gpu"]
    list_select_related = ["server", "gpu"]
    inlines = [
        inline(
            ListingTerms,
            "from_sequence",
            "to_sequence",
            "since",
            "price_usd_per_gpu_hour",
            "min_gpus",
            "max_hours",
            "available_until",
            "is_for_rent",
            "priority",
        )
    ]


@admin.register(Quote)
class QuoteAdmin(ReadOnly):
    """Prices that were promised for a minute."""

    list_display = [
        "quoted_at",
        "organisation",
        "gpu",
        "price_usd_per_gpu_hour",
        "hold",
        "currency",
        "expires_at",
    ]
    list_select_related = ["organisation", "gpu"]

    @admin.display(description="hold")
    def hold(self, quote: Quote) -> Decimal:
        """Show what the order would hold in units of its currency."""
        return from_micros(quote.hold_micros)


@admin.register(Order)
class OrderAdmin(ReadOnly):
    """What renters asked for, with the fills."""

    list_display = [
        "sequence",
        "organisation",
        "gpu",
        "gpu_count",
        "server_count",
        "filled_servers",
        "limit_price_usd_per_gpu_hour",
        "time_in_force",
        "state",
        "close_reason",
        "placed_at",
    ]
    list_filter = ["state", "time_in_force", "gpu"]
    list_select_related = ["organisation", "gpu"]
    search_fields = ["id", "organisation__name"]
    inlines = [inline(Fill, "sequence", "listing", "price_usd_per_gpu_hour", "device_ids", "filled_at")]


@admin.register(Rental)
class RentalAdmin(ReadOnly):
    """Rentals with their leases, held hours, settled hours and events."""

    list_display = [
        "id",
        "organisation",
        "server",
        "gpu",
        "gpu_count",
        "price_usd_per_gpu_hour",
        "state",
        "filled_at",
        "ended_at",
    ]
    list_filter = ["state", "gpu"]
    list_select_related = ["organisation", "server", "gpu"]
    search_fields = ["id", "organisation__name", "server__name"]
    exclude = ["ssh_public_key", "access"]  # how to reach a machine is its renter's
    inlines = [
        inline(Lease, "device", "period", "taken_sequence", "closed_sequence"),
        inline(HeldHours, "first_hour", "hours", "fx_rate", "fx_on", "tax_rate_percent", "held_micros", "held_at"),
        inline(
            Settlement,
            "hour",
            "billed_seconds",
            "gap_seconds",
            "net_micros",
            "tax_micros",
            "payable_micros",
            "reversed_at",
        ),
        inline(RentalEvent, "at", "kind", "detail"),
    ]


@admin.register(Strike)
class StrikeAdmin(ReadOnly):
    """Starts that failed."""

    list_display = ["struck_at", "provider", "server", "reason"]
    list_select_related = ["provider__organisation", "server"]


@admin.register(RunwayAlert)
class RunwayAlertAdmin(ReadOnly):
    """Who was told that money runs out."""

    list_display = ["raised_at", "organisation", "currency", "level_seconds", "lasts_until", "cleared_at"]
    list_select_related = ["organisation"]


@admin.register(UpSpan)
class UpSpanAdmin(ReadOnly):
    """When the platform itself was up."""

    list_display = ["started_at", "last_seen_at"]
