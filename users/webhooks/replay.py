"""Sending on demand: a message again, under the id it had, or one that only tries the endpoint."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from users.models import Organisation, WebhookDelivery, WebhookEvent
from users.webhooks.endpoints import lock_endpoint

_State = WebhookDelivery.State


class EndpointOff(Exception):
    """An endpoint that is switched off is sent nothing: it is switched on first."""


class StillWaiting(Exception):
    """A test event of this endpoint has not been sent yet: another one would tell nothing more."""


def send_again(*, organisation: Organisation, endpoint_id: UUID, event_id: UUID, now: datetime) -> None:
    """Make a message due now, whatever became of it, with all its tries ahead. A second run changes nothing.

    Raises WebhookEndpoint.DoesNotExist, WebhookDelivery.DoesNotExist, EndpointOff.
    """
    with transaction.atomic():
        endpoint = lock_endpoint(organisation, endpoint_id)
        delivery = WebhookDelivery.objects.get(endpoint=endpoint, event_id=event_id)
        if endpoint.switched_off_at is not None:
            raise EndpointOff
        WebhookDelivery.objects.filter(pk=delivery.pk).update(
            state=_State.WAITING, tries=0, next_attempt_at=now, delivered_at=None
        )


def send_test(*, organisation: Organisation, endpoint_id: UUID, now: datetime) -> WebhookEvent:
    """Write a test event down for one endpoint and return it. It is tried once.

    Raises WebhookEndpoint.DoesNotExist, EndpointOff, StillWaiting.
    """
    with transaction.atomic():
        endpoint = lock_endpoint(organisation, endpoint_id)
        if endpoint.switched_off_at is not None:
            raise EndpointOff
        waiting = endpoint.deliveries.filter(state=_State.WAITING, event__type=WebhookEvent.TEST)
        if waiting.exists():
            raise StillWaiting
        event = WebhookEvent.objects.create(
            organisation=organisation,
            type=WebhookEvent.TEST,
            subject_id=str(endpoint_id),
            key=now.isoformat(),
            data={"endpoint": str(endpoint_id)},
            occurred_at=now,
        )
        WebhookDelivery.objects.create(event=event, endpoint=endpoint, next_attempt_at=now)
    return event
