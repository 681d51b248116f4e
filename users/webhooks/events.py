"""Telling: an event is written down in the transaction that makes it true, and sent once that has been committed."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from uuid6 import uuid7

from users.models import EventType


def emit(
    *,
    organisation_id: int,
    type: EventType,  # noqa: A002  # the word of the Standard Webhooks
    data: Mapping[str, Any],
    subject_id: str | int | UUID,
    now: datetime,
    key: str = "",
) -> bool:
    """Write an event down for the endpoints that asked for its type; return whether any will be told. One statement.

    A second event of the same type, subject and key is none. `data` is plain JSON: money and ids as strings.
    """
    event = event_row(organisation_id=organisation_id, type=type, data=data, subject_id=subject_id, key=key)
    with connection.cursor() as cursor:
        cursor.execute("SELECT users_emit(%s::jsonb, %s::timestamptz)", [json.dumps(event), now])
        return bool(cursor.fetchone()[0])


def event_row(
    *,
    organisation_id: int,
    type: EventType,  # noqa: A002
    data: Mapping[str, Any],
    subject_id: str | int | UUID,
    key: str = "",
) -> dict[str, Any]:
    """Return an event as the database's `users_emit` takes it, for statements that call it themselves."""
    return {
        "id": str(uuid7()),
        "organisation_id": organisation_id,
        "type": type.value,
        "subject_id": str(subject_id),
        "key": key,
        "data": dict(data),
    }
