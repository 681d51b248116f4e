"""Offers seen at sources, and the best ask the exchange publishes."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar, Self

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from catalog.models.clouds import Cloud
from catalog.models.gpus import Gpu
from catalog.models.sources import Source, SourceDocument
from fx.models import Rate


class OfferQuerySet(models.QuerySet["Offer"]):
    """Filters with a meaning; tiers are functions of `now` (see `catalog.freshness`)."""

    def on_sale(self) -> Self:
        """Offers still in the last body read, not held back."""
        return self.filter(gone_at__isnull=True, held_back="", hidden_by_direct=False)

    def eligible(self) -> Self:
        """Offers that may enter bests and statistics: whole GPUs, not sold out, on hosts not marked unverified."""
        return self.on_sale().filter(is_whole=True, verified=True).exclude(availability="no")

    def dated(self, now: datetime) -> Self:
        """Tier `list`: a list price, or one the source itself dates more than 14 days back."""
        return self.filter(Q(is_list=True) | Q(priced_on__lt=(now - timedelta(days=14)).date()))

    def live(self, now: datetime) -> Self:
        """Fresh or warned: read within 12 hours, and not dated."""
        return self.filter(is_list=False, observed_at__gt=now - timedelta(hours=12)).filter(
            Q(priced_on__isnull=True) | Q(priced_on__gte=(now - timedelta(days=14)).date())
        )


class Offer(models.Model):
    """A price seen at a source, read-only. Whole-instance and per-GPU prices are stored as the source states them.

    A price in another currency keeps its own figure; the USD one was made at the reference rates of `rate_on`.
    """

    class MarketKind(models.TextChoices):
        ON_DEMAND = "on_demand", _("on-demand")
        SPOT = "spot", _("spot")
        RESERVED = "reserved", _("reserved")

    class Stock(models.TextChoices):
        YES = "yes", _("available")
        LOW = "low", _("scarce")
        NO = "no", _("sold out")
        UNKNOWN = "unknown", _("not told")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="offers")
    document = models.ForeignKey(SourceDocument, on_delete=models.CASCADE, related_name="offers")
    cloud = models.ForeignKey(Cloud, on_delete=models.PROTECT, related_name="offers")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="offers")
    gpu_name = models.CharField(max_length=100, help_text=_("As the source spells it"))
    instance_type = models.CharField(max_length=120)
    gpu_count = models.DecimalField(max_digits=9, decimal_places=4)
    is_whole = models.BooleanField(default=True, help_text=_("False for slices of a card: kept out of per-GPU bests"))
    price_usd_per_hour = models.DecimalField(max_digits=14, decimal_places=6)
    price_usd_per_gpu_hour = models.DecimalField(max_digits=14, decimal_places=6)
    currency = models.CharField(max_length=3, default="USD")
    price_in_currency_per_hour = models.DecimalField(max_digits=14, decimal_places=6)
    rate_on = models.DateField(null=True, blank=True)
    rate_origin = models.CharField(max_length=6, choices=Rate.Origin.choices, blank=True)
    market = models.CharField(max_length=10, choices=MarketKind.choices)
    term_months = models.PositiveSmallIntegerField(null=True, blank=True)
    region = models.CharField(max_length=80, blank=True)
    zone = models.CharField(max_length=80, blank=True)
    country = models.CharField(max_length=2, blank=True)
    vcpus = models.DecimalField(max_digits=8, decimal_places=2, null=True, blank=True)
    ram_gb = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)
    disk_gb = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    interconnect = models.CharField(max_length=60, blank=True)
    billing_step_seconds = models.PositiveIntegerField(null=True, blank=True)
    availability = models.CharField(max_length=8, choices=Stock.choices, default=Stock.UNKNOWN)
    verified = models.BooleanField(default=True)
    is_list = models.BooleanField(default=False)
    url = models.URLField(max_length=400, blank=True)
    observed_at = models.DateTimeField()
    priced_on = models.DateField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)
    held_back = models.CharField(max_length=200, blank=True, help_text=_("Why sanity keeps it out; blank = shown"))
    hidden_by_direct = models.BooleanField(default=False, help_text=_("A fresh direct source replaces this row"))

    objects: ClassVar[models.Manager["Offer"]] = OfferQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=[
                    "document",
                    "cloud",
                    "instance_type",
                    "gpu",
                    "gpu_count",
                    "region",
                    "zone",
                    "market",
                    "term_months",
                ],
                name="offer_once_per_document",
                nulls_distinct=False,
            ),
            models.CheckConstraint(condition=Q(gpu_count__gt=0), name="offer_gpu_count_positive"),
            models.CheckConstraint(condition=Q(price_usd_per_hour__gte=0), name="offer_price_not_negative"),
            models.CheckConstraint(
                condition=Q(market="reserved") | Q(term_months__isnull=True), name="offer_term_only_when_reserved"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["gpu", "market", "price_usd_per_gpu_hour"],
                condition=Q(gone_at__isnull=True, held_back=""),
                name="offer_on_sale_by_gpu",
            ),
            models.Index(
                F("price_usd_per_gpu_hour"),
                F("id"),
                condition=Q(gone_at__isnull=True, held_back=""),
                name="offer_on_sale_by_price",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.instance_type} {self.price_usd_per_gpu_hour}"


class BestAsk(models.Model):
    """The exchange's best ask per GPU. Only the marketplace writes it; no row = nothing for sale here."""

    gpu = models.OneToOneField(Gpu, on_delete=models.CASCADE, primary_key=True, related_name="best_ask")
    price_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4)
    devices_available = models.PositiveIntegerField()
    observed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(price_usd_per_gpu_hour__gt=Decimal(0)), name="best_ask_price_positive"),
            models.CheckConstraint(condition=Q(devices_available__gt=0), name="best_ask_devices_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.price_usd_per_gpu_hour}"
