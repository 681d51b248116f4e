"""`/keys/` in Chromium without JavaScript: the whole way of a key, and that its secret stays on one answer."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error as PlaywrightError

from tests.factories import make_member
from users.models import ApiKey

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SECRET = re.compile(r"bourse_test_\w{8}_\w{32}_\w{6}")
PASSWORD = "long-enough-1"


def test_a_key_is_made_shown_once_and_revoked_without_javascript(open_page, live_server):
    owner = make_member()
    page = open_page("/account/login/", width=360, javascript=False).page
    page.fill("input[name=login]", owner.email)
    page.fill("input[name=password]", PASSWORD)
    page.locator("main form[method=post] button[type=submit]").first.click()
    page.goto(f"{live_server.url}/keys/")
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("read: see balances").check()
    page.get_by_role("button", name="Make the key").click()
    page.get_by_label("Password").fill(PASSWORD)  # asked again: making a key is not for whoever finds the screen open
    page.locator("main form[method=post] button[type=submit]").first.click()
    secret = page.get_by_label("Secret", exact=True).input_value()
    assert SECRET.fullmatch(secret)
    assert secret not in page.url
    page.get_by_role("link", name="I have saved it").click()
    assert page.url == f"{live_server.url}/keys/"
    assert not SECRET.search(page.content())
    with pytest.raises(PlaywrightError, match="ERR_CACHE_MISS"):  # not kept by the browser either
        page.go_back()
    page = page.context.new_page()
    page.goto(f"{live_server.url}/keys/")
    page.get_by_role("button", name="Revoke laptop").click()
    page.get_by_role("button", name="Revoke the key").click()
    assert "was revoked" in page.inner_text("main")
    assert ApiKey.objects.get().revoked_at is not None


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_the_secret_and_the_form_are_accessible_and_fit(open_page, live_server, width, theme):
    owner = make_member()
    visit = open_page("/account/login/", width=width, theme=theme)
    page = visit.page
    page.fill("input[name=login]", owner.email)
    page.fill("input[name=password]", PASSWORD)
    page.locator("main form[method=post] button[type=submit]").first.click()
    page.goto(f"{live_server.url}/account/confirm/?next=/keys/")
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("main form[method=post] button[type=submit]").first.click()
    page.get_by_label("Name").fill("the machine under the desk in Utrecht")
    page.get_by_role("button", name="Make the key").click()
    assert "Choose at least one scope." in page.inner_text("main")
    _is_well(page)
    page.get_by_label("read: see balances").check()
    page.get_by_label("trade: place").check()
    page.get_by_role("button", name="Make the key").click()
    assert SECRET.fullmatch(page.get_by_label("Secret", exact=True).input_value())
    _is_well(page)
    page.get_by_role("button", name="Revoke").click()
    _is_well(page)
    assert visit.complaints == []


def _is_well(page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
