"""Signing in, the second step, and what guards an account."""

import re
import time
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core import mail
from django.test import Client
from django.urls import reverse

from tests.factories import make_member, make_operator
from tests.users.signing_in import PASSWORD, error_at, link_in_the_last_mail, mails_to, signed_in, text_of
from users.models import AuditRecord, Organisation, Role, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_limits")]
NEW_PASSWORD = "a rather long one"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
)
GUARDED = [
    "mfa_add_webauthn",
    "mfa_activate_totp",
    "mfa_generate_recovery_codes",
]


@pytest.fixture
def ana() -> User:
    return make_member(email="ana@example.com")


def log_in(client, user, password=PASSWORD, **more):
    return client.post("/account/login/", {"login": user.email, "password": password, **more})


def is_signed_in(client) -> bool:
    return client.get("/account/").status_code == 200


def sure_of(user: User) -> Any:
    """Return a client that signed in and has just proved again who sits there."""
    client = signed_in(user)
    assert client.post("/account/confirm/", {"password": PASSWORD}).status_code == 302
    return client


def let_time_pass(client) -> None:
    """Make the last proof of who sits there older than it may be."""
    session = client.session
    session["account_authentication_methods"] = [
        {**record, "at": record["at"] - 3600} for record in session["account_authentication_methods"]
    ]
    session.save()


# --- Signing in and out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("email", ["ana@example.com", "ANA@Example.COM"])
def test_address_in_any_case_and_password_sign_in(client, ana, email):
    answer = client.post("/account/login/", {"login": email, "password": PASSWORD})
    assert answer.url == "/account/"
    assert is_signed_in(client)


def test_signing_in_gives_a_new_session(client, ana):
    client.get("/account/login/")
    client.get("/account/passkeys/login/", headers={"accept": "application/json"})
    before = client.session.session_key
    assert before
    log_in(client, ana)
    assert client.session.session_key != before


def test_a_wrong_password_and_an_unknown_address_sound_the_same(client, ana):
    wrong = log_in(client, ana, "not the password")
    unknown = client.post("/account/login/", {"login": "nobody@example.com", "password": PASSWORD})
    assert text_of(wrong) == text_of(unknown)
    assert "not correct" in text_of(wrong)


def test_after_five_wrong_passwords_even_the_right_one_waits(client, ana):
    for _ in range(5):
        log_in(client, ana, "not the password")
    assert "Too many failed login attempts" in text_of(log_in(client, ana))
    other = make_member()
    assert log_in(client, other).status_code == 302, "others are not held up"


def test_signing_out_takes_a_form_and_ends_the_session(ana):
    client = signed_in(ana)
    key = client.session.session_key
    assert client.get("/account/logout/").status_code == 200
    assert is_signed_in(client), "a link alone signs nobody out"
    assert client.post("/account/logout/").url == "/"
    assert not is_signed_in(client)
    client.cookies["sessionid"] = key
    assert not is_signed_in(client), "the old session opens nothing"


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "http:evil.example",
        "javascript:alert(1)",
        "https://testserver.evil.example/",
        "///evil.example",
    ],
)
def test_next_leads_nowhere_else(client, ana, target):
    for answer in (log_in(client, ana, next=target), client.post("/account/logout/", {"next": target})):
        assert answer.status_code == 302
        assert answer.url in ("/account/", "/")
    assert client.get("/account/login/", {"next": target}).status_code == 200


def test_next_leads_back_to_where_one_was(client, ana):
    answer = client.get("/account/members/")
    assert answer.url == "/account/login/?next=/account/members/"
    assert log_in(client, ana, next="/account/members/").url == "/account/members/"


def test_a_new_browser_is_told_by_mail_a_known_one_is_not(ana):
    signed_in(ana, browser=FIREFOX)
    assert mails_to(ana.email) == [], "the first one is nobody's surprise"
    signed_in(ana, browser=FIREFOX)
    assert mails_to(ana.email) == []
    signed_in(ana, browser=CHROME)
    assert mails_to(ana.email) == ["New sign-in at GPU Bourse"]
    assert "with Chrome on Windows" in mail.outbox[-1].body


