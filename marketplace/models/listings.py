"""Servers put up for rent, and the terms each listing had at any moment."""

from decimal import Decimal
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from catalog.models import Gpu
from marketplace.models.servers import Server


class Listing(models.Model):
    """A server put up for rent. Its free devices at its price are an ask; `priority` is its place among equal prices.

    `is_for_rent` and `free_count` say what follows from the server, its beats and its leases; they change with them,
    under the book's lock.
    """

    class State(models.TextChoices):
        ACTIVE = "active", _("for rent")
        PAUSED = "paused", _("paused")
        ENDED = "ended", _("ended")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="listings")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="listings")
    price_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4)
    min_gpus = models.SmallIntegerField(default=1)
    max_hours = models.IntegerField(default=720)
    available_until = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=6, choices=State.choices, default=State.ACTIVE)
    priority = models.BigIntegerField(
        unique=True, help_text=_("Lower is older; a new price goes to the end of the line")
    )
    is_for_rent = models.BooleanField(
        default=False, help_text=_("Active, its server verified, not withdrawn and heard of")
    )
    free_count = models.SmallIntegerField(help_text=_("Devices of its server without an open lease, until it ends"))
    listed_at = models.DateTimeField()
    priced_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["server"], condition=~Q(state="ended"), name="one_listing_per_server"),
            models.CheckConstraint(
                condition=Q(
                    price_usd_per_gpu_hour__gt=Decimal(0),
                    max_hours__range=(1, 8760),
                    min_gpus__gte=1,
                    free_count__gte=0,
                ),
                name="listing_in_range",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["gpu", "price_usd_per_gpu_hour", "priority"], condition=Q(is_for_rent=True), name="book_asks"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server} at {self.price_usd_per_gpu_hour}"


class ListingTerms(models.Model):
    """What a listing's terms were, from one place in the book's sequence to another: the book's past can be rebuilt."""

    listing = models.ForeignKey(Listing, on_delete=models.PROTECT, related_name="terms")
    price_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4)
    min_gpus = models.PositiveSmallIntegerField()
    max_hours = models.PositiveIntegerField()
    available_until = models.DateTimeField(null=True, blank=True)
    is_for_rent = models.BooleanField(help_text=_("Active, its server verified, not withdrawn and heard of"))
    priority = models.BigIntegerField()
    from_sequence = models.BigIntegerField()
    to_sequence = models.BigIntegerField(null=True, blank=True)
    since = models.DateTimeField()

    class Meta:
        verbose_name_plural = "listing terms"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["listing"], condition=Q(to_sequence__isnull=True), name="one_present_terms"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["listing", "from_sequence"], name="terms_in_order")]

    def __str__(self) -> str:
        return f"{self.listing_id} {self.price_usd_per_gpu_hour} from {self.from_sequence}"
