"""Reference rates, one row per currency and day."""

from datetime import date
from typing import ClassVar, Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class RateQuerySet(models.QuerySet["Rate"]):
    """Filters with a meaning."""

    def usable(self) -> Self:
        """Rates that conversions may take."""
        return self.filter(held_back="")

    def on_or_before(self, day: date) -> Self:
        """Rates of a day and of those before it, newest first: weekends and holidays have none of their own."""
        return self.filter(day__lte=day).order_by("-day")


class Rate(models.Model):
    """Units of a currency per 1 EUR on a day, as the European Central Bank states them."""

    class Origin(models.TextChoices):
        ECB = "ecb", _("ECB reference rate")
        SAMPLE = "sample", _("sample rate")

    currency = models.CharField(max_length=3)
    day = models.DateField()
    units_per_eur = models.DecimalField(max_digits=18, decimal_places=8)
    origin = models.CharField(max_length=6, choices=Origin.choices)
    held_back = models.CharField(max_length=200, blank=True, help_text=_("Why it is not used; blank = in use"))
    stored_at = models.DateTimeField()

    objects: ClassVar[models.Manager["Rate"]] = RateQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["currency", "day"], name="rate_once_per_day"),
            models.CheckConstraint(condition=Q(units_per_eur__gt=0), name="rate_positive"),
            models.CheckConstraint(condition=~Q(currency="EUR"), name="rate_never_of_eur"),
        ]

    def __str__(self) -> str:
        return f"{self.currency} {self.day} {self.units_per_eur}"
