"""The cells of the comparison as text: worked out here, since a page has a thousand of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalog.compare.columns import Column, Kind
from catalog.compare.lines import Line
from common.templatetags import figures

Cell = Callable[[Any], str]
_TEXT_CELL, _NUMBER_CELL = "<td>{}</td>", '<td class="r">{}</td>'


@dataclass(frozen=True, kw_only=True)
class ShownLine:
    """A line with its cells in the order of the columns, as they stand in the page; `seen` says how old its price is."""

    line: Line
    cells: str
    seen: str
    is_best: bool


def shown_lines(
    lines: Sequence[Line], columns: Sequence[Column], *, best: Line | None, now: datetime
) -> list[ShownLine]:
    """Return the lines with a cell for each of `columns`."""
    kinds = {**_KINDS, "seen": lambda line: _seen(line, now=now)}
    makers = [(column, kinds[column.kind], _TEXT_CELL if _is_text(column) else _NUMBER_CELL) for column in columns]
    return [
        ShownLine(
            line=line,
            cells=format_html_join(
                "", "{}", ((format_html(cell, _cell(column, line, make)),) for column, make, cell in makers)
            ),
            seen=_seen(line, now=now),
            is_best=line is best,
        )
        for line in lines
    ]


def _is_text(column: Column) -> bool:
    return column.kind in ("text", "answer", "country", "market", "seen")


def _cell(column: Column, line: Line, make: Cell) -> str:
    if column.kind in ("seen", "market"):
        return make(line)
    value = column.value(line)
    return figures.not_published() if value is None or value == "" else make(value)


def _market(line: Line) -> str:
    """Return how it is sold, the term and what limits it."""
    words = line.market_in_words
    if line.term_months:
        months = ngettext("%(months)s month", "%(months)s months", line.term_months) % {"months": line.term_months}
        words = f"{words}, {months}"
    labels = [
        *([] if line.verified else [_("unverified host")]),
        *([] if line.is_whole else [_("part of a card")]),
    ]
    return format_html(
        "{}{}", words, format_html_join("", ' <span class="label-fixed">{}</span>', ((each,) for each in labels))
    )


def _seen(line: Line, *, now: datetime) -> str:
    """Return when it was read, or the date the source gives."""
    if line.is_dated:
        when = _("list, %s") % figures.day(line.priced_on) if line.priced_on else _("list price")
    else:
        when = figures.short_age(line.observed_at, now)
    return format_html("{}{}", figures.dot(line.freshness.value), when)


_KINDS: Mapping[Kind, Cell] = {
    "text": str,
    "figure": figures.figure,
    "seconds": figures.duration,
    "minimum": lambda seconds: figures.duration(seconds) if seconds else _("none"),
    "notice": lambda seconds: figures.duration(seconds) if seconds else _("no notice"),
    "price": figures.price_in_column,
    "usd": lambda value: figures.price_usd(value) if value else _("free"),
    "answer": figures.yes_no,
    "country": figures.country,
    "market": _market,
}
