"""`prices/`: what a GPU-hour costs, per GPU."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request

from catalog.api.view import CatalogueView
from catalog.filters import PriceParameters
from catalog.models import Gpu
from catalog.queries import price_table
from catalog.serializers import GpuPricesSerializer, page_of, price_row
from common.pagination import Order, body_of, paginate
from fx.queries import NoRate, UsdRate, usd_rate


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


def rate_of(currency: str, *, day: date) -> UsdRate | None:
    """Return the last rate on or before a day, None for USD. Raises ValidationError where none is known."""
    if currency == "USD":
        return None
    try:
        return usd_rate(currency, day=day)
    except NoRate as why:
        raise ValidationError({"currency": [ErrorDetail(str(why), code="no_rate")]}) from why


def price_page(request: Request, wanted: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return one page of prices. A page costs four queries, five in another currency."""
    rate = rate_of(wanted["currency"], day=now.date())
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
    return body_of(page, GpuPricesSerializer([price_row(slug, prices, rate=rate) for slug in slugs], many=True).data)
