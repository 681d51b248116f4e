"""The sample organisations: providers of which a visitor may sign in as the first, and renters who trade a little.

All are businesses with an owner; only the first provider's owner has a password. The renters' money comes the way all
money comes, by a payment at the test gateway.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from allauth.account.models import EmailAddress
from django.db import transaction

from billing.sample_wallets import pay_sample_top_up
from billing.tax.record import decide_for
from marketplace.models import Provider
from marketplace.providers.application import apply, locked_provider
from marketplace.providers.missing import SELF_BILLING, TERMS
from marketplace.providers.states import Step
from marketplace.providers.steps import take_step
from marketplace.sample_market.plan import ENDS_EARLIER, HISTORY, RENTERS
from marketplace.sample_market.rows import SampleProvider, sample_providers
from users.api_keys import issue_key
from users.models import Membership, Organisation, Scope, User
from users.sign_up import open_organisation

PROVIDER_EMAIL = "provider@demo.example"
CURRENCY = "USD"
FUNDS = Decimal("25000.00")
_STORY = HISTORY + max(ENDS_EARLIER.values())  # from the first listing of the first book to the opening
_RENTERS = ("Tulp Vision B.V. (sample)", "Meervaart Rendering B.V. (sample)", "Dijkzicht Genomics B.V. (sample)")
_RENTER_EMAILS = tuple(f"sample-renter-{number}@demo.example" for number in range(1, RENTERS + 1))


@dataclass(frozen=True, kw_only=True)
class Login:
    """How the sample provider signs in and calls the API."""

    email: str
    password: str = field(repr=False)
    api_key: str = field(repr=False)


def open_sample_people(*, now: datetime) -> None:
    """Store the sample providers and renters that are missing, each whole or not at all."""
    for row in sample_providers():
        _open_provider(row, now=now)
    for email, name in zip(_RENTER_EMAILS, _RENTERS, strict=True):
        _open_renter(email, name, now=now)


def open_sample_login(*, password: str, now: datetime) -> Login:
    """Give the first provider's owner this password and a new key; return both. All or nothing.

    A second run sets the password and issues another key: the first one's were lost.
    """
    with transaction.atomic():
        membership = _open_provider(sample_providers()[0], now=now)
        user = membership.user
        user.set_password(password)
        user.save(update_fields=["password"])
        issued = issue_key(
            organisation=membership.organisation,
            name="Demo",
            scopes=[Scope.READ, Scope.PROVIDER],
            created_by=user,
            expires_at=None,
            now=now,
        )
    return Login(email=user.email, password=password, api_key=issued.secret)


def fund_sample_renters(*, now: datetime) -> None:
    """Pay the sample renters' money in, once. Raises GatewayError, SamplePaymentFailed."""
    for membership in sample_renters():
        pay_sample_top_up(membership=membership, currency=CURRENCY, amount=FUNDS, now=now)


def sample_renters() -> Sequence[Membership]:
    """Return the sample renters' owners in the order that plans count them. One query."""
    found = Membership.objects.filter(user__email__in=_RENTER_EMAILS).select_related("organisation", "user")
    by_email = {membership.user.email: membership for membership in found}
    return [by_email[email] for email in _RENTER_EMAILS if email in by_email]


def sample_provider_of() -> dict[str, Provider]:
    """Return the sample providers by their slug. One query."""
    found = Provider.objects.filter(is_sample=True).select_related("organisation")
    by_name = {provider.organisation.name: provider for provider in found}
    return {row.slug: by_name[row.name] for row in sample_providers() if row.name in by_name}


def _open_provider(row: SampleProvider, *, now: datetime) -> Membership:
    is_first = row == sample_providers()[0]
    email = PROVIDER_EMAIL if is_first else f"{row.slug}@demo.example"
    opened = now - _STORY
    with transaction.atomic():
        membership = _open(email, name=row.name, kind=Organisation.Kind.PROVIDER, country=row.country, now=now)
        if not Provider.objects.filter(pk=membership.organisation_id).exists():
            _apply_and_approve(row, membership, at=opened)
    return membership


def _apply_and_approve(row: SampleProvider, membership: Membership, *, at: datetime) -> None:
    """Take a sample provider the way of a real one, at that time; nobody is mailed about a company that is made up."""
    apply(
        organisation_id=membership.organisation_id,
        changes=_stated(row, email=membership.user.email),
        agrees_to=[TERMS, SELF_BILLING],
        is_submitted=True,
        by=membership.user,
        now=at,
    )
    provider = locked_provider(membership.organisation_id, now=at)
    take_step(provider=provider, step=Step.APPROVED, by=None, now=at)
    Provider.objects.filter(pk=provider.pk).update(is_sample=True)


def _stated(row: SampleProvider, *, email: str) -> dict[str, str]:
    return {
        "company_name": row.name,
        "register_number": f"sample {row.slug}",
        "vat_id": row.vat_id,
        "address": "Sample Street 1",
        "postcode": "0000",
        "city": row.city,
        "contact_name": "Sample Contact",
        "contact_email": email,
        "contact_phone": "+00 000 000000",
        "account_holder": row.name,
        "iban": row.iban,
    }


def _open_renter(email: str, name: str, *, now: datetime) -> None:
    if Membership.objects.filter(user__email=email).exists():
        return
    with transaction.atomic():
        membership = _open(email, name=name, kind=Organisation.Kind.RENTER, country="NL", now=now)
        decide_for(organisation=membership.organisation, now=now - _STORY)  # they trade in the days before


def _open(email: str, *, name: str, kind: Organisation.Kind, country: str, now: datetime) -> Membership:
    found = Membership.objects.select_related("organisation", "user").filter(user__email=email).first()
    if found is not None:
        return found
    user = User.objects.filter(email=email).first() or User.objects.create_user(email)
    EmailAddress.objects.get_or_create(user=user, email=email, defaults={"verified": True, "primary": True})
    return open_organisation(user=user, name=name, kind=kind, type=Organisation.Type.BUSINESS, country=country, now=now)
