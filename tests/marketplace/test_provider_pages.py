"""`/provider/`: what is missing is said, forms put faults at their fields, who may not change something is refused."""

import csv
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from uuid import uuid4

import pytest
from django.test import Client

from marketplace.models import EnrolToken, Listing, Provider, ProviderApplication, Server
from marketplace.settlement.due import settle_due
from tests.factories import make_operator
from tests.marketplace.companies import AGREES, IBAN, STATED, applied, approved, make_company
from tests.marketplace.conftest import end_rental, make_listing, make_provider, make_running_rental, make_server
from tests.marketplace.on_pages import just_now, renter_with, somebody_of, words
from users.models import Organisation, Role

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12
HOUR = timedelta(hours=1)
MACHINE = {
    "name": "node-1",
    "gpu": "h100-sxm",
    "device_uuids": "GPU-0000-1\nGPU-0000-2",
    "country": "NL",
    "vcpus": "64",
    "ram_gb": "512",
    "disk_gb": "2000",
    "network_mbit_s": "10000",
    "interconnect": "nvlink",
}
PAGES = ["/provider/", "/provider/application/", "/provider/servers/", "/provider/servers/new/", "/provider/earnings/"]


@pytest.fixture
def company(db) -> Organisation:
    return make_company()


@pytest.fixture
def owner(company) -> Client:
    return somebody_of(company, role=Role.OWNER)


@pytest.fixture
def provider(company) -> Provider:
    return approved(company, operator=make_operator(), now=just_now())


@pytest.mark.parametrize("path", PAGES)
def test_every_page_opens_for_whoever_has_said_nothing_yet_and_writes_nothing(
    owner, path, django_assert_max_num_queries
):
    with django_assert_max_num_queries(MOST_QUERIES):
        page = owner.get(path)
    assert page.status_code == 200
    assert page["Cache-Control"] == "private, no-store"
    assert 'name="robots" content="noindex"' in page.content.decode()
    assert not Provider.objects.exists()


@pytest.mark.parametrize("path", PAGES)
def test_a_renter_is_told_why_nothing_is_here(path):
    renter = somebody_of(renter_with(), role=Role.OWNER)
    page = renter.get(path)
    assert page.status_code == 200
    assert "nobody trades with themselves" in words(page)
    assert renter.post("/provider/application/", STATED).status_code == 404
    assert not Provider.objects.exists()


def test_the_overview_says_what_is_missing_and_what_comes_next(owner):
    text = words(owner.get("/provider/"))
    assert "Missing: Company name, Register number, VAT number" in text
    assert text.index("Application") < text.index("Review") < text.index("Verification")


def test_an_application_is_saved_as_a_draft_sent_and_taken_back(owner, company):
    page = owner.post("/provider/application/", {"company_name": "Noord Compute B.V.", "iban": IBAN}, follow=True)
    assert "Saved." in page.content.decode()
    assert "NL..4300" in page.content.decode()
    assert IBAN not in page.content.decode()
    page = owner.post("/provider/application/", {"company_name": "Noord", "send": "1"}, follow=True)
    assert "Saved, but not sent" in page.content.decode()
    assert ProviderApplication.objects.get().company_name == "Noord"
    page = owner.post("/provider/application/", {**STATED, **dict.fromkeys(AGREES, "on"), "send": "1"}, follow=True)
    assert "Sent for review" in page.content.decode()
    assert "under review" in words(page)
    assert Provider.objects.get().state == "submitted"
    page = owner.post("/provider/application/take-back/", follow=True)
    assert "is a draft again" in page.content.decode()
    assert "changed" in owner.post("/provider/application/take-back/", follow=True).content.decode()


def test_a_blank_bank_account_keeps_the_stored_one(owner):
    owner.post("/provider/application/", {"iban": IBAN})
    owner.post("/provider/application/", {"city": "Delft", "iban": ""})
    stored = ProviderApplication.objects.get()
    assert (stored.iban_hint, stored.city) == ("NL..4300", "Delft")


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        ("iban", "NL00", "This is no IBAN"),
        ("vat_id", "NL1", "This is no VAT number"),
        ("contact_email", "x", "This is no e-mail address"),
        ("contact_phone", "x", "Write it with digits"),
    ],
)
def test_a_bad_field_is_told_at_the_field_and_on_top(owner, field, text, told):
    html = owner.post("/provider/application/", {field: text}).content.decode()
    assert f'id="id_{field}_error">{told}' in html
    assert "One thing to correct" in html
    assert not ProviderApplication.objects.exists()


