"""A real browser on a real server with the repository's own data.

Without Chromium these tests say so and are skipped; with REQUIRE_BROWSER=1 its absence is a failure.
"""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Response, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("REQUIRE_BROWSER=1, but no Chromium was found")
        pytest.skip("NO CHROMIUM on this machine: the browser tests did not run (apt install chromium)")
    # Playwright's own loop runs in this thread; Django must not take it for an async view.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """One opened page with what the browser said and fetched meanwhile."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.responses: list[Response] = []
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("response", lambda response: self.responses.append(response))  # a bare method is refused


@pytest.fixture
def open_page(chromium, live_server, site_data):
    """Return a function that opens a path in a fresh context and hands back the visit."""
    contexts = []

    def open_path(path: str, *, width: int = 1440, theme: str = "light", javascript: bool = True) -> Visit:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, java_script_enabled=javascript, locale="en-GB"
        )
        contexts.append(context)
        visit = Visit(context.new_page())
        answer = visit.page.goto(live_server.url + path, wait_until="load")
        assert answer is not None
        assert answer.status == 200, path
        visit.page.evaluate("document.fonts.ready.then(() => null)") if javascript else None
        return visit

    yield open_path
    for context in contexts:
        context.close()
