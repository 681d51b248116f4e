"""Requests that may be sent again: one runs, the others get its answer.

What makes two requests one is the organisation and its `Idempotency-Key`; what makes them differ is the SHA-256 of
method, path and body. `once` holds a lock of the database's session, not of a transaction: what runs inside makes its
own transactions and may call the network between them. The lock dies with the connection, so a process that is killed
frees it at once, and no timer has to guess how long a slow one is still alive.

A row is written before anything runs and keeps the answer once there is one. Killed in between, the row has none; the
next try runs again under the same `object_id`, which what it makes should bear: then it finds what the first try made.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from users.models import IdempotencyKey, Organisation

KEPT_FOR = timedelta(hours=24)
WAIT_SECONDS = 30  # for another request of the same key; longer than any call to the gateway is given


class OtherRequest(Exception):
    """The key was used within 24 hours for another request."""


class StillRunning(Exception):
    """A request of the same key has not ended within `WAIT_SECONDS`."""


@dataclass(frozen=True, kw_only=True)
class KeptAnswer:
    """An answer as it was sent: its body to the byte."""

    status: int
    body: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to run a request. `answer` is what it was answered before, None where it has to run."""

    row_id: int
    object_id: UUID
    answer: KeptAnswer | None


@contextmanager
def once(
    *, organisation: Organisation, key: str, request_sha256: str, now: datetime, wait_seconds: float = WAIT_SECONDS
) -> Iterator[Claim]:
    """Be alone with this key of the organisation for as long as the block runs; others of the same key wait.

    1. Take the lock (raises StillRunning after `wait_seconds`).
    2. Find the row, or write it; one older than 24 hours counts as none. Raises OtherRequest if it is another's.
    3. Let the caller run, and then `keep` the answer or `forget` the request.

    Must not be called inside a transaction: a row that is not committed protects nothing.
    """
    with _alone(f"{organisation.pk}:{key}", wait_seconds=wait_seconds):
        IdempotencyKey.objects.filter(organisation=organisation, key=key, created_at__lte=now - KEPT_FOR).delete()
        row, _ = IdempotencyKey.objects.get_or_create(
            organisation=organisation, key=key, defaults={"request_sha256": request_sha256, "created_at": now}
        )
        if row.request_sha256 != request_sha256:
            raise OtherRequest
        yield Claim(row_id=row.pk, object_id=_object_id(row), answer=_answer_of(row))


def keep(claim: Claim, answer: KeptAnswer) -> None:
    """Answer every further request of this key so."""
    kept: dict[str, Any] = {"status": answer.status, "answer": answer.body}
    IdempotencyKey.objects.filter(pk=claim.row_id, status__isnull=True).update(**kept)


def forget(claim: Claim) -> None:
    """Free the key for any request: this one was refused and left nothing behind."""
    IdempotencyKey.objects.filter(pk=claim.row_id, status__isnull=True).delete()


def thin_idempotency_keys(*, now: datetime) -> int:
    """Delete what is older than 24 hours; return how many rows."""
    return IdempotencyKey.objects.filter(created_at__lte=now - KEPT_FOR).delete()[0]


@contextmanager
def _alone(name: str, *, wait_seconds: float) -> Iterator[None]:
    """Hold a lock of this name, which outlives transactions and dies with the connection."""
    number = int.from_bytes(hashlib.sha256(f"idempotency:{name}".encode()).digest()[:8], signed=True)
    _lock(number, wait_seconds=wait_seconds)
    try:
        yield
    finally:
        _unlock(number)


def _lock(number: int, *, wait_seconds: float) -> None:
    try:
        # The transaction bounds the wait; the lock itself stays until it is given back.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s::text, true)", [f"{wait_seconds * 1000:.0f}"])
            cursor.execute("SELECT pg_advisory_lock(%s::bigint)", [number])
    except OperationalError as problem:
        if isinstance(problem.__cause__, LockNotAvailable):
            raise StillRunning from problem
        raise


def _unlock(number: int) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s::bigint)", [number])
    except DatabaseError:  # a connection that cannot be asked goes, and its locks with it
        connection.close()


def _answer_of(row: IdempotencyKey) -> KeptAnswer | None:
    return None if row.status is None else KeptAnswer(status=row.status, body=str(row.answer))


def _object_id(row: IdempotencyKey) -> UUID:
    """Return a time-ordered UUID (version 7) that is the same at every try: the row's time, then a hash for chance."""
    chance = hashlib.sha256(f"{row.organisation_id}:{row.key}:{row.pk}".encode()).digest()
    milliseconds = int(row.created_at.timestamp() * 1000)
    number = int.from_bytes(milliseconds.to_bytes(6) + chance[:10])
    number = number & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62
    return UUID(int=number)