def test_what_an_operator_said_is_read_on_the_page(owner, company):
    applied(company)
    assert 'action="/provider/application/take-back/"' in owner.get("/provider/application/").content.decode()
    Provider.objects.update(state="draft")
    company.provider.reviews.create(step="rejected", reason="The extract is too old.", at=just_now())
    for path in ("/provider/", "/provider/application/"):
        assert "The extract is too old." in words(owner.get(path))


def test_members_who_may_not_change_look_and_are_refused(company, provider, h100):
    server = make_server(gpu=h100, provider=provider, now=just_now())
    viewer = somebody_of(company, role=Role.VIEWER)
    page = viewer.get(f"/provider/servers/{server.pk}/")
    assert page.status_code == 200
    assert "/withdraw/" not in page.content.decode()
    posts = ["application/", "servers/new/", *(f"servers/{server.pk}/{end}" for end in ("", "pause/", "withdraw/"))]
    for path in posts:
        assert viewer.post(f"/provider/{path}", MACHINE).status_code == 403
    assert somebody_of(company, role=Role.TRADER).post("/provider/application/", STATED).status_code == 403


def test_what_is_another_providers_is_not_there(owner, provider, h100):
    theirs = make_server(gpu=h100, provider=make_provider(name="Other B.V."), now=just_now())
    for server_id in (theirs.pk, uuid4()):
        path = f"/provider/servers/{server_id}/"
        assert owner.get(path).status_code == 404
        for end in ("", "pause/", "resume/", "withdraw/", "enrol-token/"):
            assert owner.post(path + end, {"price": "1", "min_gpus": "1", "max_hours": "1"}).status_code == 404


def test_a_server_is_added_by_its_form_and_its_devices_are_refused_a_second_time(owner, provider, h100):
    page = owner.post("/provider/servers/new/", MACHINE, follow=True)
    assert "waits for verification" in words(page)
    assert "GPU-0000-2" in words(page)
    again = owner.post("/provider/servers/new/", {**MACHINE, "name": "node-2"}).content.decode()
    assert 'id="id_device_uuids_error">A server with one of these devices is here already.' in again
    taken = owner.post("/provider/servers/new/", {**MACHINE, "device_uuids": "GPU-0000-7"}).content.decode()
    assert 'id="id_name_error">You have a server of this name.' in taken
    twice = owner.post("/provider/servers/new/", {**MACHINE, "device_uuids": "GPU-0000-8 GPU-0000-8"}).content.decode()
    assert "A device id stands there twice." in twice
    assert Server.objects.count() == 1


def test_before_the_approval_no_server_is_added(owner, h100):
    assert "once the provider is approved" in words(owner.get("/provider/servers/new/"))
    owner.post("/provider/servers/new/", MACHINE)
    assert not Server.objects.exists()


def test_a_listing_is_made_changed_paused_and_resumed_with_the_markets_prices_beside_it(
    owner, provider, h100, django_assert_max_num_queries
):
    renter = renter_with()
    make_running_rental(renter=renter, gpu=h100, ready_at=just_now(), filled_at=just_now(), price="3.00", gpu_count=2)
    server = make_server(gpu=h100, provider=provider, now=just_now())
    path = f"/provider/servers/{server.pk}/"
    with django_assert_max_num_queries(MOST_QUERIES):
        text = words(owner.get(path))
    assert "Lowest 25 % Median 75 % Highest GPUs 3.00 3.00 3.00 3.00 3.00 2" in text
    terms = {"price": "2,88", "min_gpus": "2", "max_hours": "100", "available_until": ""}
    text = words(owner.post(path, terms, follow=True))
    assert "The server is listed." in text
    assert "for rent" in text
    assert "At your price or above went 100 % of the GPUs." in text
    assert "The terms are changed." in words(owner.post(path, {**terms, "price": "3.01"}, follow=True))
    listing = Listing.objects.get(server=server)
    assert (listing.price_usd_per_gpu_hour, listing.min_gpus, listing.max_hours) == (Decimal("3.01"), 2, 100)
    assert "Paused. What is sold goes on." in words(owner.post(f"{path}pause/", follow=True))
    assert "For rent again" in words(owner.post(f"{path}resume/", follow=True))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"price": "0"}, "price"),
        ({"price": "a"}, "price"),
        ({"min_gpus": "9"}, "min_gpus"),
        ({"max_hours": "8761"}, "max_hours"),
        ({"available_until": "2020-01-01"}, "available_until"),
    ],
)
def test_a_bad_term_is_told_at_its_field(owner, provider, h100, change, field):
    server = make_server(gpu=h100, provider=provider, now=just_now())
    terms = {"price": "2.88", "min_gpus": "1", "max_hours": "100", "available_until": "", **change}
    html = owner.post(f"/provider/servers/{server.pk}/", terms).content.decode()
    assert f'id="id_{field}_error"' in html
    assert "Nothing was changed." in html
    assert not Listing.objects.exists()


