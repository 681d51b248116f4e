"""`/account/webhooks/` in Chromium without JavaScript: from adding one to reading what it answered and removing it."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.factories import NOW, make_member
from tests.users.receivers import receiving
from users.models import WebhookEndpoint
from users.tasks import send_webhooks

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SECRET = re.compile(r"whsec_[0-9A-Za-z+/]{43}=")
PASSWORD = "long-enough-1"
LONG = "https://hooks.a-rather-long-name-for-a-host.example.com/organisations/orla-labs/environments/production/bourse"


def test_a_webhook_is_added_tried_read_and_removed_without_javascript(open_page, live_server, settings):
    settings.WEBHOOKS_ALLOW_LOOPBACK = True
    page = sign_in(open_page, live_server, width=360, javascript=False).page
    with receiving() as receiver:
        page.get_by_label("Address").fill(receiver.url)
        page.get_by_label("order.filled").check()
        page.get_by_role("button", name="Add the webhook").click()
        assert SECRET.fullmatch(page.get_by_label("Secret", exact=True).input_value())
        page.get_by_role("link", name="I have saved it").click()
        assert not SECRET.search(page.content())
        page.get_by_role("button", name="Send a test event").click()
        send_webhooks()
        assert len(receiver.requests) == 1
    page.reload()
    page.get_by_role("link", name="webhook.test").click()
    assert "Answered 200" in page.inner_text("main")
    assert "thanks" in page.inner_text("main")
    page.get_by_role("button", name="Send again").click()
    send_webhooks()  # nobody listens any more
    page.reload()
    assert "The connection failed" in page.inner_text("main")
    page.get_by_role("link", name=receiver.url).click()
    page.get_by_role("link", name="Remove it").click()
    page.get_by_role("button", name="Remove the webhook").click()
    assert "was removed" in page.inner_text("main")
    assert not WebhookEndpoint.objects.exists()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_every_state_of_it_is_accessible_and_fits(open_page, live_server, settings, width, theme):
    settings.WEBHOOKS_ALLOW_LOOPBACK = True
    visit = sign_in(open_page, live_server, width=width, theme=theme)
    page = visit.page
    is_well(page)
    page.get_by_label("Address").fill("http://example.com/")
    page.get_by_role("button", name="Add the webhook").click()
    assert "Choose at least one event." in page.inner_text("main")
    is_well(page)
    page.get_by_label("Address").fill(LONG)
    page.get_by_label("order.filled").check()
    page.get_by_role("button", name="Add the webhook").click()
    is_well(page)
    page.get_by_role("link", name="I have saved it").click()
    with receiving() as receiver:
        receiver.status, receiver.answer = 500, b"<html>" + b"a-very-long-answer-" * 60
        page.get_by_role("button", name="Send a test event").click()
        WebhookEndpoint.objects.update(url=receiver.url)
        send_webhooks()
    WebhookEndpoint.objects.update(url=LONG)
    page.reload()
    assert "answered 500" in page.inner_text("main")
    is_well(page)
    page.get_by_role("link", name="webhook.test").click()
    is_well(page)
    WebhookEndpoint.objects.update(switched_off_at=NOW, off_reason="failing")
    page.reload()
    is_well(page)
    page.get_by_role("link", name=LONG).click()
    is_well(page)
    page.get_by_role("link", name="Remove it").click()
    is_well(page)
    assert visit.complaints == []


def sign_in(open_page, live_server, **how):
    """Return a visit of the page by an owner who has just given the password again."""
    owner = make_member()
    visit = open_page("/account/login/", **how)
    page = visit.page
    page.fill("input[name=login]", owner.email)
    page.fill("input[name=password]", PASSWORD)
    page.locator("main form[method=post] button[type=submit]").first.click()
    page.goto(f"{live_server.url}/account/confirm/?next=/account/webhooks/")
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("main form[method=post] button[type=submit]").first.click()
    return visit


def is_well(page) -> None:
    """No rule of accessibility is broken, and nothing is wider than the window."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
