"""The books, checked: one small function per invariant, each says in words what broke.

I1 every entry balances per currency and has postings · I2 each balance equals its postings · I3 what is held equals
the open holds, and each hold its movements · I4 no wallet is overdrawn · I9 clearing accounts come back to zero ·
I11 the money at the gateway and the bank is what came in less what went out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from billing.models import Account

CLEARING_DAYS = 10
_EXAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Check:
    """The outcome of one check; `detail` says what was found, or how much was looked at."""

    name: str
    ok: bool
    detail: str


def run_checks(*, now: datetime) -> list[Check]:
    """Run every check of the ledger."""
    return [
        _check("I1 entries balance", _UNBALANCED),
        _check("I1 entries have postings", _EMPTY_ENTRIES),
        _check("I2 balances equal postings", _BALANCES),
        _check("I3 held equals open holds", _HELD),
        _check("I3 holds equal movements", _HOLDS),
        _check("I4 no wallet is overdrawn", _OVERDRAWN),
        _check(
            "I9 clearing accounts return to zero",
            _CLEARING,
            [now - timedelta(days=CLEARING_DAYS), _kinds(Account.CLEARING)],
        ),
        _check("I11 money held is money that came in", _MONEY_HELD),
    ]


def _check(name: str, query: str, parameters: Sequence[Any] = ()) -> Check:
    with connection.cursor() as cursor:
        cursor.execute(query, list(parameters))
        found = cursor.fetchmany(_EXAMPLES + 1)
    if not found:
        return Check(name=name, ok=True, detail="nothing found")
    more = " and more" if len(found) > _EXAMPLES else ""
    return Check(name=name, ok=False, detail="; ".join(str(row[0]) for row in found[:_EXAMPLES]) + more)


def _kinds(kinds: Sequence[Account.Kind]) -> list[str]:
    return [kind.value for kind in kinds]


# Each query returns one text per finding.
_UNBALANCED = """
    SELECT concat('entry ', entry_id, ': ', sum(amount_micros), ' micros of ', currency, ' left over')
      FROM billing_posting GROUP BY entry_id, currency HAVING sum(amount_micros) <> 0
"""
_EMPTY_ENTRIES = """
    SELECT concat('entry ', entry.id, ' has no postings') FROM billing_journalentry AS entry
     WHERE NOT EXISTS (SELECT FROM billing_posting WHERE entry_id = entry.id)
"""
_BALANCES = """
    SELECT concat('account ', account.id, ' says ', account.posted_micros, ', its postings ', coalesce(posted.micros, 0))
      FROM billing_account AS account
      LEFT JOIN LATERAL (SELECT sum(amount_micros) AS micros FROM billing_posting
                          WHERE account_id = account.id AND (NOT account.entries_only OR id <= account.rolled_up_to)
                        ) AS posted ON true
     WHERE account.posted_micros <> coalesce(posted.micros, 0)
"""
_HELD = """
    SELECT concat('account ', account.id, ' holds ', account.held_micros, ', its holds ', coalesce(held.micros, 0))
      FROM billing_account AS account
      LEFT JOIN (SELECT account_id, sum(remaining_micros) AS micros FROM billing_hold GROUP BY account_id) AS held
        ON held.account_id = account.id
     WHERE account.held_micros <> coalesce(held.micros, 0)
"""
_HOLDS = """
    SELECT concat('hold ', hold.id, ' does not equal its movements')
      FROM billing_hold AS hold
      LEFT JOIN (SELECT hold_id,
                        sum(amount_micros) FILTER (WHERE kind = 'placed') AS placed,
                        sum(amount_micros) FILTER (WHERE kind = 'captured') AS captured,
                        sum(amount_micros) FILTER (WHERE kind = 'released') AS released
                   FROM billing_holdmovement GROUP BY hold_id) AS moved ON moved.hold_id = hold.id
     WHERE (hold.placed_micros, hold.captured_micros, hold.released_micros)
           <> (coalesce(moved.placed, 0), coalesce(moved.captured, 0), coalesce(moved.released, 0))
        OR hold.remaining_micros <> hold.placed_micros - hold.captured_micros - hold.released_micros
"""
_OVERDRAWN = """
    SELECT concat('wallet ', id, ': ', posted_micros, ' posted, ', held_micros, ' held')
      FROM billing_account WHERE kind = 'wallet' AND posted_micros - held_micros < 0
"""
_CLEARING = """
    SELECT concat(account.kind, ' ', account.currency, ': ', sum(posting.amount_micros), ' micros for ', entry.reference_type, ' ', entry.reference_id, ' are still open')
      FROM billing_posting AS posting
      JOIN billing_account AS account ON account.id = posting.account_id
      JOIN billing_journalentry AS entry ON entry.id = posting.entry_id
     GROUP BY account.kind, account.currency, entry.reference_type, entry.reference_id
    HAVING sum(posting.amount_micros) <> 0 AND max(entry.effective_at) < %s AND account.kind = ANY (%s)
"""
# Per currency: what gateway and bank hold is what the flows of money in and out moved there, and nothing else.
_MONEY_HELD = """
    SELECT concat('entry ', entry.id, ' (', entry.kind, ') moved ', sum(posting.amount_micros), ' micros of ', posting.currency, ' at the gateway or bank, which its kind may not')
      FROM billing_posting AS posting
      JOIN billing_account AS account ON account.id = posting.account_id AND account.kind IN ('gateway', 'bank')
      JOIN billing_journalentry AS entry ON entry.id = posting.entry_id
     WHERE split_part(entry.kind, ':', 1) NOT IN
           ('topup', 'refund', 'refund_failed', 'dispute', 'dispute_won', 'payout', 'payout_failed', 'gateway_fee',
            'gateway_payout', 'unmatched')
     GROUP BY entry.id, entry.kind, posting.currency
"""
