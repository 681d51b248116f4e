"""A second step is asked of whoever decides about others' money, and changing what guards an account ends its sessions."""

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.test import Client

from tests.factories import make_member, make_operator, make_organisation
from tests.users.signing_in import PASSWORD, signed_in, text_of
from tests.users.test_account_pages import CHROME, FIREFOX, NEW_PASSWORD, is_signed_in, sure_of, with_an_app
from users.models import Organisation, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_limits")]
SAID = "This takes a second step besides your password. Add a passkey or an app, then try again. Nothing was changed."
DISPUTES = "/operator/disputes/"


@pytest.fixture
def ana() -> User:
    return make_member(email="ana@example.com")


def freezing(organisation: Organisation) -> dict[str, object]:
    return {"decision": "freeze", "organisation": organisation.pk, "reason": "looks stolen"}


def test_an_operator_without_a_second_step_looks_but_decides_nothing(client, settings):
    settings.SECOND_FACTOR_REQUIRED = True
    organisation = make_organisation()
    client.force_login(make_operator())
    assert client.get(DISPUTES).status_code == 200
    assert "You can look, and decide nothing yet" in text_of(client.get("/operator/"))
    answer = client.post(DISPUTES, freezing(organisation), follow=True)
    assert answer.redirect_chain == [("/account/", 302)]
    assert SAID in text_of(answer)
    organisation.refresh_from_db()
    assert organisation.frozen_at is None


@pytest.mark.parametrize("kind", ["totp", "webauthn"])
def test_with_an_app_or_a_passkey_the_operator_decides(client, settings, kind):
    settings.SECOND_FACTOR_REQUIRED = True
    organisation, operator = make_organisation(), make_operator()
    Authenticator.objects.create(user=operator, type=kind, data={})
    client.force_login(operator)
    client.post(DISPUTES, freezing(organisation))
    organisation.refresh_from_db()
    assert organisation.frozen_at is not None


def test_recovery_codes_alone_are_no_second_step(client, settings):
    settings.SECOND_FACTOR_REQUIRED = True
    organisation, operator = make_organisation(), make_operator()
    Authenticator.objects.create(user=operator, type="recovery_codes", data={})
    client.force_login(operator)
    assert client.post(DISPUTES, freezing(organisation)).url == "/account/"


def test_whoever_is_no_operator_learns_nothing_of_it(client, settings):
    settings.SECOND_FACTOR_REQUIRED = True
    client.force_login(make_member())
    assert client.post(DISPUTES, {}).status_code == 403
    assert Client().post(DISPUTES, {}).headers["Location"].startswith("/account/login/")


def test_production_asks_for_it_and_the_demo_and_the_tests_do_not(settings):
    assert settings.IS_TEST
    assert not settings.SECOND_FACTOR_REQUIRED


# --- Sessions elsewhere --------------------------------------------------------------------------------------


def test_adding_an_app_ends_the_sessions_elsewhere(ana):
    elsewhere = signed_in(ana, browser=CHROME)
    here, _ = with_an_app(ana)
    assert is_signed_in(here)
    assert not is_signed_in(elsewhere)
    assert UserSession.objects.filter(user=ana).count() == 1


def test_removing_the_app_ends_the_sessions_elsewhere(ana, client):
    elsewhere = signed_in(ana, browser=CHROME)
    here = sure_of(ana)
    Authenticator.objects.create(user=ana, type="totp", data={"secret": "x"})
    answer = here.post("/account/app/remove/", follow=True)
    assert "You are signed out in all other browsers." in text_of(answer)
    assert is_signed_in(here)
    assert not is_signed_in(elsewhere)


def test_removing_a_passkey_ends_the_sessions_elsewhere(ana):
    elsewhere = signed_in(ana, browser=CHROME)
    here = sure_of(ana)
    key = Authenticator.objects.create(user=ana, type="webauthn", data={"name": "key", "credential": {}})
    here.post(f"/account/passkeys/{key.pk}/remove/")
    assert not Authenticator.objects.exists()
    assert (is_signed_in(here), is_signed_in(elsewhere)) == (True, False)


def test_a_new_password_ends_the_sessions_elsewhere(ana):
    here, elsewhere = sure_of(ana), signed_in(ana, browser=CHROME)
    here.post("/account/password/", {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD})
    assert (is_signed_in(here), is_signed_in(elsewhere)) == (True, False)
    assert UserSession.objects.filter(user=ana).count() == 1


def test_what_was_refused_ends_nobodys_session(ana):
    here, elsewhere = sure_of(ana), signed_in(ana, browser=CHROME)
    here.post("/account/password/", {"oldpassword": "wrong", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD})
    here.post("/account/app/", {"code": "000000"})
    here.get("/account/password/")
    assert (is_signed_in(here), is_signed_in(elsewhere)) == (True, True)


def test_other_people_stay_signed_in(ana):
    bo = signed_in(make_member(), browser=FIREFOX)
    with_an_app(ana)
    assert is_signed_in(bo)