# --- Password --------------------------------------------------------------------------------------------------


def test_changing_the_password_signs_out_other_browsers_and_says_so(ana):
    here, elsewhere = signed_in(ana), signed_in(ana)
    answer = here.post("/account/password/", {"oldpassword": PASSWORD, "password1": NEW_PASSWORD}, follow=True)
    assert "The password was changed." in text_of(answer)
    assert is_signed_in(here)
    assert not is_signed_in(elsewhere)
    assert mails_to(ana.email)[-1] == "Your password at GPU Bourse was changed"
    assert log_in(Client(), ana, NEW_PASSWORD).status_code == 302


def test_the_present_password_is_asked_for(ana):
    answer = signed_in(ana).post("/account/password/", {"oldpassword": "wrong", "password1": NEW_PASSWORD})
    assert error_at(answer, "oldpassword")
    assert User.objects.get().check_password(PASSWORD)


def test_a_forgotten_password_is_replaced_by_a_link_and_the_second_step_stays(client, ana):
    elsewhere, _ = with_an_app(ana)
    assert client.post("/account/password/reset/", {"email": ana.email}).url == "/account/password/reset/sent/"
    link = link_in_the_last_mail()
    form = client.get(link, follow=True)
    path = form.redirect_chain[-1][0]
    client.post(path, {"password1": NEW_PASSWORD})
    assert User.objects.get().check_password(NEW_PASSWORD)
    assert not is_signed_in(elsewhere)
    assert Authenticator.objects.filter(user=ana, type="totp").exists()
    assert log_in(client, ana, NEW_PASSWORD).url == "/account/second-step/"
    assert "does not work any more" in text_of(Client().get(link)), "a link works once"


def test_nobody_learns_who_has_an_account_by_forgetting_a_password(client, ana):
    answers = [client.post("/account/password/reset/", {"email": email}) for email in (ana.email, "no@example.com")]
    assert answers[0].url == answers[1].url
    assert mails_to("no@example.com") == ["No account with this address at GPU Bourse"]


# --- Second step -----------------------------------------------------------------------------------------------


