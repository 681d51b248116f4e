"""`prices/<slug>/history/`: the recorded prices of one GPU in one market, as JSON by the page or as CSV in one stream."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from catalog.api.view import CatalogueView
from catalog.filters import HistoryParameters
from catalog.history_queries import snapshots_of
from catalog.models import Gpu, PriceSnapshot
from catalog.serializers import PriceSnapshotSerializer, page_of
from common.csv_lines import CsvRenderer, csv_lines
from common.pagination import Order, Page, body_of, in_order, paginate

_OLDEST_FIRST = Order(column="at")
_FIELDS = PriceSnapshotSerializer().fields
_ROWS_AT_ONCE = 2000


class PriceHistory(CatalogueView):
    """Recorded prices."""

    renderer_classes = [JSONRenderer, CsvRenderer]

    @extend_schema(
        operation_id="list_price_history",
        parameters=[
            OpenApiParameter("slug", str, OpenApiParameter.PATH, pattern="^[-a-zA-Z0-9_]+$"),
            HistoryParameters,
        ],
        responses={
            (200, "application/json"): page_of(PriceSnapshotSerializer, name="PriceSnapshotPage"),
            (200, "text/csv"): OpenApiTypes.STR,
        },
        tags=["prices"],
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """List what was recorded in USD per GPU-hour, oldest first: by the hour, by the day after 90 days.

        Hours in which nothing was live have no row.
        """
        wanted = HistoryParameters.read(request.query_params)
        gpu = get_object_or_404(Gpu, slug=slug)
        is_csv = wanted.get("format", request.accepted_renderer.format) == "csv"
        make = snapshot_stream if is_csv else snapshot_page
        return self.answer(request, lambda now: make(request, wanted, gpu=gpu, now=now))


def snapshot_page(request: Request, wanted: Mapping[str, Any], *, gpu: Gpu, now: datetime) -> dict[str, Any]:
    """Return one page of snapshots. One query."""
    page = _page(request, wanted, gpu=gpu, now=now)
    return body_of(page, PriceSnapshotSerializer(page.rows, many=True).data)


def snapshot_stream(request: Request, wanted: Mapping[str, Any], *, gpu: Gpu, now: datetime) -> StreamingHttpResponse:
    """Return snapshots as CSV: a page where `limit` or `cursor` asks for one, else the whole window."""
    if request.query_params.keys() & {"limit", "cursor"}:
        rows: Iterable[PriceSnapshot] = _page(request, wanted, gpu=gpu, now=now).rows
    else:
        rows = in_order(_snapshots(wanted, gpu=gpu, now=now), _OLDEST_FIRST).iterator(chunk_size=_ROWS_AT_ONCE)
    name = f"{gpu.slug}-{wanted['market']}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    lines = csv_lines(_FIELDS, _cells(rows))
    return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)


def _page(request: Request, wanted: Mapping[str, Any], *, gpu: Gpu, now: datetime) -> Page[PriceSnapshot]:
    return paginate(
        _snapshots(wanted, gpu=gpu, now=now),
        request=request,
        order=_OLDEST_FIRST,
        limit=wanted["limit"],
        cursor=wanted.get("cursor"),
    )


def _snapshots(wanted: Mapping[str, Any], *, gpu: Gpu, now: datetime) -> QuerySet[PriceSnapshot]:
    return snapshots_of(gpu=gpu, market=wanted["market"], days=wanted["days"], now=now)


def _cells(rows: Iterable[PriceSnapshot]) -> Iterator[list[object]]:
    for row in rows:
        yield [field.to_representation(getattr(row, name)) for name, field in _FIELDS.items()]
