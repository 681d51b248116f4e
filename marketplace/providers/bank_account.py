"""The bank account that payouts go to, changed after the approval: it counts at once, and everybody concerned is told."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils.translation import get_language

from marketplace.models import Provider, ProviderApplication
from marketplace.providers.application import PURPOSE, application_of, locked_provider, value_of
from marketplace.providers.fields import FieldRefused, checked, hint_of
from users.audit import record
from users.encryption import cipher_for
from users.mails import mail_after_commit
from users.models import User
from users.queries import owner_addresses_of

OPEN_IN = (Provider.State.APPROVED, Provider.State.SUSPENDED)


class NotChangeable(Exception):
    """A draft is changed as a whole, what waits for review is taken back first, a closed provider is paid nothing new."""


def change_bank_account(
    *,
    organisation_id: int,
    account_holder: str,
    iban: str,
    by: User,
    now: datetime,
    ip_address: str | None = None,
) -> bool:
    """Store another bank account of an approved or suspended provider; return whether it is another one.

    Steps: lock the provider, check both fields, write them, record the accounts' hints (never the accounts), mail
    every owner. Lock order: organisation, provider. A second run changes nothing. Raises NotAProvider, NotChangeable,
    FieldRefused (`account_holder` or `iban`; `required` where one is blank).
    """
    with transaction.atomic():
        provider = locked_provider(organisation_id, now=now)
        application = application_of(provider)
        if provider.state not in OPEN_IN or application is None:
            raise NotChangeable
        country = provider.organisation.country
        holder = _given("account_holder", account_holder, country=country)
        number = _given("iban", iban, country=country)
        if (holder, number) == (application.account_holder, value_of(application, "iban")):
            return False
        _store(application, holder, number, by=by, now=now, ip_address=ip_address)
        _mail(provider, holder, hint_of(number))
    return True


def _given(name: str, text: str, *, country: str) -> str:
    found = checked(name, text, country=country)
    if not found:
        raise FieldRefused(name, "required", "This is needed.")
    return found


def _store(
    application: ProviderApplication, holder: str, number: str, *, by: User, now: datetime, ip_address: str | None
) -> None:
    before = {"account_holder": application.account_holder, "iban_hint": application.iban_hint}
    after = {"account_holder": holder, "iban_hint": hint_of(number)}
    encrypted = cipher_for(PURPOSE).encrypt(number.encode()).decode()
    ProviderApplication.objects.filter(pk=application.pk).update(**after, iban_encrypted=encrypted, changed_at=now)
    record(
        at=now,
        action="provider.bank_account_changed",
        actor=by,
        organisation=application.provider.organisation,
        subject_type="provider",
        subject_id=application.provider_id,
        before=before,
        after=after,
        ip_address=ip_address,
    )


def _mail(provider: Provider, holder: str, hint: str) -> None:
    mail_after_commit(
        template="marketplace/mail/bank_account.txt",
        context={
            "organisation": provider.organisation,
            "account_holder": holder,
            "iban_hint": hint,
            "operator_email": settings.OPERATOR_EMAIL,
        },
        to=owner_addresses_of(provider.organisation),
        language=get_language() or settings.LANGUAGE_CODE,
        is_optional=True,
    )
