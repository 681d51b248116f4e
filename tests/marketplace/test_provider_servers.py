"""A provider's servers, listings and enrol tokens: who may, what is refused, and that nothing touches a sold hour."""

import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection

from marketplace.listings import AlreadyListed, ListingUnknown, Offered, TermsRefused
from marketplace.models import EnrolToken, Fill, Listing, Provider, Rental, Server, Settlement
from marketplace.providers.decisions import decide_on_server
from marketplace.providers.enrol_tokens import TokenRefused, issue_enrol_token, use_enrol_token
from marketplace.providers.fleet import (
    MachineRefused,
    ServerUnknown,
    add_server,
    change_offer,
    pause_offer,
    put_up,
    resume_offer,
    take_server_away,
)
from marketplace.providers.review import ReasonMissing, decide_on_provider
from marketplace.providers.states import Step
from marketplace.servers import DeviceKnown, Machine, NameTaken, NotApproved, ServerBusy
from marketplace.settlement.due import settle_due
from tests.factories import make_operator
from tests.marketplace.companies import approved, make_company
from tests.marketplace.conftest import NOW, end_rental, make_listing, make_provider, make_running_rental, make_server
from users.models import AuditRecord, User

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
READY = datetime(2026, 11, 30, 11, tzinfo=UTC)


@pytest.fixture
def operator(db) -> User:
    return make_operator()


@pytest.fixture
def provider(operator) -> Provider:
    return approved(make_company(), operator=operator)


def machine(gpu, **values) -> Machine:
    defaults = {"name": "node-1", "device_uuids": ["GPU-0000-1", "GPU-0000-2"], "country": "NL", "vcpus": 64}
    sizes = {"ram_gb": 512, "disk_gb": 2000, "network_mbit_s": 10_000, "interconnect": "nvlink"}
    return Machine(gpu_id=gpu.pk, **{**defaults, **sizes, **values})


def add(provider: Provider, gpu, **values) -> Server:
    return add_server(organisation_id=provider.pk, machine=machine(gpu, **values), by=None, now=NOW)


def test_an_added_server_waits_for_its_check_and_is_written_down(provider, h100):
    server = add(provider, h100)
    assert (server.device_count, server.verified_at) == (2, None)
    record = AuditRecord.objects.get(action="server.added")
    assert (record.organisation, record.after) == (provider.organisation, {"name": "node-1", "devices": 2})


@pytest.mark.parametrize("state", ["draft", "submitted", "suspended", "closed"])
def test_only_an_approved_provider_adds_lists_and_enrols(provider, h100, state):
    server = add(provider, h100)
    Provider.objects.filter(pk=provider.pk).update(state=state)
    for call in (
        lambda: add(provider, h100, name="other", device_uuids=["GPU-0000-9"]),
        lambda: put_up(organisation_id=provider.pk, server_id=server.pk, offered=Offered(price=Decimal(2)), now=NOW),
        lambda: issue_enrol_token(organisation_id=provider.pk, server_id=server.pk, by=None, now=NOW),
    ):
        with pytest.raises(NotApproved):
            call()
    assert not Listing.objects.exists()


def test_a_device_that_is_here_already_is_refused_whoever_brings_it(provider, h100):
    add(provider, h100)
    with pytest.raises(DeviceKnown):
        add(provider, h100, name="node-2", device_uuids=["GPU-0000-2"])
    with pytest.raises(DeviceKnown):
        add(make_provider(name="Other B.V."), h100, device_uuids=["GPU-0000-1"])
    assert Server.objects.count() == 1


@pytest.mark.parametrize(
    ("uuids", "code"),
    [
        ([], "out_of_range"),
        ([f"GPU-{number:06}" for number in range(65)], "out_of_range"),
        (["GPU-0000-1", "GPU-0000-1"], "repeated"),
        (["GPU 0000 1"], "invalid"),
        (["x"], "invalid"),
    ],
)
def test_device_ids_are_looked_at(provider, h100, uuids, code):
    with pytest.raises(MachineRefused) as refused:
        add(provider, h100, device_uuids=uuids)
    assert (refused.value.field, refused.value.code) == ("device_uuids", code)


