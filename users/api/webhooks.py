"""`webhooks/`: who is told about events, what was sent, and sending it again."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar
from uuid import UUID

from django.core.validators import RegexValidator
from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from common.pagination import Order, body_of, paginate
from common.parameters import PageParameters, QueryParameters
from common.problems import Problem
from users.api.body import OneOf, StrictSerializer, Text
from users.api.view import OrganisationView
from users.models import EventType, Scope, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from users.webhooks.addresses import LONGEST_URL, UrlRefused
from users.webhooks.endpoints import (
    MOST_ENDPOINTS,
    OVERLAP,
    EndpointRefused,
    NoMember,
    TooManyEndpoints,
    UrlTaken,
    add_endpoint,
    remove_endpoint,
    replace_secret,
)
from users.webhooks.log import deliveries_of, endpoints_of
from users.webhooks.replay import EndpointOff, StillWaiting, send_again, send_test
from users.webhooks.sending import Fault
from users.webhooks.words import URL_REFUSALS

_NEWEST_FIRST = Order(column="event_id", is_descending=True)
_ID = OpenApiParameter("endpoint_id", UUID, OpenApiParameter.PATH)
_EVENT_ID = OpenApiParameter("event_id", UUID, OpenApiParameter.PATH)
_ALL_TYPES = [*EventType.values, WebhookEvent.TEST]
_FAULTS = [fault.value for fault in Fault if fault]


class WebhookBody(StrictSerializer):
    """Whom to tell what."""

    url = Text(
        max_length=LONGEST_URL,
        form=RegexValidator(r"^https?://[!-~]+\Z", message=gettext_lazy("Write the whole address: https://...")),
        help_text="A public https address on port 443, with a name rather than a number, without user name or fragment.",
    )
    types = serializers.ListField(
        child=OneOf(choices=EventType.values), min_length=1, max_length=20, help_text="What to be told."
    )


class WebhookSerializer(serializers.Serializer[Any]):
    """An endpoint."""

    id = serializers.UUIDField()
    url = serializers.CharField()
    types = serializers.ListField(child=serializers.ChoiceField(choices=EventType.values))
    state = serializers.SerializerMethodField(help_text="`on` or `off`; one that is off is told nothing.")
    off_reason = serializers.SerializerMethodField(help_text="`failing` for three days, or `gone` (it answered 410).")
    created_at = serializers.DateTimeField()
    delivered_at = serializers.DateTimeField(allow_null=True, help_text="When it last took a message.")
    failing_since = serializers.DateTimeField(allow_null=True, help_text="Its first failure since then.")
    previous_secret_until = serializers.DateTimeField(
        allow_null=True, help_text="Until when the secret before signs too."
    )

    def get_state(self, endpoint: WebhookEndpoint) -> str:
        """Return on or off."""
        return "on" if endpoint.switched_off_at is None else "off"

    def get_off_reason(self, endpoint: WebhookEndpoint) -> str | None:
        """Return why it is off."""
        return endpoint.off_reason or None


class WebhookSecretSerializer(WebhookSerializer):
    """An endpoint with its new secret, which is never shown again."""

    secret = serializers.SerializerMethodField(help_text="Verifies signatures: `whsec_` and base64. Shown this once.")

    def get_secret(self, endpoint: WebhookEndpoint) -> str:
        """Return the secret that the caller was handed."""
        secret: str = self.context["secret"]
        return secret


class WebhookAttemptSerializer(serializers.Serializer[Any]):
    """One try."""

    at = serializers.DateTimeField()
    status = serializers.IntegerField(allow_null=True, help_text="What was answered; null where nothing was.")
    took_ms = serializers.IntegerField()
    fault = serializers.SerializerMethodField(help_text=f"Why nothing was answered: {', '.join(_FAULTS)}.")
    answer = serializers.CharField(help_text="How the answer's body began: its first kilobyte.")

    def get_fault(self, attempt: WebhookAttempt) -> str | None:
        """Return what went wrong."""
        return attempt.fault or None


class WebhookDeliverySerializer(serializers.Serializer[Any]):
    """A message to one endpoint, and its tries, newest first."""

    id = serializers.UUIDField(source="event_id", help_text="The message's `webhook-id`.")
    type = serializers.ChoiceField(source="event.type", choices=_ALL_TYPES)
    state = serializers.ChoiceField(choices=WebhookDelivery.State.values)
    occurred_at = serializers.DateTimeField(source="event.occurred_at")
    next_attempt_at = serializers.SerializerMethodField(help_text="Null unless it waits.")
    delivered_at = serializers.DateTimeField(allow_null=True)
    data = serializers.JSONField(source="event.data", help_text="What it says.")  # type: ignore[assignment]  # that name
    attempts = WebhookAttemptSerializer(many=True)

    def get_next_attempt_at(self, delivery: WebhookDelivery) -> datetime | None:
        """Return when it is tried next."""
        return delivery.next_attempt_at if delivery.state == WebhookDelivery.State.WAITING else None


class EndpointView(OrganisationView):
    """A call about one endpoint, or none yet."""

    tags: ClassVar[list[str]] = ["webhooks"]

    def endpoint(self, endpoint_id: UUID) -> WebhookEndpoint:
        """Return an endpoint of the organisation. Raises Http404."""
        found = endpoints_of(self.organisation).filter(pk=endpoint_id).first()
        if found is None:
            raise Http404
        return found


class EndpointList(EndpointView):
    """Endpoints."""

    scopes = {"GET": Scope.READ, "POST": Scope.TRADE}

    @extend_schema(
        operation_id="list_webhooks",
        responses=inline_serializer("WebhookList", {"results": WebhookSerializer(many=True)}),
        tags=EndpointView.tags,
    )
    def get(self, request: Request) -> Response:
        """List the organisation's endpoints, newest first: all of them, ten at most."""
        QueryParameters.read(request.query_params)
        return Response({"results": WebhookSerializer(endpoints_of(self.organisation), many=True).data})

    @extend_schema(
        operation_id="add_webhook",
        request=WebhookBody,
        responses={201: WebhookSecretSerializer},
        tags=EndpointView.tags,
    )
    def post(self, request: Request) -> Response:
        """Add an endpoint. It is told what happens from now on; its secret is in this answer alone."""
        QueryParameters.read(request.query_params)
        wanted = WebhookBody.read(request.data)
        with _endpoint_problems():
            shown = add_endpoint(
                organisation=self.organisation,
                url=wanted["url"],
                types=wanted["types"],
                created_by=self.api_key.created_by,
                now=datetime.now(UTC),
            )
        body = WebhookSecretSerializer(shown.endpoint, context={"secret": shown.secret}).data
        return Response(body, status=HTTPStatus.CREATED)


