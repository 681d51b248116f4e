"""A person trades by clicking: the best offer, an own price, a cancel; and the book that renews itself while one looks."""

import re
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client

from catalog.models import Gpu
from marketplace.models import Order
from tests.factories import make_member
from tests.marketplace.on_pages import just_now, on_offer, placed_by, renter_with

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
URL = "/market/h100-sxm/"


@pytest.fixture
def h100(site_data) -> Gpu:
    return Gpu.objects.get(slug="h100-sxm")


@pytest.fixture
def renter(h100):
    return renter_with(USD=1000)


@pytest.fixture
def open_as_trader(chromium, live_server, renter):
    """Return a function that opens a path as a trader of the renter, in a page that notes what it asks for."""
    client = Client()
    client.force_login(make_member(organisation=renter))
    contexts = []

    def open_path(path: str, *, width: int = 1440, javascript: bool = True):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=javascript, locale="en-GB"
        )
        contexts.append(context)
        context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda m: page.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(live_server.url + path, wait_until="load")
        return page

    yield open_path
    for context in contexts:
        context.close()


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_without_javascript_the_best_offer_is_rented_in_two_steps_on_a_phone(open_as_trader, h100):
    on_offer(h100, price="2.88")
    page = open_as_trader(URL, width=360, javascript=False)
    page.fill("#id_gpu_count", "4")
    page.fill("#id_hours", "2")
    page.click("#ticket-form button[type=submit]")
    assert "Rent 4 × H100 SXM for 2 hours at 2.88 USD or less" in page.inner_text(".say")
    page.click("form[action$='/place/'] button[type=submit]")
    assert re.search(r"/orders/[\w-]{36}/$", page.url)
    assert "Filled at 2.88 USD" in page.inner_text("main")
    assert Order.objects.get().state == "filled"


def test_an_own_price_rests_in_the_book_and_is_cancelled_from_its_page(open_as_trader, h100):
    on_offer(h100, price="2.88")
    page = open_as_trader(URL)
    page.click("text=My price")
    page.fill("#id_price", "2.50")
    page.click("#ticket-form button[type=submit]")
    page.click("form[action$='/place/'] button[type=submit]")
    assert "0.38 above your limit" in page.inner_text("main")
    order_page = page.url
    page.goto(page.url.split("/orders/")[0] + URL)
    assert "yours" in page.inner_text(".ladder")
    page.goto(order_page)
    page.click("text=Cancel the order")
    assert "are available again" in page.inner_text("[role=status]")
    assert Order.objects.get().state == "cancelled"
    assert page.complaints == []


def test_a_price_of_the_ladder_goes_into_the_ticket_and_the_sum_follows(open_as_trader, h100):
    on_offer(h100, price="2.88")
    on_offer(h100, price="3.10")
    page = open_as_trader(URL)
    assert "at 2.88 USD or less" in page.inner_text("#summary")
    page.click(".ladder a[data-price='3.10']")
    assert page.url.endswith(URL), "no page was loaded"
    assert (page.input_value("#id_price"), page.is_checked("[name=kind][value=limit]")) == ("3.10", True)
    page.wait_for_selector("#summary :text('at 3.10 USD or less')", timeout=10_000)
    page.fill("#id_gpu_count", "8")
    page.wait_for_selector("#summary :text('Rent 8')", timeout=10_000)
    assert "720.19\N{NO-BREAK SPACE}USD" in page.text_content("#dock-says"), "8 x 24 x 3.10 and 21 %"
    page.fill("#id_gpu_count", "0")
    page.wait_for_selector("#summary :text('Fill in the ticket')", timeout=10_000)
    assert page.complaints == []


def look_again(page) -> None:
    with page.expect_response("**/live/**"):
        page.evaluate("document.getElementById('live').dispatchEvent(new Event('look'))")


def test_the_book_renews_itself_unless_nothing_changed_or_somebody_types(open_as_trader, h100):
    on_offer(h100, price="2.88")
    page = open_as_trader(URL)
    asked = []
    page.on("response", lambda response: asked.append(response.status) if "/live/" in response.url else None)
    page.evaluate("document.querySelector('#live .ladder').dataset.same = 'yes'")
    look_again(page)
    assert page.locator(".ladder[data-same=yes]").count() == 1, "an unchanged book stays as it stands"

    placed_by(renter_with(name="Other Labs", USD=1000), h100, gpu_count=8, hours=1, time_in_force="ioc")
    look_again(page)
    page.wait_for_selector("text=no offer for one GPU now", timeout=10_000)
    assert asked in ([304, 200], [200, 200]), "the minute may have turned in between"

    page.focus("#id_gpu_count")
    before = len(asked)
    page.evaluate("document.getElementById('live').dispatchEvent(new Event('look'))")
    page.evaluate("document.activeElement.blur()")
    look_again(page)
    assert len(asked) == before + 1, "it rested while the ticket had the focus"

    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.evaluate("document.getElementById('live').dispatchEvent(new Event('look'))")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
    look_again(page)
    assert len(asked) == before + 2, "it rested while nobody could see it"
    assert page.complaints == []


def test_the_polling_is_every_fifteen_seconds_and_starts_again_when_the_page_is_seen(open_as_trader, h100):
    page = open_as_trader(URL)
    assert page.get_attribute("#live", "data-hx-trigger") == "every 15s, look"
    with page.expect_response("**/live/**"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_lively_market_and_its_orders_are_accessible_and_fit_in_every_language(open_as_trader, h100, renter):
    now = just_now()
    for price, country in (("2.88", "NL"), ("2.95", "FI"), ("3.05", "DE")):
        on_offer(h100, price=price, country=country)
    placed_by(renter, h100, gpu_count=5, limit="2.50", hours=3)
    filled = placed_by(renter, h100, gpu_count=2, hours=3, time_in_force="ioc", now=now)
    waiting = placed_by(
        renter, h100, gpu_count=4, server_count=9, limit="2.20", hours=1, now=now + timedelta(seconds=1)
    )
    paths = [
        "/market/",
        URL,
        f"{URL}?kind=limit&price=2.60&gpu_count=8&countries=NL",
        "/orders/",
        f"/orders/{filled.order_id}/",
        f"/orders/{waiting.order_id}/",
    ]
    page = open_as_trader("/market/", width=360)
    site = page.url.removesuffix("/market/")
    for path in [f"{language}{path}" for language in ("", "/nl", "/pl") for path in paths]:
        page.set_viewport_size({"width": 360, "height": 900})
        page.goto(site + path, wait_until="load")
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        for width in (360, 768, 1100, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert overflow(page) <= 0, (path, width)
    assert page.complaints == []


@pytest.mark.parametrize(
    "query", ["?kind=best", "?kind=limit&price=2.60", "?kind=best&gpu_count=16", "?gpu_count=8&hours=700"]
)
def test_each_kind_of_review_is_accessible_and_fits_a_phone(open_as_trader, h100, query):
    on_offer(h100, price="2.88")
    page = open_as_trader(URL + query, width=360)
    page.click("#ticket-form button[type=submit]")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert overflow(page) <= 0
