"""The books, checked: one small function per invariant, each says in words what broke.

I1 every entry balances per currency and has postings · I2 each balance equals its postings · I3 what is held equals
the open holds, and each hold its movements · I4 no wallet is overdrawn · I9 clearing accounts come back to zero ·
I11 per currency, the money at the gateway and the bank is what came in less what went out, counted from the rows of
top-ups, refunds, disputes and fees, each of which equals its entries.
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
        _check("I11 only known flows move money held", _KNOWN_FLOWS),
        _check("I11 each payment equals its entries", _PAYMENTS),
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
_KNOWN_FLOWS = """
    SELECT concat('entry ', entry.id, ' (', entry.kind, ') moved ', sum(posting.amount_micros), ' micros of ', posting.currency, ' at the gateway or bank, which its kind may not')
      FROM billing_posting AS posting
      JOIN billing_account AS account ON account.id = posting.account_id AND account.kind IN ('gateway', 'bank')
      JOIN billing_journalentry AS entry ON entry.id = posting.entry_id
     WHERE split_part(entry.kind, ':', 1) NOT IN
           ('topup', 'refund', 'refund_failed', 'dispute', 'dispute_won', 'payout', 'payout_failed', 'gateway_fee',
            'gateway_payout', 'unmatched')
     GROUP BY entry.id, entry.kind, posting.currency
"""
# Row by row. What a refund or a dispute has taken stands at the gateway, or on its way there on the clearing account.
_PAYMENTS = """
    WITH moved AS (
        SELECT entry.id AS entry_id, entry.reference_type AS type, entry.reference_id AS id, posting.currency,
               sum(posting.amount_micros) AS micros
          FROM billing_journalentry AS entry
          JOIN billing_posting AS posting ON posting.entry_id = entry.id
          JOIN billing_account AS account ON account.id = posting.account_id
         WHERE entry.reference_type IN ('top_up', 'refund', 'dispute')
           AND account.kind IN ('gateway', 'refunds_in_transit', 'disputes_open')
         GROUP BY entry.id, entry.reference_type, entry.reference_id, posting.currency
    ), promised AS (
        SELECT 'top_up' AS type, id::text, currency, -amount_micros AS micros FROM billing_topup WHERE state = 'paid'
        UNION ALL
        SELECT 'refund', refund.id::text, top_up.currency, refund.amount_micros
          FROM billing_refund AS refund JOIN billing_topup AS top_up ON top_up.id = refund.top_up_id
         WHERE refund.state <> 'failed'
        UNION ALL
        SELECT 'dispute', id::text, currency, amount_micros FROM billing_dispute WHERE state <> 'won'
    ), held AS (SELECT type, id, currency, sum(micros) AS micros FROM moved GROUP BY type, id, currency)
    SELECT concat(type, ' ', id, ': the row says ', coalesce(promised.micros, 0), ' micros of ', currency, ', its entries ', coalesce(held.micros, 0))
      FROM promised FULL JOIN held USING (type, id, currency)
     WHERE coalesce(promised.micros, 0) <> coalesce(held.micros, 0)
    UNION ALL
    SELECT concat('top-up ', top_up.id, ' has its money from entry ', top_up.credit_entry_id, ', which is not its own')
      FROM billing_topup AS top_up
     WHERE top_up.state = 'paid' AND NOT EXISTS (
           SELECT FROM moved WHERE entry_id = top_up.credit_entry_id AND type = 'top_up' AND id = top_up.id::text)
    UNION ALL
    SELECT concat('top-up ', top_up.id, ' says that ', top_up.refunded_micros, ' micros were refunded, its refunds ', coalesce(sum(refund.amount_micros), 0))
      FROM billing_topup AS top_up
      LEFT JOIN billing_refund AS refund ON refund.top_up_id = top_up.id AND refund.state <> 'failed'
     GROUP BY top_up.id
    HAVING top_up.refunded_micros <> least(top_up.amount_micros, coalesce(sum(refund.amount_micros), 0))
"""
# Per currency and flow, so that nothing cancels out. Payouts have no rows here, and money that fits no top-up waits on
# its clearing account (I9); a transfer to our bank moves money from one of the two accounts to the other.
_MONEY_HELD = """
    WITH counted AS (
        SELECT 'topup' AS flow, currency, -sum(amount_micros) AS micros FROM billing_topup WHERE state = 'paid' GROUP BY currency
        UNION ALL
        SELECT 'refund', top_up.currency, sum(refund.amount_micros)
          FROM billing_refund AS refund JOIN billing_topup AS top_up ON top_up.id = refund.top_up_id
         WHERE refund.state <> 'failed' GROUP BY top_up.currency
        UNION ALL
        SELECT 'dispute', currency, sum(amount_micros) FROM billing_dispute WHERE state <> 'won' GROUP BY currency
        UNION ALL
        SELECT 'gateway_fee', currency, sum(fee_micros) FROM billing_gatewaytransaction WHERE fee_entry_id IS NOT NULL GROUP BY currency
        UNION ALL
        SELECT 'gateway_fee', gone.currency, -sum(gone.amount_micros)
          FROM billing_gatewaytransaction AS gone JOIN billing_journalentry AS entry ON entry.id = gone.entry_id
         WHERE entry.kind = 'gateway_fee' GROUP BY gone.currency
    ), posted AS (
        SELECT CASE split_part(entry.kind, ':', 1) WHEN 'refund_failed' THEN 'refund' WHEN 'dispute_won' THEN 'dispute'
                    ELSE split_part(entry.kind, ':', 1) END AS flow,
               posting.currency, posting.amount_micros AS micros
          FROM billing_posting AS posting
          JOIN billing_account AS account ON account.id = posting.account_id
          JOIN billing_journalentry AS entry ON entry.id = posting.entry_id
         WHERE account.kind IN ('gateway', 'bank', 'refunds_in_transit', 'disputes_open')
           AND split_part(entry.kind, ':', 1) NOT IN ('payout', 'payout_failed', 'unmatched')
    ), rows AS (SELECT flow, currency, sum(micros) AS micros FROM counted GROUP BY flow, currency
    ), books AS (SELECT flow, currency, sum(micros) AS micros FROM posted GROUP BY flow, currency)
    SELECT concat(flow, ' in ', currency, ': the rows say ', coalesce(rows.micros, 0), ' micros, the gateway and bank ', coalesce(books.micros, 0))
      FROM rows FULL JOIN books USING (flow, currency)
     WHERE coalesce(rows.micros, 0) <> coalesce(books.micros, 0)
"""
