"""A machine by clicking: rented, started, stopped, and the line it left in the books; and every page about rentals."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import Page, expect

from billing.checks import run_checks
from catalog.models import Gpu
from marketplace.checks import run_checks as run_market_checks
from marketplace.models import Rental, RunwayAlert, Server
from marketplace.rentals.end import acknowledge_stop
from marketplace.rentals.provision import accept_start, report_failed
from marketplace.rentals.ready import report_ready
from marketplace.servers import beat
from marketplace.sweep import note_up
from tests.browser.conftest import Visit
from tests.browser.test_pages import SHOTS
from tests.factories import make_member, make_operator
from tests.marketplace.on_pages import just_now, on_offer, renter_with
from tests.marketplace.proven_rentals import finnish_renter, raised_rental, stopped_lot
from tests.marketplace.rental_clock import ACCESS
from tests.marketplace.rentals_now import HOUR, MINUTE, rented, running, stop_now
from users.models import Organisation, User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def h100(site_data) -> Gpu:
    return Gpu.objects.get(slug="h100-sxm")


@pytest.fixture
def visit_as(chromium, live_server):
    """Return a function that makes a page for somebody who is signed in."""
    contexts = []

    def visit(person: User, *, width: int = 1440, theme: str = "light", javascript: bool = True) -> Visit:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            locale="en-GB",
            java_script_enabled=javascript,
            base_url=live_server.url,
        )
        contexts.append(context)
        client = Client()
        client.force_login(person)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
        return Visit(context.new_page())

    yield visit
    for context in contexts:
        context.close()


def machine_starts(rental: Rental) -> None:
    """The rental's machine beats, takes it on, and answers the probe."""
    note_up(now=just_now())
    beat(server_id=rental.server_id, now=just_now())
    accept_start(rental_id=rental.pk, now=just_now())
    report_ready(rental_id=rental.pk, access=ACCESS, now=just_now())


def rent_by_clicking(page: Page) -> Rental:
    page.goto("/market/h100-sxm/?kind=best&gpu_count=4&term=open&wallet=USD")
    page.click("#ticket-form button[type=submit]")
    page.click("form[action$='/place/'] button[type=submit]")
    page.click("section[aria-labelledby=rentals] tbody a")
    page.wait_for_url("**/rentals/**")
    return Rental.objects.get()


def test_a_person_rents_runs_stops_and_sees_the_line(visit_as, h100):
    on_offer(h100, price="2.88")
    visit = visit_as(make_member(organisation=renter_with(USD=1000)))
    page = visit.page
    rental = rent_by_clicking(page)
    expect(page.locator("#live .lead")).to_contain_text("Nothing is billed before it answers")
    machine_starts(rental)
    # Nobody touches the page: it looks again by itself.
    expect(page.locator("#live .lead")).to_contain_text("Billed since", timeout=15_000)
    expect(page.locator("#live .shell")).to_have_text("ssh -p 2201 root@203.0.113.7")
    page.click("a:text-is('Stop…')")
    expect(page.locator(".lead")).to_contain_text("come back")
    page.click("button:text-is('Stop it, release the rest')")
    expect(page.locator("[role=status]")).to_contain_text("Stopped. It cost")
    acknowledge_stop(rental_id=rental.pk, now=just_now())
    expect(page.locator("#live .lead")).to_contain_text("It is over", timeout=15_000)
    hour = page.locator(".hour").last
    hour.locator("summary").click()
    expect(hour.locator(".formula")).to_contain_text("4 × 2.88 USD ×")
    expect(hour.locator(".formula")).to_contain_text("done again for this page from seconds and rates: the same")
    page.goto("/wallet/")
    page.click("a:text-is('GPU-hours') >> nth=0")
    page.wait_for_url(f"**/rentals/{rental.pk}/")
    assert visit.complaints == []
    assert [check for check in (*run_checks(now=just_now()), *run_market_checks(now=just_now())) if not check.ok] == []


def test_without_javascript_on_a_phone_it_is_stopped_in_two_steps(visit_as, h100):
    on_offer(h100, price="2.88")
    page = visit_as(make_member(organisation=renter_with(USD=1000)), width=360, javascript=False).page
    rental = rent_by_clicking(page)
    machine_starts(rental)
    page.click("a:text-is('Look again')")
    expect(page.locator("#live .lead")).to_contain_text("Billed since")
    page.click("a:text-is('Stop…')")
    page.click("button:text-is('Stop it, release the rest')")
    rental.refresh_from_db()
    assert rental.state == "ending"


