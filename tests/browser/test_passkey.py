"""An account from the first page to signing in without a password, in a real browser with a virtual passkey."""

import re

import pytest
from django.core import mail
from playwright.sync_api import Page

from tests.browser.conftest import Visit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "correct horse battery"


@pytest.fixture
def visit(chromium):
    """One browser that keeps its cookies, with a platform authenticator that says yes."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
    visit = Visit(context.new_page())
    devtools = context.new_cdp_session(visit.page)
    devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    yield visit
    context.close()


def link_in_the_last_mail() -> str:
    found = re.search(r"https?://\S+", str(mail.outbox[-1].body))
    assert found is not None
    return found[0]


def sign_up(page: Page, base: str) -> None:
    page.goto(f"{base}/account/sign-up/")
    page.check("text=A private person")
    page.fill("[name=name]", "Ana Sample")
    page.select_option("[name=country]", label="Netherlands")
    page.fill("[name=email]", "ana@example.com")
    page.fill("[name=password1]", PASSWORD)
    page.click("button:has-text('Open the account')")
    page.wait_for_url("**/account/email/sent/")
    page.goto(link_in_the_last_mail())
    page.click("text=Yes, confirm it")
    page.wait_for_url("**/account/")


def add_a_passkey(page: Page) -> None:
    page.click("text=Add a passkey >> nth=0")
    page.fill("[name=password]", PASSWORD)
    page.click("button:has-text('Go on')")
    page.fill("[name=name]", "laptop")
    page.click("button:has-text('Make the passkey')")
    page.wait_for_url("**/account/recovery-codes/")


def test_a_passkey_alone_signs_in(visit, live_server, site_data):
    page = visit.page
    sign_up(page, live_server.url)
    add_a_passkey(page)
    assert page.locator(".codes li").count() == 10
    page.goto(f"{live_server.url}/account/")
    assert page.locator(".guard li", has_text="laptop").count() == 1
    page.click(".person button")
    page.wait_for_url(f"{live_server.url}/")
    assert page.locator("text=You are signed out.").is_visible()
    page.click(".person >> text=Sign in")
    page.click("button:has-text('Sign in with a passkey')")
    page.wait_for_url("**/account/")
    assert "ana@example.com" in page.inner_text("main")
    assert visit.complaints == [], "nothing of it breaks the content security policy"
