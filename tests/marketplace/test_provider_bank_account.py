"""The bank account for payouts changes after the approval by an owner's proven hand, and leaves a record and a mail."""

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail

from marketplace.models import ProviderApplication
from marketplace.providers.application import NotAProvider, value_of
from marketplace.providers.bank_account import NotChangeable, change_bank_account
from marketplace.providers.fields import FieldRefused
from marketplace.providers.review import decide_on_provider
from marketplace.providers.states import Step
from tests.factories import make_member, make_operator
from tests.marketplace.companies import IBAN, applied, approved, make_company
from tests.marketplace.conftest import NOW, make_renter
from tests.marketplace.on_pages import words
from tests.users.signing_in import PASSWORD, signed_in
from users.models import AuditRecord, Organisation, Role, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_limits")]
PAGE = "/provider/bank-account/"
OTHER = "DE89370400440532013000"
HOLDER = "Noord Compute B.V."


@pytest.fixture
def own_limits(settings) -> None:
    """Nobody signs in too often here."""
    settings.ACCOUNT_RATE_LIMITS = False


@pytest.fixture
def company(db) -> Organisation:
    company = make_company()
    approved(company, operator=make_operator())
    return company


@pytest.fixture
def owner(company) -> User:
    return make_member(organisation=company, role=Role.OWNER)


def changed(company, owner, **values) -> bool:
    whole = {"organisation_id": company.pk, "account_holder": HOLDER, "iban": OTHER, "by": owner, "now": NOW}
    return change_bank_account(**{**whole, **values})


def sure_of(user: User):
    client = signed_in(user)
    client.post("/account/confirm/", {"password": PASSWORD})
    return client


def test_another_account_counts_at_once_is_recorded_by_its_hint_and_mailed(
    company, owner, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        assert changed(company, owner)
    stored = ProviderApplication.objects.get()
    assert (value_of(stored, "iban"), stored.iban_hint) == (OTHER, "DE..3000")
    [line] = AuditRecord.objects.filter(action="provider.bank_account_changed")
    assert (line.actor, line.before["iban_hint"], line.after["iban_hint"]) == (owner, "NL..4300", "DE..3000")
    assert OTHER not in str(line.after)
    [message] = [message for message in mail.outbox if "bank account" in str(message.subject)]
    assert message.to == [owner.email]
    assert "DE..3000" in message.body
    assert OTHER not in message.body


def test_the_same_account_again_changes_nothing(company, owner):
    assert not changed(company, owner, iban="nl91 abna 0417 1643 00")
    assert not AuditRecord.objects.filter(action="provider.bank_account_changed").exists()


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"iban": "NL00"}, "iban", "invalid"),
        ({"iban": " "}, "iban", "required"),
        ({"account_holder": ""}, "account_holder", "required"),
        ({"account_holder": "x" * 121}, "account_holder", "too_long"),
        ({"account_holder": "a\x00b"}, "account_holder", "invalid"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_changes(company, owner, values, field, code):
    with pytest.raises(FieldRefused) as refused:
        changed(company, owner, **values)
    assert (refused.value.field, refused.value.code) == (field, code)
    assert ProviderApplication.objects.get().iban_hint == "NL..4300"


def test_only_an_approved_or_suspended_provider_changes_it_here(owner, company):
    waiting = make_company(name="Waiting B.V.")
    applied(waiting)
    new = make_company(name="New B.V.")
    for organisation in (waiting, new):
        with pytest.raises(NotChangeable):
            changed(organisation, owner)
    with pytest.raises(NotAProvider):
        changed(make_renter(), owner)
    operator = User.objects.get(is_staff=True)
    decided = {"provider_id": company.pk, "operator": operator, "reason": "as told", "now": NOW}
    decide_on_provider(step=Step.SUSPENDED, **decided)
    assert changed(company, owner)
    decide_on_provider(step=Step.CLOSED, **decided)
    with pytest.raises(NotChangeable):
        changed(company, owner, iban=IBAN)


# --- The page ----------------------------------------------------------------------------------------------


def test_an_owner_changes_it_after_giving_the_password_again(owner):
    client = signed_in(owner)
    session = client.session
    session["account_authentication_methods"] = [
        {**record, "at": record["at"] - 3600} for record in session["account_authentication_methods"]
    ]
    session.save()
    given = {"account_holder": HOLDER, "iban": OTHER}
    assert client.post(PAGE, given).url.startswith("/account/confirm/")
    assert ProviderApplication.objects.get().iban_hint == "NL..4300"
    client.post("/account/confirm/", {"password": PASSWORD})
    page = client.post(PAGE, given, follow=True)
    assert "The bank account was changed; every owner gets a mail." in words(page)
    assert "Payouts will go to DE..3000, held by Noord Compute B.V." in words(page)
    assert OTHER not in page.content.decode()
    assert "It is this one already." in words(client.post(PAGE, given, follow=True))


def test_the_page_says_that_it_counts_at_once_and_is_recorded(owner):
    text = words(signed_in(owner).get(PAGE))
    assert "It counts at once." in text
    assert "recorded with who, when and from where" in text
    application = signed_in(owner).get("/provider/application/").content.decode()
    assert f'href="{PAGE}"' in application


def test_without_a_second_step_it_stays_as_it_is(owner, settings):
    settings.SECOND_FACTOR_REQUIRED = True
    client = sure_of(owner)
    page = client.post(PAGE, {"account_holder": HOLDER, "iban": OTHER}, follow=True)
    assert page.redirect_chain == [("/account/", 302)]
    assert "This takes a second step besides your password." in words(page)
    assert ProviderApplication.objects.get().iban_hint == "NL..4300"
    Authenticator.objects.create(user=owner, type="totp", data={})
    client.post(PAGE, {"account_holder": HOLDER, "iban": OTHER})
    assert ProviderApplication.objects.get().iban_hint == "DE..3000"


def test_a_wrong_field_is_told_at_the_field_and_on_top(owner):
    page = sure_of(owner).post(PAGE, {"account_holder": HOLDER, "iban": "NL00"})
    assert 'id="id_iban_error">This is no IBAN' in page.content.decode()
    assert "One thing to correct" in words(page)
    assert "Nothing was changed." in words(page)


@pytest.mark.parametrize("role", [Role.TRADER, Role.BILLING, Role.VIEWER])
def test_others_of_the_company_look_and_do_not_change(company, role):
    client = sure_of(make_member(organisation=company, role=role))
    assert "An owner of the organisation changes it." in words(client.get(PAGE))
    assert client.post(PAGE, {"account_holder": HOLDER, "iban": OTHER}).status_code == 403


def test_before_the_approval_the_page_leads_to_the_application():
    waiting = make_company(name="Waiting B.V.")
    applied(waiting)
    client = sure_of(make_member(organisation=waiting, role=Role.OWNER))
    assert "Until the approval it is a part of the application." in words(client.get(PAGE))
    page = client.post(PAGE, {"account_holder": HOLDER, "iban": OTHER}, follow=True)
    assert "cannot be changed here as the provider stands. Nothing was changed." in words(page)


def test_a_renter_has_no_such_page():
    client = sure_of(make_member(organisation=make_renter(), role=Role.OWNER))
    assert client.post(PAGE, {"account_holder": HOLDER, "iban": OTHER}).status_code == 404
