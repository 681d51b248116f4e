"""Lists as comma-separated text, line by line, so that a long one never lies in memory whole.

>>> "".join(csv_lines(["name", "price"], [["h100", "2.19"], ["=HYPERLINK()", "-1"]]))
"name,price\\r\\nh100,2.19\\r\\n'=HYPERLINK(),-1\\r\\n"
"""

import csv
import re
from collections.abc import Iterable, Iterator

from rest_framework.renderers import BaseRenderer

_NUMBER = re.compile(r"-?[0-9.]+", re.ASCII)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_lines(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the header and each row as one line; None becomes an empty cell."""
    writer = csv.writer(_Echo())
    yield writer.writerow(header)
    for row in rows:
        yield writer.writerow([_cell(value) for value in row])


def _cell(value: object) -> object:
    """Return the value; text that a spreadsheet would run as a formula is marked as text."""
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


class _Echo:
    """A file for `csv.writer` that hands each line back."""

    def write(self, line: str) -> str:
        return line


class CsvRenderer(BaseRenderer):
    """Lets a caller ask for CSV by its Accept header too. The views write the lines themselves, as a stream."""

    media_type = "text/csv"
    format = "csv"
