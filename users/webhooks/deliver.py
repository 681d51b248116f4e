"""Send what is due: claim it, send it outside any transaction, write down what became of it.

A claim moves `next_attempt_at` on by `CLAIMED_FOR`, in one conditional update, so two senders never take the same row
at once. A sender that dies leaves nothing behind: the row is due again when its claim is over, and the receiver, which
may then get the message twice, knows it by its `webhook-id`.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber

from users.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from users.webhooks.addresses import UrlRefused, read_url
from users.webhooks.endpoints import switch_off
from users.webhooks.retries import is_dead, wait_after
from users.webhooks.sending import Answer, Fault, post
from users.webhooks.signing import SecretLost, body_of, headers_of, secrets_of

AT_ONCE = 32
CLAIMED_FOR = timedelta(minutes=2)
_PER_ENDPOINT = 8
_HTTP_GONE = 410
_State = WebhookDelivery.State
_log = logging.getLogger(__name__)


def deliver_due(*, now: datetime) -> int:
    """Send up to `AT_ONCE` messages side by side and return how many; 0 means that none is due.

    1. Claim. 2. Send: threads that never touch the database. 3. Per message, in a transaction: what became of it.
    """
    claimed = claim_due(now=now)
    if not claimed:
        return 0
    with ThreadPoolExecutor(max_workers=len(claimed)) as senders:
        for delivery, answer in zip(claimed, senders.map(partial(_send, now=now), claimed), strict=True):
            note_answer(delivery, answer, now=now)
    return len(claimed)


def claim_due(*, now: datetime) -> list[WebhookDelivery]:
    """Take what is due, each row for `CLAIMED_FOR`: some of every endpoint, one alone of an endpoint that is failing."""
    place = Window(RowNumber(), partition_by=F("endpoint_id"), order_by=["next_attempt_at", "pk"])
    due = WebhookDelivery.objects.filter(
        state=_State.WAITING, next_attempt_at__lte=now, endpoint__switched_off_at=None
    ).annotate(place=place)
    fair = due.filter(Q(place=1) | Q(place__lte=_PER_ENDPOINT, endpoint__failing_since=None))
    chosen = fair.select_related("event", "endpoint").order_by("place", "next_attempt_at", "pk")[:AT_ONCE]
    return [delivery for delivery in chosen if _claim(delivery, now=now)]


def _claim(delivery: WebhookDelivery, *, now: datetime) -> bool:
    until = now + CLAIMED_FOR
    as_read = WebhookDelivery.objects.filter(
        pk=delivery.pk, state=_State.WAITING, next_attempt_at=delivery.next_attempt_at
    )
    if not as_read.update(next_attempt_at=until, tries=F("tries") + 1):
        return False
    delivery.next_attempt_at, delivery.tries = until, delivery.tries + 1
    return True


def _send(delivery: WebhookDelivery, *, now: datetime) -> Answer:
    """Send one message. A fault of ours in one message is its own: it must not keep the others."""
    endpoint, event = delivery.endpoint, delivery.event
    try:
        target = read_url(endpoint.url, is_loopback_allowed=settings.WEBHOOKS_ALLOW_LOOPBACK)
        body = body_of(event)
        headers = headers_of(event, body=body, signed_with=secrets_of(endpoint, now=now), now=now)
        return post(target, headers=headers, body=body.encode())
    except UrlRefused:
        return Answer(took_ms=0, fault=Fault.ADDRESS_REFUSED)
    except SecretLost:
        return Answer(took_ms=0, fault=Fault.SECRET_LOST)
    except Exception:
        _log.exception("Webhook message %s could not be sent", event.pk)
        return Answer(took_ms=0, fault=Fault.OURS)


def note_answer(delivery: WebhookDelivery, answer: Answer, *, now: datetime) -> None:
    """Write an answer down and decide what is next. Lock order: the endpoint, the delivery.

    An endpoint that was removed meanwhile took its log with it. An answer that comes after its claim was over counts if
    the message was taken; if not, whoever claimed it next decides.
    """
    with transaction.atomic():
        locked = WebhookEndpoint.objects.select_for_update(no_key=True, of=("self",)).select_related("organisation")
        endpoint = locked.filter(pk=delivery.endpoint_id).first()
        if endpoint is None:
            return
        WebhookAttempt.objects.create(
            delivery_id=delivery.pk,
            at=now,
            status=answer.status,
            took_ms=answer.took_ms,
            fault=answer.fault,
            answer=answer.text,
        )
        (_taken if answer.is_taken else _missed)(delivery, endpoint, answer, now=now)


def _taken(delivery: WebhookDelivery, endpoint: WebhookEndpoint, answer: Answer, *, now: datetime) -> None:
    WebhookDelivery.objects.filter(pk=delivery.pk, state=_State.WAITING).update(
        state=_State.DELIVERED, delivered_at=now
    )
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(delivered_at=now, failing_since=None)


def _missed(delivery: WebhookDelivery, endpoint: WebhookEndpoint, answer: Answer, *, now: datetime) -> None:
    claim = WebhookDelivery.objects.filter(
        pk=delivery.pk, state=_State.WAITING, next_attempt_at=delivery.next_attempt_at
    )
    WebhookEndpoint.objects.filter(pk=endpoint.pk, failing_since=None).update(failing_since=now)
    if answer.status == _HTTP_GONE:
        switch_off(endpoint, reason=WebhookEndpoint.OffReason.GONE, now=now)
        return
    is_test = delivery.event.type == WebhookEvent.TEST
    wait = None if is_test else wait_after(delivery.tries)
    if wait is not None:
        claim.update(next_attempt_at=now + wait)
        return
    claim.update(state=_State.GIVEN_UP)
    if not is_test and is_dead(failing_since=endpoint.failing_since or now, now=now):
        switch_off(endpoint, reason=WebhookEndpoint.OffReason.FAILING, now=now)
