"""Cursor paging that stays in place while rows come and go: a page starts after the last row of the one before.

The cursor carries the sorted column's value and the primary key of a row, and the order it belongs to. It is
signed, so whatever it holds was written here. Empty values sort last in both directions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

Row = TypeVar("Row")
_SIGNER = Signer(salt="common.pagination")
_AFTER, _BEFORE = "after", "before"


@dataclass(frozen=True, kw_only=True)
class Order:
    """One sorting: `column` is the path in the query, `is_nullable` whether it may be empty."""

    column: str
    is_descending: bool = False
    is_nullable: bool = False

    @property
    def reversed(self) -> "Order":
        """The same order read from its end."""
        return Order(column=self.column, is_descending=not self.is_descending, is_nullable=self.is_nullable)

    @property
    def name(self) -> str:
        """As it is written in `ordering=`."""
        return f"-{self.column}" if self.is_descending else self.column


@dataclass(frozen=True, kw_only=True)
class Page(Generic[Row]):
    """A part of a list, with the addresses of the parts beside it."""

    rows: Sequence[Row]
    next_url: str | None
    previous_url: str | None


@dataclass(frozen=True, kw_only=True)
class _Position:
    side: str
    value: Any
    pk: Any

    @property
    def is_before(self) -> bool:
        return self.side == _BEFORE


def paginate(
    queryset: QuerySet[Any, Row],
    *,
    request: Request,
    order: Order,
    limit: int,
    cursor: str | None,
    value_of: Callable[[Row, str], Any] = getattr,
) -> Page[Row]:
    """Return `limit` rows of `queryset` in `order`, from `cursor` on. One query.

    `value_of` reads a column (or "pk") from a row. Raises ValidationError on `cursor` where it was not made here
    or belongs to another order.
    """
    start = _read_cursor(cursor, order) if cursor else None
    is_backwards = start is not None and start.is_before
    rows = list(_rows_from(queryset, order, start)[: limit + 1])
    has_more = len(rows) > limit
    rows = rows[:limit][:: -1 if is_backwards else 1]

    def url(side: str, row: Row) -> str:
        position = _Position(side=side, value=value_of(row, order.column), pk=value_of(row, "pk"))
        return replace_query_param(request.build_absolute_uri(), "cursor", _write_cursor(position, order))

    has_next = bool(rows) and (is_backwards or has_more)
    has_previous = bool(rows) and (has_more if is_backwards else start is not None)
    return Page(
        rows=rows,
        next_url=url(_AFTER, rows[-1]) if has_next else None,
        previous_url=url(_BEFORE, rows[0]) if has_previous else None,
    )


def in_order(queryset: QuerySet[Any, Row], order: Order) -> QuerySet[Any, Row]:
    """Sort by `order`, rows of one value by primary key in the same direction, empty values last."""
    return _sorted(queryset, order, nulls_last=True)


def _rows_from(queryset: QuerySet[Any, Row], order: Order, start: _Position | None) -> QuerySet[Any, Row]:
    if start is None:
        return in_order(queryset, order)
    if start.is_before:
        return _sorted(queryset.filter(_beyond(order.reversed, start)), order.reversed, nulls_last=False)
    return in_order(queryset.filter(_beyond(order, start)), order)


def _sorted(queryset: QuerySet[Any, Row], order: Order, *, nulls_last: bool) -> QuerySet[Any, Row]:
    # Saying where empty values go keeps PostgreSQL from using a plain index, so only where there can be any.
    nulls: dict[str, bool] = {"nulls_last" if nulls_last else "nulls_first": True} if order.is_nullable else {}
    if order.is_descending:
        return queryset.order_by(F(order.column).desc(**nulls), F("pk").desc())
    return queryset.order_by(F(order.column).asc(**nulls), F("pk").asc())


def _beyond(order: Order, start: _Position) -> Q:
    """Return what lies past `start` walking in `order` (already reversed when the walk goes back)."""
    past = "lt" if order.is_descending else "gt"
    pk_past = Q(**{f"pk__{past}": start.pk})
    is_empty = Q(**{f"{order.column}__isnull": True})
    if start.value is None:
        same = is_empty & pk_past
        return same | ~is_empty if start.is_before else same
    # The first condition repeats what the second implies: it is the one an index can be entered by.
    beyond = Q(**{f"{order.column}__{past}e": start.value}) & (Q(**{f"{order.column}__{past}": start.value}) | pk_past)
    return beyond | is_empty if order.is_nullable and not start.is_before else beyond


def _write_cursor(position: _Position, order: Order) -> str:
    return _SIGNER.sign_object([order.name, position.side, _as_json(position.value), _as_json(position.pk)])


def _as_json(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal | date | UUID) else value


def _read_cursor(text: str, order: Order) -> _Position:
    try:
        name, side, value, pk = _SIGNER.unsign_object(text)
    except BadSignature:
        raise _refused(_("This is not a cursor of ours: take it from next or previous.")) from None
    if name != order.name:
        raise _refused(_("This cursor belongs to another ordering."))
    return _Position(side=side, value=value, pk=pk)


def _refused(message: str) -> ValidationError:
    return ValidationError({"cursor": [ErrorDetail(message, code="invalid")]})


def body_of(page: Page[Any], results: Any) -> dict[str, Any]:
    """Return the envelope of a list."""
    return {"next": page.next_url, "previous": page.previous_url, "results": results}
