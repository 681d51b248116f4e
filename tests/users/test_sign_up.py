"""Signing up: a person, an address and an organisation, or nothing."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.db import IntegrityError, connection
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, make_member, make_organisation
from tests.users.signing_in import PASSWORD, error_at, link_in_the_last_mail, mails_to, text_of
from users import forms
from users.countries import countries
from users.invitations import invite
from users.models import AuditRecord, Membership, Organisation, Role, User
from users.sign_up import Refusal, SignUpRefused, open_organisation, refusal

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_limits")]
ADDRESS = "ana@example.com"
FORM = {
    "kind": "renter",
    "type": "business",
    "name": "Orla Labs B.V.",
    "country": "NL",
    "email": ADDRESS,
    "password1": "a rather long one",
}


def sign_up(client, **changes):
    return client.post("/account/sign-up/", {**FORM, **changes})


def nothing_was_stored() -> bool:
    return not (User.objects.exists() or Organisation.objects.exists() or EmailAddress.objects.exists())


def test_a_business_signs_up_confirms_its_address_and_is_in(client):
    answer = sign_up(client, email="Ana@Example.com")
    assert (answer.status_code, answer.url) == (302, "/account/email/sent/")
    assert mails_to(ADDRESS) == ["Confirm your address at GPU Bourse"]
    member = Membership.objects.select_related("organisation", "user").get()
    assert (member.user.email, member.role) == (ADDRESS, Role.OWNER)
    stored = member.organisation
    assert (stored.name, stored.kind, stored.type, stored.country) == ("Orla Labs B.V.", "renter", "business", "NL")
    assert AuditRecord.objects.get().action == "organisation.opened"

    link = link_in_the_last_mail()
    assert "Is this your address?" in text_of(client.get(link))
    assert not EmailAddress.objects.get().verified, "looking at the link confirms nothing"
    answer = client.post(link, follow=True)
    assert EmailAddress.objects.get().verified
    assert answer.redirect_chain[-1][0] == "/account/"
    assert ADDRESS in text_of(answer)


def test_without_a_confirmed_address_nobody_signs_in(client):
    sign_up(Client())
    answer = client.post("/account/login/", {"login": ADDRESS, "password": FORM["password1"]})
    assert answer.url == "/account/email/sent/"
    assert client.get("/account/").status_code == 302


def test_a_link_followed_in_another_browser_confirms_and_asks_to_sign_in(client):
    sign_up(Client())
    answer = client.post(link_in_the_last_mail())
    assert answer.url == "/account/login/"
    assert EmailAddress.objects.get().verified
    assert "This link does not work any more." in text_of(client.get(link_in_the_last_mail())), "a link works once"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"kind": "provider", "type": "consumer"}, "type", "Only a business can sell GPU-hours here."),
        ({"type": "consumer", "country": "GB"}, "country", "not registered for that country's tax"),
        ({"type": "consumer", "country": "NO"}, "country", "not registered for that country's tax"),
        ({"type": "consumer", "country": "CH"}, "country", "not registered for that country's tax"),
        ({"country": ""}, "country", "This field is required."),
        ({"country": "EU"}, "country", "EU is not one of the available choices"),
        ({"kind": "both"}, "kind", "both is not one of the available choices"),
        ({"type": ""}, "type", "This field is required."),
        ({"name": "  "}, "name", "This field is required."),
        ({"name": "x" * 121}, "name", "at most 120 characters"),
        ({"email": "ana"}, "email", "Enter a valid email address."),
        ({"password1": "elevenchars"}, "password1", "at least 12 characters"),
        ({"password1": "é" * 129}, "password1", "At most 128 characters."),
        ({"password1": "qwerty123456"}, "password1", "too common"),
    ],
)
def test_a_fault_is_said_at_its_field_and_on_top_and_stores_nothing(client, changes, field, words):
    answer = sign_up(client, **changes)
    assert answer.status_code == 200
    assert words in error_at(answer, field)
    assert "One thing to correct" in text_of(answer)
    assert nothing_was_stored()
    assert mail.outbox == []


def test_several_faults_are_counted_and_each_leads_to_its_field(client):
    answer = sign_up(client, name="", email="", type="nobody")
    assert "3 things to correct" in text_of(answer)
    page = answer.content.decode()
    for target in ("id_name", "id_email", "id_type_0"):
        assert f'<a href="#{target}">' in page
        assert f'id="{target}"' in page


@pytest.mark.parametrize("password", ["twelve chars", "é" * 128])
def test_a_password_of_12_to_128_characters_of_any_kind_will_do(client, password):
    assert sign_up(client, password1=password).status_code == 302


def test_consumers_wait_until_the_site_sells_to_them(client, settings):
    settings.B2C_ENABLED = False
    assert "businesses only for now" in text_of(client.get("/account/sign-up/"))
    answer = sign_up(client, type="consumer")
    assert "We sell to businesses only for now" in error_at(answer, "type")
    assert nothing_was_stored()
    assert sign_up(client).status_code == 302


@given(
    kind=st.sampled_from(Organisation.Kind.values),
    type=st.sampled_from(Organisation.Type.values),
    country=st.sampled_from([code for code, _ in countries("en")]),
    welcome=st.frozensets(st.sampled_from(["NL", "PL", "DE"])),
)
def test_a_business_may_always_and_a_consumer_only_rent_where_it_is_welcome(kind, type, country, welcome):  # noqa: A002
    reason = refusal(kind=kind, type=type, country=country, consumer_countries=welcome)
    assert (reason is None) == (type == "business" or (kind == "renter" and country in welcome))


def test_every_reason_has_words():
    assert set(forms.REFUSALS) == set(Refusal)


def test_a_provider_cannot_be_a_consumer_even_without_the_form():
    user = User.objects.create_user(email=ADDRESS)
    with pytest.raises(SignUpRefused) as refused:
        open_organisation(user=user, name="Ana", kind="provider", type="consumer", country="NL", now=NOW)
    assert refused.value.reason is Refusal.PROVIDER_NOT_A_BUSINESS
    assert not Organisation.objects.exists()


def test_a_person_opens_one_organisation(client):
    user = make_member()
    with pytest.raises(IntegrityError):
        open_organisation(user=user, name="Second", kind="renter", type="business", country="NL", now=NOW)
    assert not Organisation.objects.filter(name="Second").exists(), "nothing half-written stays"


def test_a_fault_in_the_middle_leaves_nothing(client, monkeypatch):
    def fail(**values):
        raise RuntimeError("in the middle")

    monkeypatch.setattr(forms, "open_organisation", fail)
    client.raise_request_exception = False
    assert sign_up(client).status_code == 500
    assert nothing_was_stored()


def test_an_address_with_an_account_is_answered_like_a_new_one(client):
    make_member(email=ADDRESS)
    known = sign_up(client, email=ADDRESS.upper())
    fresh = sign_up(Client(), email="new@example.com")
    assert (known.status_code, known.url) == (fresh.status_code, fresh.url)
    assert mails_to(ADDRESS) == ["You have an account at GPU Bourse already"]
    assert User.objects.filter(email=ADDRESS).count() == 1
    assert Organisation.objects.count() == 2, "the member's and the new one's"
    assert text_of(client.get(known.url)) == text_of(Client().get(fresh.url))


@pytest.mark.django_db(transaction=True)
def test_the_same_address_sent_twice_at_once_opens_one_account(monkeypatch):
    answers, both_are_checked = [], threading.Barrier(2)
    original = forms.NewPersonForm.try_save

    def wait_and_save(form, request):
        both_are_checked.wait(10)
        return original(form, request)

    def send():
        try:
            answers.append(sign_up(Client()).status_code)
        finally:
            connection.close()

    monkeypatch.setattr(forms.NewPersonForm, "try_save", wait_and_save)
    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [302, 302]
    assert (User.objects.count(), Organisation.objects.count(), EmailAddress.objects.count()) == (1, 1, 1)


def test_what_the_form_does_not_ask_is_ignored(client):
    sign_up(client, is_staff="on", is_superuser="on", role="viewer", frozen_at="2020-01-01")
    user = User.objects.get()
    assert not user.is_staff
    assert not user.is_superuser
    assert Membership.objects.get().role == Role.OWNER


@pytest.mark.parametrize(("prefix", "name"), [("", "Netherlands"), ("/nl", "Nederland"), ("/pl", "Holandia")])
def test_countries_are_named_in_the_language_of_the_page(client, prefix, name):
    assert f'<option value="NL">{name}</option>' in client.get(f"{prefix}/account/sign-up/").content.decode()


def test_the_list_holds_the_249_countries_of_iso_3166_in_the_order_of_their_names():
    for language in ("en", "nl", "pl"):
        codes = [code for code, _ in countries(language)]
        assert len(set(codes)) == 249
        assert not {"EU", "XK", "UN", "ZZ"} & set(codes)
    names = [name for _, name in countries("pl")]
    assert names.index("Łotwa") < names.index("Macedonia Północna"), "Ł stands behind L, not behind Z"


def test_too_many_attempts_are_told_to_wait(client):
    for _ in range(20):
        sign_up(client, email="")
    answer = sign_up(client)
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0
    assert "too often" in text_of(answer)
    assert nothing_was_stored()


# --- Invited people --------------------------------------------------------------------------------------------


def invited(*, now, email: str = ADDRESS, role: Role = Role.BILLING) -> str:
    """Invite somebody; return the address of the page that sign-up comes back to."""
    owner = make_member(organisation=make_organisation(name="Inviting B.V."))
    links: list[str] = []

    def link(token: str) -> str:
        links.append(f"/account/invitation/{token}/")
        return links[-1]

    invite(organisation=owner.membership.organisation, email=email, role=role, invited_by=owner, now=now, link=link)
    return links[0]


@pytest.fixture
def today():
    return datetime.now(UTC)


def test_an_invited_person_chooses_a_password_and_belongs_to_the_organisation(client, today):
    page = client.get("/account/sign-up/", {"next": (back := invited(now=today))})
    assert "Join Inviting B.V." in text_of(page)
    assert 'name="country"' not in page.content.decode()
    answer = client.post("/account/sign-up/", {"next": back, "password1": PASSWORD}, follow=True)
    assert answer.redirect_chain[-1][0] == "/account/"
    member = Membership.objects.get(user__email=ADDRESS)
    assert (member.organisation.name, member.role) == ("Inviting B.V.", Role.BILLING)
    assert EmailAddress.objects.get(email=ADDRESS).verified, "the link came by mail: the address is theirs"
    assert Organisation.objects.count() == 1


def test_an_invitation_is_for_its_address_alone(client, today):
    back = invited(now=today)
    client.post("/account/sign-up/", {"next": back, "email": "other@example.com", "password1": PASSWORD})
    assert not User.objects.filter(email="other@example.com").exists()
    assert User.objects.filter(email=ADDRESS).exists()


def test_an_expired_invitation_opens_the_ordinary_form(client, today):
    back = invited(now=today - timedelta(days=8))
    assert 'name="country"' in client.get("/account/sign-up/", {"next": back}).content.decode()
    client.post("/account/sign-up/", {"next": back, "password1": PASSWORD})
    assert not User.objects.filter(email=ADDRESS).exists()
