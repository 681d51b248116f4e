"""Asking a person to join an organisation: invite, accept, withdraw.

The link in the mail carries a token; the row keeps its SHA-256 alone, so a copy of the database opens nothing. A link
works once and for seven days. Lock order: the organisation, then its invitations and members.
"""

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import get_language

from users.audit import record
from users.mails import mail_after_commit
from users.models import Invitation, Membership, Organisation, Role, User
from users.queries import invited_since, is_member, lock_organisation, membership_held_by, unanswered_invitations_of

VALID_FOR = timedelta(days=7)
MOST_PER_DAY = 50
_TOKEN_BYTES = 32


class InvitationRefused(Exception):
    """An invitation that cannot be sent, read or accepted; the kinds below say why."""


class AlreadyMember(InvitationRefused):
    """Somebody with this address belongs to the organisation."""


class AlreadyInvited(InvitationRefused):
    """An invitation to this address is open."""


class TooManyInvitations(InvitationRefused):
    """The organisation has sent as many as it may within 24 hours."""


class UnknownInvitation(InvitationRefused):
    """No invitation has this token."""


class InvitationWithdrawn(InvitationRefused):
    """Whoever invited took it back."""


class InvitationUsed(InvitationRefused):
    """It was accepted before."""


class InvitationExpired(InvitationRefused):
    """Its seven days are over."""


class OtherAddress(InvitationRefused):
    """It was sent to an address that is not a confirmed one of this person."""


class HasOrganisation(InvitationRefused):
    """This person belongs to an organisation already; everybody acts for one."""


def invite(
    *,
    organisation: Organisation,
    email: str,
    role: Role,
    invited_by: User,
    now: datetime,
    link: Callable[[str], str],
    ip_address: str | None = None,
) -> Invitation:
    """Ask a person to join in a role. `link` turns the token into the address that the mail names.

    Steps: lock the organisation; close an expired invitation to this address; refuse a member, an open invitation,
    too many in a day; write the row and the record; mail after the commit. A second run raises AlreadyInvited.
    """
    email = email.strip().lower()
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with transaction.atomic():
        lock_organisation(organisation.pk)
        _close_expired(organisation, email, now=now)
        _refuse_needless(organisation, email, now=now)
        invitation = Invitation.objects.create(
            organisation=organisation,
            email=email,
            role=role,
            token_sha256=_sha256(token),
            invited_by=invited_by,
            invited_at=now,
            expires_at=now + VALID_FOR,
        )
        _write_down(invitation, action="invitation.sent", actor=invited_by, now=now, ip_address=ip_address)
        mail_after_commit(
            template="users/mail/invitation.txt",
            context={"invitation": invitation, "link": link(token)},
            to=[email],
            language=get_language() or settings.LANGUAGE_CODE,
        )
    return invitation


def _close_expired(organisation: Organisation, email: str, *, now: datetime) -> None:
    expired = unanswered_invitations_of(organisation).filter(email__iexact=email, expires_at__lte=now)
    expired.order_by().update(withdrawn_at=now)


def _refuse_needless(organisation: Organisation, email: str, *, now: datetime) -> None:
    if is_member(organisation, email=email):
        raise AlreadyMember(email)
    if unanswered_invitations_of(organisation).filter(email__iexact=email).exists():
        raise AlreadyInvited(email)
    if invited_since(organisation, now - timedelta(days=1)) >= MOST_PER_DAY:
        raise TooManyInvitations


def invitation_of(token: str, now: datetime) -> Invitation:
    """Return the open invitation of a token, with its organisation.

    Raises UnknownInvitation, InvitationWithdrawn, InvitationUsed or InvitationExpired.
    """
    invitation = _stored_invitation(token)
    if invitation.withdrawn_at is not None:
        raise InvitationWithdrawn
    if invitation.accepted_at is not None:
        raise InvitationUsed
    if invitation.expires_at <= now:
        raise InvitationExpired
    return invitation


def accept(*, token: str, user: User, now: datetime, ip_address: str | None = None) -> Membership:
    """Make a person a member in the role they were invited to, and return the membership.

    Steps: lock the organisation; read the invitation again; refuse another address than a confirmed one of theirs;
    take the invitation by a conditional update; create the membership, whose unique person is the judge of "one
    organisation each"; record. A second run by the same person returns the membership it made.

    Raises UnknownInvitation, InvitationWithdrawn, InvitationUsed, InvitationExpired, OtherAddress or HasOrganisation.
    """
    invitation = _stored_invitation(token)
    with transaction.atomic():
        lock_organisation(invitation.organisation_id)
        joined_before = _membership_made_by(token, user=user)
        if joined_before is not None:
            return joined_before
        invitation = invitation_of(token, now)
        obstacle = obstacle_for(user, invitation=invitation)
        if obstacle is not None:
            raise obstacle
        membership = _join(invitation, user=user, now=now)
        Invitation.objects.filter(pk=invitation.pk, accepted_at=None, withdrawn_at=None).update(accepted_at=now)
        _write_down(invitation, action="invitation.accepted", actor=user, now=now, ip_address=ip_address)
    return membership


def _membership_made_by(token: str, *, user: User) -> Membership | None:
    invitation, membership = _stored_invitation(token), membership_held_by(user)
    if membership is None or invitation.accepted_at is None or not _is_address_of(user, invitation.email):
        return None
    return membership if membership.organisation_id == invitation.organisation_id else None


def obstacle_for(user: User, *, invitation: Invitation) -> OtherAddress | HasOrganisation | None:
    """Return what keeps a person from accepting an open invitation, None where nothing does."""
    if not _is_address_of(user, invitation.email):
        return OtherAddress(invitation.email)
    membership = membership_held_by(user)
    return HasOrganisation(membership.organisation.name) if membership else None


def _is_address_of(user: User, email: str) -> bool:
    return bool(EmailAddress.objects.filter(user=user, email__iexact=email, verified=True).exists())


def _join(invitation: Invitation, *, user: User, now: datetime) -> Membership:
    try:
        with transaction.atomic():
            return Membership.objects.create(
                user=user, organisation=invitation.organisation, role=invitation.role, joined_at=now
            )
    except IntegrityError:  # they joined or opened another one this very moment
        raise HasOrganisation from None


def withdraw(
    *,
    organisation: Organisation,
    invitation_id: int,
    withdrawn_by: User,
    now: datetime,
    ip_address: str | None = None,
) -> None:
    """Take an invitation back; its link stops working.

    One conditional update decides. A second run does nothing. Raises UnknownInvitation where the organisation has no
    such invitation, InvitationUsed when it was accepted before.
    """
    with transaction.atomic():
        lock_organisation(organisation.pk)
        invitation = organisation.invitations.filter(pk=invitation_id).first()
        if invitation is None:
            raise UnknownInvitation
        if invitation.accepted_at is not None:
            raise InvitationUsed
        if organisation.invitations.filter(pk=invitation_id, withdrawn_at=None).update(withdrawn_at=now):
            _write_down(invitation, action="invitation.withdrawn", actor=withdrawn_by, now=now, ip_address=ip_address)


def _stored_invitation(token: str) -> Invitation:
    invitation = Invitation.objects.select_related("organisation").filter(token_sha256=_sha256(token)).first()
    if invitation is None:
        raise UnknownInvitation
    return invitation


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _write_down(invitation: Invitation, *, action: str, actor: User, now: datetime, ip_address: str | None) -> None:
    record(
        at=now,
        action=action,
        actor=actor,
        organisation=invitation.organisation,
        subject_type="invitation",
        subject_id=invitation.pk,
        after={"email": invitation.email, "role": invitation.role},
        ip_address=ip_address,
    )
