"""The application of a company that wants to sell: saved as a draft, sent for review, taken back.

Lock order: organisation, provider.
"""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import transaction

from marketplace.models import Provider, ProviderApplication
from marketplace.provider_terms import SELF_BILLING_VERSION, TERMS_VERSION
from marketplace.providers.fields import checked, hint_of, needs_vat_id
from marketplace.providers.missing import APPLICATION, SELF_BILLING, TERMS, Stated, missing_fields
from marketplace.providers.states import Step
from marketplace.providers.steps import take_step
from users.audit import record
from users.encryption import cipher_for
from users.models import Organisation, User
from users.queries import lock_organisation

PURPOSE = "marketplace.bank_account"


class NotAProvider(Exception):
    """A renter applies with another organisation: nobody trades with themselves."""


class ApplicationLocked(Exception):
    """What was sent for review, or approved, stays as it was judged."""


class Incomplete(Exception):
    """Fields of the application are missing; `fields` names them."""

    def __init__(self, fields: Collection[str]) -> None:
        super().__init__(", ".join(fields))
        self.fields = tuple(fields)


def save_application(
    *,
    organisation_id: int,
    changes: Mapping[str, str],
    agrees_to: Collection[str] = (),
    by: User | None,
    now: datetime,
    ip_address: str | None = None,
) -> Provider:
    """Store what is given of an application; fields that are left out stay. `agrees_to`: TERMS, SELF_BILLING.

    Steps: lock; check each field; write what differs, with who agreed and when; record which fields changed (never
    the bank account itself). Once approved only the agreements can be renewed. A second run changes nothing.
    Raises NotAProvider, FieldRefused, ApplicationLocked.
    """
    with transaction.atomic():
        provider = locked_provider(organisation_id, now=now)
        application = application_of(provider) or ProviderApplication(provider=provider)
        country = provider.organisation.country
        fields = {name: checked(name, text, country=country) for name, text in changes.items()}
        changed = [name for name, text in fields.items() if text != value_of(application, name)]
        if changed and provider.state != Provider.State.DRAFT:
            raise ApplicationLocked
        agreed = _agreed(application, agrees_to)
        if changed or agreed:
            _write(application, {name: fields[name] for name in changed}, agreed, by=by, now=now)
            _write_down(provider, changed, agreed, by=by, now=now, ip_address=ip_address)
    return provider


def apply(
    *,
    organisation_id: int,
    changes: Mapping[str, str],
    agrees_to: Collection[str],
    is_submitted: bool,
    by: User | None,
    now: datetime,
    ip_address: str | None = None,
) -> None:
    """Save an application and send it for review where that is asked: all of it or nothing. Raises what the two raise."""
    with transaction.atomic():
        save_application(
            organisation_id=organisation_id,
            changes=changes,
            agrees_to=agrees_to,
            by=by,
            now=now,
            ip_address=ip_address,
        )
        if is_submitted:
            submit_application(organisation_id=organisation_id, by=by, now=now, ip_address=ip_address)


def submit_application(
    *, organisation_id: int, by: User | None, now: datetime, ip_address: str | None = None
) -> Provider:
    """Send an application for review. Raises NotAProvider, Incomplete, StepRefused (as on a second run)."""
    with transaction.atomic():
        provider = locked_provider(organisation_id, now=now)
        refuse_incomplete(provider)
        take_step(provider=provider, step=Step.SUBMITTED, by=by, now=now, ip_address=ip_address)
    return provider


def take_application_back(
    *, organisation_id: int, by: User | None, now: datetime, ip_address: str | None = None
) -> Provider:
    """Make a draft again of what waits for review. Raises NotAProvider, StepRefused (as on a second run)."""
    with transaction.atomic():
        provider = locked_provider(organisation_id, now=now)
        take_step(provider=provider, step=Step.TAKEN_BACK, by=by, now=now, ip_address=ip_address)
    return provider


def locked_provider(organisation_id: int, *, now: datetime) -> Provider:
    """Return the provider of an organisation, begun if need be, locked until the commit. Raises NotAProvider."""
    organisation = lock_organisation(organisation_id)
    if organisation.kind != Organisation.Kind.PROVIDER:
        raise NotAProvider
    Provider.objects.get_or_create(organisation=organisation, defaults={"created_at": now})
    return (
        Provider.objects.select_for_update(no_key=True, of=["self"])
        .select_related("organisation")
        .get(pk=organisation_id)
    )


def application_of(provider: Provider) -> ProviderApplication | None:
    """Return what a provider has said of itself so far."""
    return ProviderApplication.objects.filter(provider_id=provider.pk).first()


def stated_in(application: ProviderApplication | None, *, country: str) -> Stated:
    """Return what an application says, for what asks what is missing."""
    needs = needs_vat_id(country)
    if application is None:
        return Stated(needs_vat_id=needs, filled=frozenset(), terms_version="", self_billing_version="")
    filled = {name for name in APPLICATION if name != "iban" and getattr(application, name)}
    return Stated(
        needs_vat_id=needs,
        filled=frozenset(filled | ({"iban"} if application.iban_encrypted else set())),
        terms_version=application.terms_version,
        self_billing_version=application.self_billing_version,
    )


def refuse_incomplete(provider: Provider) -> None:
    """Raise Incomplete where the application misses something."""
    missing = missing_fields(stated_in(application_of(provider), country=provider.organisation.country))
    if missing:
        raise Incomplete(missing)


def value_of(application: ProviderApplication, name: str) -> str:
    """Return a field of an application; the bank account is decrypted."""
    if name != "iban":
        return str(getattr(application, name))
    stored = application.iban_encrypted
    return cipher_for(PURPOSE).decrypt(stored.encode()).decode() if stored else ""


def _agreed(application: ProviderApplication, agrees_to: Collection[str]) -> dict[str, str]:
    """Return the versions that are agreed to anew, by their column."""
    versions = {"terms_version": (TERMS, TERMS_VERSION), "self_billing_version": (SELF_BILLING, SELF_BILLING_VERSION)}
    return {
        column: version
        for column, (name, version) in versions.items()
        if name in agrees_to and getattr(application, column) != version
    }


def _write(
    application: ProviderApplication,
    fields: Mapping[str, str],
    agreed: Mapping[str, str],
    *,
    by: User | None,
    now: datetime,
) -> None:
    values: dict[str, object] = {name: text for name, text in fields.items() if name != "iban"} | {"changed_at": now}
    if "iban" in fields:
        number = fields["iban"]
        values["iban_encrypted"] = cipher_for(PURPOSE).encrypt(number.encode()).decode() if number else ""
        values["iban_hint"] = hint_of(number) if number else ""
    if agreed:
        values |= {**agreed, "agreed_by": by, "agreed_at": now}
    ProviderApplication.objects.update_or_create(provider_id=application.provider_id, defaults=values)


def _write_down(
    provider: Provider,
    changed: Collection[str],
    agreed: Mapping[str, str],
    *,
    by: User | None,
    now: datetime,
    ip_address: str | None,
) -> None:
    record(
        at=now,
        action="provider.application_changed",
        actor=by,
        organisation=provider.organisation,
        subject_type="provider",
        subject_id=provider.pk,
        after={**({"fields": sorted(changed)} if changed else {}), **agreed},
        ip_address=ip_address,
    )
