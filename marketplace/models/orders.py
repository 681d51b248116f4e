"""Renters' instructions, what filled them, and prices promised for a minute."""

from decimal import Decimal
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from catalog.models import Gpu
from marketplace.models.listings import Listing
from users.models import Organisation, User


class Quote(models.Model):
    """A price promised as a maximum until `expires_at`; it reserves nothing. An order with it keeps its rate and fee."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="quotes")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="+")
    body = models.JSONField(help_text=_("The order it prices, ready to post"))
    price_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4, help_text=_("The worst fill"))
    hold_micros = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    fx_rate = models.DecimalField(max_digits=20, decimal_places=10)
    fx_on = models.DateField(null=True, blank=True)
    fx_margin = models.DecimalField(max_digits=6, decimal_places=4, default=Decimal(0))
    tax_rate_percent = models.DecimalField(max_digits=5, decimal_places=2)
    fee_percent = models.DecimalField(max_digits=5, decimal_places=2)
    quoted_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["expires_at"], name="quotes_expired")]

    def __str__(self) -> str:
        return f"{self.gpu_id} at {self.price_usd_per_gpu_hour}"


class Order(models.Model):
    """A renter's instruction: `server_count` servers with `gpu_count` devices each, for `hours` or open-ended.

    Filled by whole servers only. While it rests, its hold covers what is open at the limit.
    """

    class State(models.TextChoices):
        OPEN = "open", _("open")
        PARTLY_FILLED = "partly_filled", _("partly filled")
        FILLED = "filled", _("filled")
        CANCELLED = "cancelled", _("cancelled")
        EXPIRED = "expired", _("expired")

    class TimeInForce(models.TextChoices):
        GTC = "gtc", _("until filled, cancelled or expired")
        IOC = "ioc", _("now, as far as it goes")
        FOK = "fok", _("now, all or nothing")

    RESTING = (State.OPEN, State.PARTLY_FILLED)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.PROTECT, related_name="orders", db_index=False
    )  # found by the index below
    wallet = models.ForeignKey("billing.Account", on_delete=models.PROTECT, related_name="+", db_index=False)
    currency = models.CharField(max_length=3)
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="orders")
    gpu_count = models.SmallIntegerField(help_text=_("Devices of one server"))
    server_count = models.SmallIntegerField(default=1)
    hours = models.IntegerField(null=True, blank=True, help_text=_("Empty: open-ended"))
    limit_price_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4)
    time_in_force = models.CharField(max_length=3, choices=TimeInForce.choices, default=TimeInForce.GTC)
    expires_at = models.DateTimeField(null=True, blank=True)
    countries = ArrayField(models.CharField(max_length=2), default=list, blank=True)
    interconnect = models.CharField(max_length=20, blank=True)
    min_ram_gb = models.IntegerField(default=0)
    min_vcpus = models.IntegerField(default=0)
    min_disk_gb = models.IntegerField(default=0)
    only_verified = models.BooleanField(default=True)
    image = models.CharField(max_length=200, blank=True)
    ssh_public_key = models.CharField(max_length=800, blank=True)
    state = models.CharField(max_length=13, choices=State.choices)
    filled_servers = models.SmallIntegerField(default=0)
    fx_rate = models.DecimalField(max_digits=20, decimal_places=10, help_text=_("Wallet units per USD"))
    fx_on = models.DateField(null=True, blank=True)
    fx_margin = models.DecimalField(max_digits=6, decimal_places=4, default=Decimal(0))
    tax_rate_percent = models.DecimalField(max_digits=5, decimal_places=2)
    fee_percent = models.DecimalField(max_digits=5, decimal_places=2)
    hold = models.ForeignKey(
        "billing.Hold", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    hold_per_server_micros = models.BigIntegerField()
    quote = models.ForeignKey(
        Quote, on_delete=models.PROTECT, null=True, blank=True, related_name="orders", db_index=False
    )
    placed_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    placed_at = models.DateTimeField()
    sequence = models.BigIntegerField(unique=True, help_text=_("Its place in line"))
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_sequence = models.BigIntegerField(null=True, blank=True)
    close_reason = models.CharField(max_length=40, blank=True)

    class Meta:
        # Few and short: the database plans each CHECK anew for every row it writes.
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(
                    gpu_count__range=(1, 64), server_count__range=(1, 16), limit_price_usd_per_gpu_hour__gt=Decimal(0)
                )
                & (Q(hours__isnull=True) | Q(hours__range=(1, 720))),
                name="order_in_range",
            ),
            models.CheckConstraint(
                condition=Q(state="open", filled_servers=0)
                | Q(state="partly_filled", filled_servers__gte=1, filled_servers__lt=F("server_count"))
                | Q(state="filled", filled_servers=F("server_count"))
                | Q(state__in=["cancelled", "expired"], filled_servers__gte=0, filled_servers__lt=F("server_count")),
                name="order_state_fits_its_fills",
            ),
            models.CheckConstraint(
                condition=~Q(time_in_force="fok") | Q(filled_servers=0) | Q(state="filled"),
                name="all_or_nothing_is_either",
            ),
            models.CheckConstraint(
                condition=Q(
                    state__in=["open", "partly_filled"],
                    closed_at__isnull=True,
                    time_in_force="gtc",
                    hold__isnull=False,
                    expires_at__isnull=False,
                )
                | (~Q(state__in=["open", "partly_filled"]) & Q(closed_at__isnull=False)),
                name="only_gtc_rests_and_with_a_hold",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["gpu", "-limit_price_usd_per_gpu_hour", "sequence"],
                condition=Q(state__in=["open", "partly_filled"]),
                name="book_bids",
            ),
            models.Index(
                fields=["expires_at"], condition=Q(state__in=["open", "partly_filled"]), name="orders_expiring"
            ),
            models.Index(fields=["organisation", "-placed_at"], name="orders_of_organisation"),
            models.Index(
                fields=["organisation"],
                condition=Q(state__in=["open", "partly_filled"]),
                name="orders_resting_by_owner",
            ),
            models.Index(fields=["quote"], condition=Q(quote__isnull=False), name="orders_by_quote"),
            models.Index(fields=["placed_by"], condition=Q(placed_by__isnull=False), name="orders_by_person"),
        ]

    def __str__(self) -> str:
        return (
            f"{self.server_count} x {self.gpu_count} {self.gpu_id} at {self.limit_price_usd_per_gpu_hour}: {self.state}"
        )

    @property
    def open_servers(self) -> int:
        """How many servers are still wanted (0 once it is closed)."""
        return self.server_count - self.filled_servers if self.state in self.RESTING else 0


class Fill(models.Model):
    """One match: exactly `gpu_count` devices of one server, at the resting side's price. It made one rental.

    The running totals of its book, itself included, make the trade of any span a difference of two rows.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="fills")
    listing = models.ForeignKey(Listing, on_delete=models.PROTECT, related_name="fills", db_index=False)
    # its order's, and so without a foreign key of its own in the database
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="fills", db_index=False, db_constraint=False)
    gpu_count = models.SmallIntegerField()
    price_usd_per_gpu_hour = models.DecimalField(max_digits=12, decimal_places=4)
    fee_percent = models.DecimalField(max_digits=5, decimal_places=2)
    device_ids = ArrayField(models.BigIntegerField())
    sequence = models.BigIntegerField(unique=True)
    filled_at = models.DateTimeField()
    fills_so_far = models.BigIntegerField(help_text=_("Fills of the book up to this one"))
    gpus_so_far = models.BigIntegerField(help_text=_("Their devices"))
    value_so_far = models.DecimalField(max_digits=24, decimal_places=4, help_text=_("Their devices times prices"))

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["gpu", "-filled_at"], name="trades_newest_first"),
            models.Index(fields=["gpu", "sequence"], name="trades_in_order"),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_count} x {self.gpu_id} at {self.price_usd_per_gpu_hour}"
