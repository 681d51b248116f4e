"""What a company says of itself when it applies to sell, how its review went, and tokens that let a server enrol."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from marketplace.models.servers import Provider, Server
from users.models import User


class ProviderApplication(models.Model):
    """Who the company is, where its money goes, and which versions of the terms were agreed to, by whom and when.

    Its state is the provider's. The bank account is stored encrypted; `iban_hint` is what a member may see of it.
    """

    provider = models.OneToOneField(Provider, on_delete=models.PROTECT, primary_key=True, related_name="application")
    company_name = models.CharField(max_length=120, blank=True)
    register_number = models.CharField(max_length=40, blank=True)
    vat_id = models.CharField(max_length=16, blank=True)
    address = models.CharField(max_length=200, blank=True)
    postcode = models.CharField(max_length=20, blank=True)
    city = models.CharField(max_length=100, blank=True)
    contact_name = models.CharField(max_length=120, blank=True)
    contact_email = models.EmailField(blank=True)
    contact_phone = models.CharField(max_length=30, blank=True)
    account_holder = models.CharField(max_length=120, blank=True)
    iban_encrypted = models.TextField(blank=True)
    iban_hint = models.CharField(max_length=8, blank=True, help_text=_("Country and last four digits"))
    terms_version = models.CharField(max_length=20, blank=True)
    self_billing_version = models.CharField(max_length=20, blank=True)
    agreed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    agreed_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(terms_version="", self_billing_version="") | Q(agreed_at__isnull=False),
                name="agreement_has_a_date",
            ),
            models.CheckConstraint(
                condition=Q(iban_encrypted="", iban_hint="") | (~Q(iban_encrypted="") & ~Q(iban_hint="")),
                name="bank_account_has_its_hint",
            ),
        ]

    def __str__(self) -> str:
        return self.company_name or str(self.provider)


class ProviderReview(models.Model):
    """One step of a provider between states, with its reason. It only grows."""

    class Step(models.TextChoices):
        SUBMITTED = "submitted", _("sent for review")
        TAKEN_BACK = "taken_back", _("taken back")
        APPROVED = "approved", _("approved")
        REJECTED = "rejected", _("sent back")
        SUSPENDED = "suspended", _("suspended")
        REOPENED = "reopened", _("opened again")
        CLOSED = "closed", _("closed")

    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="reviews")
    step = models.CharField(max_length=10, choices=Step.choices)
    reason = models.TextField(blank=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(step__in=["submitted", "taken_back", "approved"]) | ~Q(reason=""),
                name="review_against_has_a_reason",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["provider", "at"], name="reviews_of_provider")]

    def __str__(self) -> str:
        return f"{self.provider_id} {self.step} {self.at:%Y-%m-%d %H:%M}"


class EnrolToken(models.Model):
    """Lets a server's agent enrol, once and within the hour. Kept as SHA-256 only; a new one ends the one before."""

    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="enrol_tokens")
    token_sha256 = models.CharField(max_length=64, unique=True)
    issued_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    replaced_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["server"],
                condition=Q(used_at__isnull=True, replaced_at__isnull=True),
                name="one_open_enrol_token",
            ),
            models.CheckConstraint(condition=Q(expires_at__gt=F("issued_at")), name="enrol_token_ends_later"),
        ]

    def __str__(self) -> str:
        return f"{self.server} until {self.expires_at:%Y-%m-%d %H:%M}"
