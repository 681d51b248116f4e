"""What an organisation told about its tax, what the register of VAT numbers answered, and what was decided when.

Answers and decisions only grow: a decision's end is brought forward when another takes its place, nothing else changes.
A decision that was replaced before its hour came keeps an empty period.
"""

from typing import ClassVar

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeBoundary, RangeOperators
from django.db import models
from django.db.models import F, Func, Q, Value
from django.utils.translation import gettext_lazy as _

from users.models import Organisation


class VatCheck(models.Model):
    """One question to the register about one number, and its answer."""

    class Outcome(models.TextChoices):
        VALID = "valid", _("valid")
        INVALID = "invalid", _("not valid")
        UNKNOWN = "unknown", _("no answer")

    class NameMatch(models.TextChoices):
        SAME = "same", _("same name")
        DIFFERS = "differs", _("another name")
        NOT_TOLD = "not_told", _("not told")

    class Register(models.TextChoices):
        VIES = "vies", _("VIES")
        SAMPLE = "sample", _("sample answer, not VIES")

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="vat_checks")
    vat_id = models.CharField(max_length=16)
    register = models.CharField(max_length=6, choices=Register.choices)
    outcome = models.CharField(max_length=7, choices=Outcome.choices)
    fault = models.CharField(max_length=100, blank=True, help_text=_("Why there is no answer"))
    name = models.CharField(max_length=300, blank=True)
    address = models.CharField(max_length=500, blank=True)
    name_match = models.CharField(
        max_length=8,
        choices=NameMatch.choices,
        default=NameMatch.NOT_TOLD,
        help_text=_("The register's own verdict; where it tells the name, names are compared when the tax is decided"),
    )
    consultation_number = models.CharField(max_length=60, blank=True, help_text=_("Without one the proof is weak"))
    asked_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["organisation", "-asked_at"], name="vat_check_by_organisation")]

    def __str__(self) -> str:
        return f"{self.vat_id} {self.outcome}"


class TaxDetails(models.Model):
    """What an organisation told, and when its number is asked about next. Its row is the lock of its tax decisions."""

    class AreaRuling(models.TextChoices):
        NONE = "", _("not ruled")
        MAINLAND = "mainland", _("as the mainland")
        OUTSIDE = "outside", _("outside the Union")

    organisation = models.OneToOneField(Organisation, on_delete=models.PROTECT, related_name="tax_details")
    vat_id = models.CharField(max_length=16, blank=True)
    last_answer = models.ForeignKey(
        VatCheck,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("The register's last yes or no about this number"),
    )
    next_check_at = models.DateTimeField(null=True, blank=True)
    unanswered_checks = models.PositiveSmallIntegerField(default=0, help_text=_("In a row"))
    area_ruling = models.CharField(max_length=8, choices=AreaRuling.choices, blank=True, default=AreaRuling.NONE)

    class Meta:
        verbose_name_plural = "tax details"
        indexes: ClassVar = [
            models.Index(fields=["next_check_at"], condition=Q(next_check_at__isnull=False), name="vat_check_due"),
        ]

    def __str__(self) -> str:
        return f"{self.organisation_id} {self.vat_id}"


class TaxDecision(models.Model):
    """How an organisation's hours are taxed from `valid_from` (a full UTC hour) until `valid_to`, with what it was decided from."""

    class Treatment(models.TextChoices):
        DOMESTIC = "domestic", _("domestic VAT")
        REVERSE_CHARGE = "reverse_charge", _("reverse charge")
        CONSUMER_STATE = "consumer_state", _("VAT of your country")
        OUTSIDE_SCOPE = "outside_scope", _("outside EU VAT")
        REVIEW = "review", _("waits for a person")
        BLOCKED = "blocked", _("not for sale there")

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="tax_decisions")
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True, blank=True)
    treatment = models.CharField(max_length=14, choices=Treatment.choices)
    rate_percent = models.DecimalField(max_digits=4, decimal_places=2, null=True, blank=True)
    country_of_tax = models.CharField(max_length=2, blank=True)
    en16931_code = models.CharField(max_length=2, blank=True)
    legal_text_key = models.CharField(max_length=20, blank=True)
    reasons = ArrayField(models.CharField(max_length=24))
    seller_country = models.CharField(max_length=2)
    buyer_type = models.CharField(max_length=8)
    buyer_country = models.CharField(max_length=2)
    buyer_postcode = models.CharField(max_length=20, blank=True)
    vat_id = models.CharField(max_length=16, blank=True)
    vat_check = models.ForeignKey(VatCheck, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    register_number = models.CharField(max_length=40, blank=True)
    decided_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            ExclusionConstraint(
                name="one_tax_decision_at_a_time",
                expressions=[
                    (
                        Func(F("organisation"), F("organisation"), Value("[]"), function="int8range"),
                        RangeOperators.OVERLAPS,
                    ),
                    (
                        Func(
                            F("valid_from"),
                            F("valid_to"),
                            RangeBoundary(),
                            function="tstzrange",
                            output_field=DateTimeRangeField(),
                        ),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
            models.UniqueConstraint(
                fields=["organisation"], condition=Q(valid_to__isnull=True), name="one_open_tax_decision"
            ),
            models.CheckConstraint(
                condition=Q(valid_to__isnull=True) | Q(valid_to__gte=F("valid_from")), name="tax_decision_period"
            ),
            models.CheckConstraint(
                condition=Q(treatment__in=["review", "blocked"], rate_percent__isnull=True, en16931_code="")
                | Q(rate_percent__isnull=False)  # comparing nothing is neither true nor false, and would pass
                & (
                    Q(treatment__in=["domestic", "consumer_state"], rate_percent__gt=0, en16931_code="S")
                    | Q(treatment="reverse_charge", rate_percent=0, en16931_code="AE")
                    | Q(treatment="outside_scope", rate_percent=0, en16931_code="O")
                ),
                name="tax_rate_fits_treatment",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.treatment} {self.rate_percent} from {self.valid_from:%Y-%m-%d %H:%M}"

    @property
    def may_buy(self) -> bool:
        """Whether hours may be sold to the organisation while this holds."""
        return self.rate_percent is not None
