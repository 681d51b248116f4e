"""Webhooks: where an organisation wants to be told, what there was to tell, and how telling it went."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from users.models.organisations import Organisation
from users.models.people import User


class EventType(models.TextChoices):
    """What an endpoint may ask to be told."""

    ORDER_FILLED = "order.filled", _("servers of an order were filled")
    ORDER_EXPIRED = "order.expired", _("an order's time is over")
    RENTAL_RUNNING = "rental.running", _("a rental is ready and billed")
    RENTAL_ENDED = "rental.ended", _("a rental is over")
    BALANCE_LOW = "balance.low", _("a balance runs out soon")
    PRICE_BELOW = "price.below", _("a price fell below yours")


class WebhookEndpoint(models.Model):
    """An address of an organisation that is told about events of the types it asked for.

    Its secrets are encrypted, not hashed: each message is signed with them. While a secret is replaced, the one before
    signs too, until `previous_secret_until`.
    """

    class OffReason(models.TextChoices):
        FAILING = "failing", _("nothing arrived for three days")
        GONE = "gone", _("it answered 410, which means: send nothing more")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="webhook_endpoints")
    url = models.CharField(max_length=500)
    types = ArrayField(models.CharField(max_length=20, choices=EventType.choices))
    encrypted_secret = models.CharField(max_length=200)
    encrypted_previous_secret = models.CharField(max_length=200, blank=True)
    previous_secret_until = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True, blank=True, help_text=_("When it last took a message"))
    failing_since = models.DateTimeField(null=True, blank=True, help_text=_("Its first failure since it last took one"))
    switched_off_at = models.DateTimeField(null=True, blank=True)
    off_reason = models.CharField(max_length=7, choices=OffReason.choices, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["organisation", "url"], name="webhook_endpoint_once"),
            models.CheckConstraint(condition=Q(types__len__gte=1), name="webhook_endpoint_asks_for_something"),
        ]

    def __str__(self) -> str:
        return self.url


class WebhookEvent(models.Model):
    """Something that happened, as some endpoint is told it: written in the transaction that made it so, once.

    `key` tells apart several events of one type about one subject. A row is only there if an endpoint asked for it.
    """

    TEST = "webhook.test"  # sent to one endpoint on demand, whatever it asked for

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="webhook_events")
    type = models.CharField(max_length=20)
    subject_id = models.CharField(max_length=64)
    key = models.CharField(max_length=64, blank=True)
    data = models.JSONField()
    occurred_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["organisation", "type", "subject_id", "key"], name="webhook_event_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["occurred_at"], name="webhook_events_by_age")]

    def __str__(self) -> str:
        return f"{self.type} {self.subject_id}"


class WebhookDelivery(models.Model):
    """An event on its way to an endpoint. While it waits, whoever sends it moves `next_attempt_at` on: that is the claim."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        DELIVERED = "delivered", _("delivered")
        GIVEN_UP = "given_up", _("given up")

    event = models.ForeignKey(WebhookEvent, on_delete=models.CASCADE, related_name="deliveries")
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0, help_text=_("Since it was last sent off"))
    next_attempt_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["endpoint", "event"], name="webhook_delivery_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["next_attempt_at"], condition=Q(state="waiting"), name="webhook_deliveries_due"),
        ]

    def __str__(self) -> str:
        return f"{self.event_id} to {self.endpoint_id}: {self.state}"


class WebhookAttempt(models.Model):
    """One request to an endpoint: the status it answered with, or what went wrong before there was one."""

    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    took_ms = models.PositiveIntegerField()
    fault = models.CharField(max_length=20, blank=True)
    answer = models.TextField(blank=True, help_text=_("The first kilobyte of the answer's body"))

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.status or self.fault}"
