"""Storing what the gateway says, before anything is made of it."""

import json
from datetime import datetime
from typing import Any

from django.db import DataError, connection, transaction

from billing.gateway.objects import Event

APPLIED_TYPES = frozenset(
    {
        "checkout.session.completed",
        "checkout.session.expired",
        "checkout.session.async_payment_succeeded",
        "checkout.session.async_payment_failed",
        "payment_intent.succeeded",
        "payment_intent.payment_failed",
        "payment_intent.processing",
        "payment_intent.canceled",
        "charge.refunded",
        "charge.refund.updated",
        "refund.created",
        "refund.updated",
        "refund.failed",
        "charge.dispute.created",
        "charge.dispute.updated",
        "charge.dispute.closed",
        "charge.dispute.funds_withdrawn",
        "charge.dispute.funds_reinstated",
    }
)


class UnstorableEvent(ValueError):
    """Signed, but nothing a row can hold: a NUL character, half a character, an id beyond any length."""


def take_event(event: Event, *, now: datetime) -> bool:
    """Store an event and return whether it is new. One insert, no lock: of two at once one is stored.

    A second run with the same event changes nothing. An event of a type that we do nothing with is kept, and counts as
    applied. Raises UnstorableEvent.
    """
    applied_at = None if event.type in APPLIED_TYPES else now
    values: list[Any] = [
        event.id,
        event.type,
        event.object_id,
        json.dumps(event.payload),
        event.is_live,
        now,
        applied_at,
        now,
    ]
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_INSERT, values)
            return bool(cursor.rowcount)
    except DataError as problem:
        raise UnstorableEvent(str(problem)) from problem


_INSERT = """
    INSERT INTO billing_gatewayevent (event_id, type, object_id, payload, is_live, received_at, applied_at, attempts,
                                      next_attempt_at, last_error)
    VALUES (%s::text, %s::text, %s::text, %s::jsonb, %s::boolean, %s::timestamptz, %s::timestamptz, 0,
            %s::timestamptz, '')
    ON CONFLICT (event_id) DO NOTHING
"""
