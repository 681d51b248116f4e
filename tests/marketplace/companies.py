"""A company that applies to sell, and what it says of itself."""

from datetime import datetime

from marketplace.models import Provider
from marketplace.provider_terms import SELF_BILLING_VERSION, TERMS_VERSION
from marketplace.providers.application import apply
from marketplace.providers.missing import SELF_BILLING, TERMS
from marketplace.providers.review import decide_on_provider
from marketplace.providers.states import Step
from tests.factories import make_organisation
from tests.marketplace.conftest import NOW
from users.models import Organisation, User

IBAN = "NL91ABNA0417164300"
STATED = {
    "company_name": "Noord Compute B.V.",
    "register_number": "KvK 12345678",
    "vat_id": "NL004495445B01",
    "address": "Keizersgracht 1",
    "postcode": "1015 CJ",
    "city": "Amsterdam",
    "contact_name": "Noor de Vries",
    "contact_email": "noor@noord.example",
    "contact_phone": "+31 20 123 4567",
    "account_holder": "Noord Compute B.V.",
    "iban": IBAN,
}
AGREES = {"accept_terms": TERMS_VERSION, "accept_self_billing": SELF_BILLING_VERSION}


def make_company(*, name: str = "Noord Compute B.V.", **values) -> Organisation:
    """Return an organisation that wants to sell and has said nothing yet."""
    return make_organisation(name=name, kind="provider", **values)


def applied(organisation: Organisation, *, by: User | None = None, now: datetime = NOW, **changes: str) -> Provider:
    """Send a whole application for review."""
    apply(
        organisation_id=organisation.pk,
        changes={**STATED, **changes},
        agrees_to=[TERMS, SELF_BILLING],
        is_submitted=True,
        by=by,
        now=now,
    )
    return Provider.objects.get(pk=organisation.pk)


def approved(organisation: Organisation, *, operator: User, now: datetime = NOW) -> Provider:
    """Send a whole application for review and approve it."""
    applied(organisation, now=now)
    return decide_on_provider(provider_id=organisation.pk, step=Step.APPROVED, operator=operator, reason="", now=now)