def test_a_name_is_taken_once_per_provider(provider, h100):
    add(provider, h100)
    with pytest.raises(NameTaken):
        add(provider, h100, device_uuids=["GPU-0000-3"])
    add(make_provider(name="Other B.V."), h100, device_uuids=["GPU-0000-4"])


@pytest.mark.django_db(transaction=True)
def test_of_two_that_bring_the_same_device_at_once_one_is_let_in(provider, h100):
    outcomes, gate = [], threading.Barrier(2)

    def bring(name: str) -> None:
        gate.wait()
        try:
            add(provider, h100, name=name)
            outcomes.append("added")
        except DeviceKnown:
            outcomes.append("known")
        finally:
            connection.close()

    threads = [threading.Thread(target=bring, args=[name]) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["added", "known"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("attempt", range(3))
def test_a_listing_made_while_its_provider_is_suspended_is_paused_or_refused(provider, operator, h100, attempt):
    server = make_server(gpu=h100, provider=provider)
    gate = threading.Barrier(2)

    def run(call) -> None:
        gate.wait()
        try:
            call()
        except NotApproved:
            pass
        finally:
            connection.close()

    offered = Offered(price=Decimal("2.88"))
    calls = [
        lambda: put_up(organisation_id=provider.pk, server_id=server.pk, offered=offered, now=NOW),
        lambda: decide_on_provider(
            provider_id=provider.pk, step=Step.SUSPENDED, operator=operator, reason="odd", now=NOW
        ),
    ]
    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not Listing.objects.filter(state="active").exists()
    assert Provider.objects.get(pk=provider.pk).state == "suspended"


def test_a_new_price_and_new_terms_never_touch_a_sold_hour(provider, h100, renter):
    listing = make_listing(gpu=h100, provider=provider, price="2.88", devices=8)
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=READY, hours=3, listing=listing)
    sold = Rental.objects.values().get(), Fill.objects.values().get()
    for price in ("9.99", "0.50"):
        offered = Offered(price=Decimal(price), min_gpus=4, max_hours=1)
        change_offer(organisation_id=provider.pk, listing_id=listing.pk, offered=offered, now=NOW + HOUR)
    assert (Rental.objects.values().get(), Fill.objects.values().get()) == sold
    end_rental(rental, stop_at=READY + 2 * HOUR)
    settle_due(until=READY + 4 * HOUR, now=READY + 4 * HOUR)
    lines = Settlement.objects.values_list("usd_net_micros", "fee_micros", "payable_micros")
    assert list(lines) == [(2_880_000, 288_000, 2_592_000)] * 2


def test_a_server_with_an_open_rental_is_not_withdrawn(provider, h100, renter):
    listing = make_listing(gpu=h100, provider=provider)
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=READY, listing=listing)
    away = {"organisation_id": provider.pk, "server_id": listing.server_id, "by": None, "now": READY}
    with pytest.raises(ServerBusy):
        take_server_away(**away)
    assert Listing.objects.get().state == "active"
    end_rental(rental, stop_at=READY + HOUR)
    take_server_away(**away)
    listing.refresh_from_db()
    assert (listing.state, listing.server.withdrawn_at) == ("ended", READY)
    assert AuditRecord.objects.filter(action="server.withdrawn").count() == 1
    with pytest.raises(ServerUnknown):
        take_server_away(**away)


