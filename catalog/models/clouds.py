"""Clouds, and what is known of each."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class Cloud(models.Model):
    """An outside company whose prices are compared.

    The columns from `billing_step_seconds` on repeat its facts, typed, so that a million offers can be filtered and
    sorted by them in one join; `load_catalogue` keeps them (`terms_of`). Null = not found, or not one figure.
    """

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80, unique=True)
    website = models.URLField(max_length=200)
    billing_step_seconds = models.PositiveIntegerField(null=True, blank=True)
    minimum_seconds = models.PositiveIntegerField(null=True, blank=True)
    egress_usd_per_gb = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    persistent_volumes = models.BooleanField(null=True, blank=True)
    volume_survives_stop = models.BooleanField(null=True, blank=True)
    bills_when_stopped = models.BooleanField(null=True, blank=True)
    multi_node = models.BooleanField(null=True, blank=True)
    fabric = models.CharField(max_length=200, blank=True)
    spot_notice_seconds = models.PositiveIntegerField(null=True, blank=True)
    storage_usd_per_gb_month = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)
    storage_mib_s = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class CloudFact(models.Model):
    """What a cloud says of itself, with the page and the day it was read. A fact that was not found has no row."""

    class Fact(models.TextChoices):
        BILLING_STEP_SECONDS = "billing_step_seconds", _("Billing step")
        MINIMUM_SECONDS = "minimum_seconds", _("Minimum time")
        STOP_SEMANTICS = "stop_semantics", _("What a stop costs")
        PERSISTENT_VOLUMES = "persistent_volumes", _("Persistent volumes")
        STORAGE_USD_PER_GB_MONTH = "storage_usd_per_gb_month", _("Volume price")
        STORAGE_MIB_S = "storage_mib_s", _("Volume throughput")
        EGRESS_USD_PER_GB = "egress_usd_per_gb", _("Outgoing traffic")
        MULTI_NODE = "multi_node", _("Several machines as one cluster")
        FABRIC = "fabric", _("Network between machines")
        SPOT_NOTICE_SECONDS = "spot_notice_seconds", _("Spot notice")
        HEADQUARTERS_COUNTRY = "headquarters_country", _("Headquarters")
        DOCS_URL = "docs_url", _("Documentation")
        API_URL = "api_url", _("API")

    class Stop(models.TextChoices):
        STORAGE_ONLY = "storage_only", _("storage only")
        FULL = "full", _("as if running")
        NO_STOP = "no_stop", _("no stop, delete only")
        DEPENDS = "depends", _("depends on the kind")

    YES = "yes"
    NO = "no"
    VARIES = "varies"

    cloud = models.ForeignKey(Cloud, on_delete=models.CASCADE, related_name="facts")
    fact = models.CharField(max_length=30, choices=Fact)
    value = models.CharField(
        max_length=200, help_text=_("As in the data file: a number, yes or no, a word, an address")
    )
    number = models.DecimalField(
        max_digits=14, decimal_places=6, null=True, blank=True, help_text=_("The value where it is a number")
    )
    note = models.CharField(max_length=300, blank=True)
    source_url = models.URLField(max_length=300)
    checked_on = models.DateField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["cloud", "fact"], name="cloud_fact_once")]

    def __str__(self) -> str:
        return f"{self.cloud_id} {self.fact}={self.value}"

    @property
    def typed_value(self) -> Decimal | bool | str | None:
        """The value as what it is: a number (None where it varies), an answer, or a text."""
        if self.number is not None or self.value == self.VARIES:
            return self.number
        return {self.YES: True, self.NO: False}.get(self.value, self.value)

    @property
    def stop_in_words(self) -> str:
        """What a stop costs, for the fact that says so."""
        return str(self.Stop(self.value).label)


def terms_of(facts: Mapping[str, CloudFact]) -> dict[str, Any]:
    """Return what `Cloud` repeats of its facts (by their names), by column."""
    fact = CloudFact.Fact
    values = {name: row.typed_value for name, row in facts.items()}
    stop = values.get(fact.STOP_SEMANTICS)
    same = (
        fact.BILLING_STEP_SECONDS,
        fact.MINIMUM_SECONDS,
        fact.EGRESS_USD_PER_GB,
        fact.PERSISTENT_VOLUMES,
        fact.MULTI_NODE,
        fact.SPOT_NOTICE_SECONDS,
        fact.STORAGE_USD_PER_GB_MONTH,
        fact.STORAGE_MIB_S,
    )
    return {
        **{name.value: values.get(name) for name in same},
        "fabric": values.get(fact.FABRIC) or "",
        "volume_survives_stop": _survives(stop, has_volumes=values.get(fact.PERSISTENT_VOLUMES)),
        "bills_when_stopped": {CloudFact.Stop.STORAGE_ONLY: False, CloudFact.Stop.FULL: True}.get(stop),  # type: ignore[call-overload]
    }


def _survives(stop: object, *, has_volumes: object) -> bool | None:
    """Tell whether a volume is there after a stop: it outlives machines, or the stop bills (so keeps) storage alone."""
    if has_volumes is True or stop == CloudFact.Stop.STORAGE_ONLY:
        return True
    return False if has_volumes is False else None