class EndpointDetail(EndpointView):
    """One endpoint."""

    scopes = {"GET": Scope.READ, "DELETE": Scope.TRADE}

    @extend_schema(operation_id="get_webhook", parameters=[_ID], responses=WebhookSerializer, tags=EndpointView.tags)
    def get(self, request: Request, endpoint_id: UUID) -> Response:
        """Return one endpoint."""
        QueryParameters.read(request.query_params)
        return Response(WebhookSerializer(self.endpoint(endpoint_id)).data)

    @extend_schema(operation_id="remove_webhook", parameters=[_ID], responses={204: None}, tags=EndpointView.tags)
    def delete(self, request: Request, endpoint_id: UUID) -> Response:
        """Remove an endpoint and its log. Nothing more is sent to it."""
        QueryParameters.read(request.query_params)
        with _endpoint_problems():
            remove_endpoint(
                organisation=self.organisation,
                endpoint_id=endpoint_id,
                now=datetime.now(UTC),
                removed_by=self.api_key.created_by,
            )
        return Response(status=HTTPStatus.NO_CONTENT)


class EndpointSecret(EndpointView):
    """The secret of one endpoint."""

    scopes = {"POST": Scope.TRADE}

    @extend_schema(
        operation_id="replace_webhook_secret",
        parameters=[_ID],
        request=None,
        responses=WebhookSecretSerializer,
        tags=EndpointView.tags,
        description=f"Replace the secret. For {OVERLAP // timedelta(hours=1)} hours the one before signs too.",
    )
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        """Replace the secret and return the new one."""
        QueryParameters.read(request.query_params)
        with _endpoint_problems():
            shown = replace_secret(
                organisation=self.organisation,
                endpoint_id=endpoint_id,
                now=datetime.now(UTC),
                replaced_by=self.api_key.created_by,
            )
        return Response(WebhookSecretSerializer(shown.endpoint, context={"secret": shown.secret}).data)


