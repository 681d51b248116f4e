"""From the application to the first sold hour and its earnings line: a company, an operator, a renter, in a browser.

The machine itself is played: it beats, starts and stops by direct calls.
"""

from datetime import UTC, datetime, timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line, Reference
from billing.models import Account, GatewayTransaction
from catalog.models import Gpu
from marketplace.models import Rental, Server
from marketplace.orders.place import place_order
from marketplace.rentals.provision import accept_start
from marketplace.rentals.ready import report_ready
from marketplace.rentals.stop import request_stop
from marketplace.servers import beat
from marketplace.settlement.due import settle_due
from tests.factories import make_member, make_operator, make_unmapped
from tests.marketplace.companies import STATED, make_company
from tests.marketplace.conftest import order_for
from tests.marketplace.on_pages import renter_with
from tests.marketplace.rental_clock import ACCESS, beats_all_along, up_all_along
from users.models import Role

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HOUR = timedelta(hours=1)
PAGES = (
    "/provider/",
    "/provider/application/",
    "/provider/bank-account/",
    "/provider/servers/",
    "/provider/servers/new/",
    "/provider/earnings/",
)
OPERATOR_PAGES = (
    "/operator/",
    "/operator/applications/",
    "/operator/servers/",
    "/operator/listings/",
    "/operator/breaches/",
    "/operator/audit/",
    "/operator/prices/",
    "/operator/top-ups/",
)


def signed_in(context, base_url: str, user):
    client = Client()
    client.force_login(user)
    cookie = client.cookies["sessionid"]
    context.add_cookies([{"name": "sessionid", "value": cookie.value, "url": base_url}])
    return context.new_page()


def sells_two_hours(server: Server, renter) -> None:
    """The server beats, a renter takes one of its GPUs for two hours, which are over and settled."""
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 4 * HOUR
    up_all_along(since=start - HOUR, until=start + 5 * HOUR)
    beat(server_id=server.pk, now=start)
    instruction = order_for(server.gpu, limit="2.88", hours=2, confirm_price=True)
    placed = place_order(organisation_id=renter.pk, instruction=instruction, now=start)
    rental = Rental.objects.get(order_id=placed.order_id)
    beats_all_along(server, since=start, until=start + 3 * HOUR)
    accept_start(rental_id=rental.pk, now=start + timedelta(seconds=10))
    report_ready(rental_id=rental.pk, access=ACCESS, now=start + timedelta(seconds=30))
    request_stop(organisation_id=renter.pk, rental_id=rental.pk, now=start + HOUR)
    settle_due(until=start + 4 * HOUR, now=start + 4 * HOUR)


def test_from_the_application_to_the_first_sold_hour(live_server, chromium, site_data):
    company, operator, renter = make_company(), make_operator(), renter_with(USD=1000)
    owner = make_member(organisation=company, role=Role.OWNER)
    seller = signed_in(chromium.new_context(java_script_enabled=False), live_server.url, owner)
    desk = signed_in(chromium.new_context(), live_server.url, operator)

    seller.goto(f"{live_server.url}/provider/application/")
    for name, text in STATED.items():
        seller.fill(f"#id_{name}", text)
    seller.check("#id_accept_terms")
    seller.check("#id_accept_self_billing")
    seller.click("text=Send for review")
    assert "under review" in seller.inner_text("main")

    desk.goto(f"{live_server.url}/operator/applications/{company.pk}/")
    desk.click("button:has-text('Approve')")

    seller.goto(f"{live_server.url}/provider/servers/new/")
    gpu = Gpu.objects.get(slug="h100-sxm")
    seller.select_option("#id_gpu", gpu.slug)
    values = {"name": "node-1", "device_uuids": "GPU-0000-1\nGPU-0000-2", "vcpus": "64", "ram_gb": "512"}
    for name, text in {**values, "disk_gb": "2000", "network_mbit_s": "10000"}.items():
        seller.fill(f"#id_{name}", text)
    seller.click("button:has-text('Add the server')")
    server = Server.objects.select_related("gpu").get()

    desk.goto(f"{live_server.url}/operator/servers/")
    desk.click("summary:has-text('Verify')")
    desk.fill(f"#reason-{server.pk}", "both cards answer")
    desk.click("button:has-text('Let node-1 sell')")

    seller.goto(f"{live_server.url}/provider/servers/{server.pk}/")
    seller.fill("#id_price", "2.88")
    seller.click("button:has-text('List the server')")
    sells_two_hours(server, renter)
    seller.goto(f"{live_server.url}/provider/earnings/")
    assert "node-1" in seller.inner_text("table >> nth=0")
    assert "2.88 USD" in seller.inner_text("table >> nth=0")
    make_unmapped()
    money_that_waits()
    look_at(chromium, live_server.url, owner, (*PAGES, f"/provider/servers/{server.pk}/", f"/providers/{company.pk}/"))
    look_at(chromium, live_server.url, operator, (*OPERATOR_PAGES, f"/operator/applications/{company.pk}/"))


