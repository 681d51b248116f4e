"""What pages and calls read about endpoints and their messages, and how long that is kept."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Prefetch, QuerySet

from users.models import Organisation, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent

KEPT_FOR = timedelta(days=30)
_PER_STATEMENT = 5000


def endpoints_of(organisation: Organisation) -> QuerySet[WebhookEndpoint]:
    """Return the endpoints, newest first, with who added them."""
    return organisation.webhook_endpoints.select_related("created_by").order_by("-pk")


def deliveries_of(endpoint: WebhookEndpoint) -> QuerySet[WebhookDelivery]:
    """Return an endpoint's messages with their tries, newest first. Two queries."""
    tries = Prefetch("attempts", queryset=WebhookAttempt.objects.order_by("-pk"))
    return endpoint.deliveries.select_related("event").prefetch_related(tries).order_by("-event_id")


def thin_log(*, now: datetime) -> int:
    """Delete events older than `KEPT_FOR` with whatever became of them, but what waits to be sent; return how many."""
    deleted = 0
    while old := list(_older_than(now - KEPT_FOR)[:_PER_STATEMENT]):
        deleted += len(old)
        WebhookEvent.objects.filter(pk__in=old).delete()
    return deleted


def _older_than(at: datetime) -> QuerySet[WebhookEvent, UUID]:
    over = WebhookEvent.objects.filter(occurred_at__lt=at).exclude(deliveries__state=WebhookDelivery.State.WAITING)
    return over.order_by("occurred_at").values_list("pk", flat=True)