def code_of(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def with_an_app(user: User) -> tuple[Any, str]:
    """Add an authenticator app by the page; return the signed-in client and the app's secret."""
    client = sure_of(user)
    (secret,) = re.findall(r'<code class="secret">(\w+)</code>', client.get("/account/app/").content.decode())
    answer = client.post("/account/app/", {"code": code_of(secret)})
    assert answer.url == "/account/recovery-codes/", text_of(answer)
    return client, secret


def codes_of(client) -> list[str]:
    return re.findall(r"<li>(\d{8})</li>", client.get("/account/recovery-codes/").content.decode())


@pytest.mark.django_db(transaction=True)  # the mail leaves with the commit
def test_with_an_app_the_password_alone_does_not_sign_in(client, ana):
    _, secret = with_an_app(ana)
    assert mails_to(ana.email) == ["Authenticator app added at GPU Bourse"]
    assert log_in(client, ana).url == "/account/second-step/"
    assert not is_signed_in(client)
    assert error_at(client.post("/account/second-step/", {"code": "000000"}), "code")
    code = code_of(secret)
    assert client.post("/account/second-step/", {"code": code}).url == "/account/"
    assert is_signed_in(client)
    other = Client()
    log_in(other, ana)
    assert "Incorrect code" in error_at(other.post("/account/second-step/", {"code": code}), "code"), "used up"


def test_a_recovery_code_opens_once(ana):
    codes = codes_of(with_an_app(ana)[0])
    assert len(set(codes)) == 10
    for attempt, (url, status) in enumerate([("/account/", 302), ("", 200)]):
        client = Client()
        log_in(client, ana)
        answer = client.post("/account/second-step/", {"code": codes[0]})
        assert (answer.status_code, answer.headers.get("Location", "")) == (status, url), attempt


@pytest.mark.django_db(transaction=True)  # the mail leaves with the commit
def test_new_recovery_codes_replace_the_old(ana):
    client, _ = with_an_app(ana)
    before = codes_of(client)
    assert client.post("/account/recovery-codes/new/").url == "/account/recovery-codes/"
    assert not set(before) & set(codes_of(client))
    assert mails_to(ana.email)[-1] == "New recovery codes at GPU Bourse"
    file = client.get("/account/recovery-codes/file/")
    assert file.content.decode().split() == codes_of(client)
    assert "no-store" in file["Cache-Control"]


def test_removing_the_app_makes_the_password_enough_again(client, ana):
    owner, _ = with_an_app(ana)
    assert owner.post("/account/app/remove/").url == "/account/"
    assert mails_to(ana.email)[-1] == "Authenticator app removed at GPU Bourse"
    assert log_in(client, ana).url == "/account/"


def test_a_copy_of_the_database_holds_no_secret_of_the_second_step(ana):
    client, secret = with_an_app(ana)
    stored = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in stored
    assert not any(code in stored for code in codes_of(client))


def test_the_second_step_cannot_be_set_up_for_an_unconfirmed_address(ana):
    client = sure_of(ana)
    EmailAddress.objects.update(verified=False)
    assert client.get("/account/app/").status_code == 302
    assert client.get("/account/passkeys/add/").status_code == 302


def test_nobody_changes_another_persons_passkey(ana):
    theirs = Authenticator.objects.create(user=make_member(), type="webauthn", data={"name": "key", "credential": {}})
    client = sure_of(ana)
    for name in ("mfa_edit_webauthn", "mfa_remove_webauthn"):
        assert client.get(reverse(name, args=[theirs.pk])).status_code == 404
        assert client.post(reverse(name, args=[theirs.pk]), {"name": "mine"}).status_code == 404
    assert Authenticator.objects.filter(pk=theirs.pk).exists()


@pytest.mark.parametrize("name", GUARDED)
def test_what_guards_the_account_asks_again_who_sits_there(ana, name):
    client = signed_in(ana)
    asked = client.get(reverse(name))
    assert asked.url.startswith("/account/confirm/"), "having signed in some time ago is not enough"
    assert error_at(client.post(asked.url, {"password": "wrong"}), "password")
    assert client.post(asked.url, {"password": PASSWORD}).url == reverse(name)
    assert "/account/confirm/" not in client.get(reverse(name)).headers.get("Location", "")
    let_time_pass(client)
    assert client.get(reverse(name)).url.startswith("/account/confirm/")


# --- E-mail address --------------------------------------------------------------------------------------------


def test_a_new_address_counts_once_it_is_confirmed_and_the_old_one_is_told(ana):
    client = sure_of(ana)
    client.post("/account/email/", {"email": "new@example.com", "action_add": ""})
    assert User.objects.get().email == "ana@example.com"
    assert "new@example.com waits to replace it" in text_of(client.get("/account/"))
    client.post(link_in_the_last_mail())
    assert User.objects.get().email == "new@example.com"
    assert mails_to("ana@example.com") == ["Your address at GPU Bourse was changed"]
    assert EmailAddress.objects.count() == 1


def test_changing_the_address_asks_again_who_sits_there(ana):
    client = signed_in(ana)
    let_time_pass(client)
    answer = client.post("/account/email/", {"email": "new@example.com", "action_add": ""})
    assert answer.url.startswith("/account/confirm/")
    assert EmailAddress.objects.count() == 1


def test_an_address_of_somebody_else_is_not_given_away(ana):
    make_member(email="bo@example.com")
    client = sure_of(ana)
    answer = client.post("/account/email/", {"email": "bo@example.com", "action_add": ""}, follow=True)
    assert answer.status_code == 200
    assert error_at(answer, "email") == ""
    assert User.objects.filter(email="bo@example.com").count() == 1


# --- Sessions --------------------------------------------------------------------------------------------------


def test_one_sees_where_one_is_signed_in_and_ends_the_others(ana):
    here, elsewhere = signed_in(ana, browser=FIREFOX), signed_in(ana, browser=CHROME)
    page = text_of(here.get("/account/sessions/"))
    assert "Firefox on Linux" in page
    assert "Chrome on Windows" in page
    answer = here.post("/account/sessions/", follow=True)
    assert "Every other browser is signed out." in text_of(answer)
    assert is_signed_in(here)
    assert not is_signed_in(elsewhere)


# --- Overview --------------------------------------------------------------------------------------------------


def test_the_overview_says_how_one_signs_in_and_for_whom_one_acts(ana, django_assert_max_num_queries):
    client, _ = with_an_app(ana)
    with django_assert_max_num_queries(12):
        page = text_of(client.get("/account/"))
    for words in (
        "ana@example.com acts for Orla Labs B.V., as owner.",
        "confirmed",
        "10 left",
        "Netherlands",
        "set up",
    ):
        assert words in page
    assert "A password alone opens this account." not in page
    assert "A password alone opens this account." in text_of(signed_in(make_member()).get("/account/"))


ADDRESS = {"address": "Oudegracht 1", "postcode": "3511 AA", "city": "Utrecht", "register_number": "12345678"}


def test_an_owner_changes_the_address_and_it_is_recorded(ana):
    client = signed_in(ana)
    answer = client.post("/account/", ADDRESS, follow=True)
    assert "The address was changed." in text_of(answer)
    assert Organisation.objects.values(*ADDRESS).get() == ADDRESS
    record = AuditRecord.objects.get()
    assert (record.action, record.actor, record.after) == ("organisation.address_changed", ana, ADDRESS)
    client.post("/account/", ADDRESS)
    assert AuditRecord.objects.count() == 1, "the same again changes nothing"


def test_a_fault_in_the_address_is_said_at_its_field(ana):
    answer = signed_in(ana).post("/account/", {**ADDRESS, "city": "x" * 101})
    assert "at most 100 characters" in error_at(answer, "city")
    assert Organisation.objects.get().city == ""


@pytest.mark.parametrize("field", ["name", "kind", "type", "country", "frozen_at"])
def test_what_books_and_tax_rest_on_is_not_changed_here(ana, field):
    before = Organisation.objects.values(field).get()
    signed_in(ana).post("/account/", {**ADDRESS, field: "GB"})
    assert Organisation.objects.values(field).get() == before


@pytest.mark.parametrize("role", [Role.TRADER, Role.BILLING, Role.VIEWER])
def test_others_see_the_address_and_may_not_change_it(role):
    client = signed_in(make_member(role=role))
    assert "Save the address" not in text_of(client.get("/account/"))
    answer = client.post("/account/", ADDRESS)
    assert answer.status_code == 403
    assert "Your role does not allow this." in text_of(answer)
    assert Organisation.objects.get().city == ""


def test_an_operator_without_an_organisation_sees_themselves():
    client = signed_in(make_operator())
    assert "acts for no organisation" in text_of(client.get("/account/"))
    assert client.post("/account/", ADDRESS).status_code == 403


def test_the_admin_has_no_sign_in_of_its_own(client, ana):
    assert client.get("/admin/", follow=True).redirect_chain[-1][0].startswith("/account/login/")
    assert signed_in(make_operator()).get("/admin/").status_code == 200
    assert signed_in(ana).get("/admin/login/").status_code == 403


@pytest.mark.parametrize("prefix", ["", "/nl", "/pl"])
def test_pages_exist_in_every_language(ana, prefix):
    for path in ("/account/login/", "/account/sign-up/", "/account/password/reset/"):
        assert Client().get(prefix + path).status_code == 200
    client = sure_of(ana)
    for path in ("/account/", "/account/email/", "/account/password/", "/account/app/", "/account/sessions/"):
        assert client.get(prefix + path).status_code == 200
