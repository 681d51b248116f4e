"""Read the ECB's daily file and store its rates.

Steps: fetch (outside any transaction) → parse whole → one transaction: compare each rate with the last one in use,
store it. A rate that jumps by more than 10 % is stored held back, with the reason; a file dated in the future is
refused whole. A second run of the same file changes nothing; a day once stored is never rewritten, except that a
real rate replaces a sample one.
"""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
from django.db import models, transaction

from fx.ecb import MOST_BYTES, URL, DailyRates, FileRejected, parse
from fx.models import Rate

LARGEST_JUMP = Decimal("0.10")
SAMPLE_FILE = Path(__file__).parent / "data" / "sample_rates.csv"
_PUBLISHED_AT = time(16, 0, tzinfo=ZoneInfo("Europe/Brussels"))


class FetchFailed(OSError):
    """The ECB gave no usable answer; the message says which."""


@dataclass(frozen=True, kw_only=True)
class RatesReport:
    """What one refresh did. `day` is the file's own date."""

    day: date
    stored: int
    held_back: int


def refresh_rates(*, now: datetime, fetch: Callable[[], bytes] | None = None) -> RatesReport:
    """Read and store the daily file. Raises FetchFailed or FileRejected; then nothing has changed."""
    rates = parse((fetch or fetch_daily_file)())
    if rates.day > now.date():
        raise FileRejected(f"dated {rates.day}, which is in the future")
    return store(rates, origin=Rate.Origin.ECB, now=now)


def load_sample_rates(*, now: datetime) -> RatesReport:
    """Store the demo's own dated rates, where nothing newer or better is known."""
    with SAMPLE_FILE.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    days = {date.fromisoformat(row["day"]) for row in rows}
    rates = DailyRates(day=days.pop(), units_per_eur={row["currency"]: Decimal(row["units_per_eur"]) for row in rows})
    return store(rates, origin=Rate.Origin.SAMPLE, now=now)


def is_due(*, now: datetime, newest_day: date | None) -> bool:
    """Whether a newer file can exist: the last working day's, from 16:00 in Brussels on."""
    local = now.astimezone(_PUBLISHED_AT.tzinfo)
    expected = (
        local.date() if local.timetz() >= _PUBLISHED_AT.replace(tzinfo=local.tzinfo) else _day_before(local.date())
    )
    while expected.weekday() >= 5:
        expected = _day_before(expected)
    return newest_day is None or newest_day < expected


def newest_ecb_day() -> date | None:
    """Return the day of the newest file read."""
    return Rate.objects.filter(origin=Rate.Origin.ECB).order_by("-day").values_list("day", flat=True).first()


def fetch_daily_file() -> bytes:
    """Return the daily file's bytes. Raises FetchFailed."""
    try:
        with httpx.stream("GET", URL, timeout=20, follow_redirects=False) as answer:
            if answer.status_code != 200:
                raise FetchFailed(f"the ECB answered {answer.status_code}")
            body = b""
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise FetchFailed(f"the ECB sent more than {MOST_BYTES} bytes")
            return body
    except httpx.HTTPError as why:
        raise FetchFailed(f"the ECB could not be reached: {why}") from why


@transaction.atomic
def store(rates: DailyRates, *, origin: Rate.Origin, now: datetime) -> RatesReport:
    """Store one day's rates and say how many are new and how many of them are held back."""
    known = set(Rate.objects.filter(day=rates.day).exclude(_replaceable(origin)).values_list("currency", flat=True))
    previous = _last_in_use(rates.units_per_eur, before=rates.day)
    rows = [
        Rate(
            currency=currency,
            day=rates.day,
            units_per_eur=rate,
            origin=origin,
            held_back=jump_reason(rate, previous.get(currency)),
            stored_at=now,
        )
        for currency, rate in rates.units_per_eur.items()
        if currency not in known
    ]
    Rate.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["currency", "day"],
        update_fields=["units_per_eur", "origin", "held_back", "stored_at"],
    )
    return RatesReport(day=rates.day, stored=len(rows), held_back=sum(bool(row.held_back) for row in rows))


def jump_reason(rate: Decimal, previous: Decimal | None) -> str:
    """Return why a rate is held back, or nothing. Exactly 10 % is still in use."""
    if previous is None or abs(rate - previous) <= previous * LARGEST_JUMP:
        return ""
    percent = abs(rate - previous) / previous * 100
    return f"moved {percent:.1f} % from {previous.normalize():f} at once"


def _replaceable(origin: Rate.Origin) -> models.Q:
    return models.Q(origin=Rate.Origin.SAMPLE) if origin == Rate.Origin.ECB else models.Q(pk__in=[])


def _last_in_use(currencies: Iterable[str], *, before: date) -> dict[str, Decimal]:
    rows = Rate.objects.filter(currency__in=list(currencies), held_back="", day__lt=before, origin=Rate.Origin.ECB)
    newest = rows.order_by("currency", "-day").distinct("currency")
    return dict(newest.values_list("currency", "units_per_eur"))


def _day_before(day: date) -> date:
    return day - timedelta(days=1)
