"""Who looks at a market: a visitor, somebody who may order, or a member who may only look."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum

from django.http import HttpRequest
from django.utils.translation import get_language

from billing.accounts import WALLET_CURRENCIES
from billing.queries.wallets import Wallet, wallets_of
from common import formats
from common.money import from_micros
from marketplace.book import WalletState
from users.access import TRADERS, may
from users.models import Membership, Organisation

USUAL_CURRENCY = "USD"


class Part(StrEnum):
    """What somebody can do with the ticket."""

    VISITOR = "visitor"
    TRADER = "trader"
    ONLOOKER = "onlooker"
    PROVIDER = "provider"
    NOBODY = "nobody"


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks. `wallets` are those of a renter's organisation, in every currency."""

    part: Part
    membership: Membership | None = None
    wallets: Sequence[Wallet] = ()

    @property
    def organisation(self) -> Organisation | None:
        """The organisation that asks."""
        return self.membership.organisation if self.membership else None

    @property
    def usual_currency(self) -> str:
        """The currency of the wallet with the most in it."""
        fullest = max(self.wallets, key=lambda wallet: wallet.available_micros, default=None)
        return fullest.currency if fullest is not None and fullest.available_micros else USUAL_CURRENCY

    def wallet_state(self, currency: str) -> WalletState:
        """Return what may be spent in a currency, and what stands in the way; nothing of either for a visitor."""
        found = next((wallet for wallet in self.wallets if wallet.currency == currency), None)
        return WalletState(
            account_id=found.account_id if found else None,
            available_micros=found.available_micros if found else 0,
            owes_anything=any(wallet.owed_micros for wallet in self.wallets),
            is_frozen=self.organisation is not None and self.organisation.frozen_at is not None,
            are_books_stopped=False,
        )

    def wallet_choices(self) -> list[tuple[str, str]]:
        """Return the wallets to pay from; a renter's with what is available, rounded down."""
        language = get_language() or "en"
        if not self.wallets:
            return [(currency, currency) for currency in WALLET_CURRENCIES]
        return [
            (wallet.currency, formats.total(_cents(wallet.available_micros), wallet.currency, language=language))
            for wallet in self.wallets
        ]


def asker_of(request: HttpRequest) -> Asker:
    """Return who asks. No query for a visitor, else the membership and, for a renter's, the wallets."""
    if not request.user.is_authenticated:
        return Asker(part=Part.VISITOR)
    membership = Membership.objects.select_related("organisation", "user").filter(user_id=request.user.pk).first()
    return Asker(part=Part.NOBODY) if membership is None else asker_in(membership)


def asker_in(membership: Membership) -> Asker:
    """Return who asks, of a member."""
    if membership.organisation.kind == Organisation.Kind.PROVIDER:
        return Asker(part=Part.PROVIDER, membership=membership)
    return Asker(
        part=Part.TRADER if may(membership, *TRADERS) else Part.ONLOOKER,
        membership=membership,
        wallets=wallets_of(membership.organisation_id),
    )


def _cents(micros: int) -> Decimal:
    return from_micros(micros).quantize(Decimal("0.01"), rounding=ROUND_FLOOR)
