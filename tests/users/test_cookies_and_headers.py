"""What the browser is told: cookies, what it may keep, what may run; and who gets whose page."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings as site_settings
from django.contrib.auth.hashers import get_hasher
from django.test import Client
from django.urls import NoReverseMatch, reverse

from tests.factories import make_member
from tests.users.signing_in import PASSWORD, signed_in, text_of
from users import account_urls
from users.audit import ip_address_of

PROJECT = Path(__file__).resolve().parent.parent.parent
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_limits")]


def addresses() -> list[str]:
    """Return the addresses of accounts that take no argument."""
    found = []
    for pattern in account_urls.urlpatterns:
        try:
            found.append(reverse(str(pattern.name)))
        except NoReverseMatch:
            continue
    return found


# --- Cookies ---------------------------------------------------------------------------------------------------

FACTS = """
import json, django
django.setup()
from django.conf import settings
names = [
    "SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SESSION_COOKIE_HTTPONLY",
    "CSRF_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE", "CSRF_COOKIE_SAMESITE", "SESSION_COOKIE_DOMAIN", "CSRF_COOKIE_DOMAIN",
    "SESSION_COOKIE_PATH", "CSRF_COOKIE_PATH", "SECURE_HSTS_SECONDS", "PASSWORD_HASHERS", "B2C_ENABLED", "EMAIL_HOST",
    "EMAIL_USE_TLS", "DEFAULT_FROM_EMAIL", "ALLAUTH_TRUSTED_PROXY_COUNT",
]
print(json.dumps({name: getattr(settings, name) for name in names}))
"""


@pytest.fixture(scope="module")
def production():
    """The settings of production, as a process of its own reads them."""
    env = {
        **{
            name: value
            for name, value in os.environ.items()
            if name not in ("BOURSE_HOME", "DJANGO_ALLOW_ASYNC_UNSAFE")
        },
        "BOURSE_ENV": "production",
        "SECRET_KEY": "k" * 30 + "0123456789abcdefghijklmnopqrstuvwxyz",
        "ALLOWED_HOSTS": "bourse.example",
        "EMAIL_URL": "smtp+tls://mail.bourse.example:587",
    }
    answer = subprocess.run(
        [sys.executable, "-c", FACTS], env=env, cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return json.loads(answer.stdout)


@pytest.mark.parametrize("cookie", ["SESSION", "CSRF"])
def test_in_production_a_cookie_is_bound_to_the_host_and_to_tls(production, cookie):
    assert production[f"{cookie}_COOKIE_NAME"].startswith("__Host-")
    assert production[f"{cookie}_COOKIE_SECURE"] is True
    assert production[f"{cookie}_COOKIE_HTTPONLY"] is True
    assert production[f"{cookie}_COOKIE_SAMESITE"] == "Lax"
    assert production[f"{cookie}_COOKIE_DOMAIN"] is None, "the prefix allows no domain"
    assert production[f"{cookie}_COOKIE_PATH"] == "/"


def test_production_hashes_with_argon2_mails_by_smtp_and_sells_to_businesses(production):
    assert production["PASSWORD_HASHERS"][0].endswith("Argon2PasswordHasher")
    assert (production["EMAIL_HOST"], production["EMAIL_USE_TLS"]) == ("mail.bourse.example", True)
    assert production["DEFAULT_FROM_EMAIL"] == "GPU Bourse <noreply@bourse.example>"
    assert production["B2C_ENABLED"] is False
    assert production["SECURE_HSTS_SECONDS"] >= 31_536_000


def test_argon2_is_the_one_that_needs_memory(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
    assert get_hasher().encode("a rather long one", "some-salt").startswith("argon2$argon2id$")


def test_production_does_not_start_without_an_address_of_a_mail_server():
    env = {"PATH": os.environ["PATH"], "BOURSE_ENV": "production", "SECRET_KEY": "x", "ALLOWED_HOSTS": "bourse.example"}
    answer = subprocess.run(
        [sys.executable, "-c", "import config.settings"],
        env=env,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode != 0
    assert "EMAIL_URL" in answer.stderr


def test_cookies_carry_what_the_settings_say(client, settings):
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    user = make_member()
    client.get("/account/login/", secure=True)
    client.post("/account/login/", {"login": user.email, "password": PASSWORD}, secure=True)
    for name in ("__Host-session", "__Host-csrf"):
        cookie = client.cookies[name]
        assert cookie["secure"]
        assert cookie["httponly"]
        assert (cookie["samesite"], cookie["path"], cookie["domain"]) == ("Lax", "/", "")


def test_a_form_without_its_token_is_refused_in_words(db):
    answer = Client(enforce_csrf_checks=True).post("/account/login/", {"login": "a@example.com", "password": "x"})
    assert answer.status_code == 403
    assert "too old to be sent" in text_of(answer)


def test_the_address_of_the_sender_is_not_what_the_sender_says(rf):
    request = rf.get("/", REMOTE_ADDR="192.0.2.7", headers={"x-forwarded-for": "203.0.113.9"})
    assert ip_address_of(request) == "192.0.2.7"


def test_behind_a_proxy_only_its_own_line_counts(rf, settings):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    request = rf.get("/", REMOTE_ADDR="10.0.0.1", headers={"x-forwarded-for": "203.0.113.9, 192.0.2.7"})
    assert ip_address_of(request) == "192.0.2.7"


# --- What may be kept and what may run -------------------------------------------------------------------------


@pytest.mark.parametrize("path", addresses())
def test_a_page_about_an_account_is_kept_by_nobody_and_listed_nowhere(path):
    for client in (Client(), signed_in(make_member())):
        answer = client.get(path)
        if answer.status_code == 302 and client.cookies.get("sessionid") is None:
            continue  # a visitor is asked to sign in
        assert "no-store" in answer["Cache-Control"], path
        if answer.status_code == 200:
            assert answer["X-Robots-Tag"] == "noindex"
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            assert '<meta name="robots" content="noindex">' in answer.content.decode()


@pytest.mark.parametrize("path", ["/account/login/", "/account/sign-up/", "/account/", "/account/sessions/"])
def test_nothing_written_into_a_page_may_run(path):
    answer = signed_in(make_member()).get(path) if path in ("/account/", "/account/sessions/") else Client().get(path)
    policy = answer["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert " style=" not in answer.content.decode()


def test_even_a_missing_page_is_the_persons_own():
    answer = signed_in(make_member()).get("/nothing-here/")
    assert answer.status_code == 404
    assert "no-store" in answer["Cache-Control"]


def test_no_page_of_accounts_is_in_the_sitemap(client, site_data):
    assert "/account/" not in client.get("/sitemap.xml").content.decode()


# --- Whose page ------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
class TestKeptPages:
    """Public pages are kept for visitors; outside a transaction, or nothing is kept."""

    pages = ["/", "/gpus/", "/clouds/"]

    @pytest.mark.parametrize("path", pages)
    def test_everyone_gets_a_masthead_of_their_own(self, site_data, path):
        visitor, person = Client(), signed_in(make_member())
        for _ in range(2):
            assert "Sign up" in text_of(visitor.get(path))
            assert "Sign up" not in text_of(person.get(path))
            assert "Sign out" in text_of(person.get(path))
            assert "Sign out" not in text_of(visitor.get(path))
        person.post("/account/logout/")
        assert "Sign up" in text_of(person.get(path))

    def test_a_page_that_a_browser_kept_as_a_visitor_is_not_good_after_signing_in(self, site_data):
        known = Client().get("/")
        person = signed_in(make_member())
        answer = person.get("/", headers={"if-none-match": known["ETag"]})
        assert answer.status_code == 200
        assert "Sign out" in text_of(answer)

    def test_caches_on_the_way_are_told_that_it_depends_on_who_asks(self, site_data):
        for _ in range(2):
            assert "Cookie" in Client().get("/")["Vary"]
        own = signed_in(make_member()).get("/")
        assert "no-store" in own["Cache-Control"]
        assert "private" in own["Cache-Control"]
        assert "ETag" not in own

    def test_a_message_is_for_whom_it_is_meant(self, site_data):
        person = signed_in(make_member())
        person.post("/account/logout/")
        assert "You are signed out." in text_of(person.get("/"))
        assert "You are signed out." not in text_of(person.get("/"))
        assert "You are signed out." not in text_of(Client().get("/"))

    def test_a_visitors_page_holds_no_token_of_a_form(self, site_data):
        assert "csrfmiddlewaretoken" not in Client().get("/").content.decode()
        assert site_settings.CSRF_COOKIE_NAME not in Client().get("/").cookies
