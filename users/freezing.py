"""Freezing an organisation: it can place no order until an operator lifts it. Its money and its rows stay as they are."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils.translation import get_language

from users.audit import record
from users.mails import mail_after_commit
from users.models import Organisation, User
from users.queries import owner_addresses_of


def freeze(*, organisation_id: int, reason: str, now: datetime, operator: User | None = None) -> bool:
    """Freeze an organisation, write it down, mail its owners; return whether it was open until now.

    Without an `operator` the site itself decided. One conditional update decides. May run inside the caller's transaction: the mail waits for its commit, and a
    mail that cannot be sent changes nothing. A second run finds it frozen and does nothing.
    """
    with transaction.atomic():
        if not Organisation.objects.filter(pk=organisation_id, frozen_at=None).update(frozen_at=now):
            return False
        organisation = Organisation.objects.get(pk=organisation_id)
        _write_down(organisation, action="organisation.frozen", operator=operator, reason=reason, now=now)
    return True


def unfreeze(*, organisation_id: int, operator: User, reason: str, now: datetime) -> bool:
    """Lift the freeze in an operator's name, write it down, mail the owners; return whether it was frozen until now.

    A second run finds it open and does nothing.
    """
    with transaction.atomic():
        if not Organisation.objects.filter(pk=organisation_id, frozen_at__isnull=False).update(frozen_at=None):
            return False
        organisation = Organisation.objects.get(pk=organisation_id)
        _write_down(organisation, action="organisation.unfrozen", operator=operator, reason=reason, now=now)
    return True


def _write_down(organisation: Organisation, *, action: str, operator: User | None, reason: str, now: datetime) -> None:
    is_frozen = organisation.frozen_at is not None
    record(
        at=now,
        action=action,
        actor=operator,
        organisation=organisation,
        subject_type="organisation",
        subject_id=organisation.pk,
        reason=reason,
        before={"frozen": not is_frozen},
        after={"frozen": is_frozen},
    )
    mail_after_commit(
        template="users/mail/frozen.txt",
        context={
            "organisation": organisation,
            "reason": reason,
            "is_frozen": is_frozen,
            "operator_email": settings.OPERATOR_EMAIL,
        },
        to=owner_addresses_of(organisation),
        language=get_language() or settings.LANGUAGE_CODE,
        is_optional=True,
    )
