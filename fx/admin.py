"""Rates in the operator's view. A rate that was held back is put to use here, by a person."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from fx.models import Rate


@admin.register(Rate)
class RateAdmin(admin.ModelAdmin[Rate]):
    """Nothing is edited; held-back rates may be put to use."""

    list_display = ["currency", "day", "units_per_eur", "origin", "held_back"]
    list_filter = ["origin", ("held_back", admin.EmptyFieldListFilter), "currency"]
    actions = ["put_to_use"]

    @admin.action(description=_("Put held-back rates to use"), permissions=["change"])
    def put_to_use(self, request: HttpRequest, queryset: QuerySet[Rate]) -> None:
        """Accept the chosen rates as they are; Django's admin log names who did it."""
        for rate in queryset.exclude(held_back=""):
            self.log_change(request, rate, f"put to use; was held back: {rate.held_back}")
        queryset.update(held_back="")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rates come from the ECB."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rates stay."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Show every field, change none."""
        return ["currency", "day", "units_per_eur", "origin", "held_back", "stored_at"]
