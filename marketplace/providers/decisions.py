"""What else an operator decides with a reason: whether a server may sell, and that new money may leave again."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from billing.books import lift_stop
from marketplace.book import lock_book
from marketplace.models import Server
from marketplace.providers.fleet import ServerUnknown
from marketplace.providers.review import ReasonMissing
from marketplace.servers import unverify_server, verify_server
from users.audit import record
from users.models import User


def decide_on_server(
    *,
    server_id: UUID,
    is_verified: bool,
    operator: User,
    reason: str,
    now: datetime,
    ip_address: str | None = None,
) -> bool:
    """Verify a server, or take that back; return whether this call changed it. Running rentals go on.

    Steps: lock its book, look at it, change it, write it down. A second run changes nothing. Raises ReasonMissing,
    ServerUnknown (also of a withdrawn one).
    """
    if not reason.strip():
        raise ReasonMissing
    with transaction.atomic():
        server = Server.objects.select_related("provider__organisation").filter(pk=server_id).first()
        if server is None or server.withdrawn_at is not None:
            raise ServerUnknown
        lock_book(server.gpu_id, now=now)
        server.refresh_from_db(fields=["verified_at"])
        if (server.verified_at is not None) == is_verified:
            return False
        (verify_server if is_verified else unverify_server)(server_id=server_id, now=now)
        record(
            at=now,
            action="server.verified" if is_verified else "server.unverified",
            actor=operator,
            organisation=server.provider.organisation,
            subject_type="server",
            subject_id=server.pk,
            reason=reason.strip(),
            before={"verified": not is_verified},
            after={"verified": is_verified, "name": server.name},
            ip_address=ip_address,
        )
    return True


def release_books(*, operator: User, reason: str, now: datetime, ip_address: str | None = None) -> None:
    """Lift the stop of the books in an operator's name. Raises ReasonMissing, NotStopped (as on a second run)."""
    if not reason.strip():
        raise ReasonMissing
    with transaction.atomic():
        stop = lift_stop(operator=operator.email, reason=reason.strip(), now=now)
        record(
            at=now,
            action="books.released",
            actor=operator,
            subject_type="books_stop",
            subject_id=stop.pk,
            reason=reason.strip(),
            after={"last_error": stop.breach},
            ip_address=ip_address,
        )
