"""`sources/`: where prices come from, and how each source is doing."""

from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from catalog.api.view import CatalogueView
from catalog.filters import SourceParameters
from catalog.models import Source
from catalog.queries import source_states
from catalog.serializers import SourceSerializer, page_of
from common.pagination import Order, body_of, paginate


class SourceList(CatalogueView):
    """Sources."""

    @extend_schema(
        operation_id="list_sources",
        parameters=[SourceParameters],
        responses=page_of(SourceSerializer, name="SourcePage"),
        tags=["sources"],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List the sources of prices with their state, what they gave, and what was kept out."""
        wanted = SourceParameters.read(request.query_params)
        return self.answer(request, lambda now: source_page(request, wanted))


def source_page(request: Request, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return one page of sources by name."""
    page = paginate(
        Source.objects.all(),
        request=request,
        order=Order(column="name"),
        limit=wanted["limit"],
        cursor=wanted.get("cursor"),
    )
    states = {state.source.pk: state for state in source_states()}
    return body_of(page, SourceSerializer([states[source.pk] for source in page.rows], many=True).data)
