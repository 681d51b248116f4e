"""A person pays by clicking: from our form to the gateway's page, through its troubles, and back. No script anywhere."""

from datetime import UTC, datetime

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client

from billing.topups.apply_event import apply_due_events
from billing.views import stripe_webhook
from tests.billing.gateway_server import CHALLENGED_CARD, DECLINED_CARD, FakeStripe
from tests.factories import make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(chromium, live_server, monkeypatch):
    """A narrow page of an owner who is signed in, in a browser without scripts. No worker runs."""
    monkeypatch.setattr(stripe_webhook, "_nudge", lambda: None)
    client = Client()
    client.force_login(make_member())
    context = chromium.new_context(viewport={"width": 360, "height": 800}, java_script_enabled=False, locale="en-GB")
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
    yield context.new_page()
    context.close()


def messages_arrive(gateway: FakeStripe, live_server) -> None:
    """Let the gateway send what it has to say to the site, and the site act on it."""
    gateway.switch(webhook_url=f"{live_server.url}/webhooks/stripe/")
    gateway.control("flush")
    apply_due_events(now=datetime.now(UTC))


def test_a_top_up_is_paid_after_a_declined_card_and_a_challenge(page, live_server, fake_stripe):
    page.goto(f"{live_server.url}/nl/wallet/top-up/")
    page.fill("input[name=amount]", "50")
    page.click("form.pay button[type=submit]")
    assert page.url.startswith(f"{fake_stripe.url}/c/pay/"), "the policy lets the form lead to the payment page"
    assert "€\xa050,00" in page.inner_text("main")

    page.check(f"input[value='{DECLINED_CARD}']")
    page.click("button")
    assert page.locator("[role=alert]").is_visible()
    page.check(f"input[value='{CHALLENGED_CARD}']")
    page.click("button")
    page.click("button[value=yes]")
    assert "/nl/wallet/top-up/" in page.url
    messages_arrive(fake_stripe, live_server)
    page.goto(f"{live_server.url}/wallet/")
    assert "50.00" in page.inner_text("main")


def test_who_cancels_comes_back_and_has_paid_nothing(page, live_server, fake_stripe):
    page.goto(f"{live_server.url}/wallet/top-up/?amount=25&currency=EUR")
    page.click("form.pay button[type=submit]")
    page.click("p.away a")
    assert page.url.startswith(f"{live_server.url}/wallet/top-up/")
    assert fake_stripe.messages(every=True)[-1]["type"] == "customer.created"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_payment_page_is_accessible_and_fits_a_narrow_screen(page, live_server, fake_stripe, chromium, theme):
    page.goto(f"{live_server.url}/pl/wallet/top-up/?amount=25&currency=EUR")
    page.click("form.pay button[type=submit]")
    context = chromium.new_context(viewport={"width": 360, "height": 800}, color_scheme=theme, bypass_csp=True)
    seen = context.new_page()
    for address in (page.url, f"{page.url}/challenge", f"{fake_stripe.url}/", f"{fake_stripe.url}/c/pay/nothing"):
        seen.goto(address)
        assert Axe().run(seen).response["violations"] == [], address
        assert seen.evaluate("document.documentElement.scrollWidth") <= 360, address
    context.close()
