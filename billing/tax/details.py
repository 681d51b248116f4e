"""What an organisation tells about its tax, and what a person of ours rules about it."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import transaction

from billing.models import TaxDetails
from billing.tax.check_vat_ids import AskedTooSoon, check_now
from billing.tax.decide import AreaRuling
from billing.tax.record import lock_details, tax_details_changed
from billing.tax.special_areas import special_area
from billing.tax.territories import vat_country
from billing.tax.vat_ids import read_stored
from billing.tax.vies import VatRegister
from users.audit import record
from users.models import Organisation, User
from users.queries import lock_organisation


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the form asks. `vat_id` is "" or as `VatId.text` writes it, of that country."""

    country: str
    postcode: str
    register_number: str
    vat_id: str


class NoAreaToRule(Exception):
    """The organisation is no business in a special area, so there is nothing to rule."""


def tell_and_check(
    *,
    organisation_id: int,
    told: Told,
    told_by: User,
    register: VatRegister,
    now: datetime,
    ip_address: str | None = None,
) -> bool:
    """Store what was told and ask about a new number at once; return whether anything changed.

    Two transactions with the question between them. Who dies in between has stored what was told: the tasks ask and
    decide later.
    """
    needs_check = store_details(
        organisation_id=organisation_id, told=told, told_by=told_by, now=now, ip_address=ip_address
    )
    if needs_check:
        with suppress(AskedTooSoon):  # the task asks within a minute
            check_now(organisation_id=organisation_id, register=register, now=now)
    return needs_check is not None


def store_details(
    *, organisation_id: int, told: Told, told_by: User, now: datetime, ip_address: str | None = None
) -> bool | None:
    """Replace an organisation's tax details; return whether its number must be asked about, None where all is the same.

    Steps: lock the tax details, then the organisation; do nothing where all is the same; update both, forget the
    answer about another number, record, decide from the next full hour on. With a new number nothing is decided yet:
    its answer decides. A second run does nothing.
    """
    with transaction.atomic():
        details = lock_details(organisation_id)
        organisation = lock_organisation(organisation_id)
        before = _told_before(organisation, details)
        changed = {name for name, value in asdict(told).items() if value != getattr(before, name)}
        if not changed:
            return None
        _update(details, told, changed, now=now)
        record(
            at=now,
            action="tax.details_changed",
            actor=told_by,
            organisation=organisation,
            before={name: getattr(before, name) for name in sorted(changed)},
            after={name: getattr(told, name) for name in sorted(changed)},
            ip_address=ip_address,
        )
        needs_check = "vat_id" in changed and bool(told.vat_id) and read_stored(told.vat_id).is_in_union
        if not needs_check:
            tax_details_changed(organisation_id=organisation_id, now=now)
        return needs_check


def rule_on_area(*, organisation_id: int, ruling: AreaRuling, operator: User, reason: str, now: datetime) -> None:
    """Say how a business in a special area is taxed: as the mainland, or as outside the Union.

    Steps: lock the tax details, check, update, record with the reason, decide. A second run records it again. A new
    country or postcode undoes the ruling. Raises NoAreaToRule, and ValueError without a reason.
    """
    if not reason.strip():
        raise ValueError("A ruling needs a reason.")
    with transaction.atomic():
        organisation = Organisation.objects.get(pk=organisation_id)
        details = lock_details(organisation_id)
        area = special_area(vat_country(organisation.country), organisation.postcode)
        if not area or organisation.type != Organisation.Type.BUSINESS:
            raise NoAreaToRule("It is no business in a special area.")
        TaxDetails.objects.filter(pk=details.pk).update(area_ruling=ruling.value)
        record(
            at=now,
            action="tax.area_ruled",
            actor=operator,
            organisation=organisation,
            reason=reason,
            before={"area_ruling": details.area_ruling},
            after={"area_ruling": ruling.value},
        )
        tax_details_changed(organisation_id=organisation_id, now=now)


def _told_before(organisation: Organisation, details: TaxDetails) -> Told:
    return Told(
        country=organisation.country,
        postcode=organisation.postcode,
        register_number=organisation.register_number,
        vat_id=details.vat_id,
    )


def _update(details: TaxDetails, told: Told, changed: set[str], *, now: datetime) -> None:
    Organisation.objects.filter(pk=details.organisation_id).update(
        country=told.country, postcode=told.postcode, register_number=told.register_number
    )
    row = TaxDetails.objects.filter(pk=details.pk)
    if "vat_id" in changed:
        is_asked = bool(told.vat_id) and read_stored(told.vat_id).is_in_union
        row.update(vat_id=told.vat_id, last_answer=None, unanswered_checks=0, next_check_at=now if is_asked else None)
    if changed & {"country", "postcode"}:
        row.update(area_ruling=AreaRuling.NONE.value)
