"""A use case's table: columns, and cells with what their bars and marks need. Words come from outside."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from django.utils.functional import Promise

from sizing.use_cases.rows import Estimated, Row, Value

# figure, whole: a maker's figure with a bar; size: billions of parameters; count: a number that may be none;
# score: a benchmark's; usd: the price of the work, usd_fine with more decimals.
Kind = Literal[
    "figure", "whole", "link", "size", "count", "text", "formats", "yes_no", "loading", "score", "usd", "usd_fine"
]
DRAWN = ("figure", "whole")
Text = str | Promise


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: `key` of the rows' values, its heading with the unit under it, a short label for the chips."""

    key: str
    kind: Kind
    label: Text
    unit: Text = ""
    chip: Text = ""
    is_after_price: bool = False

    @property
    def short(self) -> Text:
        """The label where room is short."""
        return self.chip or self.label

    @property
    def is_number(self) -> bool:
        """Whether its cells stand right."""
        return self.kind not in ("text", "formats", "yes_no", "loading")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure. `largest` of the column, where bars are drawn."""

    column: Column
    value: Value
    is_estimate: bool
    largest: Decimal | None

    @property
    def is_best(self) -> bool:
        """Whether no row of the table has more."""
        return self.largest is not None and self.value == self.largest


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row as it is printed: cells left and right of the price."""

    row: Row
    before: Sequence[Cell]
    after: Sequence[Cell]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows under one divider; the first group has no `title`."""

    title: Text
    note: Text
    rows: Sequence[TableRow]


@dataclass(frozen=True, kw_only=True)
class Table:
    """All of it; `width` counts the columns."""

    columns: Sequence[Column]
    groups: Sequence[Group]
    width: int

    @property
    def before(self) -> list[Column]:
        """The columns left of the price."""
        return [column for column in self.columns if not column.is_after_price]

    @property
    def after(self) -> list[Column]:
        """The columns right of the price."""
        return [column for column in self.columns if column.is_after_price]


# GPU, price, whose price, clouds, 30 days, source: what every table has.
SHARED_COLUMNS = 6


def build_table(
    columns: Sequence[Column], *, groups: Mapping[str, Sequence[Row]], titles: Mapping[str, tuple[Text, Text]]
) -> Table:
    """Return the table of `groups` of rows by key; `titles` has the divider and its note of each that has one."""
    rows = [row for listed in groups.values() for row in listed]
    largest = {column.key: largest_value(column, rows) for column in columns}
    built = [
        Group(
            title=titles.get(key, ("", ""))[0],
            note=titles.get(key, ("", ""))[1],
            rows=[_table_row(row, columns, largest) for row in listed],
        )
        for key, listed in groups.items()
        if listed
    ]
    return Table(columns=columns, groups=built, width=len(columns) + SHARED_COLUMNS)


def largest_value(column: Column, rows: Iterable[Row]) -> Decimal | None:
    """Return the column's largest published figure, None where no bars are drawn."""
    if column.kind not in DRAWN:
        return None
    values = (row.values.get(column.key) for row in rows)
    return max((value for value in values if isinstance(value, Decimal)), default=None)


def _table_row(row: Row, columns: Sequence[Column], largest: Mapping[str, Decimal | None]) -> TableRow:
    cells = [_cell(row, column, largest[column.key]) for column in columns]
    return TableRow(
        row=row,
        before=[cell for cell in cells if not cell.column.is_after_price],
        after=[cell for cell in cells if cell.column.is_after_price],
    )


def _cell(row: Row, column: Column, largest: Decimal | None) -> Cell:
    value: Value = row.work_usd if column.kind in ("usd", "usd_fine") else row.values.get(column.key)
    is_estimate = isinstance(value, Estimated)
    return Cell(
        column=column,
        value=value.value if isinstance(value, Estimated) else value,
        is_estimate=is_estimate,
        largest=largest,
    )
