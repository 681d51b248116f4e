"""What a fill creates: the rental, its claim on devices, the hours money was set aside for, and what happened."""

from typing import ClassVar

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q, Value
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from catalog.models import Gpu
from marketplace.models.listings import Listing
from marketplace.models.orders import Fill, Order
from marketplace.models.servers import Device, Server
from users.models import Organisation


class Rental(models.Model):
    """Devices of one server for a renter, from the fill to the end. Price, fee and devices never change.

    What it repeats from its fill, order and listing has no foreign key of its own in the database: those rows have it.
    """

    class State(models.TextChoices):
        PENDING = "pending", _("waiting for the machine")
        PROVISIONING = "provisioning", _("starting")
        RUNNING = "running", _("running")
        ENDING = "ending", _("ending")
        ENDED = "ended", _("ended")
        FAILED = "failed", _("failed to start")
        INTERRUPTED = "interrupted", _("interrupted")

    STARTING = (State.PENDING, State.PROVISIONING)
    OPEN = (State.PENDING, State.PROVISIONING, State.RUNNING, State.ENDING)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    fill = models.OneToOneField(Fill, on_delete=models.PROTECT, related_name="rental")
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="rentals")
    organisation = models.ForeignKey(
        Organisation, on_delete=models.PROTECT, related_name="rentals", db_index=False, db_constraint=False
    )
    listing = models.ForeignKey(
        Listing, on_delete=models.PROTECT, related_name="rentals", db_index=False, db_constraint=False
    )
    server = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="rentals", db_constraint=False)
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="rentals", db_index=False, db_constraint=False)
    wallet = models.ForeignKey(
        "billing.Account", on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    currency = models.CharField(max_length=3)
    hold = models.OneToOneField("billing.Hold", on_delete=models.PROTECT, related_name="+")
    gpu_count = models.SmallIntegerField()
    device_ids = ArrayField(models.BigIntegerField())
    hours = models.IntegerField(null=True, blank=True, help_text=_("Empty: open-ended"))
    price_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4)
    fee_percent = models.DecimalField(max_digits=5, decimal_places=2)
    image = models.CharField(max_length=200, blank=True)
    ssh_public_key = models.CharField(max_length=800, blank=True)
    state = models.CharField(max_length=12, choices=State.choices, default=State.PENDING)
    filled_at = models.DateTimeField()
    lease_until = models.DateTimeField(help_text=_("The last instant the lease was taken for"))
    ready_at = models.DateTimeField(null=True, blank=True, help_text=_("Billing starts; a whole second"))
    paid_until = models.DateTimeField(null=True, blank=True, help_text=_("What the held hours reach to"))
    stop_requested_at = models.DateTimeField(null=True, blank=True, help_text=_("Billing ends; a whole second"))
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=40, blank=True)
    access = models.JSONField(null=True, blank=True, help_text=_("ssh_host, ssh_port, ssh_user, host_key"))
    settled_until = models.DateTimeField(null=True, blank=True, help_text=_("Hours before this are settled"))
    unbilled_from = models.DateTimeField(
        null=True, blank=True, help_text=_("Interrupted: the start of the UTC hour of the last beat, billed no more")
    )
    fully_settled_at = models.DateTimeField(null=True, blank=True, help_text=_("It is over and has its last line"))

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=["pending", "provisioning", "failed"])
                | Q(ready_at__isnull=False, paid_until__isnull=False)
                | Q(state__in=["ending", "ended"]),
                name="running_was_ready",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["ended", "failed", "interrupted"], ended_at__isnull=False)
                | (~Q(state__in=["ended", "failed", "interrupted"]) & Q(ended_at__isnull=True)),
                name="over_means_ended_at",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["organisation", "-filled_at"], name="rentals_of_organisation"),
            models.Index(
                fields=["server"],
                condition=Q(state__in=["pending", "provisioning", "running", "ending"]),
                name="rentals_open_by_server",
            ),
            models.Index(
                fields=["filled_at"], condition=Q(state__in=["pending", "provisioning"]), name="rentals_starting"
            ),
            # Names no column that a settlement changes each hour, so that its updates stay within a page.
            models.Index(
                fields=["id"],
                condition=Q(ready_at__isnull=False, fully_settled_at__isnull=True),
                name="rentals_to_settle",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_count} x {self.gpu_id}: {self.state}"


class Lease(models.Model):
    """The exclusive claim of a rental on one device. Open until the transaction that ends its rental closes it."""

    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="leases", db_index=False)
    rental = models.ForeignKey(Rental, on_delete=models.PROTECT, related_name="leases")
    period = DateTimeRangeField()
    taken_sequence = models.BigIntegerField()
    closed_sequence = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            # A range of one number stands for "the same device": no extension is needed.
            ExclusionConstraint(
                name="device_never_leased_twice",
                expressions=[
                    (
                        Func(F("device"), F("device"), Value("[]"), function="int8range"),
                        RangeOperators.OVERLAPS,
                    ),
                    ("period", RangeOperators.OVERLAPS),
                ],
            ),
            models.UniqueConstraint(
                fields=["device"], condition=Q(closed_sequence__isnull=True), name="one_open_lease_per_device"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["device", "-taken_sequence"], name="leases_of_device")]

    def __str__(self) -> str:
        return f"device {self.device_id} for {self.rental_id}"


class HeldHours(models.Model):
    """Hours of a rental that money was set aside for, with the rates it was held at. A lot has one row for all hours."""

    rental = models.ForeignKey(Rental, on_delete=models.PROTECT, related_name="held_hours", db_index=False)
    first_hour = models.IntegerField(help_text=_("Counted from ready_at, from 0"))
    hours = models.IntegerField()
    fx_rate = models.DecimalField(max_digits=20, decimal_places=10)
    fx_on = models.DateField(null=True, blank=True)
    tax_rate_percent = models.DecimalField(max_digits=5, decimal_places=2)
    held_micros = models.BigIntegerField()
    held_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "held hours"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rental", "first_hour"], name="held_hour_once"),
            models.CheckConstraint(
                condition=Q(first_hour__gte=0, hours__gte=1, held_micros__gt=0), name="held_hours_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rental_id} from hour {self.first_hour}"


class RentalEvent(models.Model):
    """One change of a rental's state, or something that happened to it."""

    rental = models.ForeignKey(Rental, on_delete=models.PROTECT, related_name="events", db_index=False)
    kind = models.CharField(max_length=20)
    at = models.DateTimeField()
    detail = models.JSONField(default=dict)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["rental", "at"], name="events_of_rental")]

    def __str__(self) -> str:
        return f"{self.kind} {self.at:%Y-%m-%d %H:%M:%S}"
