"""An organisation's three wallets: what is in them, what of it is held, and how long the rest lasts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Count, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from billing.accounts import WALLET_CURRENCIES
from billing.models import Account, Hold

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Wallet:
    """One currency of an organisation; `account_id` is None until its first top-up opens it. Amounts are micros.

    `holds` counts the open holds, `running` those of them whose rental runs and burns; `owed_micros` is what the
    organisation owes us in this currency.
    """

    currency: str
    account_id: int | None = None
    posted_micros: int = 0
    held_micros: int = 0
    holds: int = 0
    running: int = 0
    burn_micros_per_hour: int = 0
    owed_micros: int = 0

    @property
    def available_micros(self) -> int:
        """What may be spent, held or refunded now."""
        return self.posted_micros - self.held_micros

    @property
    def runway_seconds(self) -> int | None:
        """How long what is available lasts at the present burn; None while nothing burns."""
        return runway_seconds(available_micros=self.available_micros, burn_micros_per_hour=self.burn_micros_per_hour)


def runway_seconds(*, available_micros: int, burn_micros_per_hour: int) -> int | None:
    """Return the whole seconds that an available sum lasts; None while nothing burns.

    Money that is held is not counted: part of it is used and only not settled yet, and billing does not know which.
    So rentals never stop earlier than this says, and later by what their holds still cover.

    >>> runway_seconds(available_micros=2_281_610_000, burn_micros_per_hour=20_080_000)
    409053
    """
    if burn_micros_per_hour <= 0:
        return None
    return max(0, available_micros) * SECONDS_PER_HOUR // burn_micros_per_hour


def wallets_of(organisation_id: int) -> list[Wallet]:
    """Return the wallets of an organisation in every currency, opened or not, in the house's order. One query."""
    rows = list(_accounts_of(organisation_id))
    return [_wallet(currency, [row for row in rows if row.currency == currency]) for currency in WALLET_CURRENCIES]


def wallet_account_id(organisation_id: int, currency: str) -> int | None:
    """Return the account of a wallet; None where no top-up opened it yet."""
    wallet = Account.objects.filter(owner_id=organisation_id, kind=Account.Kind.WALLET, currency=currency)
    return wallet.values_list("pk", flat=True).first()


def _accounts_of(organisation_id: int) -> QuerySet[Account, Any]:
    open_holds = Hold.objects.filter(account_id=OuterRef("pk"), remaining_micros__gt=0).order_by().values("account_id")
    running = open_holds.filter(burn_micros_per_hour__gt=0)
    accounts: QuerySet[Account, Any] = Account.objects.filter(
        owner_id=organisation_id, kind__in=[Account.Kind.WALLET, Account.Kind.RECEIVABLE]
    )
    return accounts.annotate(
        holds_open=_or_zero(open_holds.annotate(n=Count("pk")).values("n")),
        holds_running=_or_zero(running.annotate(n=Count("pk")).values("n")),
        burn=_or_zero(running.annotate(n=Sum("burn_micros_per_hour")).values("n")),
    )


def _or_zero(figure: QuerySet[Hold, Any]) -> Coalesce:
    return Coalesce(Subquery(figure, output_field=BigIntegerField()), 0)


def _wallet(currency: str, accounts: Sequence[Any]) -> Wallet:
    wallet = next((account for account in accounts if account.kind == Account.Kind.WALLET), None)
    owed_micros = sum(-account.posted_micros for account in accounts if account.kind == Account.Kind.RECEIVABLE)
    if wallet is None:
        return Wallet(currency=currency, owed_micros=max(0, owed_micros))
    return Wallet(
        currency=currency,
        account_id=wallet.pk,
        posted_micros=wallet.posted_micros,
        held_micros=wallet.held_micros,
        holds=wallet.holds_open,
        running=wallet.holds_running,
        burn_micros_per_hour=int(wallet.burn),
        owed_micros=max(0, owed_micros),
    )
