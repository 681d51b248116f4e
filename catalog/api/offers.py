"""`offers/`: every price seen at an outside source, as JSON by the page or as CSV in one stream."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from catalog.api.view import CatalogueView
from catalog.filters import OfferParameters, filter_offers, offer_order
from catalog.freshness import freshness
from catalog.models import Offer
from catalog.serializers import OfferSerializer, page_of
from common.csv_lines import CsvRenderer, csv_lines
from common.pagination import Page, body_of, in_order, paginate

OfferRow = dict[str, Any]
_ROWS_AT_ONCE = 2000
_FIELDS = {name: field for name, field in OfferSerializer().fields.items() if name != "freshness"}
_HEADER = [*_FIELDS, "freshness"]
_COLUMNS = {name: field.source or name for name, field in _FIELDS.items()}


class OfferList(CatalogueView):
    """Offers."""

    renderer_classes = [JSONRenderer, CsvRenderer]

    @extend_schema(
        operation_id="list_offers",
        parameters=[OfferParameters],
        responses={
            (200, "application/json"): page_of(OfferSerializer, name="OfferPage"),
            (200, "text/csv"): OpenApiTypes.STR,
        },
        tags=["offers"],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List outside offers of every tier, cheapest GPU-hour first; stale ones only where they are asked for."""
        wanted = OfferParameters.read(request.query_params)
        is_csv = wanted.get("format", request.accepted_renderer.format) == "csv"
        make = offer_stream if is_csv else offer_page
        return self.answer(request, lambda now: make(request, wanted, now=now))


def offer_page(request: Request, wanted: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return one page of offers. One query."""
    page = _page(request, wanted, now=now)
    return body_of(page, [dict(zip(_HEADER, cells, strict=True)) for cells in _cells(page.rows, now=now)])


def offer_stream(request: Request, wanted: Mapping[str, Any], *, now: datetime) -> StreamingHttpResponse:
    """Return offers as CSV: a page where `limit` or `cursor` asks for one, else all."""
    if request.query_params.keys() & {"limit", "cursor"}:
        rows: Iterable[OfferRow] = _page(request, wanted, now=now).rows
    else:
        rows = in_order(_offers(wanted, now=now), offer_order(wanted)).iterator(chunk_size=_ROWS_AT_ONCE)
    lines = csv_lines(_HEADER, _cells(rows, now=now))
    headers = {"Content-Disposition": 'attachment; filename="offers.csv"'}
    return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)


def _page(request: Request, wanted: Mapping[str, Any], *, now: datetime) -> Page[OfferRow]:
    return paginate(
        _offers(wanted, now=now),
        request=request,
        order=offer_order(wanted),
        limit=wanted["limit"],
        cursor=wanted.get("cursor"),
        value_of=lambda row, column: row[column],
    )


def _offers(wanted: Mapping[str, Any], *, now: datetime) -> QuerySet[Offer, OfferRow]:
    columns = ("pk", "is_list", offer_order(wanted).column, *_COLUMNS.values())
    rows: QuerySet[Offer, OfferRow] = filter_offers(wanted, now=now).values(*columns)
    return rows


def _cells(rows: Iterable[OfferRow], *, now: datetime) -> Iterator[list[object]]:
    """Yield each row's values as OfferSerializer prints them; called field by field, since rows may be a million."""
    for row in rows:
        tier = freshness(observed_at=row["observed_at"], priced_on=row["priced_on"], is_list=row["is_list"], now=now)
        values = ((field, row[_COLUMNS[name]]) for name, field in _FIELDS.items())
        yield [*(None if value is None else field.to_representation(value) for field, value in values), tier.value]
