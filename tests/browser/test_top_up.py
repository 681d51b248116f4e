"""Money in and back out, by a person in Chromium: signed in, paid, seen in the wallet, declined, sent back."""

from datetime import UTC, datetime, timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import Page, expect

from billing.accounts import open_account
from billing.ledger import Reference
from billing.models import Account, TopUp
from billing.views import stripe_webhook
from tests.billing.conftest import UNIT, paid_top_up
from tests.billing.gateway_server import DECLINED_CARD, GOOD_CARD
from tests.billing.statements import book, run_rental
from tests.browser.conftest import Visit
from tests.browser.test_pages import SHOTS
from tests.browser.test_paying import messages_arrive
from tests.factories import make_member, make_organisation

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "a-long-enough-password-1"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def no_worker(monkeypatch):
    """Messages are applied when a test says so."""
    monkeypatch.setattr(stripe_webhook, "_nudge", lambda: None)


@pytest.fixture
def visit(chromium, live_server):
    """Return a function that makes a page: of a width and theme, for a person who is signed in where one is given."""
    contexts = []

    def make(*, person=None, width: int = 1440, theme: str = "light", javascript: bool = True) -> Visit:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            locale="en-GB",
            java_script_enabled=javascript,
            base_url=live_server.url,
        )
        contexts.append(context)
        if person is not None:
            client = Client()
            client.force_login(person)
            session = client.cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
        return Visit(context.new_page())

    yield make
    for context in contexts:
        context.close()


def sign_in(page: Page, email: str) -> None:
    page.goto("/account/login/?next=/wallet/")
    page.fill("input[name=login]", email)
    page.fill("input[name=password]", PASSWORD)
    page.click("button:text-is('Sign in')")
    page.wait_for_url("**/wallet/")


def top_up(page: Page, amount: str) -> None:
    page.goto("/wallet/top-up/")
    page.fill("input[name=amount]", amount)
    page.click("button:text-is('Continue to payment')")
    page.wait_for_url("**/c/pay/**")


def test_a_person_signs_in_pays_and_sees_the_money_arrive(visit, live_server, fake_stripe):
    make_member(email="ana@example.com", password=PASSWORD)
    page = visit().page
    sign_in(page, "ana@example.com")
    expect(page.locator("main")).to_contain_text("Nothing here yet.")
    page.click("a:text-is('Top up')")
    page.click(".amounts a:text-is('250')")
    page.click("button:text-is('Continue to payment')")
    page.wait_for_url("**/c/pay/**")
    page.check(f"input[value='{GOOD_CARD}']")
    page.click("form button")
    page.wait_for_url("**/wallet/top-up/**")
    expect(page.locator("main")).to_contain_text("Not paid yet, as far as we know.")
    messages_arrive(fake_stripe, live_server)
    # Nobody touches the page: it looks again by itself.
    expect(page.locator(".answer")).to_have_text("250.00 EUR are in your wallet.", timeout=15_000)
    page.click("a:text-is('To the wallet')")
    expect(page.locator(".lead")).to_contain_text("Free to spend: 250.00 EUR.")
    expect(page.locator(".statement tbody th[scope=row] a")).to_have_text("Top-up")


def test_a_declined_card_charges_nothing_and_the_same_top_up_is_paid_with_another(visit, live_server, fake_stripe):
    page = visit(person=make_member(), javascript=False).page
    top_up(page, "40")
    page.check(f"input[value='{DECLINED_CARD}']")
    page.click("form button")
    expect(page.locator("[role=alert]")).to_be_visible()
    page.click("p.away a")
    expect(page.locator("main")).to_contain_text("nothing was charged and the payment page is still open")
    page.goto("/wallet/")
    expect(page.locator("main")).to_contain_text("A top-up of 40.00 EUR is not in the wallet yet")
    page.click("text=See where it stands")
    page.click("a:text-is('Continue to payment')")
    page.check(f"input[value='{GOOD_CARD}']")
    page.click("form button")
    messages_arrive(fake_stripe, live_server)
    page.goto("/wallet/")
    expect(page.locator(".lead")).to_contain_text("Free to spend: 40.00 EUR.")
    assert TopUp.objects.count() == 1


