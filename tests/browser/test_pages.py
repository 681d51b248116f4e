"""Every public page in Chromium: accessible, light, quiet, and whole at 360 and 1440 px in both themes."""

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import brotli
import pytest
from axe_playwright_python.sync_playwright import Axe

from catalog.refresh import refresh_source
from tests.pages import PAGES, TRANSLATED

PROJECT = Path(__file__).resolve().parent.parent.parent
SHOTS = PROJECT / "test-shots"
BUDGET_BYTES = 120_000
COMPRESSED_ALREADY = (".woff2", ".png", ".ico")

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def shot_name(path: str, width: int, theme: str) -> Path:
    name = path.strip("/").replace("/", "_").replace("?", "-").replace("=", "-").replace("&", "-") or "board"
    return SHOTS / f"{name}-{width}-{theme}.png"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible_and_fits_in_every_width_and_theme(open_page, path):
    SHOTS.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        for width in (360, 1440):
            visit = open_page(path, width=width, theme=theme)
            page = visit.page
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert overflow <= 0, f"{path} scrolls sideways by {overflow} px at {width} px"
            assert visit.complaints == []
            page.screenshot(path=shot_name(path, width, theme), full_page=True)


def weigh(visit) -> dict[str, int]:
    """Return the bytes of everything that came with a page, compressed, by address."""
    visit.page.wait_for_load_state("networkidle")
    sizes: dict[str, int] = {}
    for response in visit.responses:
        body = response.body() if response.status == 200 else b""
        compressed = response.url.split("?")[0].endswith(COMPRESSED_ALREADY)
        sizes[response.url] = len(body) if compressed else len(brotli.compress(body))
    return sizes


@pytest.mark.parametrize("path", TRANSLATED)
def test_a_page_in_another_language_is_accessible_fits_and_is_light(open_page, path):
    visit = open_page(path, width=360)
    sizes = weigh(visit)
    assert sum(sizes.values()) <= BUDGET_BYTES, sizes
    found = Axe().run(visit.page)
    assert found.violations_count == 0, found.generate_report()
    assert visit.complaints == []
    for width in (360, 1100, 1440):
        visit.page.set_viewport_size({"width": width, "height": 900})
        overflow = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{path} scrolls sideways by {overflow} px at {width} px"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_stays_within_the_byte_budget_and_asks_no_third_party(open_page, live_server, path):
    sizes = weigh(open_page(path))
    assert {urlsplit(url).netloc for url in sizes} == {urlsplit(live_server.url).netloc}
    assert sum(sizes.values()) <= BUDGET_BYTES, sizes


@pytest.mark.parametrize("path", [*PAGES, "/nl/gpus/h100-sxm/", "/pl/gpus/h100-sxm/"])
def test_a_page_says_the_same_without_javascript(open_page, path):
    with_script = open_page(path).page.inner_text("main")
    without = open_page(path, javascript=False).page.inner_text("main")
    assert without == with_script


@pytest.mark.parametrize("path", [*PAGES, "/pl/", "/pl/use-cases/llm-training/"])
def test_a_page_does_not_shift_while_it_loads(open_page, path):
    page = open_page(path, width=360).page
    shift = page.evaluate(
        """() => new Promise(done => {
            let total = 0;
            new PerformanceObserver(list => list.getEntries().forEach(e => { if (!e.hadRecentInput) total += e.value; }))
                .observe({type: 'layout-shift', buffered: true});
            requestAnimationFrame(() => requestAnimationFrame(() => done(total)));
        })"""
    )
    assert shift < 0.02


def test_the_first_tab_stop_skips_to_the_content(open_page):
    page = open_page("/").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.wait_for_url("**/#main", timeout=5000)


def test_a_chosen_theme_stays_on_the_next_page(open_page):
    page = open_page("/", theme="light").page
    paper = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(paper)
    page.click("[data-theme-switch]")
    assert page.evaluate(paper) != before
    page.click("text=GPU models >> nth=0")
    page.wait_for_url("**/gpus/")
    assert page.evaluate(paper) != before


def test_live_prices_fit_in_every_language_and_width(open_page, shared_data):
    """Live rows are longer than dated ones: who, which kind, how long ago."""
    report = refresh_source(source_name="skypilot", now=datetime.now(UTC), from_path=shared_data / "skypilot")
    assert not report.is_failure
    for language in ("", "/nl", "/pl"):
        for path in ("/", "/gpus/", "/gpus/h100-sxm/", "/use-cases/llm-training/", "/clouds/"):
            for width in (360, 1440):
                page = open_page(language + path, width=width).page
                overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert overflow <= 0, f"{language}{path} scrolls sideways by {overflow} px at {width} px"
