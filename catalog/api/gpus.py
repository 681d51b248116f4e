"""`gpus/`, `gpus/<slug>/`: figures and prices of every GPU."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from catalog.api.view import CatalogueView
from catalog.filters import GpuParameters, NoParameters, filter_gpus, gpu_order
from catalog.models import Gpu
from catalog.queries import price_table
from catalog.serializers import GpuSerializer, page_of
from common.pagination import body_of, paginate


class GpuList(CatalogueView):
    """GPUs."""

    @extend_schema(
        operation_id="list_gpus",
        parameters=[GpuParameters],
        responses=page_of(GpuSerializer, name="GpuPage"),
        tags=["gpus"],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List every rentable GPU with its figures and prices."""
        wanted = GpuParameters.read(request.query_params)
        return self.answer(request, lambda now: gpu_page(request, wanted, now=now))


def gpu_page(request: Request, wanted: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return one page of GPUs with their prices. A page costs four queries."""
    page = paginate(
        filter_gpus(wanted),
        request=request,
        order=gpu_order(wanted),
        limit=wanted["limit"],
        cursor=wanted.get("cursor"),
    )
    return body_of(page, gpu_rows(page.rows, now=now))


def gpu_rows(gpus: Sequence[Gpu], *, now: datetime) -> Any:
    """Return GPUs as the API prints them."""
    prices = price_table(now=now, gpu_slugs=[gpu.slug for gpu in gpus])
    return GpuSerializer(gpus, many=True, context={"prices": prices}).data


class GpuDetail(CatalogueView):
    """One GPU."""

    @extend_schema(
        operation_id="get_gpu",
        parameters=[OpenApiParameter("slug", str, OpenApiParameter.PATH, pattern="^[-a-zA-Z0-9_]+$")],
        responses=GpuSerializer,
        tags=["gpus"],
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """Return one GPU with its figures and prices."""
        NoParameters.read(request.query_params)
        gpu = get_object_or_404(Gpu, slug=slug)
        return self.answer(request, lambda now: gpu_rows([gpu], now=now)[0])