def money_that_waits() -> None:
    """A payment that fits no top-up, and a movement that fits no entry."""
    now = datetime.now(UTC)
    gateway = open_account(kind=Account.Kind.GATEWAY, currency="EUR")
    unmatched = open_account(kind=Account.Kind.UNMATCHED, currency="EUR")
    ledger.post(
        key="unmatched:pi_1",
        kind="unmatched",
        lines=[Line(gateway.pk, -12_000_000), Line(unmatched.pk, 12_000_000)],
        effective_at=now,
        reference=Reference(type="payment", id="pi_1"),
    )
    GatewayTransaction.objects.create(
        transaction_id="txn_1", type="tax_fund", currency="EUR", amount_micros=-1, happened_at=now, seen_at=now
    )


def test_the_calculator_counts_without_a_script_by_keyboard(live_server, chromium, site_data):
    page = chromium.new_context(java_script_enabled=False).new_page()
    page.goto(f"{live_server.url}/providers/")
    page.select_option("#id_gpu", "h100-sxm")
    page.fill("#id_gpus", "4")
    page.select_option("#id_utilisation", "70")
    page.press("#id_gpus", "Enter")
    assert "gpus=4&utilisation=70" in page.url
    assert page.input_value("#id_gpus") == "4"
    page.fill("#id_gpus", "0")
    page.press("#id_gpus", "Enter")
    assert page.locator("#id_gpus_error").count() == 1


@pytest.mark.parametrize("who", ["renter", "provider", "operator", "nobody"])
def test_the_masthead_of_a_phone_takes_two_rows(live_server, chromium, site_data, who):
    context = chromium.new_context(viewport={"width": 360, "height": 800})
    people = {
        "renter": lambda: make_member(organisation=renter_with(USD=1)),
        "provider": lambda: make_member(organisation=make_company()),
        "operator": make_operator,
    }
    page = context.new_page() if who == "nobody" else signed_in(context, live_server.url, people[who]())
    for prefix in ("", "/nl", "/pl"):
        page.goto(f"{live_server.url}{prefix}/")
        tops = page.evaluate(
            "[...document.querySelectorAll('.mast a, .mast button')].filter(each => each.offsetParent)"
            ".map(each => Math.round((each.getBoundingClientRect().top + each.getBoundingClientRect().bottom) / 40))"
        )
        assert len(set(tops)) <= 2, (prefix, tops)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def look_at(chromium, base_url: str, user, paths) -> None:
    """No fault that axe knows, nothing wider than the window, at 360 and 1440, light and dark."""
    for width, theme in ((360, "dark"), (1440, "light"), (360, "light"), (1440, "dark")):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        page = signed_in(context, base_url, user)
        for path in paths:
            page.goto(base_url + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
            assert found.violations_count == 0, f"{path} at {width}, {theme}: {found.generate_report()}"
