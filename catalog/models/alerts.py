"""Price alerts: what somebody wants to be told, and each time they were."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from catalog.models.gpus import Gpu
from users.models import Organisation, User


class PriceAlert(models.Model):
    """A price that a person waits for: told once each time it falls that low, until the alert is ended.

    `met_since` is None while the price is higher, or has clearly risen again: only then is the next fall told.
    """

    class Place(models.TextChoices):
        EITHER = "either", _("here or at other clouds")
        EXCHANGE = "exchange", _("here, on our exchange")
        ELSEWHERE = "elsewhere", _("on demand at other clouds")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="price_alerts")
    asked_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="price_alerts")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="price_alerts")
    at_most_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4)
    place = models.CharField(max_length=9, choices=Place.choices)
    language = models.CharField(max_length=8, help_text=_("Of the mails: that of the page it was asked on"))
    site = models.CharField(max_length=200, help_text=_("Scheme and host of that page: where links in mails lead"))
    created_at = models.DateTimeField()
    met_since = models.DateTimeField(null=True, blank=True)
    told_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["asked_by", "gpu", "place", "at_most_usd_per_gpu_hour"],
                condition=Q(ended_at__isnull=True),
                name="price_alert_once",
            ),
            models.CheckConstraint(condition=Q(at_most_usd_per_gpu_hour__gt=0), name="price_alert_price_positive"),
            models.CheckConstraint(
                condition=Q(place__in=["either", "exchange", "elsewhere"]), name="price_alert_place_known"
            ),
            models.CheckConstraint(
                condition=Q(met_since__isnull=True) | Q(told_at__gte=F("met_since")), name="price_alert_met_is_told"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True) | Q(ended_at__gte=F("created_at")), name="price_alert_ends_later"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["gpu"], condition=Q(ended_at__isnull=True), name="price_alerts_open"),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} at {self.at_most_usd_per_gpu_hour} or less"


class AlertMessage(models.Model):
    """One time an alert was told: the price, whose it was, and the link that ends the alert, as SHA-256 only."""

    alert = models.ForeignKey(PriceAlert, on_delete=models.CASCADE, related_name="messages")
    price_usd_per_gpu_hour = models.DecimalField(max_digits=14, decimal_places=6)
    cloud_name = models.CharField(max_length=80, blank=True, help_text=_("Blank: our exchange"))
    token_sha256 = models.CharField(max_length=64, unique=True)
    told_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["alert", "told_at"], name="alert_message_once"),
        ]

    def __str__(self) -> str:
        return f"{self.alert_id} told {self.told_at:%Y-%m-%d %H:%M}"
