"""`topups/`: paying into a wallet, how that stands, and sending what is unspent back."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from billing.accounts import WALLET_CURRENCIES
from billing.books import BooksStopped
from billing.gateway.errors import GatewayRefused, GatewayUnavailable
from billing.models import Refund, TopUp
from billing.refunds.request import MoreThanIsLeft, NotAnAmount, RefundRefused, refund_top_up
from billing.topups.start import TooManyTopUps, TopUpRefused, TopUpsOff, start_top_up
from common.money import from_micros
from common.pagination import Order, body_of, paginate
from common.parameters import PageParameters, QueryParameters
from common.problems import Problem, ProblemSerializer
from users.api.body import Amount, OneOf, StrictSerializer
from users.api.idempotent import HEADER, idempotency_header, idempotent
from users.api.view import OrganisationView
from users.models import Scope

_NEWEST_FIRST = Order(column="created_at", is_descending=True)
_ID = OpenApiParameter("top_up_id", UUID, OpenApiParameter.PATH)


class TopUpBody(StrictSerializer):
    """What is paid in."""

    currency = OneOf(choices=WALLET_CURRENCIES, help_text="Of the wallet that is paid into.")
    amount = Amount(help_text='In whole cents, for example "100.00".')


class RefundBody(StrictSerializer):
    """What is sent back."""

    amount = Amount(help_text="In whole cents, at most what is left of this payment and available in the wallet.")


class TopUpSerializer(serializers.Serializer[Any]):
    """A top-up."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(
        choices=TopUp.State.values,
        help_text="`created` is not yet at the gateway, `open` waits for the payment, `processing` for its money, "
        "`quarantined` for a person; `paid` is in the wallet.",
    )
    amount = serializers.SerializerMethodField(help_text="In whole cents.")
    currency = serializers.ChoiceField(choices=WALLET_CURRENCIES)
    checkout_url = serializers.SerializerMethodField(help_text="Where it is paid; null unless it can be paid now.")
    refunded = serializers.SerializerMethodField(help_text="What was sent back of it or is on its way.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Until when it can be paid.")
    paid_at = serializers.DateTimeField(allow_null=True)

    def get_amount(self, top_up: TopUp) -> str:
        """Return the amount in cents."""
        return _cents(top_up.amount_micros)

    def get_checkout_url(self, top_up: TopUp) -> str | None:
        """Return the payment page while it is open."""
        return top_up.checkout_url if top_up.state == TopUp.State.OPEN else None

    def get_refunded(self, top_up: TopUp) -> str:
        """Return what is refunded in cents."""
        return _cents(top_up.refunded_micros)


class RefundSerializer(serializers.Serializer[Refund]):
    """A refund of one top-up."""

    id = serializers.UUIDField()
    top_up = serializers.UUIDField(source="top_up_id")
    state = serializers.ChoiceField(
        choices=Refund.State.values,
        help_text="`requested` is not yet at the gateway; the money has left the wallet, and comes back if it fails.",
    )
    amount = serializers.SerializerMethodField(help_text="In whole cents.")
    currency = serializers.ChoiceField(source="top_up.currency", choices=WALLET_CURRENCIES)

    def get_amount(self, refund: Refund) -> str:
        """Return the amount in cents."""
        return _cents(refund.amount_micros)


def _cents(micros: int) -> str:
    return f"{from_micros(micros):.2f}"


class TopUpList(OrganisationView):
    """Top-ups."""

    scopes = {"GET": Scope.READ, "POST": Scope.BILLING}

    @extend_schema(
        operation_id="list_topups",
        parameters=[PageParameters],
        responses=inline_serializer(
            "TopUpPage",
            {
                "next": serializers.URLField(allow_null=True),
                "previous": serializers.URLField(allow_null=True),
                "results": TopUpSerializer(many=True),
            },
        ),
        tags=["topups"],
    )
    def get(self, request: Request) -> Response:
        """List the top-ups of the organisation, newest first. They are shown as stored; nobody is asked."""
        wanted = PageParameters.read(request.query_params)
        page = paginate(
            TopUp.objects.filter(organisation=self.organisation),
            request=request,
            order=_NEWEST_FIRST,
            limit=wanted["limit"],
            cursor=wanted.get("cursor"),
        )
        return Response(body_of(page, TopUpSerializer(page.rows, many=True).data))

    @extend_schema(operation_id="start_topup", request=TopUpBody, responses={201: TopUpSerializer}, tags=["topups"])
    @idempotent
    def post(self, request: Request) -> Response:
        """Start a top-up and say where it is paid. Nothing is in the wallet before the payment has arrived.

        After a 503 nothing is lost: the same `Idempotency-Key` goes on with the same top-up.
        """
        QueryParameters.read(request.query_params)
        wanted = TopUpBody.read(request.data)
        with _topup_problems():
            top_up = start_top_up(
                organisation=self.organisation,
                currency=wanted["currency"],
                amount=wanted["amount"],
                created_by=self.api_key.created_by,
                now=datetime.now(UTC),
                return_url_of=lambda row_id: request.build_absolute_uri(reverse("billing:top-up-state", args=[row_id])),
                locale=get_language() or "en",
                top_up_id=self.object_id,
            )
        if top_up.state in (TopUp.State.FAILED, TopUp.State.EXPIRED):
            message = _("This top-up ended before it was paid. Nothing was charged; start another one.")
            raise _conflict("top_up_ended", message)
        return Response(TopUpSerializer(top_up).data, status=HTTPStatus.CREATED)