def test_an_enrol_token_is_shown_on_the_answer_alone(owner, provider, h100):
    server = make_server(gpu=h100, provider=provider, now=just_now())
    page = owner.post(f"/provider/servers/{server.pk}/enrol-token/")
    assert 'value="enrol_' in page.content.decode()
    assert EnrolToken.objects.count() == 1
    assert "enrol_" not in owner.get(f"/provider/servers/{server.pk}/").content.decode()


def test_a_server_is_withdrawn_unless_a_rental_is_open(owner, provider, h100):
    listing = make_listing(gpu=h100, provider=provider, now=just_now())
    rental = make_running_rental(
        renter=renter_with(), gpu=h100, ready_at=just_now(), filled_at=just_now(), listing=listing
    )
    path = f"/provider/servers/{listing.server_id}/"
    assert "A rental is open on this server" in words(owner.post(f"{path}withdraw/", follow=True))
    end_rental(rental, stop_at=just_now().replace(microsecond=0) + HOUR)
    assert "withdrawn" in words(owner.post(f"{path}withdraw/", follow=True))
    assert Server.objects.get().withdrawn_at is not None


def test_a_suspended_provider_reads_why_and_cannot_list(owner, provider, h100):
    server = make_server(gpu=h100, provider=provider, now=just_now())
    Provider.objects.update(state="suspended")
    path = f"/provider/servers/{server.pk}/"
    assert "terms cannot be changed" in words(owner.get(path))
    assert "an operator lifts it" in words(owner.get("/provider/"))
    terms = {"price": "2.88", "min_gpus": "1", "max_hours": "100"}
    owner.post(path, terms)
    assert not Listing.objects.exists()


def test_earnings_are_told_by_the_hour_as_a_page_and_as_a_file(owner, provider, h100, django_assert_max_num_queries):
    ready = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 5 * HOUR
    renter = renter_with()
    listing = make_listing(gpu=h100, provider=provider, price="2.88", now=ready - HOUR)
    rental = make_running_rental(
        renter=renter, gpu=h100, ready_at=ready, filled_at=ready - HOUR, hours=2, gpu_count=2, listing=listing
    )
    end_rental(rental, stop_at=ready + 2 * HOUR)
    settle_due(until=ready + 4 * HOUR, now=ready + 4 * HOUR)
    with django_assert_max_num_queries(MOST_QUERIES):
        page = owner.get("/provider/earnings/")
    text = words(page)
    assert "Net, USD 11.52 Our fee, USD 1.15 Payable, USD 10.37 Taken back, USD 0.00 Owed to you, USD 10.36" in text
    assert renter.name not in text
    assert "nothing is paid out yet" in text
    answer = owner.get("/provider/earnings.csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    lines = list(csv.DictReader(StringIO(b"".join(answer.streaming_content).decode())))
    assert [(line["net"], line["fee"], line["payable"]) for line in lines] == [("5.760000", "0.576000", "5.184000")] * 2
    nothing = owner.get("/provider/earnings/", {"from": "2020-01-01", "to": "2020-01-02"})
    assert "No hour was settled in these days." in words(nothing)
    wrong = owner.get("/provider/earnings/", {"from": "2020-01-02", "to": "2020-01-01"}).content.decode()
    assert 'id="id_to_error">This is before the first day.' in wrong
    assert owner.get("/provider/earnings/", {"page": "9"}).status_code == 404


def test_the_terms_can_be_read_by_everyone(client):
    text = words(client.get("/provider/terms/"))
    assert "Version 1, in force from 1 Dec 2026." in text
    assert "Self-billing agreement" in text


def test_somebody_without_an_organisation_is_refused_and_a_visitor_signs_in(client):
    assert client.get("/provider/").url.startswith("/account/login/")
    client.force_login(make_operator())
    assert client.get("/provider/").status_code == 403


@pytest.mark.parametrize("language", ["nl", "pl"])
@pytest.mark.parametrize("path", [*PAGES, "/provider/bank-account/", "/provider/terms/"])
def test_every_page_exists_in_every_language(owner, provider, language, path):
    page = owner.get(f"/{language}{path}")
    assert page.status_code == 200
    assert f'<html lang="{language}">' in page.content.decode()