def look_again(page: Page) -> None:
    with page.expect_response("**/live/**"):
        page.evaluate("document.getElementById('live').dispatchEvent(new Event('look'))")


def test_an_hour_that_was_opened_stays_open_when_the_page_looks_again(visit_as, h100):
    organisation = renter_with(USD=1000)
    rental = running(organisation, h100, ago=10 * MINUTE, hours=3)
    visit = visit_as(make_member(organisation=organisation))
    page = visit.page
    page.goto(f"/rentals/{rental.pk}/")
    page.evaluate("document.querySelector('.hour details').open = true")
    before = page.inner_text(".hour .came b >> nth=0")
    expect(page.locator(".hour .came b").first).not_to_have_text(before, timeout=15_000)
    assert page.evaluate("document.querySelector('.hour details').open")
    assert visit.complaints == []


def test_a_rental_that_is_over_is_asked_for_no_more(visit_as, h100):
    organisation = renter_with(USD=1000)
    rental = stop_now(running(organisation, h100, ago=10 * MINUTE))
    visit = visit_as(make_member(organisation=organisation))
    visit.page.goto(f"/rentals/{rental.pk}/")
    assert visit.page.get_attribute("#live", "data-hx-trigger") == "look"
    look_again(visit.page)
    assert visit.complaints == []


@pytest.fixture
def busy(h100) -> tuple[User, dict[str, str]]:
    """A member whose organisation has rentals of every kind; the pages to look at by name."""
    organisation = finnish_renter()
    lot, raised = stopped_lot(h100, organisation), raised_rental(Gpu.objects.get(slug="h200-sxm"), organisation)
    present = _present(organisation)
    pages = {
        "rentals": "/rentals/",
        "rental-lot": f"/rentals/{lot.pk}/",
        "rental-raised": f"/rentals/{raised.pk}/",
        **{f"rental-{name}": f"/rentals/{rental.pk}/" for name, rental in present.items()},
        "rental-stop": f"/rentals/{present['running'].pk}/stop/",
        "rental-order": f"/orders/{present['starting'].order_id}/",
        "rental-wallet": "/wallet/",
    }
    return make_member(organisation=organisation), pages


def _present(organisation: Organisation) -> dict[str, Rental]:
    def gpu(slug: str) -> Gpu:
        return Gpu.objects.get(slug=slug)

    runs = running(organisation, gpu("b300"), ago=50 * MINUTE, hours=None, currency="EUR", is_sample=True)
    starts = rented(organisation, gpu("b200"), currency="EUR", hours=2, is_sample=True)
    accept_start(rental_id=starts.pk, now=just_now())
    failed = rented(organisation, gpu("h100-nvl"), currency="EUR")
    report_failed(rental_id=failed.pk, reason="image_pull_failed", now=just_now())
    RunwayAlert.objects.create(
        organisation=organisation,
        wallet=runs.wallet,
        currency="EUR",
        level_seconds=10800,
        lasts_until=just_now() + HOUR,
        raised_at=just_now(),
    )
    Server.objects.filter(pk=runs.server_id).update(last_beat_at=just_now())
    return {"running": runs, "starting": starts, "failed": failed}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_every_page_about_rentals_is_accessible_and_fits(visit_as, busy, width, theme):
    person, pages = busy
    SHOTS.mkdir(parents=True, exist_ok=True)
    member, operator = visit_as(person, width=width, theme=theme), visit_as(make_operator(), width=width, theme=theme)
    for name, path in {**pages, "operator-rentals": "/operator/rentals/"}.items():
        seen = operator if name.startswith("operator") else member
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
def test_every_page_about_rentals_fits_in_other_languages(visit_as, busy, language):
    person, pages = busy
    page = visit_as(person, width=360).page
    for name, path in pages.items():
        answer = page.goto(f"/{language}{path}")
        assert answer is not None
        assert answer.status == 200, path
        is_whole(page, name)


def is_whole(page: Page, name: str) -> None:
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0, f"{name} scrolls sideways by {overflow} px"
