"""`/api/docs/` in Chromium: a table for everybody, a viewer that works from our own files under our own policy."""

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DOCS = "/api/docs/"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_the_viewer_opens_a_call_without_a_complaint_or_a_foreign_request(open_page, live_server, theme, width):
    visit = open_page(DOCS, theme=theme, width=width)
    visit.page.locator("#operations-prices-list_prices button.opblock-summary-control").click()
    visit.page.get_by_role("button", name="Try it out").click()
    visit.page.get_by_role("button", name="Execute").click()
    visit.page.wait_for_selector(".live-responses-table .response-col_status:has-text('200')")
    assert visit.complaints == []
    assert all(url.startswith((live_server.url, "data:")) for url in visit.requests)
    assert visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_our_part_of_the_page_is_accessible(open_page):
    page = open_page(DOCS).page
    # The viewer is not ours, and brings a main landmark of its own; whoever it keeps out has the table and the document.
    own_part = {"exclude": [["#swagger-ui"]]}
    found = Axe().run(page, context=own_part, options={"rules": {"landmark-no-duplicate-main": {"enabled": False}}})
    assert found.violations_count == 0, found.generate_report()


def test_without_javascript_the_calls_are_listed_and_the_description_is_linked(open_page):
    page = open_page(DOCS, javascript=False).page
    text = page.inner_text("main")
    for path in ("/api/v1/gpus/", "/api/v1/gpus/resolve/", "/api/v1/prices/", "/api/v1/offers/", "/api/v1/sources/"):
        assert path in text
    assert page.get_attribute("main a[href$='/schema/']", "href") == "/api/v1/schema/"


def test_only_this_page_may_set_styles_on_elements(client, site_data):
    assert "'unsafe-inline'" in client.get(DOCS)["Content-Security-Policy"]
    assert "script-src" not in client.get(DOCS)["Content-Security-Policy"]
    assert "'unsafe-inline'" not in client.get("/gpus/")["Content-Security-Policy"]
