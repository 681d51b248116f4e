"""API keys, and the answers kept for requests that carry an idempotency key."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from users.models.organisations import Organisation
from users.models.people import User


class Scope(models.TextChoices):
    """What a key may do."""

    READ = "read", _("read")
    TRADE = "trade", _("trade")
    BILLING = "billing", _("billing")
    PROVIDER = "provider", _("provider")


class ApiKey(models.Model):
    """A key of an organisation. Its secret is never stored: only the SHA-256 of the whole key, and the part that names it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=8, unique=True, help_text=_("The part of the key that names it"))
    key_sha256 = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=8, choices=Scope.choices))
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"


class IdempotencyKey(models.Model):
    """A request that may be sent again: its answer once it succeeded. Kept for 24 h, one per organisation and key."""

    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request_sha256 = models.CharField(max_length=64, help_text=_("Of method, path and body"))
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    answer = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["organisation", "key"], name="idempotency_key_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["created_at"], name="idempotency_key_by_age")]

    def __str__(self) -> str:
        return self.key
