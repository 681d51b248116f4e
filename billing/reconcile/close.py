"""The daily close: per currency, our account of the gateway's money against the gateway's own balance."""

import logging
from dataclasses import dataclass
from datetime import datetime

from billing import ledger
from billing.accounts import WALLET_CURRENCIES
from billing.gateway import client
from billing.models import Account
from billing.reconcile.run import Report, reconcile
from users.audit import record
from users.models import AuditRecord

log = logging.getLogger("reconcile")
ACTION = "gateway.closed"
_TRIES = 3  # money may move between the two readings


@dataclass(frozen=True, kw_only=True)
class Close:
    """One currency at one time: what our books say the gateway holds, and what the gateway says."""

    currency: str
    at: datetime
    books_micros: int
    gateway_micros: int

    @property
    def difference_micros(self) -> int:
        """What the gateway has beyond our books; negative: what it lacks."""
        return self.gateway_micros - self.books_micros


def close_day(*, now: datetime) -> tuple[list[Close], Report]:
    """Reconcile, compare per currency, and write the outcome down; return it with the last run's report.

    A difference may be a payment at this very moment, so it is looked at again; one that stays is logged as an error.
    A second run writes a second outcome. Raises GatewayOff or GatewayUnavailable.
    """
    report, closes = reconcile(now=now), _compare(now)
    for _ in range(_TRIES - 1):
        if any(close.difference_micros for close in closes):
            report, closes = reconcile(now=now), _compare(now)
    for close in closes:
        if close.difference_micros:
            log.error(
                "Daily close: the gateway has %s micros of %s beyond the books.",
                close.difference_micros,
                close.currency,
            )
        figures = {"books_micros": close.books_micros, "gateway_micros": close.gateway_micros}
        record(at=now, action=ACTION, subject_type="currency", subject_id=close.currency, after=figures)
    return closes, report


def last_closes() -> list[Close]:
    """Return the last outcome of each currency that has one."""
    rows = AuditRecord.objects.filter(action=ACTION, subject_type="currency", subject_id__in=WALLET_CURRENCIES)
    newest = rows.order_by("subject_id", "-at", "-pk").distinct("subject_id")
    return [
        Close(
            currency=row.subject_id,
            at=row.at,
            books_micros=row.after["books_micros"],
            gateway_micros=row.after["gateway_micros"],
        )
        for row in newest
    ]


def _compare(now: datetime) -> list[Close]:
    balances = client.get_balances()
    accounts = Account.objects.filter(kind=Account.Kind.GATEWAY)
    held = {account.currency: -ledger.balance_micros(account.pk) for account in accounts}
    return [
        Close(currency=currency, at=now, books_micros=held.get(currency, 0), gateway_micros=balances.get(currency, 0))
        for currency in WALLET_CURRENCIES
    ]
