"""The lines of a wallet, newest first, each with the balance after it, a page at a time or all in one stream.

Lines stand in the order they were written in; the balance after a line is the sum of all up to it, whatever is left
out of the view. A page starts at a mark: a line and its balance, which the page before knew. So a page costs its own
lines, however long the wallet's history is.

A view may be narrowed to times: `at` is when a line happened, which is a little before it was written. Where in the
history such a time lies is found by halving, on the promise that no line is written more than `LATEST` after one that
happened later.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from django.core.signing import BadSignature, Signer
from django.db import connection
from django.db.models import F, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Concat

from billing.models import Posting
from billing.statement_words import title_of

LATEST = timedelta(days=31)
_SIGNER = Signer(salt="billing.statement")
_ROWS_AT_ONCE = 2000
_COLUMNS = {
    "line_id": F("pk"),
    "micros": F("amount_micros"),
    "kind": F("entry__kind"),
    "at": F("entry__effective_at"),
    "reference_type": F("entry__reference_type"),
    "reference_id": F("entry__reference_id"),
    "description": F("entry__description"),
}


class UnknownMark(ValueError):
    """The text is not a mark of this wallet."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Which lines: those that happened in `[since, until)`, of these kinds of entry (none: all)."""

    since: datetime | None = None
    until: datetime | None = None
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A place between two lines: above line `line_id`, after which the balance was `balance_micros`, or below it."""

    line_id: int
    balance_micros: int
    is_upward: bool = False


@dataclass(frozen=True, kw_only=True)
class StatementLine:
    """One posting on a wallet with its entry's words; a positive amount came in. `reference_*` may be blank."""

    id: int
    at: datetime
    kind: str
    amount_micros: int
    balance_after_micros: int
    reference_type: str
    reference_id: str
    description: str

    @property
    def out_micros(self) -> int:
        """What went out, above zero; 0 where money came in."""
        return max(0, -self.amount_micros)

    @property
    def words(self) -> str:
        """What the line is called."""
        return self.description or str(title_of(self.kind))

    @property
    def balance_before_micros(self) -> int:
        """The balance that the line met."""
        return self.balance_after_micros - self.amount_micros


@dataclass(frozen=True, kw_only=True)
class StatementPage:
    """Some lines, newest first, and the marks of the pages beside it (None where there is none)."""

    lines: Sequence[StatementLine]
    older: Mark | None
    newer: Mark | None


def statement_page(*, account_id: int, view: View, limit: int, mark: Mark | None = None) -> StatementPage:
    """Return up to `limit` lines, from the mark on; without one the newest. Two queries, two more with times."""
    is_upward = mark is not None and mark.is_upward
    rows = list(_beyond(_lines(account_id, view), mark)[: limit + 1])
    has_more = len(rows) > limit
    rows = rows[:limit][:: -1 if is_upward else 1]
    if not rows:
        return StatementPage(lines=[], older=None, newer=None)
    balances = _balances(account_id, [row["line_id"] for row in rows], mark)
    lines = [_line(row, balance_micros=balance) for row, balance in zip(rows, balances, strict=True)]
    has_older = has_more or is_upward
    has_newer = has_more if is_upward else mark is not None
    return StatementPage(
        lines=lines,
        older=Mark(line_id=lines[-1].id, balance_micros=lines[-1].balance_after_micros) if has_older else None,
        newer=Mark(line_id=lines[0].id, balance_micros=lines[0].balance_after_micros, is_upward=True)
        if has_newer
        else None,
    )


def statement_lines(*, account_id: int, view: View) -> Iterator[StatementLine]:
    """Yield every line of the view, newest first, from one look at the database; memory stays small."""
    balance_micros: int | None = None
    for row in _lines_and_top(account_id, view).iterator(chunk_size=_ROWS_AT_ONCE):
        balance_micros = int(row["top"]) if balance_micros is None else balance_micros
        if _is_in(row, view):
            yield _line(row, balance_micros=balance_micros)
        balance_micros -= row["micros"]


def mark_as_text(mark: Mark, *, account_id: int) -> str:
    """Return a mark for an address, signed: whatever it holds was written here."""
    return _SIGNER.sign_object([account_id, mark.line_id, mark.balance_micros, mark.is_upward])


def mark_from_text(text: str, *, account_id: int) -> Mark:
    """Return the mark. Raises UnknownMark for a text that is not ours, or another wallet's."""
    try:
        owner, line_id, balance_micros, is_upward = _SIGNER.unsign_object(text)
    except (BadSignature, ValueError):
        raise UnknownMark("This is not a mark of ours.") from None
    if owner != account_id:
        raise UnknownMark("This mark belongs to another wallet.")
    return Mark(line_id=line_id, balance_micros=balance_micros, is_upward=is_upward)


def first_line_around(account_id: int, at: datetime) -> int:
    """Return the number of a line near to a time: all `LATEST` before it are below, all `LATEST` after it are not.

    Halving over the numbers of the wallet's lines: a few dozen looks into an index. 0 without any line.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HALVING, {"account": account_id, "at": at})
        found = cursor.fetchone()
    return int(found[0]) if found else 0


_HALVING = """
    WITH RECURSIVE ends AS (
        SELECT min(id) AS first, max(id) + 1 AS last FROM billing_posting WHERE account_id = %(account)s::bigint
    ), search (low, high) AS (
        SELECT first, last FROM ends WHERE first IS NOT NULL
        UNION ALL
        SELECT CASE WHEN probe.effective_at < %(at)s::timestamptz THEN probe.id + 1 ELSE low END,
               CASE WHEN probe.effective_at < %(at)s::timestamptz THEN high ELSE (low + high) / 2 END
          FROM search, LATERAL (
              SELECT posting.id, entry.effective_at
                FROM billing_posting AS posting JOIN billing_journalentry AS entry ON entry.id = posting.entry_id
               WHERE posting.account_id = %(account)s::bigint AND posting.id >= (low + high) / 2
               ORDER BY posting.id LIMIT 1
          ) AS probe
         WHERE low < high
    )
    SELECT low FROM search WHERE low >= high
