"""`clouds/`: what each cloud says of itself, with the page and the day it was read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from catalog.api.view import CatalogueView
from catalog.cloud_queries import live_offer_counts, with_facts
from catalog.filters import CloudParameters, filter_clouds
from catalog.serializers import CloudSerializer, cloud_row, page_of
from common.pagination import Order, body_of, paginate


class CloudList(CatalogueView):
    """Clouds."""

    @extend_schema(
        operation_id="list_clouds",
        parameters=[CloudParameters],
        responses=page_of(CloudSerializer, name="CloudPage"),
        tags=["clouds"],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List the clouds whose prices are compared, with their facts; what was not found is null."""
        wanted = CloudParameters.read(request.query_params)
        return self.answer(request, lambda now: cloud_page(request, wanted, now=now))


def cloud_page(request: Request, wanted: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return one page of clouds by slug. A page costs three queries."""
    page = paginate(
        with_facts(filter_clouds(wanted)),
        request=request,
        order=Order(column="slug"),
        limit=wanted["limit"],
        cursor=wanted.get("cursor"),
    )
    live_offers = live_offer_counts(now=now, clouds=page.rows)
    rows = [cloud_row(cloud, live_offers=live_offers.get(cloud.pk, 0)) for cloud in page.rows]
    return body_of(page, CloudSerializer(rows, many=True).data)
