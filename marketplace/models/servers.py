"""Providers, their servers and devices, and when each server was heard of."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from catalog.models import Gpu
from marketplace.limits import LIVE_FOR
from users.models import Organisation


class Provider(models.Model):
    """An organisation of kind provider on its way to selling, and while it sells."""

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        SUBMITTED = "submitted", _("under review")
        APPROVED = "approved", _("approved")
        SUSPENDED = "suspended", _("suspended")
        CLOSED = "closed", _("closed")

    organisation = models.OneToOneField(
        Organisation, on_delete=models.PROTECT, primary_key=True, related_name="provider"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    is_sample = models.BooleanField(default=False, help_text=_("Played by the demo fleet"))
    approved_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=["draft", "submitted", "approved", "suspended", "closed"]),
                name="provider_state_known",
            ),
            models.CheckConstraint(
                condition=~Q(state="approved") | Q(approved_at__isnull=False), name="approved_provider_has_a_date"
            ),
        ]

    def __str__(self) -> str:
        return self.organisation.name


class Server(models.Model):
    """A provider's machine with devices of one GPU. It sells only while verified and heard of within a minute.

    What it is (GPU, devices, country, sizes) never changes: a book's past is proved with it. `is_heard` changes under
    the book's lock alone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="servers")
    name = models.CharField(max_length=60)
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="servers")
    device_count = models.PositiveSmallIntegerField()
    country = models.CharField(max_length=2, help_text=_("ISO 3166 code"))
    vcpus = models.PositiveIntegerField()
    ram_gb = models.PositiveIntegerField()
    disk_gb = models.PositiveIntegerField()
    network_mbit_s = models.PositiveIntegerField()
    interconnect = models.CharField(
        max_length=20, help_text=_("Between its devices: nvlink, infinity_fabric, pcie or none")
    )
    is_sample = models.BooleanField(default=False, help_text=_("Played by the demo fleet"))
    verified_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    last_beat_at = models.DateTimeField(null=True, blank=True)
    is_heard = models.BooleanField(
        default=False, help_text=_("Heard of within a minute, as far as its book's line has come")
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(device_count__gte=1, device_count__lte=64), name="server_has_devices"),
            models.CheckConstraint(
                condition=Q(interconnect__in=["nvlink", "infinity_fabric", "pcie", "none"]),
                name="server_interconnect_known",
            ),
            models.CheckConstraint(
                condition=Q(is_heard=False) | Q(last_beat_at__isnull=False), name="heard_server_has_a_beat"
            ),
            models.UniqueConstraint(fields=["provider", "name"], name="server_name_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["gpu"], name="server_by_gpu")]

    def __str__(self) -> str:
        return self.name

    def was_heard(self, now: datetime) -> bool:
        """Whether it beat within the last minute."""
        return self.last_beat_at is not None and self.last_beat_at >= now - LIVE_FOR

    def is_live(self, now: datetime) -> bool:
        """Whether it may sell at this moment."""
        return self.verified_at is not None and self.withdrawn_at is None and self.is_heard and self.was_heard(now)


class Device(models.Model):
    """One physical GPU of a server."""

    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="devices")
    index = models.PositiveSmallIntegerField()
    uuid = models.CharField(max_length=60, unique=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["server", "index"], name="device_index_once")]

    def __str__(self) -> str:
        return f"{self.server} [{self.index}]"


class BeatSpan(models.Model):
    """A time without a gap: beats of a server, each within a minute of the one before."""

    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="beat_spans")
    first_beat_at = models.DateTimeField()
    last_beat_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["server", "first_beat_at"], name="beat_span_once"),
            models.CheckConstraint(condition=Q(last_beat_at__gte=F("first_beat_at")), name="beat_span_forward"),
        ]

    def __str__(self) -> str:
        return f"{self.server} {self.first_beat_at:%H:%M:%S} to {self.last_beat_at:%H:%M:%S}"


class UpSpan(models.Model):
    """A time in which the platform itself was up and listening: outside it nothing is a gap."""

    started_at = models.DateTimeField(unique=True)
    last_seen_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(last_seen_at__gte=F("started_at")), name="up_span_forward"),
        ]

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M:%S} to {self.last_seen_at:%H:%M:%S}"
