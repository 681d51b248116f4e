"""The door to the ledger: thin typed calls of `billing/sql/40_door.sql`, one statement and one commit each.

Positive amounts are credits (see `billing.models`). The same key with the same content is the same entry, whoever
asks and however often; with other content it is `KeyReused`. Lock order, kept by the database: hold, then accounts
by id. Outside `atomic()` each call commits by itself; inside, it is part of the caller's transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import DatabaseError, connection
from psycopg import errors


class LedgerError(Exception):
    """What the database refused; the subclass names the reason."""


class InsufficientFunds(LedgerError):
    """A wallet has less available than this takes."""


class KeyReused(LedgerError):
    """The key belongs to another content."""


class Unbalanced(LedgerError):
    """The postings do not sum to zero in each currency."""


class UnknownAccount(LedgerError):
    """A line names an account, hold or entry that does not exist, or there is no line."""


class HoldExceeded(LedgerError):
    """The hold has less left than this takes."""


class AlreadyReversed(LedgerError):
    """The entry has its reversal."""


@dataclass(frozen=True)
class Line:
    """One posting: `amount_micros` of the account's currency, positive = credit, never zero."""

    account_id: int
    amount_micros: int


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What an entry is about: a kind of object and its id."""

    type: str = ""
    id: str = ""


def post(
    *,
    key: str,
    kind: str,
    lines: Sequence[Line],
    effective_at: datetime,
    reference: Reference | None = None,
    description: str = "",
) -> int:
    """Write one balanced entry and return its id.

    Raises InsufficientFunds, KeyReused, Unbalanced or UnknownAccount; then nothing is written.
    """
    reference = reference or Reference()
    accounts, amounts = columns(lines)
    return call(
        "SELECT billing_post(%s::text, %s::text, %s::bigint[], %s::bigint[], %s::text, %s::text, %s::text, %s::timestamptz)",
        [key, kind, accounts, amounts, reference.type, reference.id, description, effective_at],
    )


def reverse(*, key: str, entry_id: int, effective_at: datetime, description: str = "") -> int:
    """Write the mirror image of an entry as a new entry and return its id.

    Raises AlreadyReversed, InsufficientFunds (a wallet has spent the money), KeyReused or UnknownAccount.
    """
    return call(
        "SELECT billing_reverse(%s::text, %s::bigint, %s::text, %s::timestamptz)",
        [key, entry_id, description, effective_at],
    )


def lock_accounts(account_ids: Sequence[int]) -> None:
    """Lock accounts, by id, until the caller's transaction ends: a balance read after this stays true.

    Raises UnknownAccount.
    """
    ids = sorted(set(account_ids))
    if call("SELECT billing_lock_accounts(%s::bigint[])", [ids]) != len(ids):
        raise UnknownAccount(f"One of the accounts {ids} does not exist.")


def balance_micros(account_id: int) -> int:
    """Return an account's posted balance, the tail of an entries-only account included."""
    return call("SELECT billing_balance(%s::bigint)", [account_id])


def roll_up(account_id: int) -> int:
    """Fold an entries-only account's tail into its stored balance; return the number of postings folded."""
    return call("SELECT billing_roll_up(%s::bigint)", [account_id])


def columns(lines: Sequence[Line]) -> tuple[str, str]:
    """Return account ids and amounts side by side, as array literals: the form that is quickest to send."""
    accounts = ",".join([str(int(line.account_id)) for line in lines])
    amounts = ",".join([str(int(line.amount_micros)) for line in lines])
    return f"{{{accounts}}}", f"{{{amounts}}}"


def call(statement: str, parameters: list[Any]) -> int:
    """Run one statement of the door and return its single number. Raises what the database refused, by its name."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return int(cursor.fetchone()[0])
    except DatabaseError as refused:
        reason = reason_of(refused)
        if reason is None:
            raise
        raise reason from refused


_BY_SQLSTATE: dict[str, type[LedgerError]] = {"LB001": KeyReused, "LB002": Unbalanced, "LB004": UnknownAccount}
_BY_CONSTRAINT: dict[str, type[LedgerError]] = {
    "wallet_never_overdrawn": InsufficientFunds,
    "hold_parts_not_negative": HoldExceeded,
    "hold_adds_up": HoldExceeded,
    "reversed_once": AlreadyReversed,
}


def reason_of(refused: DatabaseError) -> LedgerError | None:
    """Return the error that names why the database refused; None when it is not one of the ledger's own reasons."""
    cause = refused.__cause__
    if not isinstance(cause, errors.Error):
        return None
    if isinstance(cause, errors.NotNullViolation) and cause.diag.table_name == "billing_posting":
        return UnknownAccount("a line names an account that does not exist")
    reason = _BY_SQLSTATE.get(cause.sqlstate or "") or _BY_CONSTRAINT.get(cause.diag.constraint_name or "")
    return reason(cause.diag.message_primary or "") if reason else None
