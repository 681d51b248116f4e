"""Opening accounts: one per owner, kind and currency; asking twice gives the same one."""

from collections.abc import Collection
from itertools import product

from django.db import transaction
from django.db.models import Q

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


def open_settlement_accounts(*, owner_ids: Collection[int]) -> None:
    """Open what settling hours needs: revenue and tax in each currency, cost, and these providers' payables, in USD.

    One query once they are open.
    """
    revenue_and_tax = product((Account.Kind.REVENUE, Account.Kind.TAX), WALLET_CURRENCIES, [None])
    payables = product([Account.Kind.PAYABLE], ["USD"], owner_ids)
    wanted = {*revenue_and_tax, (Account.Kind.COST, "USD", None), *payables}
    ours = Q(owner__isnull=True, kind__in=[Account.Kind.REVENUE, Account.Kind.TAX, Account.Kind.COST])
    theirs = Q(owner__in=owner_ids, kind=Account.Kind.PAYABLE)
    known = set(Account.objects.filter(ours | theirs).values_list("kind", "currency", "owner"))
    for kind, currency, owner_id in sorted(wanted - known, key=str):
        open_account(kind=kind, currency=currency, owner_id=owner_id)


def open_payable(*, owner_id: int) -> int:
    """Return the account of what we owe a provider, in USD, opened if need be."""
    return open_account(kind=Account.Kind.PAYABLE, currency="USD", owner_id=owner_id).pk
