"""The operator's lists: listings to pause, the record to look through, prices to rule on; each with a reason."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core import mail
from django.test import Client
from django.utils import translation

from billing.models import BooksStop
from catalog.models import BestAsk
from marketplace.listings import ListingUnknown
from marketplace.models import Listing, Rental
from marketplace.providers.decisions import pause_listing
from marketplace.providers.fleet import resume_offer
from marketplace.providers.review import ReasonMissing
from marketplace.queries.records import names_waiting
from tests.factories import make_gpu, make_member, make_offer, make_operator, make_organisation, make_unmapped
from tests.marketplace.conftest import NOW, make_listing, make_provider
from tests.marketplace.on_pages import just_now, on_offer, placed_by, renter_with, words
from users.audit import record
from users.models import AuditRecord, Role, User

pytestmark = pytest.mark.django_db
LISTINGS, AUDIT, PRICES = "/operator/listings/", "/operator/audit/", "/operator/prices/"
MOST_QUERIES = 12


@pytest.fixture
def operator(db) -> User:
    return make_operator()


@pytest.fixture
def desk(operator) -> Client:
    client = Client()
    client.force_login(operator)
    return client


# --- Listings ----------------------------------------------------------------------------------------------


def test_listings_are_shown_by_state_with_price_and_what_is_free(desk, h100, django_assert_max_num_queries):
    make_listing(gpu=h100, price="2.88", name="node-1")
    paused = make_listing(gpu=h100, price="3.10", name="node-2")
    Listing.objects.filter(pk=paused.pk).update(state="paused")
    with django_assert_max_num_queries(MOST_QUERIES):
        text = words(desk.get(LISTINGS))
    assert text.index("node-1") < text.index("node-2")
    assert "8 GPUs free, 1 at least, 720 hours at most" in text
    assert "node-1" not in words(desk.get(LISTINGS, {"state": "paused"}))
    assert desk.get(LISTINGS, {"state": "x"}).status_code == 404
    assert desk.get(LISTINGS, {"page": "9"}).status_code == 404
    Listing.objects.filter(pk=paused.pk).update(state="active")


def test_a_listing_is_paused_with_a_reason_that_its_owners_read_and_nothing_more_is_sold(
    desk, h100, operator, django_capture_on_commit_callbacks
):
    listing = on_offer(h100)
    renter = renter_with(USD=1000)
    placed_by(renter, h100)
    owner = make_member(organisation=listing.server.provider.organisation, role=Role.OWNER)
    with django_capture_on_commit_callbacks(execute=True):
        page = desk.post(f"{LISTINGS}{listing.pk}/pause/", {"reason": "complaints"}, follow=True)
    assert "Paused, written down, and mailed to the owners." in words(page)
    listing.refresh_from_db()
    assert (listing.state, BestAsk.objects.exists()) == ("paused", False)
    assert Rental.objects.get().state == "pending", "what is sold goes on"
    [line] = AuditRecord.objects.filter(action="listing.paused_by_operator")
    assert (line.actor, line.reason, line.subject_id) == (operator, "complaints", str(listing.pk))
    [message] = mail.outbox
    assert (message.to, "complaints" in message.body) == ([owner.email], True)
    assert "It is paused already." in words(
        desk.post(f"{LISTINGS}{listing.pk}/pause/", {"reason": "again"}, follow=True)
    )
    assert AuditRecord.objects.filter(action="listing.paused_by_operator").count() == 1
    resume_offer(organisation_id=listing.server.provider_id, listing_id=listing.pk, now=just_now())
    listing.refresh_from_db()
    assert listing.state == "active"


def test_without_a_reason_and_for_what_is_not_there_nothing_is_paused(desk, h100, operator):
    listing = make_listing(gpu=h100)
    page = desk.post(f"{LISTINGS}{listing.pk}/pause/", {"reason": "  "}, follow=True)
    assert "Give a reason; nothing was changed." in words(page)
    assert "Give a reason" in words(desk.post(f"{LISTINGS}{listing.pk}/pause/", {"reason": "x" * 501}, follow=True))
    listing.refresh_from_db()
    assert listing.state == "active"
    assert desk.post(f"{LISTINGS}{uuid4()}/pause/", {"reason": "x"}).status_code == 404
    with pytest.raises(ReasonMissing):
        pause_listing(listing_id=listing.pk, operator=operator, reason="", now=NOW)
    Listing.objects.filter(pk=listing.pk).update(state="ended")
    with pytest.raises(ListingUnknown):
        pause_listing(listing_id=listing.pk, operator=operator, reason="x", now=NOW)
    Listing.objects.filter(pk=listing.pk).update(state="active")


# --- The record --------------------------------------------------------------------------------------------


def note(action: str = "server.verified", **values) -> None:
    record(
        **{"at": NOW, "action": action, "subject_type": "server", "subject_id": "one", "reason": "checked", **values}
    )


def test_the_record_is_shown_newest_first_with_who_what_and_why(desk, operator, django_assert_max_num_queries):
    note(actor=operator, organisation=make_organisation(), after={"verified": True}, ip_address="192.0.2.7")
    note("gateway.closed", at=NOW + timedelta(days=1), reason="")
    with django_assert_max_num_queries(MOST_QUERIES):
        text = words(desk.get(AUDIT))
    assert text.index("Compared the books") < text.index("Verified a server by operator@example.com, from 192.0.2.7")
    assert "by the site" in text
    assert "Orla Labs B.V." in text
    assert "checked" in text


def test_the_record_is_narrowed_by_each_filter(desk, operator):
    other = make_organisation(name="Other B.V.")
    note(actor=operator, organisation=other, subject_id="mine")
    note("provider.closed", at=NOW - timedelta(days=9), reason="the second")
    for narrowed in (
        {"action": "server.verified"},
        {"organisation": other.pk},
        {"actor": "OPERATOR@example.com"},
        {"subject": "mine"},
        {"from": "2026-11-29"},
        {"from": "2026-11-30", "to": "2026-11-30"},
    ):
        text = words(desk.get(AUDIT, narrowed))
        assert "checked" in text, narrowed
        assert "the second" not in text, narrowed
    assert "There are none." in words(desk.get(AUDIT, {"subject": "nobody"}))


@pytest.mark.parametrize(
    ("field", "text"),
    [("action", "made.up"), ("organisation", "x"), ("organisation", "9" * 30), ("actor", "x"), ("from", "30-11-2026")],
)
def test_a_wrong_filter_is_told_at_its_field(desk, field, text):
    note()
    page = desk.get(AUDIT, {field: text})
    assert page.status_code == 200
    assert f'id="id_{field}_error"' in page.content.decode()


def test_the_record_has_pages_that_keep_the_filter(desk):
    for number in range(51):
        note(reason=f"number {number}")
    page = desk.get(AUDIT, {"action": "server.verified"})
    assert "action=server.verified&amp;page=2" in page.content.decode()
    assert "number 0" in words(desk.get(AUDIT, {"action": "server.verified", "page": "2"}))
    assert desk.get(AUDIT, {"page": "3"}).status_code == 404


# --- Prices ------------------------------------------------------------------------------------------------


def test_unclear_names_wait_until_somebody_rules_on_them(desk, operator):
    name = make_unmapped(gpu_name="A100", candidates=["a100-40gb", "a100-80gb"])
    text = words(desk.get(PRICES))
    assert "A100" in text
    assert "may be: a100-40gb, a100-80gb" in text
    assert names_waiting() == 1
    page = desk.post(f"{PRICES}{name.pk}/rule/", {"decision": "not_listed", "reason": "a slice"}, follow=True)
    assert "Written down." in words(page)
    assert "no GPU that we list. a slice" in words(page)
    assert names_waiting() == 0
    [line] = AuditRecord.objects.filter(action="price.name_ruled")
    assert (line.actor, line.reason, line.after) == (operator, "a slice", {"name": "A100", "kind": "not_listed"})


@pytest.mark.parametrize("data", [{}, {"decision": "not_listed"}, {"decision": "x", "reason": "y"}])
def test_a_ruling_needs_a_choice_and_a_reason(desk, data):
    name = make_unmapped()
    page = desk.post(f"{PRICES}{name.pk}/rule/", data, follow=True)
    assert "Choose what it is and give a reason; nothing was changed." in words(page)
    assert not AuditRecord.objects.exists()
    assert desk.post(f"{PRICES}0/rule/", {"decision": "not_listed", "reason": "x"}).status_code == 404


def test_prices_that_are_held_back_are_shown_with_their_reason(desk, h100, django_assert_max_num_queries):
    make_offer(gpu=h100, price="0.01", held_back="under a fifth of the median")
    with django_assert_max_num_queries(MOST_QUERIES):
        assert "under a fifth of the median" in words(desk.get(PRICES))


# --- Breaches, languages, who gets in ------------------------------------------------------------------------


def test_stops_that_were_lifted_stay_to_be_read(desk):
    BooksStop.objects.create(
        breach="I2 was broken",
        stopped_at=NOW,
        lifted_at=NOW + timedelta(hours=1),
        lifted_by="operator@example.com",
        lift_reason="a bug, mended",
    )
    text = words(desk.get("/operator/breaches/"))
    assert "I2 was broken" in text
    assert "by operator@example.com a bug, mended" in text


@pytest.mark.parametrize("language", ["nl", "pl"])
@pytest.mark.parametrize("path", [LISTINGS, AUDIT, PRICES])
def test_the_pages_exist_in_every_language(desk, language, path):
    make_listing(gpu=make_gpu())
    make_unmapped()
    note()
    with translation.override(language):
        assert desk.get(f"/{language}{path}").status_code == 200


@pytest.mark.parametrize("path", [LISTINGS, AUDIT, PRICES])
def test_members_and_providers_do_not_get_in(client, path):
    client.force_login(make_member(organisation=make_provider().organisation))
    assert client.get(path).status_code == 403
