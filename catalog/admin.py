"""The operator's view: everything can be read, and only the review queue's answers are given elsewhere (an alias)."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from catalog.models import BestAsk, Cloud, Gpu, Offer, Source, SourceDocument, UnmappedName


class ReadOnly(admin.ModelAdmin[Any]):
    """Rows come from data files and sources; changing them here would be undone or would lie."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds rows by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes rows by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes rows by hand."""
        return False


@admin.register(Gpu)
class GpuAdmin(ReadOnly):
    """GPUs as the data file states them."""

    list_display = ["label", "slug", "vendor", "architecture", "memory_gb"]
    list_filter = ["vendor", "architecture"]
    search_fields = ["slug", "name", "label"]


@admin.register(Cloud)
class CloudAdmin(ReadOnly):
    """Clouds whose prices are compared."""

    list_display = ["name", "slug", "website"]
    search_fields = ["name", "slug"]


@admin.register(Source)
class SourceAdmin(ReadOnly):
    """The state of each adapter."""

    list_display = ["title", "state", "last_attempt_at", "last_success_at", "replayed"]


@admin.register(SourceDocument)
class SourceDocumentAdmin(ReadOnly):
    """Bodies, one line each."""

    list_display = ["source", "key", "read_at", "rows_read", "held_back", "unmapped", "last_error"]
    list_filter = ["source"]
    list_select_related = ["source"]


@admin.register(Offer)
class OfferAdmin(ReadOnly):
    """Offers with what keeps some of them out."""

    list_display = [
        "cloud",
        "instance_type",
        "gpu",
        "market",
        "price_usd_per_gpu_hour",
        "held_back",
        "gone_at",
    ]
    list_filter = ["market", "source", ("held_back", admin.EmptyFieldListFilter)]
    list_select_related = ["cloud", "gpu"]
    search_fields = ["instance_type", "gpu_name", "gpu__slug", "cloud__slug"]
    show_full_result_count = False


@admin.register(UnmappedName)
class UnmappedNameAdmin(ReadOnly):
    """The review queue: names that stay unclear. The answer is a line in the alias file."""

    list_display = [
        "gpu_name",
        "cloud_slug",
        "gpu_memory_gb",
        "instance_type",
        "candidates",
        "rows",
        "last_seen_at",
    ]
    list_filter = ["source", "cloud_slug"]
    search_fields = ["gpu_name", "instance_type"]


@admin.register(BestAsk)
class BestAskAdmin(ReadOnly):
    """What the exchange published last."""

    list_display = ["gpu", "price_usd_per_gpu_hour", "devices_available", "observed_at"]
    list_select_related = ["gpu"]