class EndpointTest(EndpointView):
    """Trying one endpoint."""

    scopes = {"POST": Scope.TRADE}

    @extend_schema(
        operation_id="test_webhook",
        parameters=[_ID],
        request=None,
        responses={202: inline_serializer("WebhookTest", {"id": serializers.UUIDField()})},
        tags=EndpointView.tags,
    )
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        """Send a message of the type `webhook.test`, once, within seconds. Its deliveries show what became of it."""
        QueryParameters.read(request.query_params)
        with _endpoint_problems():
            event = send_test(organisation=self.organisation, endpoint_id=endpoint_id, now=datetime.now(UTC))
        return Response({"id": event.pk}, status=HTTPStatus.ACCEPTED)


class DeliveryList(EndpointView):
    """The messages of one endpoint."""

    scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="list_webhook_deliveries",
        parameters=[_ID, PageParameters],
        responses=inline_serializer(
            "WebhookDeliveryPage",
            {
                "next": serializers.URLField(allow_null=True),
                "previous": serializers.URLField(allow_null=True),
                "results": WebhookDeliverySerializer(many=True),
            },
        ),
        tags=EndpointView.tags,
    )
    def get(self, request: Request, endpoint_id: UUID) -> Response:
        """List what was sent or waits to be, newest first, with what was answered. Kept for 30 days."""
        wanted = PageParameters.read(request.query_params)
        page = paginate(
            deliveries_of(self.endpoint(endpoint_id)),
            request=request,
            order=_NEWEST_FIRST,
            limit=wanted["limit"],
            cursor=wanted.get("cursor"),
        )
        return Response(body_of(page, WebhookDeliverySerializer(page.rows, many=True).data))


class DeliveryAgain(EndpointView):
    """Sending one message again."""

    scopes = {"POST": Scope.TRADE}

    @extend_schema(
        operation_id="send_webhook_again",
        parameters=[_ID, _EVENT_ID],
        request=None,
        responses={202: WebhookDeliverySerializer},
        tags=EndpointView.tags,
    )
    def post(self, request: Request, endpoint_id: UUID, event_id: UUID) -> Response:
        """Send a message again, under the same `webhook-id`, within seconds and with all its tries."""
        QueryParameters.read(request.query_params)
        with _endpoint_problems():
            send_again(
                organisation=self.organisation, endpoint_id=endpoint_id, event_id=event_id, now=datetime.now(UTC)
            )
        again = deliveries_of(self.endpoint(endpoint_id)).get(event_id=event_id)
        return Response(WebhookDeliverySerializer(again).data, status=HTTPStatus.ACCEPTED)


@contextmanager
def _endpoint_problems() -> Iterator[None]:
    """Turn a refusal into a problem document."""
    try:
        yield
    except (WebhookEndpoint.DoesNotExist, WebhookDelivery.DoesNotExist):
        raise Http404 from None
    except UrlRefused as refusal:
        raise ValidationError({"url": [ErrorDetail(str(URL_REFUSALS[refusal.code]), code=refusal.code)]}) from refusal
    except (EndpointRefused, EndpointOff, StillWaiting) as refusal:
        code, words = _CONFLICTS[type(refusal)]
        detail = str(words) % {"most": MOST_ENDPOINTS}
        raise Problem(status=HTTPStatus.CONFLICT, code=code, detail=detail) from refusal


_CONFLICTS: dict[type[Exception], tuple[str, Promise]] = {
    UrlTaken: ("url_taken", gettext_lazy("There is an endpoint of this address.")),
    TooManyEndpoints: ("too_many_webhooks", gettext_lazy("An organisation can have %(most)d endpoints.")),
    NoMember: ("not_a_member", gettext_lazy("Who made this key does not belong to the organisation any more.")),
    EndpointOff: ("endpoint_off", gettext_lazy("This endpoint is switched off. An owner switches it on again.")),
    StillWaiting: ("still_waiting", gettext_lazy("The test event before has not been sent yet.")),
}
