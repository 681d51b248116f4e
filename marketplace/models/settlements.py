"""One UTC hour of a rental turned into postings: what was billed, at which rates, and what the provider earned."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from marketplace.models.rentals import Rental


class Settlement(models.Model):
    """A settled hour. Written once, with its entries; later it can only be marked as reversed, as a whole.

    An hour touches one or two held hours, each with its own rates. Without a tax decision with a rate at the start of
    the hour, the rates the money was held at were taken: then `tax_rate_percent` is empty. An hour that came to nothing
    (all of it a gap) has no entries. Amounts are micros: of the wallet's currency, or of USD where the name says so.
    """

    rental = models.ForeignKey(Rental, on_delete=models.PROTECT, related_name="settlements", db_index=False)
    hour = models.DateTimeField(help_text=_("Start of the UTC hour"))
    billed_seconds = models.PositiveSmallIntegerField()
    gap_seconds = models.PositiveSmallIntegerField()
    fx_rate = models.DecimalField(max_digits=20, decimal_places=10, help_text=_("Of the first held hour it touches"))
    held_tax_rate_percent = models.DecimalField(max_digits=5, decimal_places=2)
    next_seconds = models.PositiveSmallIntegerField(default=0, help_text=_("Billed seconds of the second held hour"))
    next_fx_rate = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    next_held_tax_rate_percent = models.DecimalField(max_digits=5, decimal_places=2, null=True, blank=True)
    tax_decision = models.ForeignKey(
        "billing.TaxDecision", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    tax_rate_percent = models.DecimalField(max_digits=5, decimal_places=2, null=True, blank=True)
    net_micros = models.BigIntegerField()
    tax_micros = models.BigIntegerField()
    gross_micros = models.BigIntegerField()
    usd_net_micros = models.BigIntegerField()
    payable_micros = models.BigIntegerField(help_text=_("What the provider earned, in USD"))
    fee_micros = models.BigIntegerField(help_text=_("Ours, in USD"))
    entry = models.ForeignKey(
        "billing.JournalEntry", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    provider_entry = models.ForeignKey(
        "billing.JournalEntry", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    settled_at = models.DateTimeField()
    reversed_at = models.DateTimeField(null=True, blank=True)
    reversal_entry = models.ForeignKey(
        "billing.JournalEntry", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    provider_reversal_entry = models.ForeignKey(
        "billing.JournalEntry", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rental", "hour"], name="settled_once"),
            models.CheckConstraint(
                condition=Q(gross_micros=F("net_micros") + F("tax_micros"))
                & Q(usd_net_micros=F("payable_micros") + F("fee_micros"))
                & Q(next_seconds__lte=F("billed_seconds"), billed_seconds__lte=3600 - F("gap_seconds")),
                name="line_adds_up",
            ),
            models.CheckConstraint(
                condition=Q(gross_micros__gte=0, payable_micros__gte=0)
                & (Q(entry__isnull=True, gross_micros=0) | Q(entry__isnull=False, gross_micros__gt=0))
                & (
                    Q(provider_entry__isnull=True, payable_micros=0)
                    | Q(provider_entry__isnull=False, payable_micros__gt=0)
                ),
                name="line_has_its_entries",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rental_id} {self.hour:%Y-%m-%d %H:%M} {self.billed_seconds} s"

    @property
    def first_seconds(self) -> int:
        """Billed seconds of the first held hour it touches."""
        return self.billed_seconds - self.next_seconds
