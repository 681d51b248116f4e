"""`quotes/` and `orders/`: what an order would cost, placing it, looking at it, taking it back."""

from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from uuid import UUID

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.serializers import page_of
from common.pagination import Order as Sorting
from common.pagination import body_of, paginate
from common.parameters import OneOrMore, PageParameters, QueryParameters
from marketplace.api.bodies import OrderBody, QuoteBody, gpu_of, instruction_of
from marketplace.api.problems import market_problems
from marketplace.models import Order
from marketplace.orders.close import cancel_order
from marketplace.orders.place import place_order
from marketplace.queries.orders import last_ssh_key, orders_of, why_open
from marketplace.quotes import quote_order
from marketplace.serializers import OrderSerializer, QuoteSerializer, order_row, quote_row
from users.api.idempotent import idempotent
from users.api.view import OrganisationView
from users.models import Organisation, Scope

_ID = OpenApiParameter("order_id", UUID, OpenApiParameter.PATH)
_NEWEST_FIRST = Sorting(column="placed_at", is_descending=True)


class OrderParameters(PageParameters):
    """Which orders."""

    state = OneOrMore(choices=Order.State.values, required=False)


class QuoteList(OrganisationView):
    """Quotes."""

    scopes = {"POST": Scope.TRADE}

    @extend_schema(operation_id="ask_for_quote", request=QuoteBody, responses={201: QuoteSerializer}, tags=["orders"])
    def post(self, request: Request) -> Response:
        """Say what an order would cost all in, as a maximum for 60 seconds, with the order ready to post."""
        QueryParameters.read(request.query_params)
        wanted = QuoteBody.read(request.data)
        gpu = gpu_of(wanted["gpu"])
        with market_problems():
            quoted = quote_order(
                organisation_id=self.organisation.pk,
                instruction=instruction_of(wanted, gpu=gpu, limit=Decimal(1)),
                now=datetime.now(UTC),
            )
        return Response(quote_row(quoted, slug=gpu.slug), status=HTTPStatus.CREATED)


class OrderList(OrganisationView):
    """Orders."""

    scopes = {"GET": Scope.READ, "POST": Scope.TRADE}

    @extend_schema(
        operation_id="list_orders",
        parameters=[OrderParameters],
        responses=page_of(OrderSerializer, name="OrderPage"),
        tags=["orders"],
    )
    def get(self, request: Request) -> Response:
        """List the organisation's orders, newest first. Why one is open is told by `orders/<id>/`."""
        wanted = OrderParameters.read(request.query_params)
        orders = orders_of(self.organisation)
        page = paginate(
            orders.filter(state__in=wanted["state"]) if "state" in wanted else orders,
            request=request,
            order=_NEWEST_FIRST,
            limit=wanted["limit"],
            cursor=wanted.get("cursor"),
        )
        return Response(body_of(page, [order_row(order, why=None) for order in page.rows]))

    @extend_schema(operation_id="place_order", request=OrderBody, responses={201: OrderSerializer}, tags=["orders"])
    @idempotent
    def post(self, request: Request) -> Response:
        """Place an order: take what fits at or under the limit, best price first, and rest with what is left."""
        QueryParameters.read(request.query_params)
        wanted = OrderBody.read(request.data)
        instruction = instruction_of(
            wanted,
            gpu=gpu_of(wanted["gpu"]),
            limit=wanted["limit_price_usd_per_gpu_hour"],
            usual_key=last_ssh_key(self.organisation),
        )
        now = datetime.now(UTC)
        with market_problems():
            place_order(
                organisation_id=self.organisation.pk,
                instruction=instruction,
                now=now,
                placed_by_id=self.api_key.created_by_id,
                order_id=self.object_id,
            )
        return told(self.organisation, self.object_id, now=now, status=HTTPStatus.CREATED)


class OrderDetail(OrganisationView):
    """One order."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="get_order", parameters=[_ID], responses=OrderSerializer, tags=["orders"])
    def get(self, request: Request, order_id: UUID) -> Response:
        """Return an order, and why it is open."""
        QueryParameters.read(request.query_params)
        return told(self.organisation, order_id, now=datetime.now(UTC))


class OrderCancel(OrganisationView):
    """Taking an order back."""

    scopes = {"POST": Scope.TRADE}

    @extend_schema(
        operation_id="cancel_order", parameters=[_ID], request=None, responses=OrderSerializer, tags=["orders"]
    )
    def post(self, request: Request, order_id: UUID) -> Response:
        """Cancel what is still open; what is filled stays. Again: the same answer."""
        QueryParameters.read(request.query_params)
        now = datetime.now(UTC)
        with market_problems():
            cancel_order(organisation_id=self.organisation.pk, order_id=order_id, now=now)
        return told(self.organisation, order_id, now=now)


def told(organisation: Organisation, order_id: UUID, *, now: datetime, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return one order of the organisation as it is now."""
    order = get_object_or_404(orders_of(organisation), pk=order_id)
    return Response(order_row(order, why=why_open(order, now=now)), status=status)
