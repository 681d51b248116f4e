"""Endpoints of an organisation: added, given another secret, switched off and on, removed.

Lock order: the organisation, the endpoint, its deliveries. Whoever writes an event holds a lock on the endpoints that
are told, so a removed one gets nothing that nobody could find.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.translation import get_language
from uuid6 import uuid7

from users.audit import record
from users.mails import mail_after_commit
from users.models import EventType, Organisation, User, WebhookDelivery, WebhookEndpoint
from users.queries import lock_organisation, owner_addresses_of
from users.webhooks.addresses import read_url
from users.webhooks.signing import encrypted, new_secret

MOST_ENDPOINTS = 10
OVERLAP = timedelta(hours=24)


class EndpointRefused(Exception):
    """This endpoint cannot be added."""


class UrlTaken(EndpointRefused):
    """The organisation has an endpoint of this address. Its secret was shown when it was added."""


class TooManyEndpoints(EndpointRefused):
    """The organisation has `MOST_ENDPOINTS`."""


class NoMember(EndpointRefused):
    """Who asks does not belong to the organisation any more."""


@dataclass(frozen=True, kw_only=True)
class ShownSecret:
    """An endpoint with its new secret, which is shown this once."""

    endpoint: WebhookEndpoint
    secret: str = field(repr=False)


def add_endpoint(
    *,
    organisation: Organisation,
    url: str,
    types: Collection[str],
    created_by: User | None,
    now: datetime,
    ip_address: str | None = None,
) -> ShownSecret:
    """Add an endpoint that asks for `types`, one or more, and return it with its secret.

    1. Check the address. Where its name leads to is looked at with each message.
    2. Lock the organisation: two at once cannot pass the limit together.
    3. Check: a member who asks, not the same address again, room.
    4. Write the endpoint and the audit record.

    A second run raises UrlTaken. Raises EndpointRefused, or UrlRefused (`addresses`).
    """
    read_url(url, is_loopback_allowed=settings.WEBHOOKS_ALLOW_LOOPBACK)
    wanted = [kind.value for kind in EventType if kind in types]
    secret = new_secret()
    with transaction.atomic():
        locked = lock_organisation(organisation.pk)
        _check_room(locked, url=url, created_by=created_by)
        endpoint = WebhookEndpoint.objects.create(
            id=uuid7(),
            organisation=locked,
            url=url,
            types=wanted,
            encrypted_secret=encrypted(secret),
            created_by=created_by,
            created_at=now,
        )
        _write_down(endpoint, "webhook.added", now, created_by, ip_address, after={"url": url, "types": wanted})
    return ShownSecret(endpoint=endpoint, secret=secret)


def _check_room(organisation: Organisation, *, url: str, created_by: User | None) -> None:
    if created_by is not None and not organisation.memberships.filter(user=created_by).exists():
        raise NoMember
    if organisation.webhook_endpoints.filter(url=url).exists():
        raise UrlTaken
    if organisation.webhook_endpoints.count() >= MOST_ENDPOINTS:
        raise TooManyEndpoints


def replace_secret(
    *,
    organisation: Organisation,
    endpoint_id: UUID,
    now: datetime,
    replaced_by: User | None = None,
    ip_address: str | None = None,
) -> ShownSecret:
    """Give an endpoint another secret and return it. For `OVERLAP` the one before signs too, so that no message is lost.

    Each run makes another secret; of those before only the latest goes on. Raises WebhookEndpoint.DoesNotExist.
    """
    secret = new_secret()
    with transaction.atomic():
        endpoint = lock_endpoint(organisation, endpoint_id)
        WebhookEndpoint.objects.filter(pk=endpoint_id).update(
            encrypted_secret=encrypted(secret),
            encrypted_previous_secret=endpoint.encrypted_secret,
            previous_secret_until=now + OVERLAP,
        )
        endpoint.refresh_from_db()
        _write_down(endpoint, "webhook.secret_replaced", now, replaced_by, ip_address, after={"url": endpoint.url})
    return ShownSecret(endpoint=endpoint, secret=secret)


def remove_endpoint(
    *,
    organisation: Organisation,
    endpoint_id: UUID,
    now: datetime,
    removed_by: User | None = None,
    ip_address: str | None = None,
) -> None:
    """Remove an endpoint with its log; nothing more is sent to it, but for what is on its way this second.

    A second run raises WebhookEndpoint.DoesNotExist.
    """
    with transaction.atomic():
        endpoint = lock_endpoint(organisation, endpoint_id)
        before = {"url": endpoint.url, "types": endpoint.types}
        _write_down(endpoint, "webhook.removed", now, removed_by, ip_address, before=before)
        endpoint.delete()


def switch_on(
    *,
    organisation: Organisation,
    endpoint_id: UUID,
    now: datetime,
    switched_by: User | None = None,
    ip_address: str | None = None,
) -> bool:
    """Tell an endpoint again from now on; return whether it was off. What happened meanwhile was not written down.

    Raises WebhookEndpoint.DoesNotExist.
    """
    with transaction.atomic():
        endpoint = lock_endpoint(organisation, endpoint_id)
        is_off = WebhookEndpoint.objects.filter(pk=endpoint_id, switched_off_at__isnull=False)
        if not is_off.update(switched_off_at=None, off_reason="", failing_since=None):
            return False
        _write_down(endpoint, "webhook.switched_on", now, switched_by, ip_address, after={"url": endpoint.url})
    return True


def switch_off(endpoint: WebhookEndpoint, *, reason: WebhookEndpoint.OffReason, now: datetime) -> bool:
    """Tell an endpoint nothing more, give up what waits for it, and mail the owners; return whether it was on.

    In the transaction of who has locked it. A mail that cannot be sent changes nothing. A second run does nothing.
    """
    is_on = WebhookEndpoint.objects.filter(pk=endpoint.pk, switched_off_at=None)
    if not is_on.update(switched_off_at=now, off_reason=reason):
        return False
    WebhookDelivery.objects.filter(endpoint=endpoint, state=WebhookDelivery.State.WAITING).update(
        state=WebhookDelivery.State.GIVEN_UP
    )
    _write_down(endpoint, "webhook.switched_off", now, None, None, after={"url": endpoint.url})
    mail_after_commit(
        template="users/mail/webhook_off.txt",
        context={"organisation": endpoint.organisation, "url": endpoint.url, "reason": reason.value},
        to=owner_addresses_of(endpoint.organisation),
        language=get_language() or settings.LANGUAGE_CODE,
        is_optional=True,
    )
    return True


def lock_endpoint(organisation: Organisation, endpoint_id: UUID) -> WebhookEndpoint:
    """Lock an endpoint of the organisation until the commit. Raises WebhookEndpoint.DoesNotExist."""
    own = WebhookEndpoint.objects.select_for_update(of=("self",)).select_related("organisation")
    return own.get(pk=endpoint_id, organisation=organisation)


def _write_down(
    endpoint: WebhookEndpoint,
    action: str,
    now: datetime,
    actor: User | None,
    ip_address: str | None,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    record(
        at=now,
        action=action,
        actor=actor,
        organisation=endpoint.organisation,
        subject_type="webhook_endpoint",
        subject_id=endpoint.pk,
        before=before,
        after=after,
        ip_address=ip_address,
    )
