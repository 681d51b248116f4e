"""The operator's view of the ledger: everything to read, nothing to change. A stop is lifted with a reason."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from billing import ledger
from billing.models import Account, BooksStop, Hold, HoldMovement, JournalEntry, Posting, TaxDecision, VatCheck
from common.money import from_micros


class ReadOnly(admin.ModelAdmin[Any]):
    """The database refuses changes anyway; the pages do not offer any."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nothing is added here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is changed here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is deleted anywhere."""
        return False


class PostingInline(admin.TabularInline[Posting, JournalEntry]):
    """An entry's lines."""

    model = Posting
    extra = 0
    can_delete = False
    fields = ("account", "currency", "amount_micros")
    readonly_fields = ("account", "currency", "amount_micros")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Lines come with their entry."""
        return False


class MovementInline(admin.TabularInline[HoldMovement, Hold]):
    """What happened to a hold."""

    model = HoldMovement
    extra = 0
    can_delete = False
    fields = ("created_at", "kind", "amount_micros", "entry", "key")
    readonly_fields = ("created_at", "kind", "amount_micros", "entry", "key")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Movements come by the door."""
        return False


@admin.register(Account)
class AccountAdmin(ReadOnly):
    """Balances, the tail of entries-only accounts included."""

    list_display = ["id", "kind", "currency", "owner", "balance", "held", "entries_only"]
    list_filter = ["kind", "currency"]
    list_select_related = ["owner"]

    @admin.display(description="balance")
    def balance(self, account: Account) -> str:
        """Show the balance in units of the currency."""
        return str(from_micros(ledger.balance_micros(account.pk)))

    @admin.display(description="held")
    def held(self, account: Account) -> str:
        """Show what is held in units of the currency."""
        return str(from_micros(account.held_micros))


@admin.register(JournalEntry)
class JournalEntryAdmin(ReadOnly):
    """Entries with their lines."""

    list_display = ["id", "kind", "key", "reference_type", "reference_id", "effective_at", "reverses"]
    list_filter = ["kind"]
    search_fields = ["key", "reference_id"]
    inlines = [PostingInline]


@admin.register(Hold)
class HoldAdmin(ReadOnly):
    """Holds with their movements."""

    list_display = [
        "id",
        "account",
        "currency",
        "placed_micros",
        "remaining_micros",
        "captured_micros",
        "released_micros",
    ]
    search_fields = ["key", "reference_id"]
    inlines = [MovementInline]


@admin.register(BooksStop)
class BooksStopAdmin(ReadOnly):
    """Breaches of the books. A stop is lifted by `manage.py lift_books_stop`, with a name and a reason."""

    list_display = ["stopped_at", "breach", "lifted_at", "lifted_by", "lift_reason"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[BooksStop]:
        """Newest first."""
        return super().get_queryset(request).order_by("-stopped_at")


@admin.register(TaxDecision)
class TaxDecisionAdmin(ReadOnly):
    """How each organisation's hours are taxed, and since when. A review is ended by `manage.py rule_tax_area`."""

    list_display = ["organisation", "valid_from", "valid_to", "treatment", "rate_percent", "country_of_tax", "reasons"]
    list_filter = ["treatment"]
    list_select_related = ["organisation"]
    search_fields = ["organisation__name", "vat_id"]


@admin.register(VatCheck)
class VatCheckAdmin(ReadOnly):
    """What the register answered about VAT numbers."""

    list_display = ["organisation", "vat_id", "asked_at", "register", "outcome", "name", "consultation_number", "fault"]
    list_filter = ["outcome", "register"]
    list_select_related = ["organisation"]
    search_fields = ["vat_id", "consultation_number"]
