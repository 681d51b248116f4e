"""A wallet's balance over time, summed by the hour or the day it changed in."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db import connection

from billing.queries.statement import LATEST, first_line_around

Span = Literal["hour", "day"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What came in and went out in one hour or day (both 0 or more), and the balance after the last of it, at `at`."""

    starts_at: datetime
    at: datetime
    in_micros: int
    out_micros: int
    balance_micros: int


@dataclass(frozen=True, kw_only=True)
class Series:
    """The balance at the start of the window, then each change in it, oldest first. `first_at`: the wallet's first line."""

    first_at: datetime
    opening_micros: int
    changes: Sequence[Change]

    @property
    def closing_micros(self) -> int:
        """The balance at the end of the window."""
        return self.changes[-1].balance_micros if self.changes else self.opening_micros


def balance_series(*, account_id: int, since: datetime, until: datetime, span: Span) -> Series | None:
    """Return how the balance moved in `[since, until)`; None for a wallet without a line. Two queries.

    Days and hours are those of UTC. The balance is what all that happened up to a time sums to.
    """
    parameters = {
        "account": account_id,
        "span": span,
        "since": since,
        "until": until,
        "first": first_line_around(account_id, since - LATEST),
    }
    with connection.cursor() as cursor:
        cursor.execute(_CHANGES, parameters)
        found = cursor.fetchall()
    if not found or found[0][1] is None:
        return None
    balance_micros, first_at = int(found[0][0]), found[0][1]
    changes: list[Change] = []
    for _, _, starts_at, at, in_micros, out_micros in reversed(found):
        if starts_at is None:
            continue
        change = Change(
            starts_at=starts_at,
            at=at,
            in_micros=int(in_micros),
            out_micros=int(out_micros),
            balance_micros=balance_micros,
        )
        balance_micros -= change.in_micros - change.out_micros
        if starts_at < until:
            changes.append(change)
    return Series(first_at=first_at, opening_micros=balance_micros, changes=changes[::-1])


# Newest line first would be the other way round; what happened from `until` on is needed for the balance before it.
_CHANGES = """
    SELECT account.posted_micros, start.at, change.*
      FROM billing_account AS account
      LEFT JOIN LATERAL (
          SELECT entry.effective_at AS at
            FROM billing_posting AS posting JOIN billing_journalentry AS entry ON entry.id = posting.entry_id
           WHERE posting.account_id = account.id ORDER BY posting.id LIMIT 1
      ) AS start ON true
      LEFT JOIN (
          SELECT date_trunc(%(span)s::text, entry.effective_at, 'UTC') AS starts_at, max(entry.effective_at) AS at,
                 coalesce(sum(amount_micros) FILTER (WHERE amount_micros > 0), 0) AS in_micros,
                 coalesce(-sum(amount_micros) FILTER (WHERE amount_micros < 0), 0) AS out_micros
            FROM billing_posting AS posting JOIN billing_journalentry AS entry ON entry.id = posting.entry_id
           WHERE posting.account_id = %(account)s::bigint AND posting.id >= %(first)s::bigint
             AND entry.effective_at >= %(since)s::timestamptz
           GROUP BY 1
      ) AS change ON true
     WHERE account.id = %(account)s::bigint
     ORDER BY change.starts_at
"""