class TopUpDetail(OrganisationView):
    """One top-up."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="get_topup", parameters=[_ID], responses=TopUpSerializer, tags=["topups"])
    def get(self, request: Request, top_up_id: UUID) -> Response:
        """Return one top-up as it is stored."""
        QueryParameters.read(request.query_params)
        return Response(TopUpSerializer(get_object_or_404(TopUp, pk=top_up_id, organisation=self.organisation)).data)


class TopUpRefund(OrganisationView):
    """The refunds of one top-up."""

    scopes = {"POST": Scope.BILLING}

    @extend_schema(
        operation_id="refund_topup",
        parameters=[
            _ID,
            idempotency_header(is_required=False),
        ],
        request=RefundBody,
        responses={201: RefundSerializer, 422: ProblemSerializer},
        tags=["topups"],
    )
    def post(self, request: Request, top_up_id: UUID) -> Any:
        """Send unspent money back to the payment it came from."""
        return (self.refund_once if HEADER in request.headers else self.refund)(request, top_up_id)

    def refund(self, request: Request, top_up_id: UUID) -> Response:
        """Refund; each call is another refund."""
        QueryParameters.read(request.query_params)
        top_up = get_object_or_404(TopUp, pk=top_up_id, organisation=self.organisation)
        amount = RefundBody.read(request.data)["amount"]
        with _refund_problems():
            refund = refund_top_up(
                top_up=top_up,
                amount=amount,
                requested_by=self.api_key.created_by,
                now=datetime.now(UTC),
                request_id=getattr(self, "object_id", None),
            )
        if refund.state == Refund.State.FAILED:
            message = _("The payment provider refused this refund. The money is back in the wallet.")
            raise _conflict("refund_refused", message)
        return Response(RefundSerializer(refund).data, status=HTTPStatus.CREATED)

    refund_once = idempotent(refund)


class _GatewayAway(Problem):
    wait = 10

    def __init__(self) -> None:
        detail = _("The payment provider does not answer. Nothing was charged. Send the request again in a moment.")
        super().__init__(status=HTTPStatus.SERVICE_UNAVAILABLE, code="gateway_unavailable", detail=detail)


class _TooMany(Problem):
    def __init__(self, refusal: TooManyTopUps) -> None:
        super().__init__(status=HTTPStatus.TOO_MANY_REQUESTS, code=refusal.code, detail=refusal.message)
        self.wait = refusal.wait_seconds


@contextmanager
def _topup_problems() -> Iterator[None]:
    """Turn a top-up that cannot be started into a problem document."""
    try:
        yield
    except TooManyTopUps as refusal:
        raise _TooMany(refusal) from refusal
    except TopUpRefused as refusal:
        if refusal.field is None:
            raise _conflict(refusal.code, refusal.message) from refusal
        raise _invalid(refusal.field, refusal.code, refusal.message) from refusal
    except TopUpsOff as off:
        detail = _("This site takes no payments at the moment.")
        raise Problem(status=HTTPStatus.SERVICE_UNAVAILABLE, code="top_ups_off", detail=detail) from off
    except GatewayUnavailable as away:
        raise _GatewayAway from away
    except GatewayRefused as refusal:
        message = _("The payment provider refused to open a payment page. Nothing was charged.")
        raise _conflict("gateway_refused", message) from refusal


@contextmanager
def _refund_problems() -> Iterator[None]:
    """Turn a refund that is refused into a problem document."""
    try:
        yield
    except BooksStopped as stop:
        detail = _("Refunds wait until our books have been checked. Your money is safe.")
        raise Problem(status=HTTPStatus.SERVICE_UNAVAILABLE, code="books_stopped", detail=detail) from stop
    except NotAnAmount as refusal:
        raise _invalid("amount", refusal.code, _("Give the amount in whole cents, above zero.")) from refusal
    except MoreThanIsLeft as refusal:
        message = _("At most %s can go back to this payment now.") % _cents(refusal.refundable_micros)
        raise _invalid("amount", refusal.code, message) from refusal
    except RefundRefused as refusal:
        raise _conflict(refusal.code, str(_REFUSALS[refusal.code])) from refusal


_REFUSALS = {
    "organisation_frozen": gettext_lazy("Your organisation is frozen: write to us."),
    "receivable_open": gettext_lazy("Your organisation owes us money. A top-up pays that first."),
    "dispute_open": gettext_lazy("A payment of your organisation is disputed. Refunds wait for the decision."),
}


def _invalid(field: str, code: str, message: str) -> ValidationError:
    return ValidationError({field: [ErrorDetail(message, code=code)]})


def _conflict(code: str, message: str) -> Problem:
    return Problem(status=HTTPStatus.CONFLICT, code=code, detail=message)
