"""What an operator says of a GPU name that no rule can read: written down, never guessed into a price."""

from datetime import datetime

from django.db import transaction

from catalog.models import UnmappedName
from marketplace.providers.review import ReasonMissing
from users.audit import record
from users.models import User


class NameUnknown(LookupError):
    """The queue has no such name any more."""


def rule_on_name(
    *, name_pk: int, ruling: str, operator: User, reason: str, now: datetime, ip_address: str | None = None
) -> None:
    """Write a ruling down. The name itself stays out of prices until the alias file has it; a second run adds a line.

    Raises ReasonMissing, NameUnknown.
    """
    if not reason.strip():
        raise ReasonMissing
    with transaction.atomic():
        name = UnmappedName.objects.filter(pk=name_pk).first()
        if name is None:
            raise NameUnknown
        record(
            at=now,
            action="price.name_ruled",
            actor=operator,
            subject_type="gpu_name",
            subject_id=name.pk,
            reason=reason.strip(),
            after={"name": name.gpu_name, "kind": ruling},
            ip_address=ip_address,
        )
