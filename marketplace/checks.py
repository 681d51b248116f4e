"""The exchange, checked: one small function per invariant, each says in words what broke.

I5 an order's fills add up · I6 no open order has a fitting ask · I7 every fill is the one the rules choose, and the book
is what its rows make it · I8 each fill has one rental with one hold that adds up, and nothing else holds money for the
exchange; leases, events, rentals and counts agree · I10 one settlement per rental and hour. They run beside open trade:
whatever compares several rows reads them as of one moment.
"""

from collections.abc import Iterator
from datetime import datetime

from django.db import connection

from billing.checks import Check
from billing.checks import run_checks as run_ledger_checks
from marketplace.book import live_asks, one_moment
from marketplace.book_history import unproved
from marketplace.limits import CLOCKS_DIFFER_BY
from marketplace.matching import match_book
from marketplace.models import Listing, Order
from marketplace.orders.match import resting_bids

_EXAMPLES = 5


def run_checks(*, now: datetime) -> list[Check]:
    """Run every check of the exchange."""
    return [
        _check("I5 orders equal their fills", _rows(_ORDERS)),
        _check("I6 no open order has a fitting ask", _crossed(now)),
        _check("I7 every fill follows price and time", _unproved()),
        _check("I8 each fill has its rental and hold", _rows(_FILLS)),
        _check("I8 running totals of the books add up", _rows(_TOTALS)),
        _check("I8 open leases are open rentals", _rows(_LEASES)),
        _check("I8 what is free has no open lease", _rows(_FREE)),
        _check("I8 events lead to each rental's state", _rows(_EVENTS)),
        _check("I8 what is paid is held, and burns while it runs", _rows(_PAID)),
        _check("I8 what was captured is what the lines say", _rows(_CAPTURED)),
        _check("I8 each line equals its entries", _rows(_LINES)),
        _check("I8 resting orders hold what is open", _rows(_ORDER_HOLDS)),
        _check("I8 each hold of the exchange has its order or rental", _rows(_STRAY_HOLDS)),
        _check("I10 every hour is settled once and in order", _rows(_HOURS)),
    ]


ALL_CHECKS = (run_ledger_checks, run_checks)


def _check(name: str, findings: Iterator[str]) -> Check:
    found = [finding for finding, _ in zip(findings, range(_EXAMPLES + 1), strict=False)]
    if not found:
        return Check(name=name, ok=True, detail="nothing found")
    more = " and more" if len(found) > _EXAMPLES else ""
    return Check(name=name, ok=False, detail="; ".join(found[:_EXAMPLES]) + more)


def _rows(query: str) -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute(query, None)
        yield from (str(row[0]) for row in cursor.fetchmany(_EXAMPLES + 1))


def _crossed(now: datetime) -> Iterator[str]:
    resting = Order.objects.filter(state__in=Order.RESTING).order_by().values_list("gpu_id", flat=True).distinct()
    surely = now + CLOCKS_DIFFER_BY
    for gpu_id in resting:
        with one_moment():
            bids, asks = resting_bids(gpu_id, now=surely), live_asks(gpu_id, now=now)
        for match in match_book(bids, asks, now=surely):
            yield f"order {match.order_id} fits listing {match.listing_id} and is open"


def _unproved() -> Iterator[str]:
    books = set(Listing.objects.order_by().values_list("gpu_id", flat=True))
    for gpu_id in sorted(books | set(Order.objects.order_by().values_list("gpu_id", flat=True).distinct())):
        yield from unproved(gpu_id)


