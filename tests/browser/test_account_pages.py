"""Pages of accounts in Chromium: accessible, whole at 360 and 1440 px in both themes, and quiet under the strict policy."""

import re
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.utils import timezone

from tests.browser.conftest import Visit
from tests.browser.test_pages import SHOTS
from tests.factories import make_member
from tests.users.signing_in import PASSWORD, signed_in
from users.models import User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ENTRANCE = ["/account/sign-up/", "/account/login/", "/account/password/reset/", "/account/email/sent/"]
INSIDE = [
    "/account/",
    "/account/email/",
    "/account/password/",
    "/account/passkeys/add/",
    "/account/recovery-codes/",
    "/account/sessions/",
    "/account/app/remove/",
]
WIDTHS, THEMES = (360, 1440), ("light", "dark")


@pytest.fixture
def open_as(chromium, live_server):
    """Return a function that opens a path, with a session where one is given, and checks how it looks."""
    contexts = []

    def open_path(path: str, *, width: int, theme: str, session: str = "") -> Visit:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, locale="en-GB")
        contexts.append(context)
        if session:
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
        visit = Visit(context.new_page())
        answer = visit.page.goto(live_server.url + path)
        assert answer is not None
        assert answer.status == 200, path
        return visit

    yield open_path
    for context in contexts:
        context.close()


def is_in_order(visit: Visit, name: str) -> None:
    found = Axe().run(visit.page)
    assert found.violations_count == 0, found.generate_report()
    overflow = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0, f"{name} scrolls sideways by {overflow} px"
    assert visit.complaints == []
    SHOTS.mkdir(parents=True, exist_ok=True)
    visit.page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


def name_of(path: str, width: int, theme: str) -> str:
    return f"{path.strip('/').replace('/', '_')}-{width}-{theme}"


@pytest.mark.parametrize("path", ENTRANCE)
def test_an_entrance_is_accessible_and_fits(open_as, path):
    for theme in THEMES:
        for width in WIDTHS:
            is_in_order(open_as(path, width=width, theme=theme), name_of(path, width, theme))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_form_with_faults_is_accessible_and_leads_to_them(open_as, width):
    visit = open_as("/account/sign-up/", width=width, theme="light")
    visit.page.evaluate("document.querySelector('form.sheet').noValidate = true")
    visit.page.click("button:has-text('Open the account')")
    is_in_order(visit, name_of("/account/sign-up/faults", width, "light"))
    visit.page.click(".form-errors a >> nth=0")
    assert visit.page.evaluate("location.hash") == "#id_name"


@pytest.fixture
def session(db) -> str:
    """The session of somebody with an app, recovery codes and a passkey, who has just proved to be there."""
    user = make_member(email="anastazja.konstantynopolitanczykiewicz@orla-labs.example")
    client = signed_in(user, browser="Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
    client.post("/account/confirm/", {"password": PASSWORD})
    (secret,) = re.findall(r'class="secret">(\w+)<', client.get("/account/app/").content.decode())
    client.post("/account/app/", {"code": format_hotp_value(hotp_value(secret, int(time.time()) // 30))})
    Authenticator.objects.create(
        user=user, type="webauthn", data={"name": "key in the safe", "credential": {}}, last_used_at=timezone.now()
    )
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


@pytest.mark.parametrize("path", INSIDE)
def test_a_page_of_an_account_is_accessible_and_fits(open_as, session, path):
    if path == "/account/passkeys/add/":  # asks for the credentials that are there; the one above is made up
        Authenticator.objects.filter(type="webauthn").delete()
    for theme in THEMES:
        for width in WIDTHS:
            is_in_order(open_as(path, width=width, theme=theme, session=session), name_of(path, width, theme))


def test_the_second_step_is_accessible_and_fits(open_as, session):
    Authenticator.objects.filter(type="webauthn").delete()
    half_way = signed_in(User.objects.get())
    key = str(half_way.cookies[settings.SESSION_COOKIE_NAME].value)
    for theme in THEMES:
        for width in WIDTHS:
            visit = open_as("/account/second-step/", width=width, theme=theme, session=key)
            is_in_order(visit, name_of("/account/second-step/", width, theme))


def test_without_javascript_the_page_says_what_a_passkey_needs(chromium, live_server):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(live_server.url + "/account/login/")
    assert page.locator("text=A passkey needs JavaScript").is_visible()
    assert not page.locator("button:has-text('Sign in with a passkey')").is_visible()
    context.close()
