"""What pages and flows read about an organisation's people and its history."""

from datetime import datetime

from django.db.models import BooleanField, Case, QuerySet, Value, When

from users.models import AuditRecord, Invitation, Membership, Organisation, Role, User


def lock_organisation(organisation_id: int) -> Organisation:
    """Lock the row that stands for an organisation's people; whoever changes them waits here. In a transaction only.

    Foreign keys to the organisation do not wait for it.
    """
    return Organisation.objects.select_for_update(no_key=True).get(pk=organisation_id)


def members_of(organisation: Organisation) -> QuerySet[Membership]:
    """Return the members with their people, owners first, then by the time they joined."""
    is_owner = Case(When(role=Role.OWNER, then=Value(True)), default=Value(False), output_field=BooleanField())
    return organisation.memberships.select_related("user").order_by(is_owner.desc(), "joined_at", "pk")


def other_owners_of(membership: Membership) -> QuerySet[Membership]:
    """Return the owners beside this member who can still sign in."""
    owners = Membership.objects.filter(
        organisation_id=membership.organisation_id, role=Role.OWNER, user__is_active=True
    )
    return owners.exclude(pk=membership.pk)


def owner_addresses_of(organisation: Organisation) -> list[str]:
    """Return the addresses of the owners who can still sign in."""
    owners = organisation.memberships.filter(role=Role.OWNER, user__is_active=True)
    return list(owners.order_by("pk").values_list("user__email", flat=True))


def unanswered_invitations_of(organisation: Organisation) -> QuerySet[Invitation]:
    """Return invitations neither accepted nor withdrawn, newest first, the expired ones among them."""
    unanswered = organisation.invitations.filter(accepted_at=None, withdrawn_at=None)
    return unanswered.select_related("invited_by").order_by("-invited_at", "-pk")


def invited_since(organisation: Organisation, since: datetime) -> int:
    """Return how many invitations were sent since, whatever became of them."""
    return organisation.invitations.filter(invited_at__gt=since).count()


def history_of(organisation: Organisation) -> QuerySet[AuditRecord]:
    """Return what was decided in an organisation, newest first, with who decided it."""
    records = AuditRecord.objects.filter(organisation=organisation)
    return records.select_related("actor").order_by("-at", "-pk")


def is_member(organisation: Organisation, *, email: str) -> bool:
    """Tell whether somebody with this address belongs to the organisation."""
    return organisation.memberships.filter(user__email__iexact=email).exists()


def membership_held_by(user: User) -> Membership | None:
    """Return a person's one membership with its organisation, None without."""
    return Membership.objects.select_related("organisation").filter(user=user).first()
