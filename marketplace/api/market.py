"""`market/`: every market, one book, its trades. Public; the validator is made of the body itself.

A book changes in ways that have no time of their own (a bid is taken back, a server falls silent), so an answer counts
as changed when it was made, and caches keep it for a second.
"""

import hashlib
from datetime import UTC, datetime
from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from catalog.models import Gpu
from catalog.serializers import page_of
from common.conditional import Version, answer, json_response
from common.pagination import Order, body_of, paginate
from common.parameters import PageParameters, QueryParameters, WholeNumber
from marketplace.queries.market import book_of, market_of, markets, trades_of
from marketplace.serializers import BookSerializer, MarketSerializer, TradeSerializer, book_row, market_row, trade_row

_MAX_AGE_SECONDS = 1
_SLUG = OpenApiParameter("slug", str, OpenApiParameter.PATH, description="The slug of a GPU.")


class BookParameters(QueryParameters):
    """How much of a book."""

    depth = WholeNumber(default=20, min_value=1, max_value=500, help_text="Price levels a side.")


class MarketView(APIView):
    """A public call about the exchange."""

    http_method_names = ["get", "head"]

    def told(self, request: Request, body: Any, *, now: datetime) -> HttpResponseBase:
        """Return the body, or 304 where the caller holds the same."""
        rendered = JSONRenderer().render(body)
        version = Version(key=hashlib.sha256(rendered).hexdigest()[:32], changed_at=now)
        response = answer(request, version=version, build=lambda: json_response(rendered))
        response["Cache-Control"] = f"public, max-age={_MAX_AGE_SECONDS}"
        return response


class MarketList(MarketView):
    """Markets."""

    @extend_schema(operation_id="list_markets", responses=MarketSerializer(many=True), tags=["market"])
    def get(self, request: Request) -> HttpResponseBase:
        """List every market: best bid and ask, last price, the last day. Prices net of tax."""
        QueryParameters.read(request.query_params)
        now = datetime.now(UTC)
        return self.told(request, [market_row(market) for market in markets(now=now)], now=now)


class BookDetail(MarketView):
    """A book."""

    @extend_schema(
        operation_id="get_book", parameters=[_SLUG, BookParameters], responses=BookSerializer, tags=["market"]
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """Return both sides of a book, aggregated by price, best first."""
        depth = BookParameters.read(request.query_params)["depth"]
        gpu, now = get_object_or_404(Gpu, slug=slug), datetime.now(UTC)
        as_of = market_of(gpu, now=now).as_of
        return self.told(request, book_row(slug, book_of(gpu, now=now, depth=depth), as_of=as_of), now=now)


class TradeList(MarketView):
    """Trades."""

    @extend_schema(
        operation_id="list_trades",
        parameters=[_SLUG, PageParameters],
        responses=page_of(TradeSerializer, name="TradePage"),
        tags=["market"],
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """List the fills of a GPU, newest first, without identities."""
        wanted = PageParameters.read(request.query_params)
        page = paginate(
            trades_of(get_object_or_404(Gpu, slug=slug)),
            request=request,
            order=Order(column="filled_at", is_descending=True),
            limit=wanted["limit"],
            cursor=wanted.get("cursor"),
        )
        return self.told(request, body_of(page, [trade_row(fill) for fill in page.rows]), now=datetime.now(UTC))
