"""One-time tokens with which a server's agent enrols: issued to its provider, good for an hour, known by a hash."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from marketplace.models import EnrolToken, Provider, Server
from marketplace.providers.fleet import ServerUnknown, approved_provider
from users.audit import record
from users.models import User

VALID_FOR = timedelta(hours=1)
_PREFIX = "enrol_"


class TokenRefused(Exception):
    """This token enrols nothing: made up, used, replaced, or too old."""


@dataclass(frozen=True, kw_only=True)
class IssuedToken:
    """A new token, and the only copy of it that will ever be."""

    token: str = field(repr=False)
    expires_at: datetime


def issue_enrol_token(
    *, organisation_id: int, server_id: UUID, by: User | None, now: datetime, ip_address: str | None = None
) -> IssuedToken:
    """Issue a token for a server's agent; the one before is good no longer.

    Steps: lock the provider, look its server up, end the open token, write the new one's hash and the record. A second
    run issues another. Raises NotApproved, ServerUnknown.
    """
    token = _PREFIX + secrets.token_urlsafe(32)
    expires_at = now + VALID_FOR
    with transaction.atomic():
        provider = approved_provider(organisation_id)
        server = Server.objects.filter(pk=server_id, provider=provider, withdrawn_at=None).first()
        if server is None:
            raise ServerUnknown
        EnrolToken.objects.filter(server=server, used_at=None, replaced_at=None).update(replaced_at=now)
        EnrolToken.objects.create(
            server=server, token_sha256=_sha256(token), issued_by=by, issued_at=now, expires_at=expires_at
        )
        record(
            at=now,
            action="server.enrol_token_issued",
            actor=by,
            organisation=provider.organisation,
            subject_type="server",
            subject_id=server.pk,
            after={"name": server.name, "expires_at": expires_at.isoformat()},
            ip_address=ip_address,
        )
    return IssuedToken(token=token, expires_at=expires_at)


def use_enrol_token(*, token: str, now: datetime) -> Server:
    """Spend a token and return the server that enrols with it. One conditional update decides. Raises TokenRefused."""
    with transaction.atomic():
        spent = EnrolToken.objects.filter(
            token_sha256=_sha256(token),
            used_at=None,
            replaced_at=None,
            expires_at__gt=now,
            server__withdrawn_at=None,
            server__provider__state=Provider.State.APPROVED,
        ).update(used_at=now)
        if not spent:
            raise TokenRefused
        return EnrolToken.objects.select_related("server").get(token_sha256=_sha256(token)).server


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
