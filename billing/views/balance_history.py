"""The balance of a wallet over time, as the wallet's page draws and lists it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from billing.balance_chart import BalanceChart, Point, balance_chart
from billing.queries.series import Change, Series, Span, balance_series
from billing.queries.statement import View
from billing.queries.wallets import Wallet
from common.money import from_micros

USUAL = timedelta(days=30)
LONGEST = timedelta(days=366)
_BY_THE_HOUR = timedelta(days=31)


@dataclass(frozen=True, kw_only=True)
class History:
    """A window of time: its drawing (None while there is too little), and each day of change, newest first."""

    since: datetime
    until: datetime
    series: Series
    chart: BalanceChart | None
    days: Sequence[Change]


def balance_history(wallet: Wallet, view: View, *, now: datetime) -> History | None:
    """Return the balance over the time of a view, at most a year of it; of the last days where it names none."""
    until = min(view.until or now, now)
    since = max(view.since or until - USUAL, until - LONGEST)
    if wallet.account_id is None or since >= until:
        return None
    span: Span = "hour" if until - since <= _BY_THE_HOUR else "day"
    series = balance_series(account_id=wallet.account_id, since=since, until=until, span=span)
    if series is None:
        return None
    starts_at = max(since, series.first_at)
    chart = balance_chart(points_of(series, since=since), starts_at=min(starts_at, until), ends_at=until)
    return History(since=since, until=until, series=series, chart=chart, days=by_day(series.changes))


def points_of(series: Series, *, since: datetime) -> list[Point]:
    """Return the balance at the window's start and after each change in it; a wallet that begins in it has no start."""
    points = [Point(at=change.at, balance=from_micros(change.balance_micros)) for change in series.changes]
    if series.first_at > since:
        return points
    return [Point(at=since, balance=from_micros(series.opening_micros)), *points]


def by_day(changes: Iterable[Change]) -> list[Change]:
    """Return changes, oldest first, summed by day of UTC, newest first."""
    days: dict[date, Change] = {}
    for change in changes:
        on = change.starts_at.astimezone(UTC).date()
        before = days.get(on)
        days[on] = Change(
            starts_at=before.starts_at if before else change.starts_at,
            at=change.at,
            in_micros=change.in_micros + (before.in_micros if before else 0),
            out_micros=change.out_micros + (before.out_micros if before else 0),
            balance_micros=change.balance_micros,
        )
    return list(days.values())[::-1]