"""


def _lines(account_id: int, view: View) -> QuerySet[Posting, Any]:
    first, end = _bounds(account_id, view)
    lines: QuerySet[Posting, Any] = _between(account_id, first, end)
    if view.kinds:
        # Spelled so that the planner does not look a rare kind up in everybody's journal: it walks this wallet's lines.
        lines = lines.alias(kind_in_words=Concat(F("entry__kind"), Value("")))
    return lines.filter(_where(view)).values(**_COLUMNS)


def _lines_and_top(account_id: int, view: View) -> QuerySet[Posting, Any]:
    """Return all lines between the view's bounds, newest first, each with the balance after the first of them."""
    first, end = _bounds(account_id, view)
    lines: QuerySet[Posting, Any] = _between(account_id, first, end)
    later = Posting.objects.filter(account_id=account_id, pk__gte=end).order_by() if end else Posting.objects.none()
    later_micros = later.values("account_id").annotate(sum=Sum("amount_micros")).values("sum")
    top = F("account__posted_micros") - Coalesce(Subquery(later_micros), 0)
    return lines.values(top=top, **_COLUMNS).order_by("-pk")


def _bounds(account_id: int, view: View) -> tuple[int, int | None]:
    """Return numbers that every line of the view lies between, others perhaps too; the end is None where it is open."""
    first = first_line_around(account_id, view.since - LATEST) if view.since else 0
    end = first_line_around(account_id, view.until + LATEST) if view.until else None
    return first, end


def _between(account_id: int, first: int, end: int | None) -> QuerySet[Posting]:
    lines = Posting.objects.filter(account_id=account_id, pk__gte=first)
    return lines if end is None else lines.filter(pk__lt=end)


def _where(view: View) -> Q:
    wanted = Q()
    if view.since:
        wanted &= Q(entry__effective_at__gte=view.since)
    if view.until:
        wanted &= Q(entry__effective_at__lt=view.until)
    return wanted & Q(kind_in_words__in=view.kinds) if view.kinds else wanted


def _is_in(row: dict[str, Any], view: View) -> bool:
    """Say of one row what `_where` says to the database."""
    return (
        (view.since is None or row["at"] >= view.since)
        and (view.until is None or row["at"] < view.until)
        and (not view.kinds or row["kind"] in view.kinds)
    )


def _beyond(lines: QuerySet[Posting, Any], mark: Mark | None) -> QuerySet[Posting, Any]:
    if mark is None:
        return lines.order_by("-pk")
    if mark.is_upward:
        return lines.filter(pk__gt=mark.line_id).order_by("pk")
    return lines.filter(pk__lt=mark.line_id).order_by("-pk")


def _balances(account_id: int, line_ids: Sequence[int], mark: Mark | None) -> list[int]:
    """Return the balance after each line (ids newest first), counted from the mark or from the wallet's own balance.

    One query, so one moment: what lies between the start and the lines, and between these, out of view or not.
    """
    newest, oldest = line_ids[0], line_ids[-1]
    is_upward = mark is not None and mark.is_upward
    parameters: dict[str, int | list[int] | None] = {
        "account": account_id,
        "ids": list(reversed(line_ids)),
        "above": mark.line_id if mark and is_upward else newest,
        "up_to": oldest if is_upward else mark.line_id if mark else None,
        "oldest": oldest,
        "newest": newest,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, parameters)
        found = cursor.fetchall()
    posted_micros, way_micros = int(found[0][0]), int(found[0][1])
    gaps = {gap: int(micros) for *_, gap, micros in found if gap is not None}
    steps = [gaps.get(gap, 0) for gap in range(1, len(line_ids))]
    if mark and is_upward:
        return list(accumulate(steps, initial=mark.balance_micros + way_micros))[::-1]
    newest_micros = (mark.balance_micros if mark else posted_micros) - way_micros
    return list(accumulate((-step for step in reversed(steps)), initial=newest_micros))


# The wallet's balance, the sum on the way from the start to the nearest of `ids` (oldest first), and that of each gap:
# gap n holds the lines above the n-th of `ids` up to and with the next.
_SUMS = """
    SELECT account.posted_micros, way.micros, gap.number, gap.micros
      FROM billing_account AS account
      CROSS JOIN (
          SELECT coalesce(sum(amount_micros), 0) AS micros FROM billing_posting
           WHERE account_id = %(account)s::bigint AND id > %(above)s::bigint
             AND id <= coalesce(%(up_to)s::bigint, 9223372036854775807)
      ) AS way
      LEFT JOIN (
          SELECT width_bucket(id - 1, %(ids)s::bigint[]) AS number, sum(amount_micros) AS micros FROM billing_posting
           WHERE account_id = %(account)s::bigint AND id > %(oldest)s::bigint AND id <= %(newest)s::bigint
           GROUP BY number
      ) AS gap ON true
     WHERE account.id = %(account)s::bigint
"""


def _line(row: dict[str, Any], *, balance_micros: int) -> StatementLine:
    return StatementLine(
        id=row["line_id"],
        at=row["at"],
        kind=row["kind"],
        amount_micros=row["micros"],
        balance_after_micros=balance_micros,
        reference_type=row["reference_type"],
        reference_id=row["reference_id"],
        description=row["description"],
    )
