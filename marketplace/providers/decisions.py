"""What else an operator decides with a reason: whether a server may sell, a listing pauses, money may leave again."""

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.translation import get_language

from billing.books import lift_stop
from marketplace.book import lock_book
from marketplace.listings import ListingUnknown, pause
from marketplace.models import Listing, Server
from marketplace.providers.fleet import ServerUnknown
from marketplace.providers.review import ReasonMissing
from marketplace.servers import unverify_server, verify_server
from users.audit import record
from users.mails import mail_after_commit
from users.models import User
from users.queries import owner_addresses_of


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


def pause_listing(
    *, listing_id: UUID, operator: User, reason: str, now: datetime, ip_address: str | None = None
) -> bool:
    """Take a listing off sale in an operator's name; return whether this call did. What is sold goes on.

    Steps: pause under the book's lock, write it down, mail the owners the reason. The provider may resume it; taking
    the server's verification back keeps it off sale. A second run changes nothing. Raises ReasonMissing, ListingUnknown.
    """
    if not reason.strip():
        raise ReasonMissing
    with transaction.atomic():
        listing = Listing.objects.select_related("server__provider__organisation").filter(pk=listing_id).first()
        if listing is None or listing.state == Listing.State.ENDED:
            raise ListingUnknown
        lock_book(listing.gpu_id, now=now)
        listing.refresh_from_db(fields=["state"])
        if listing.state == Listing.State.PAUSED:
            return False
        server = listing.server
        pause(provider_id=server.provider_id, listing_id=listing_id, now=now)
        record(
            at=now,
            action="listing.paused_by_operator",
            actor=operator,
            organisation=server.provider.organisation,
            subject_type="listing",
            subject_id=listing_id,
            reason=reason.strip(),
            before={"state": Listing.State.ACTIVE.value},
            after={"state": Listing.State.PAUSED.value, "name": server.name},
            ip_address=ip_address,
        )
        _mail_pause(server, reason.strip())
    return True


def _mail_pause(server: Server, reason: str) -> None:
    mail_after_commit(
        template="marketplace/mail/listing_paused.txt",
        context={"server": server, "reason": reason, "operator_email": settings.OPERATOR_EMAIL},
        to=owner_addresses_of(server.provider.organisation),
        language=get_language() or settings.LANGUAGE_CODE,
        is_optional=True,
    )
