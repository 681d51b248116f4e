"""What was told about money running out, and starts that failed."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from marketplace.models.rentals import Rental
from marketplace.models.servers import Provider, Server
from users.models import Organisation


class RunwayAlert(models.Model):
    """A wallet's money fell under a level of runway: told once, and again only after it had clearly recovered."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="runway_alerts")
    wallet = models.ForeignKey("billing.Account", on_delete=models.PROTECT, related_name="+")
    currency = models.CharField(max_length=3)
    level_seconds = models.PositiveIntegerField(help_text=_("The level of runway that was crossed"))
    lasts_until = models.DateTimeField(help_text=_("When the first rental would stop, as seen then"))
    raised_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["wallet", "level_seconds"], condition=Q(cleared_at__isnull=True), name="one_open_runway_alert"
            ),
            models.CheckConstraint(
                condition=Q(cleared_at__isnull=True) | Q(cleared_at__gte=F("raised_at")), name="alert_clears_later"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["organisation"], condition=Q(cleared_at__isnull=True), name="runway_alerts_open"),
        ]

    def __str__(self) -> str:
        return f"{self.currency} under {self.level_seconds} s"


class Strike(models.Model):
    """A start that failed on a server: held against its provider, once per rental."""

    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="strikes")
    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="strikes")
    rental = models.OneToOneField(Rental, on_delete=models.PROTECT, related_name="strike")
    reason = models.CharField(max_length=40)
    struck_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["provider", "-struck_at"], name="strikes_of_provider")]

    def __str__(self) -> str:
        return f"{self.server}: {self.reason}"
