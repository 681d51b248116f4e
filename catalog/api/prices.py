"""`prices/`: what a GPU-hour costs, per GPU."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from catalog.api.view import CatalogueView
from catalog.filters import PriceParameters
from catalog.models import Gpu
from catalog.queries import price_table
from catalog.serializers import GpuPricesSerializer, page_of, price_row
from common.pagination import Order, body_of, paginate


class PriceList(CatalogueView):
    """Prices."""

    @extend_schema(
        operation_id="list_prices",
        parameters=[PriceParameters],
        responses=page_of(GpuPricesSerializer, name="PricePage"),
        tags=["prices"],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List the prices of every GPU: the headline, the exchange, and elsewhere. Net of tax."""
        wanted = PriceParameters.read(request.query_params)
        return self.answer(request, lambda now: price_page(request, wanted, now=now))


def price_page(request: Request, wanted: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return one page of prices. A page costs four queries."""
    gpus = Gpu.objects.filter(slug__in=wanted["gpu"]) if "gpu" in wanted else Gpu.objects.all()
    page = paginate(
        gpus.only("slug", "position"),
        request=request,
        order=Order(column="position"),
        limit=wanted["limit"],
        cursor=wanted.get("cursor"),
    )
    slugs = [gpu.slug for gpu in page.rows]
    prices = price_table(now=now, gpu_slugs=slugs)
    return body_of(page, GpuPricesSerializer([price_row(slug, prices) for slug in slugs], many=True).data)