_ORDERS = """
    SELECT concat('order ', o.id, ' says ', o.filled_servers, ' filled, its fills ', count(f.id))
      FROM marketplace_order AS o LEFT JOIN marketplace_fill AS f ON f.order_id = o.id
     GROUP BY o.id HAVING o.filled_servers <> count(f.id) OR count(f.id) > o.server_count
"""
_FILLS = """
    SELECT concat('fill ', f.id, ' and its rental do not agree')
      FROM marketplace_fill AS f
      LEFT JOIN marketplace_rental AS r ON r.fill_id = f.id
      LEFT JOIN billing_hold AS h ON h.id = r.hold_id
     WHERE r.id IS NULL OR h.id IS NULL OR h.account_id <> r.wallet_id
        OR (r.order_id, r.listing_id, r.gpu_id, r.gpu_count, r.price_usd_per_gpu_hour, r.fee_percent, r.device_ids, r.filled_at)
           <> (f.order_id, f.listing_id, f.gpu_id, f.gpu_count, f.price_usd_per_gpu_hour, f.fee_percent, f.device_ids, f.filled_at)
        OR NOT EXISTS (SELECT FROM marketplace_order AS o JOIN marketplace_listing AS l ON l.id = r.listing_id
                        WHERE o.id = r.order_id AND f.price_usd_per_gpu_hour <= o.limit_price_usd_per_gpu_hour
                          AND (o.organisation_id, o.wallet_id, o.currency, o.gpu_id, l.server_id, l.gpu_id)
                              = (r.organisation_id, r.wallet_id, r.currency, r.gpu_id, r.server_id, r.gpu_id))
        OR cardinality(f.device_ids) <> f.gpu_count
        OR h.placed_micros <> (SELECT sum(held_micros) FROM marketplace_heldhours WHERE rental_id = r.id)
        OR (r.state IN ('ended', 'failed', 'interrupted') AND r.settled_until IS NULL AND h.captured_micros <> 0)
"""
_TOTALS = """
    SELECT concat('fill ', id, ' has other totals than its book up to it')
      FROM (SELECT id, fills_so_far, gpus_so_far, value_so_far, row_number() OVER line AS fills,
                   sum(gpu_count) OVER line AS gpus, sum(gpu_count * price_usd_per_gpu_hour) OVER line AS value
              FROM marketplace_fill WINDOW line AS (PARTITION BY gpu_id ORDER BY sequence)) AS counted
     WHERE (fills_so_far, gpus_so_far, value_so_far) <> (fills, gpus, value)
"""
_LEASES = """
    SELECT concat('rental ', r.id, ' is ', r.state, ' with ', count(l.id) FILTER (WHERE l.closed_sequence IS NULL), ' open leases')
      FROM marketplace_rental AS r LEFT JOIN marketplace_lease AS l ON l.rental_id = r.id
     GROUP BY r.id
    HAVING count(l.id) <> r.gpu_count
        OR count(l.id) FILTER (WHERE l.closed_sequence IS NULL)
           <> CASE WHEN r.state IN ('ended', 'failed', 'interrupted') THEN 0 ELSE r.gpu_count END
"""
_EVENTS = """
    WITH told AS (
        SELECT rental_id, id, kind, lag(kind) OVER (PARTITION BY rental_id ORDER BY id) AS before,
               lead(kind) OVER (PARTITION BY rental_id ORDER BY id) AS after
          FROM marketplace_rentalevent
         WHERE kind IN ('pending', 'provisioning', 'running', 'ending', 'ended', 'failed', 'interrupted')
    )
    SELECT concat('rental ', r.id, ' is ', r.state, ', its events end with ', coalesce(told.kind, 'nothing'))
      FROM marketplace_rental AS r LEFT JOIN told ON told.rental_id = r.id AND told.after IS NULL
     WHERE told.kind IS DISTINCT FROM r.state
    UNION ALL
    SELECT concat('rental ', rental_id, ' went from ', coalesce(before, 'nothing'), ' to ', kind)
      FROM told
     WHERE (coalesce(before, ''), kind) NOT IN (
           ('', 'pending'), ('pending', 'provisioning'), ('pending', 'failed'), ('pending', 'ended'),
           ('provisioning', 'running'), ('provisioning', 'failed'), ('provisioning', 'ending'), ('provisioning', 'ended'),
           ('running', 'ending'), ('running', 'interrupted'), ('ending', 'ended'))
"""
_PAID = """
    SELECT concat('rental ', r.id, ' (', r.state, ') is paid until ', r.paid_until, ' and burns ', h.burn_micros_per_hour)
      FROM marketplace_rental AS r JOIN billing_hold AS h ON h.id = r.hold_id
     WHERE (r.state <> 'running' AND h.burn_micros_per_hour <> 0)
        OR r.paid_until > r.ready_at
                          + (SELECT sum(hours) FROM marketplace_heldhours WHERE rental_id = r.id) * interval '1 hour'
"""
_ORDER_HOLDS = """
    SELECT concat('order ', o.id, ' (', o.state, ') holds ', h.remaining_micros)
      FROM marketplace_order AS o JOIN billing_hold AS h ON h.id = o.hold_id
     WHERE h.remaining_micros <> CASE WHEN o.state IN ('open', 'partly_filled')
                                      THEN o.hold_per_server_micros * (o.server_count - o.filled_servers) ELSE 0 END
        OR h.captured_micros <> 0
"""
_FREE = """
    SELECT concat('listing ', l.id, ' says ', l.free_count, ' free, its server has ', count(d.id))
      FROM marketplace_listing AS l
      LEFT JOIN marketplace_device AS d ON d.server_id = l.server_id AND NOT EXISTS (
           SELECT FROM marketplace_lease WHERE device_id = d.id AND closed_sequence IS NULL)
     WHERE l.state <> 'ended'
     GROUP BY l.id HAVING l.free_count <> count(d.id)
"""
_STRAY_HOLDS = """
    SELECT concat('hold ', h.id, ' is of ', h.reference_type, ' ', h.reference_id, ', which does not have it')
      FROM billing_hold AS h
      LEFT JOIN marketplace_order AS o ON o.hold_id = h.id AND h.reference_type = 'order' AND o.id::text = h.reference_id
      LEFT JOIN marketplace_rental AS r ON r.hold_id = h.id AND h.reference_type = 'rental' AND r.id::text = h.reference_id
     WHERE h.reference_type IN ('order', 'rental') AND o.id IS NULL AND r.id IS NULL
"""
# What a line charged stays captured, also when it was reversed: the money goes back to the wallet, not to the hold.
_CAPTURED = """
    SELECT concat('rental ', r.id, ' captured ', h.captured_micros, ' of its hold, its lines say ', coalesce(lines.gross, 0),
                  ', and ', h.remaining_micros, ' are left')
      FROM marketplace_rental AS r
      JOIN billing_hold AS h ON h.id = r.hold_id
      LEFT JOIN (SELECT rental_id, sum(gross_micros) AS gross FROM marketplace_settlement GROUP BY rental_id) AS lines
        ON lines.rental_id = r.id
     WHERE h.captured_micros <> coalesce(lines.gross, 0) OR (r.fully_settled_at IS NOT NULL AND h.remaining_micros <> 0)
"""
_LINES = """
    WITH posted AS (
        SELECT posting.entry_id,
               coalesce(sum(posting.amount_micros) FILTER (WHERE account.kind = 'wallet'), 0) AS wallet,
               coalesce(sum(posting.amount_micros) FILTER (WHERE account.kind = 'revenue'), 0) AS revenue,
               coalesce(sum(posting.amount_micros) FILTER (WHERE account.kind = 'tax'), 0) AS tax,
               coalesce(sum(posting.amount_micros) FILTER (WHERE account.kind = 'payable'), 0) AS payable,
               coalesce(sum(posting.amount_micros) FILTER (WHERE account.kind = 'cost'), 0) AS cost,
               max(account.owner_id) AS owner_id, min(posting.currency) AS currency
          FROM billing_journalentry AS entry
          JOIN billing_posting AS posting ON posting.entry_id = entry.id
          JOIN billing_account AS account ON account.id = posting.account_id
         WHERE entry.kind IN ('rental_hour', 'provider_hour') GROUP BY posting.entry_id
    )
    SELECT concat('the line of rental ', line.rental_id, ' at ', line.hour, ' and its entries do not agree')
      FROM marketplace_settlement AS line
      JOIN marketplace_rental AS r ON r.id = line.rental_id
      JOIN marketplace_server AS s ON s.id = r.server_id
      LEFT JOIN posted AS mine ON mine.entry_id = line.entry_id
      LEFT JOIN posted AS theirs ON theirs.entry_id = line.provider_entry_id
      LEFT JOIN billing_journalentry AS back ON back.id = line.reversal_entry_id
      LEFT JOIN billing_journalentry AS their_back ON their_back.id = line.provider_reversal_entry_id
     WHERE (line.gross_micros > 0 AND (mine.wallet, mine.revenue, mine.tax, mine.owner_id, mine.currency) IS DISTINCT FROM
                (-line.gross_micros, line.net_micros, line.tax_micros, r.organisation_id, r.currency))
        OR (line.payable_micros > 0 AND (theirs.cost, theirs.payable, theirs.owner_id, theirs.currency) IS DISTINCT FROM
                (-line.payable_micros, line.payable_micros, s.provider_id, 'USD'))
        OR back.reverses_id IS DISTINCT FROM CASE WHEN line.reversed_at IS NOT NULL THEN line.entry_id END
        OR their_back.reverses_id IS DISTINCT FROM CASE WHEN line.reversed_at IS NOT NULL THEN line.provider_entry_id END
    UNION ALL
    SELECT concat('entry ', posted.entry_id, ' of a rental''s hour belongs to no line')
      FROM posted
     WHERE NOT EXISTS (SELECT FROM marketplace_settlement WHERE entry_id = posted.entry_id)
       AND NOT EXISTS (SELECT FROM marketplace_settlement WHERE provider_entry_id = posted.entry_id)
"""
_HOURS = """
    SELECT concat('rental ', r.id, ' is settled until ', coalesce(r.settled_until::text, 'never'), ' by ', count(line.id), ' lines')
      FROM marketplace_rental AS r LEFT JOIN marketplace_settlement AS line ON line.rental_id = r.id
     GROUP BY r.id
    HAVING count(line.id) <> coalesce(
               extract(epoch FROM r.settled_until - date_trunc('hour', r.ready_at, 'UTC')) / 3600, 0)
        OR min(line.hour) <> date_trunc('hour', r.ready_at, 'UTC')
        OR max(line.hour) <> r.settled_until - interval '1 hour'
        OR bool_or(line.hour <> date_trunc('hour', line.hour, 'UTC'))
"""
