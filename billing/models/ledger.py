"""The ledger's rows. Read-only here: `billing/sql` is the one door, `ledger.py` and `holds.py` the way to it.

Sign: a positive posting is a credit. Wallets, payables, revenue and tax grow with credits; what we hold ourselves
(gateway, bank) and what we spend (cost, fees) are debits, so their balances are negative. All postings of an entry
sum to zero per currency. Amounts are micros: 10^-6 of the currency.
"""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from users.models import Organisation


class Account(models.Model):
    """One balance in one currency. `posted_micros` and `held_micros` are moved by the database's triggers alone.

    With `entries_only` the stored balance ends at `rolled_up_to`; the postings after it are added when read, so that
    a thousand writers never wait for one row.
    """

    class Kind(models.TextChoices):
        WALLET = "wallet", _("wallet of an organisation")
        RECEIVABLE = "receivable", _("owed to us by an organisation")
        PAYABLE = "payable", _("owed to a provider")
        GATEWAY = "gateway", _("money at the payment gateway")
        BANK = "bank", _("money at our bank")
        REFUNDS = "refunds_in_transit", _("clearing: refunds on their way")
        PAYOUTS = "payouts_in_transit", _("clearing: payouts on their way")
        DISPUTES = "disputes_open", _("clearing: disputed payments")
        UNMATCHED = "unmatched", _("clearing: money that fits no top-up")
        REVENUE = "revenue", _("sold GPU-hours, net")
        TAX = "tax", _("tax owed to the state")
        COST = "cost", _("GPU-hours bought from providers")
        GATEWAY_FEES = "gateway_fees", _("fees of the payment gateway")
        LOSSES = "losses", _("losses: disputes beyond the payment, credits we grant")
        ROUNDING = "rounding", _("rounding")

    OWNED = (Kind.WALLET, Kind.RECEIVABLE, Kind.PAYABLE)
    CLEARING = (Kind.REFUNDS, Kind.PAYOUTS, Kind.DISPUTES, Kind.UNMATCHED)
    NEVER_NEGATIVE = (Kind.WALLET,)

    kind = models.CharField(max_length=20, choices=Kind.choices)
    currency = models.CharField(max_length=3)
    owner = models.ForeignKey(Organisation, on_delete=models.PROTECT, null=True, blank=True, related_name="accounts")
    posted_micros = models.BigIntegerField(default=0)
    held_micros = models.BigIntegerField(default=0)
    entries_only = models.BooleanField(default=False)
    rolled_up_to = models.BigIntegerField(default=0, help_text=_("Last posting contained in the stored balance"))
    opened_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["owner", "kind", "currency"], name="account_once", nulls_distinct=False),
            models.UniqueConstraint(fields=["id", "currency"], name="account_id_currency"),
            # One for all that moves: the database plans each CHECK anew whenever a row is updated. What never changes
            # (kind, owner, currency fit together) is judged once, by the trigger on insert in 10_only_grows.sql.
            models.CheckConstraint(
                condition=Q(kind="wallet", posted_micros__gte=F("held_micros"), held_micros__gte=0)
                | (~Q(kind="wallet") & Q(held_micros=0)),
                name="wallet_never_overdrawn",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.currency} #{self.pk}"

    @property
    def available_micros(self) -> int:
        """What may be spent or held now (stored balances only)."""
        return self.posted_micros - self.held_micros


