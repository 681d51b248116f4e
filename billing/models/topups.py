"""Money in and back out through the payment gateway. Amounts are micros, whole cents of their currency.

States only move forward (`billing.topups.states`); what was credited, refunded and clawed back stands in the ledger,
under keys made of these rows' ids.
"""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from billing.models.ledger import Account, JournalEntry
from users.models import Organisation, User


class GatewayCustomer(models.Model):
    """The gateway's customer for an organisation."""

    organisation = models.OneToOneField(Organisation, on_delete=models.PROTECT, related_name="+")
    customer_id = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.customer_id


class TopUp(models.Model):
    """One payment into a wallet. It is written before the gateway is asked, and credited once, by `credit_entry`."""

    class State(models.TextChoices):
        CREATED = "created", _("not yet at the gateway")
        OPEN = "open", _("waiting for the payment")
        PROCESSING = "processing", _("payment on its way")
        FAILED = "failed", _("payment failed")
        EXPIRED = "expired", _("expired")
        QUARANTINED = "quarantined", _("held for review")
        PAID = "paid", _("paid")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="top_ups")
    wallet = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="top_ups")
    currency = models.CharField(max_length=3)
    amount_micros = models.BigIntegerField()
    state = models.CharField(max_length=12, choices=State.choices, default=State.CREATED)
    gateway_key = models.CharField(
        max_length=100, unique=True, help_text=_("Idempotency key of the call, stored before it")
    )
    gateway_request = models.JSONField(
        default=dict, blank=True, help_text=_("What is asked there, so that a retry asks the same")
    )
    checkout_session_id = models.CharField(max_length=100, null=True, blank=True, unique=True)
    checkout_url = models.URLField(max_length=2000, blank=True)
    payment_intent_id = models.CharField(max_length=100, null=True, blank=True, unique=True)
    refunded_micros = models.BigIntegerField(default=0, help_text=_("Refunds asked for and not failed"))
    failure_reason = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    paid_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(
        null=True, blank=True, help_text=_("When an operator said where the money of one held for review went")
    )
    credit_entry = models.OneToOneField(
        JournalEntry, on_delete=models.PROTECT, null=True, blank=True, related_name="top_up"
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount_micros__gt=0), name="top_up_positive"),
            models.CheckConstraint(
                condition=Q(refunded_micros__gte=0, refunded_micros__lte=F("amount_micros")),
                name="refunds_within_top_up",
            ),
            models.CheckConstraint(
                condition=Q(state="paid", credit_entry__isnull=False, paid_at__isnull=False)
                | (~Q(state="paid") & Q(credit_entry__isnull=True, refunded_micros=0)),
                name="paid_is_credited",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["organisation", "-created_at"], name="top_up_by_organisation"),
            models.Index(
                fields=["created_at"], condition=Q(state__in=["created", "open", "processing"]), name="top_up_unsettled"
            ),
        ]

    def __str__(self) -> str:
        return f"top-up {self.pk} {self.state}"


class Refund(models.Model):
    """Unspent money of one top-up on its way back to the payment it came from."""

    class State(models.TextChoices):
        REQUESTED = "requested", _("asked for")
        SUBMITTED = "submitted", _("at the gateway")
        SUCCEEDED = "succeeded", _("paid back")
        FAILED = "failed", _("failed")

    class Origin(models.TextChoices):
        CUSTOMER = "customer", _("asked for by the organisation")
        OPERATOR = "operator", _("asked for by an operator")
        GATEWAY = "gateway", _("made at the gateway")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    top_up = models.ForeignKey(TopUp, on_delete=models.PROTECT, related_name="refunds")
    amount_micros = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.REQUESTED)
    origin = models.CharField(max_length=8, choices=Origin.choices)
    gateway_key = models.CharField(
        max_length=100, unique=True, help_text=_("Idempotency key of the call, stored before it")
    )
    gateway_refund_id = models.CharField(max_length=100, null=True, blank=True, unique=True)
    request_id = models.UUIDField(
        null=True, blank=True, help_text=_("Of the request that asked; sent again it is the same")
    )
    failure_reason = models.CharField(max_length=200, blank=True)
    requested_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    requested_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount_micros__gt=0), name="refund_positive"),
            models.UniqueConstraint(fields=["request_id", "top_up"], name="refund_once_per_request"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["requested_at"], condition=Q(state__in=["requested", "submitted"]), name="refund_unsettled"
            ),
        ]

    def __str__(self) -> str:
        return f"refund {self.pk} {self.state}"


class Dispute(models.Model):
    """A payment that its payer's bank took back. What the wallet had was clawed back, the rest is owed."""

    class State(models.TextChoices):
        OPEN = "open", _("open")
        WON = "won", _("won")
        LOST = "lost", _("lost")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    top_up = models.ForeignKey(TopUp, on_delete=models.PROTECT, related_name="disputes")
    gateway_dispute_id = models.CharField(max_length=100, unique=True)
    currency = models.CharField(max_length=3)
    amount_micros = models.BigIntegerField(help_text=_("What the gateway took"))
    clawed_micros = models.BigIntegerField(default=0, help_text=_("Taken from the wallet"))
    owed_micros = models.BigIntegerField(default=0, help_text=_("Posted to the receivable"))
    loss_micros = models.BigIntegerField(default=0, help_text=_("Beyond the payment: our loss"))
    state = models.CharField(max_length=4, choices=State.choices, default=State.OPEN)
    reason = models.CharField(max_length=60, blank=True)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount_micros__gt=0), name="dispute_positive"),
            models.CheckConstraint(
                condition=Q(amount_micros=F("clawed_micros") + F("owed_micros") + F("loss_micros")),
                name="dispute_adds_up",
            ),
            models.CheckConstraint(
                condition=Q(clawed_micros__gte=0, owed_micros__gte=0, loss_micros__gte=0),
                name="dispute_parts_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"dispute {self.gateway_dispute_id} {self.state}"


class GatewayEvent(models.Model):
    """A signed message of the gateway as it came, stored once. It is only a hint: applying it asks the gateway."""

    event_id = models.CharField(max_length=100, unique=True)
    type = models.CharField(max_length=80)
    object_id = models.CharField(max_length=100, blank=True)
    payload = models.JSONField()
    is_live = models.BooleanField()
    received_at = models.DateTimeField()
    applied_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    last_error = models.CharField(max_length=500, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["next_attempt_at"], condition=Q(applied_at__isnull=True), name="event_due"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id}"


class GatewayTransaction(models.Model):
    """One movement of our balance at the gateway; each belongs to exactly one entry of the ledger, or waits for a person."""

    transaction_id = models.CharField(max_length=100, unique=True)
    type = models.CharField(max_length=40)
    currency = models.CharField(max_length=3)
    amount_micros = models.BigIntegerField()
    fee_micros = models.BigIntegerField(default=0)
    source_id = models.CharField(max_length=100, blank=True)
    happened_at = models.DateTimeField()
    fee_entry = models.OneToOneField(JournalEntry, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    entry = models.ForeignKey(JournalEntry, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    seen_at = models.DateTimeField()
    note = models.CharField(max_length=200, blank=True, help_text=_("Why it has no entry"))

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["seen_at"], condition=Q(entry__isnull=True), name="transaction_unmatched"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.transaction_id}"
