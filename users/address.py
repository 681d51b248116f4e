"""Where an organisation is, as its invoices say."""

from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import transaction

from users.audit import record
from users.models import Organisation, User
from users.queries import lock_organisation


@dataclass(frozen=True, kw_only=True)
class Address:
    """An address as typed; blank where nobody told."""

    address: str
    postcode: str
    city: str
    register_number: str


def change_address(
    *, organisation_id: int, address: Address, changed_by: User, now: datetime, ip_address: str | None = None
) -> None:
    """Replace an organisation's address.

    Steps: lock the organisation; do nothing where all is the same; update; record. A second run does nothing.
    """
    with transaction.atomic():
        organisation = lock_organisation(organisation_id)
        after = asdict(address)
        before = {name: getattr(organisation, name) for name in after}
        changed = {name for name in after if after[name] != before[name]}
        if not changed:
            return
        Organisation.objects.filter(pk=organisation_id).update(**after)
        record(
            at=now,
            action="organisation.address_changed",
            actor=changed_by,
            organisation=organisation,
            before={name: before[name] for name in sorted(changed)},
            after={name: after[name] for name in sorted(changed)},
            ip_address=ip_address,
        )