def test_unused_money_goes_back_after_it_was_shown_where_to(visit, live_server, fake_stripe):
    page = visit(person=make_member(), javascript=False, width=360).page
    for _ in range(2):
        top_up(page, "30")
        page.check(f"input[value='{GOOD_CARD}']")
        page.click("form button")
        messages_arrive(fake_stripe, live_server)
    page.goto("/wallet/")
    page.click("text=Refund unused money")
    page.fill("input[name=amount]", "40")
    page.click("button:text-is('Show where it goes')")
    expect(page.locator("td.best")).to_have_text(["30.00", "10.00"])
    page.click("button:has-text('Send 40.00')")
    expect(page.locator("[role=status]")).to_contain_text("has left your wallet and is on its way back.")
    expect(page.locator(".refunds tbody tr")).to_have_count(2)
    page.goto("/wallet/")
    expect(page.locator(".lead")).to_contain_text("Free to spend: 20.00 EUR.")


@pytest.fixture
def busy_wallet():
    """An owner whose organisation has paid, spent, holds and owes; the pages to look at by name."""
    now, organisation = datetime.now(UTC), make_organisation()
    person = make_member(organisation=organisation)
    eur = open_account(kind=Account.Kind.WALLET, currency="EUR", owner_id=organisation.pk)
    paid = paid_top_up(eur, units=1840, paid_at=now - 26 * DAY)
    for number in range(30):
        words = "8 × H100 SXM, 3600 s at 2.88 USD, rate 1.1476"
        rental = Reference(type="rental", id="r-1")
        book(eur, -20_081_234, at=now - 3 * DAY + number * HOUR, description=words, reference=rental)
    run_rental(eur, held_units=420, burn_micros_per_hour=20_081_234)
    waiting = TopUp.objects.create(
        organisation=organisation,
        wallet=eur,
        currency="EUR",
        amount_micros=50 * UNIT,
        state="open",
        gateway_key="k",
        checkout_session_id="cs_1",
        checkout_url="https://pay.example/",
        created_at=now,
        expires_at=now + 2 * HOUR,
    )
    pages = {
        "wallet": "/wallet/",
        "wallet-filtered": "/wallet/?currency=EUR&kind=top-ups",
        "wallet-faults": "/wallet/?from=2026-11-30&to=2026-11-01&currency=JPY",
        "top-up": "/wallet/top-up/?currency=EUR&amount=100",
        "top-up-open": f"/wallet/top-up/{waiting.pk}/?look=99",
        "top-up-paid": f"/wallet/top-up/{paid.pk}/",
        "refund": "/wallet/refund/?currency=EUR&amount=500",
        "refund-faults": "/wallet/refund/?currency=EUR&amount=5000",
    }
    return person, pages


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_every_page_about_money_is_accessible_and_fits(visit, busy_wallet, fake_stripe, width, theme):
    person, pages = busy_wallet
    seen = visit(person=person, width=width, theme=theme)
    SHOTS.mkdir(parents=True, exist_ok=True)
    for name, path in pages.items():
        answer = seen.page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        seen.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found = Axe().run(seen.page)
        assert found.violations_count == 0, f"{name}: {found.generate_report()}"
        is_whole(seen.page, name)
        assert seen.complaints == []
        seen.page.screenshot(path=SHOTS / f"{name}-{width}-{theme}.png", full_page=True)


@pytest.mark.parametrize("language", ["nl", "pl"])
def test_every_page_about_money_fits_in_other_languages(visit, busy_wallet, fake_stripe, language):
    person, pages = busy_wallet
    seen = visit(person=person, width=360)
    for name, path in pages.items():
        seen.page.goto(f"/{language}{path}")
        is_whole(seen.page, name)


def test_the_pages_say_the_same_without_javascript(visit, busy_wallet, fake_stripe):
    person, pages = busy_wallet
    with_script, without = visit(person=person).page, visit(person=person, javascript=False).page
    for name, path in pages.items():
        with_script.goto(path)
        without.goto(path)
        assert without.inner_text("main") == with_script.inner_text("main"), name


def test_a_new_wallet_invites(visit, fake_stripe):
    seen = visit(person=make_member(), width=360)
    for path in ("/wallet/", "/wallet/top-up/", "/wallet/refund/"):
        seen.page.goto(path)
        found = Axe().run(seen.page)
        assert found.violations_count == 0, found.generate_report()
        is_whole(seen.page, path)


def is_whole(page: Page, name: str) -> None:
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0, f"{name} scrolls sideways by {overflow} px"