class JournalEntry(models.Model):
    """A balanced set of postings with a reason and a key. It only grows: a mistake is reversed by a new entry."""

    key = models.CharField(max_length=120)
    content_sha256 = models.BinaryField(max_length=32)
    kind = models.CharField(max_length=40)
    reference_type = models.CharField(max_length=40, blank=True)
    reference_id = models.CharField(max_length=64, blank=True)
    description = models.CharField(max_length=200, blank=True)
    effective_at = models.DateTimeField(help_text=_("When it happened in the world"))
    created_at = models.DateTimeField(help_text=_("When it was written"))
    reverses = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="reversals", db_index=False
    )

    class Meta:
        verbose_name_plural = "journal entries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key"], name="entry_key_once"),
            models.UniqueConstraint(fields=["reverses"], condition=Q(reverses__isnull=False), name="reversed_once"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["reference_type", "reference_id"], condition=~Q(reference_id=""), name="entry_by_reference"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Posting(models.Model):
    """One signed line on an account; positive is a credit."""

    entry = models.ForeignKey(JournalEntry, on_delete=models.PROTECT, related_name="postings")
    # The database's own foreign key is on (account, currency): a line in another currency cannot be stored.
    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="postings", db_constraint=False, db_index=False
    )
    currency = models.CharField(max_length=3)
    amount_micros = models.BigIntegerField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["account", "id"], name="posting_by_account")]

    def __str__(self) -> str:
        return f"{self.amount_micros} {self.currency} on #{self.account_id}"


class Hold(models.Model):
    """Money of a wallet set aside. placed = remaining + captured + released, always."""

    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="holds", db_constraint=False, db_index=False
    )
    currency = models.CharField(max_length=3)
    key = models.CharField(max_length=120)
    content_sha256 = models.BinaryField(max_length=32)
    reference_type = models.CharField(max_length=40, blank=True)
    reference_id = models.CharField(max_length=64, blank=True)
    placed_micros = models.BigIntegerField(default=0)
    remaining_micros = models.BigIntegerField(default=0)
    captured_micros = models.BigIntegerField(default=0)
    released_micros = models.BigIntegerField(default=0)
    burn_micros_per_hour = models.BigIntegerField(
        default=0, db_default=0, help_text=_("Gross, what its rental costs an hour; 0 unless running")
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key"], name="hold_key_once"),
            models.CheckConstraint(
                condition=Q(placed_micros=F("remaining_micros") + F("captured_micros") + F("released_micros")),
                name="hold_adds_up",
            ),
            models.CheckConstraint(
                condition=Q(remaining_micros__gte=0, captured_micros__gte=0, released_micros__gte=0),
                name="hold_parts_not_negative",
            ),
            models.CheckConstraint(condition=Q(burn_micros_per_hour__gte=0), name="burn_not_negative"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["account"], condition=Q(remaining_micros__gt=0), name="hold_open_by_account"),
            models.Index(
                fields=["expires_at"],
                condition=Q(remaining_micros__gt=0, expires_at__isnull=False),
                name="hold_expiring",
            ),
        ]

    def __str__(self) -> str:
        return f"hold {self.key}"


class HoldMovement(models.Model):
    """What happened to a hold, line by line; the hold's own figures follow from these."""

    class Kind(models.TextChoices):
        PLACED = "placed", _("placed")
        CAPTURED = "captured", _("captured")
        RELEASED = "released", _("released")

    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="movements")
    key = models.CharField(max_length=120)
    content_sha256 = models.BinaryField(max_length=32)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    amount_micros = models.BigIntegerField()
    entry = models.OneToOneField(JournalEntry, on_delete=models.PROTECT, null=True, blank=True, related_name="capture")
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key"], name="movement_key_once"),
            models.CheckConstraint(condition=Q(amount_micros__gt=0), name="movement_positive"),
            models.CheckConstraint(
                condition=Q(kind="captured", entry__isnull=False) | (~Q(kind="captured") & Q(entry__isnull=True)),
                name="capture_has_its_entry",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount_micros}"


class BooksStop(models.Model):
    """The books did not add up: new outgoing money is refused until an operator lifts this with a reason."""

    breach = models.TextField(help_text=_("What the checks found"))
    stopped_at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.CharField(max_length=254, blank=True)
    lift_reason = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["lifted_at"], condition=Q(lifted_at__isnull=True), name="one_open_stop", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(lifted_at__isnull=True) | (~Q(lifted_by="") & ~Q(lift_reason="")), name="lift_has_a_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"stopped {self.stopped_at:%Y-%m-%d %H:%M}"
