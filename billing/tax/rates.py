"""Standard VAT rates with the day from which each holds. Rows are added, never edited.

>>> table = read_rates(["country,standard_rate,valid_from,source_url", "EE,22.0,2024-01-01,x", "EE,24.0,2025-07-01,x"])
>>> table.rate_on("EE", date(2025, 6, 30)), table.rate_on("EE", date(2025, 7, 1))
(Decimal('22.0'), Decimal('24.0'))
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

from billing.tax.territories import day_starts_at, local_date

FILE = Path(__file__).resolve().parent.parent / "data" / "vat_rates.csv"
_RATE = re.compile(r"[0-9]{1,2}(\.[0-9]{1,2})?", re.ASCII)


class NoRate(LookupError):
    """No rate is known for this country on this day. There is no default, and never 0."""

    def __init__(self, country: str, on: date) -> None:
        super().__init__(f"No VAT rate is known for {country!r} on {on}.")
        self.country = country


class TableRejected(ValueError):
    """The file is not a table of rates; the message says what was wrong."""


@dataclass(frozen=True, kw_only=True)
class RateRow:
    """A country's standard rate in percent, from a day there on."""

    country: str
    percent: Decimal
    valid_from: date
    source_url: str


@dataclass(frozen=True, kw_only=True)
class RateTable:
    """Rows in order of country and day."""

    rows: tuple[RateRow, ...]

    def rate_on(self, country: str, on: date) -> Decimal:
        """Return the rate in percent on a day there: the row with the latest start on or before it. Raises NoRate."""
        begun = [row for row in self.rows if row.country == country and row.valid_from <= on]
        if not begun:
            raise NoRate(country, on)
        return begun[-1].percent

    def rate_at(self, country: str, at: datetime) -> Decimal:
        """Return the rate in percent at an instant, by the date on the wall there. Raises NoRate or UnknownCountry."""
        return self.rate_on(country, local_date(country, at))

    def next_change_at(self, country: str, *, after: datetime) -> datetime | None:
        """Return the instant at which the next row begins, None when none is known."""
        starts = (day_starts_at(country, row.valid_from) for row in self.rows if row.country == country)
        return min((at for at in starts if at > after), default=None)


@cache
def known_rates() -> RateTable:
    """Return the repository's table, read once."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return read_rates(file)


def read_rates(lines: Iterable[str]) -> RateTable:
    """Return the table written as CSV. Raises TableRejected: half a table would charge the wrong tax."""
    rows = [_row(fields) for fields in csv.DictReader(lines)]
    if len({(row.country, row.valid_from) for row in rows}) != len(rows):
        raise TableRejected("two rows of one country begin on the same day")
    return RateTable(rows=tuple(sorted(rows, key=lambda row: (row.country, row.valid_from))))


def _row(fields: dict[str, str]) -> RateRow:
    try:
        rate, day = fields["standard_rate"], date.fromisoformat(fields["valid_from"])
        row = RateRow(country=fields["country"], percent=Decimal(rate), valid_from=day, source_url=fields["source_url"])
    except (KeyError, ValueError, ArithmeticError) as why:
        raise TableRejected(f"{fields}: {why}") from why
    if not _RATE.fullmatch(rate) or not row.percent or not row.source_url:
        raise TableRejected(f"{fields}: a rate is between 0 and 100 percent, and has a source")
    return row
