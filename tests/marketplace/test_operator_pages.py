"""`/operator/`: everything that waits, with counts; each decision takes a reason and is written down."""

import pytest
from django.test import Client

from billing.books import open_stop
from billing.models import BooksStop
from marketplace.models import Listing, Provider, Server
from tests.factories import make_member, make_operator, make_unmapped
from tests.marketplace.companies import IBAN, applied, approved, make_company
from tests.marketplace.conftest import make_listing
from tests.marketplace.on_pages import just_now, words
from users.models import AuditRecord, User

pytestmark = pytest.mark.django_db
MOST_QUERIES = 14
PAGES = [
    "/operator/",
    "/operator/applications/",
    "/operator/servers/",
    "/operator/listings/",
    "/operator/breaches/",
    "/operator/audit/",
    "/operator/prices/",
]


@pytest.fixture
def operator(db) -> User:
    return make_operator()


@pytest.fixture
def desk(operator) -> Client:
    client = Client()
    client.force_login(operator)
    return client


@pytest.mark.parametrize("path", PAGES)
def test_only_operators_open_it(client, desk, path):
    assert client.get(path).url.startswith("/account/login/")
    assert desk.get(path).status_code == 200
    client.force_login(make_member())
    assert client.get(path).status_code == 403
    assert client.post(path, {"decision": "lift", "reason": "x"}).status_code in (403, 405)


def test_the_first_page_counts_what_waits_and_leads_to_every_page(desk, operator, h100, django_assert_max_num_queries):
    applied(make_company(name="Waiting B.V."))
    provider = approved(make_company(), operator=operator)
    make_listing(gpu=h100, provider=provider)
    make_unmapped()
    with django_assert_max_num_queries(MOST_QUERIES):
        page = desk.get("/operator/")
    text, html = words(page), page.content.decode()
    assert "1 waits for review 1 approved provider" in text
    assert "0 wait for verification 1 server, 1 listed" in text
    assert "1 name is unclear" in text
    assert "none: the books add up" in text
    for name in [
        "applications",
        "servers",
        "listings",
        "rentals",
        "top-ups",
        "disputes",
        "breaches",
        "prices",
        "audit",
    ]:
        assert f'href="/operator/{name}/"' in html


def test_applications_are_listed_by_state_what_waits_first(desk, operator):
    approved(make_company(name="First B.V."), operator=operator)
    applied(make_company(name="Second B.V."))
    text = words(desk.get("/operator/applications/"))
    assert text.index("Second B.V.") < text.index("First B.V.")
    assert "First B.V." not in words(desk.get("/operator/applications/", {"state": "submitted"}))
    assert desk.get("/operator/applications/", {"state": "x"}).status_code == 404
    assert desk.get("/operator/applications/", {"page": "9"}).status_code == 404


def test_an_application_is_read_whole_and_decided_with_a_reason(desk, operator, h100):
    company = make_company()
    applied(company)
    path = f"/operator/applications/{company.pk}/"
    html = desk.get(path).content.decode()
    assert IBAN in html
    assert 'value="approved"' in html
    assert 'value="suspended"' not in html
    assert "Give a reason" in desk.post(path, {"decision": "rejected", "reason": " "}).content.decode()
    assert Provider.objects.get().state == "submitted"
    desk.post(path, {"decision": "approved", "reason": "register checked"})
    assert Provider.objects.get().state == "approved"
    make_listing(gpu=h100, provider=Provider.objects.get())
    desk.post(path, {"decision": "suspended", "reason": "not what was said"})
    assert Listing.objects.get().state == "paused"
    assert "not what was said" in words(desk.get(path))
    records = AuditRecord.objects.filter(subject_type="provider", actor=operator).values_list("action", "reason")
    assert list(records) == [("provider.approved", "register checked"), ("provider.suspended", "not what was said")]


@pytest.mark.parametrize("decision", ["approved", "submitted", "made-up", ""])
def test_a_decision_that_is_not_open_changes_nothing(desk, decision):
    company = make_company()
    applied(company)
    Provider.objects.update(state="draft")
    answer = desk.post(f"/operator/applications/{company.pk}/", {"decision": decision, "reason": "why"})
    assert answer.status_code == 200
    assert Provider.objects.get().state == "draft"
    assert desk.post("/operator/applications/999999/", {"decision": "approved"}).status_code == 404


def test_a_server_is_verified_and_taken_off_sale_with_a_reason(desk, operator, h100):
    provider = approved(make_company(), operator=operator)
    server = make_listing(gpu=h100, provider=provider, now=just_now()).server
    path = f"/operator/servers/{server.pk}/decide/"
    assert "Give a reason" in words(desk.post(path, {"decision": "unverify", "reason": ""}, follow=True))
    assert "no such decision" in words(desk.post(path, {"decision": "x", "reason": "y"}, follow=True))
    assert "Decided and written down." in words(
        desk.post(path, {"decision": "unverify", "reason": "gone"}, follow=True)
    )
    assert "nothing was changed" in words(desk.post(path, {"decision": "unverify", "reason": "gone"}, follow=True))
    assert Server.objects.get().verified_at is None
    assert server.name in words(desk.get("/operator/servers/", {"state": "waiting"}))
    assert server.name not in words(desk.get("/operator/servers/", {"state": "verified"}))
    desk.post(path, {"decision": "verify", "reason": "back"})
    assert Server.objects.get().verified_at is not None
    assert AuditRecord.objects.filter(action__startswith="server.").count() == 2
    assert desk.get("/operator/servers/", {"state": "x"}).status_code == 404


@pytest.mark.broken_books
def test_a_stop_of_the_books_is_shown_and_lifted_with_a_reason(desk, operator):
    BooksStop.objects.create(breach="I1 postings: 3 do not sum to zero", stopped_at=just_now())
    assert "I1 postings" in words(desk.get("/operator/"))
    assert "I1 postings" in words(desk.get("/operator/breaches/"))
    assert "Give a reason" in desk.post("/operator/breaches/", {"decision": "lift", "reason": " "}).content.decode()
    assert open_stop() is not None
    text = words(desk.post("/operator/breaches/", {"decision": "lift", "reason": "entry 7 reversed"}, follow=True))
    assert "New money may leave again." in text
    assert open_stop() is None
    record = AuditRecord.objects.get(action="books.released")
    assert (record.actor, record.reason) == (operator, "entry 7 reversed")
    again = desk.post("/operator/breaches/", {"decision": "lift", "reason": "again"}, follow=True)
    assert "The books are not stopped" in words(again)