def test_what_is_another_providers_is_not_there(provider, h100):
    theirs = make_listing(gpu=h100, provider=make_provider(name="Other B.V."))
    me, offered = provider.pk, Offered(price=Decimal(1))
    for call in (
        lambda: put_up(organisation_id=me, server_id=theirs.server_id, offered=offered, now=NOW),
        lambda: issue_enrol_token(organisation_id=me, server_id=theirs.server_id, by=None, now=NOW),
        lambda: take_server_away(organisation_id=me, server_id=theirs.server_id, by=None, now=NOW),
        lambda: change_offer(organisation_id=me, listing_id=theirs.pk, offered=offered, now=NOW),
        lambda: pause_offer(organisation_id=me, listing_id=theirs.pk, now=NOW),
        lambda: resume_offer(organisation_id=me, listing_id=theirs.pk, now=NOW),
    ):
        with pytest.raises((ServerUnknown, ListingUnknown)):
            call()
    theirs.refresh_from_db()
    assert (theirs.state, theirs.price_usd_per_gpu_hour) == ("active", Decimal("2.88"))


def test_a_server_is_listed_once_and_a_bad_term_names_its_field(provider, h100):
    server = make_server(gpu=h100, provider=provider, devices=4)
    offered = Offered(price=Decimal(2), min_gpus=5)
    with pytest.raises(TermsRefused) as refused:
        put_up(organisation_id=provider.pk, server_id=server.pk, offered=offered, now=NOW)
    assert refused.value.field == "min_gpus"
    put_up(organisation_id=provider.pk, server_id=server.pk, offered=Offered(price=Decimal(2)), now=NOW)
    with pytest.raises(AlreadyListed):
        put_up(organisation_id=provider.pk, server_id=server.pk, offered=Offered(price=Decimal(2)), now=NOW)


def issued(provider: Provider, server: Server, now: datetime = NOW) -> str:
    return issue_enrol_token(organisation_id=provider.pk, server_id=server.pk, by=None, now=now).token


def test_an_enrol_token_is_kept_as_a_hash_and_good_once(provider, h100):
    server = add(provider, h100)
    token = issued(provider, server)
    assert token.startswith("enrol_")
    assert token not in str(EnrolToken.objects.values().get())
    assert use_enrol_token(token=token, now=NOW) == server
    with pytest.raises(TokenRefused):
        use_enrol_token(token=token, now=NOW)


def test_an_enrol_token_ends_after_an_hour_or_with_the_next_one(provider, h100):
    server = add(provider, h100)
    first = issued(provider, server)
    second = issued(provider, server)
    for token, now in ((first, NOW), (second, NOW + HOUR), ("enrol_made-up", NOW)):
        with pytest.raises(TokenRefused):
            use_enrol_token(token=token, now=now)
    assert use_enrol_token(token=second, now=NOW + HOUR - timedelta(seconds=1)) == server


def test_an_enrol_token_ends_with_its_provider_and_with_its_server(provider, h100):
    server = add(provider, h100)
    token = issued(provider, server)
    Provider.objects.filter(pk=provider.pk).update(state="suspended")
    with pytest.raises(TokenRefused):
        use_enrol_token(token=token, now=NOW)
    Provider.objects.filter(pk=provider.pk).update(state="approved")
    take_server_away(organisation_id=provider.pk, server_id=server.pk, by=None, now=NOW)
    with pytest.raises(TokenRefused):
        use_enrol_token(token=token, now=NOW)


def test_an_operator_verifies_with_a_reason_once(provider, operator, h100):
    server = add(provider, h100)
    decided = {"server_id": server.pk, "operator": operator, "now": NOW}
    with pytest.raises(ReasonMissing):
        decide_on_server(**decided, is_verified=True, reason=" ")
    assert decide_on_server(**decided, is_verified=True, reason="all eight cards answer")
    assert not decide_on_server(**decided, is_verified=True, reason="again")
    assert decide_on_server(**decided, is_verified=False, reason="one card is gone")
    records = AuditRecord.objects.filter(actor=operator, subject_type="server").values_list("action", "reason")
    assert list(records) == [
        ("server.verified", "all eight cards answer"),
        ("server.unverified", "one card is gone"),
    ]
    take_server_away(organisation_id=provider.pk, server_id=server.pk, by=None, now=NOW)
    with pytest.raises(ServerUnknown):
        decide_on_server(**decided, is_verified=True, reason="back")
