"""The people of an organisation: change a role, remove somebody. There is always an owner left.

Lock order: the organisation, then its members and keys. Who may do what is looked up with every request, so a change
counts from the next one on.
"""

from datetime import datetime

from django.db import transaction

from users.api_keys import revoke_key
from users.audit import record
from users.models import ApiKey, Membership, Organisation, Role, User
from users.queries import lock_organisation, other_owners_of


class UnknownMember(Exception):
    """The organisation has no such member."""


class LastOwner(Exception):
    """Nobody would be left who may do everything."""


def change_role(
    *,
    organisation: Organisation,
    membership_id: int,
    role: Role,
    changed_by: User,
    now: datetime,
    ip_address: str | None = None,
) -> None:
    """Give a member another role.

    Steps: lock the organisation, so that two owners cannot demote each other at once; refuse to demote the last
    owner; update; record. A second run changes nothing. Raises UnknownMember or LastOwner.
    """
    with transaction.atomic():
        lock_organisation(organisation.pk)
        membership = _member(organisation, membership_id)
        if membership.role == role:
            return
        _keep_an_owner(membership)
        Membership.objects.filter(pk=membership.pk, role=membership.role).update(role=role)
        record(
            at=now,
            action="member.role_changed",
            actor=changed_by,
            organisation=organisation,
            subject_type="person",
            subject_id=membership.user_id,
            before={"email": membership.user.email, "role": membership.role},
            after={"email": membership.user.email, "role": role},
            ip_address=ip_address,
        )


def remove(
    *,
    organisation: Organisation,
    membership_id: int,
    removed_by: User,
    now: datetime,
    ip_address: str | None = None,
) -> int:
    """End a membership, a member's own included, and revoke the keys that this person made; return how many keys.

    A key's secret was shown to whoever made it, so it would go on opening what the person may no longer see.
    Steps: lock the organisation; refuse the last owner; delete; revoke; record. A second run raises UnknownMember.
    Raises LastOwner too.
    """
    with transaction.atomic():
        lock_organisation(organisation.pk)
        membership = _member(organisation, membership_id)
        _keep_an_owner(membership)
        revoked = _revoke_keys_of(membership, revoked_by=removed_by, now=now)
        membership.delete()
        record(
            at=now,
            action="member.left" if removed_by == membership.user else "member.removed",
            actor=removed_by,
            organisation=organisation,
            subject_type="person",
            subject_id=membership.user_id,
            before={"email": membership.user.email, "role": membership.role},
            after={"revoked_keys": revoked},
            ip_address=ip_address,
        )
    return revoked


def _revoke_keys_of(membership: Membership, *, revoked_by: User, now: datetime) -> int:
    made = ApiKey.objects.filter(organisation_id=membership.organisation_id, created_by=membership.user)
    ids = list(made.filter(revoked_at=None).order_by("pk").values_list("pk", flat=True))
    return sum(
        revoke_key(organisation=membership.organisation, key_id=key_id, now=now, revoked_by=revoked_by)
        for key_id in ids
    )


def _member(organisation: Organisation, membership_id: int) -> Membership:
    membership = organisation.memberships.select_related("user", "organisation").filter(pk=membership_id).first()
    if membership is None:
        raise UnknownMember
    return membership


def _keep_an_owner(membership: Membership) -> None:
    if membership.role == Role.OWNER and not other_owners_of(membership).exists():
        raise LastOwner
