"""Opening accounts: one per owner, kind and currency; asking twice gives the same one."""

from collections.abc import Iterable

from django.db import transaction

from billing.models import Account

WALLET_CURRENCIES = ("EUR", "USD", "GBP")


class UnknownCurrency(ValueError):
    """We keep no accounts in this currency."""


def open_account(*, kind: Account.Kind, currency: str, owner_id: int | None = None) -> Account:
    """Return the account, opened if need be. Raises UnknownCurrency.

    Accounts of the house that many entries touch take entries only; balances of organisations are stored.
    """
    if currency not in WALLET_CURRENCIES:
        raise UnknownCurrency(f"{currency} is not one of {', '.join(WALLET_CURRENCIES)}.")
    with transaction.atomic():
        account, _ = Account.objects.get_or_create(
            kind=kind, currency=currency, owner_id=owner_id, defaults={"entries_only": kind not in Account.OWNED}
        )
    return account


def open_settlement_accounts(*, owner_ids: Iterable[int]) -> None:
    """Open what settling hours needs: revenue and tax in every currency, cost, and these providers' payables, in USD."""
    for currency in WALLET_CURRENCIES:
        open_account(kind=Account.Kind.REVENUE, currency=currency)
        open_account(kind=Account.Kind.TAX, currency=currency)
    open_account(kind=Account.Kind.COST, currency="USD")
    payables = Account.objects.filter(kind=Account.Kind.PAYABLE, currency="USD")
    for owner_id in sorted(set(owner_ids) - set(payables.values_list("owner__pk", flat=True))):
        open_account(kind=Account.Kind.PAYABLE, currency="USD", owner_id=owner_id)
