"""Organisations own wallets, orders and keys; people act for exactly one of them, each in a role."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from users.models.people import User


class Role(models.TextChoices):
    """What a member may do. An owner may do everything; a viewer only looks."""

    OWNER = "owner", _("owner")
    TRADER = "trader", _("trader")
    BILLING = "billing", _("billing")
    VIEWER = "viewer", _("viewer")


class Organisation(models.Model):
    """Who owns wallets, orders and keys: a renter or a provider, never both. A frozen one can place no order."""

    class Kind(models.TextChoices):
        RENTER = "renter", _("rents GPUs")
        PROVIDER = "provider", _("lists servers")

    class Type(models.TextChoices):
        BUSINESS = "business", _("business")
        CONSUMER = "consumer", _("consumer")

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    type = models.CharField(max_length=8, choices=Type.choices)
    country = models.CharField(max_length=2, help_text=_("ISO 3166 code"))
    address = models.CharField(max_length=200, blank=True)
    postcode = models.CharField(max_length=20, blank=True)
    city = models.CharField(max_length=100, blank=True)
    register_number = models.CharField(max_length=40, blank=True, help_text=_("Company register or local tax number"))
    frozen_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~models.Q(kind="provider") | models.Q(type="business"), name="provider_is_a_business"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's one organisation, and the role there."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="membership")
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices)
    joined_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.organisation}: {self.role}"


class Invitation(models.Model):
    """A person asked to join. The link's token is kept as SHA-256 only; one open invitation per address and organisation."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=8, choices=Role.choices)
    token_sha256 = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    invited_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "organisation",
                Lower("email"),
                condition=models.Q(accepted_at__isnull=True, withdrawn_at__isnull=True),
                name="one_open_invitation",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.organisation}"
