"""Statistics as they were, hour by hour."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from catalog.models.gpus import Gpu


class PriceSnapshot(models.Model):
    """The live prices of one GPU in one market as they stood in one UTC hour. Written once; the database refuses change.

    After 90 days the last one of each day stays. The exchange counts as one seller: its four prices are the best ask.
    """

    class Market(models.TextChoices):
        EXCHANGE = "exchange", _("exchange")
        ON_DEMAND = "on_demand", _("on-demand")
        SPOT = "spot", _("spot")
        RESERVED = "reserved", _("reserved")

    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="price_snapshots", db_index=False)
    market = models.CharField(max_length=10, choices=Market)
    at = models.DateTimeField(help_text=_("The UTC hour, at its beginning"))
    min = models.DecimalField(max_digits=14, decimal_places=6)
    p25 = models.DecimalField(max_digits=14, decimal_places=6)
    median = models.DecimalField(max_digits=14, decimal_places=6)
    p75 = models.DecimalField(max_digits=14, decimal_places=6)
    offers = models.PositiveIntegerField(help_text=_("Clouds counted, each at its lowest price"))

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["gpu", "market", "at"], name="price_snapshot_once_an_hour"),
            models.CheckConstraint(
                condition=Q(min__gt=0, min__lte=F("p25"), p25__lte=F("median"), median__lte=F("p75")),
                name="price_snapshot_prices_ascend",
            ),
            models.CheckConstraint(condition=Q(offers__gt=0), name="price_snapshot_counts_something"),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.market} {self.at:%Y-%m-%d %H:%M}"


class PriceChange(models.Model):
    """A lowest price that moved by one per cent or more since the change before it, or since the first snapshot.

    Measured against the last change, not the hour before, so that a slow drift is told too. Written once, with the
    snapshot of its hour.
    """

    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="price_changes", db_index=False)
    market = models.CharField(max_length=10, choices=PriceSnapshot.Market)
    at = models.DateTimeField(help_text=_("The UTC hour of the snapshot, at its beginning"))
    price_before = models.DecimalField(max_digits=14, decimal_places=6)
    price = models.DecimalField(max_digits=14, decimal_places=6)
    offers = models.PositiveIntegerField(help_text=_("Clouds counted then"))

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["gpu", "market", "at"], name="price_change_once_an_hour"),
            models.CheckConstraint(
                condition=Q(price__gt=0, price_before__gt=0) & ~Q(price=F("price_before")), name="price_change_changes"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["-at"], name="price_changes_newest")]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.market} {self.price_before} to {self.price}"
