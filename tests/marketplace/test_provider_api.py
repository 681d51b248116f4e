"""`provider/`: from the application to the earnings, field by field, and who may call."""

import json
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from uuid import uuid4

import pytest

from marketplace.models import EnrolToken, Listing, Provider, ProviderApplication
from marketplace.settlement.due import settle_due
from tests.factories import make_operator, make_organisation
from tests.marketplace.companies import AGREES, IBAN, STATED, approved, make_company
from tests.marketplace.conftest import NOW, end_rental, make_listing, make_provider, make_running_rental, make_server
from users.api_keys import issue_key
from users.models import Organisation

pytestmark = pytest.mark.django_db
URL = "/api/v1/provider/"
HOUR = timedelta(hours=1)
READY = datetime(2026, 11, 30, 11, tzinfo=UTC)
SERVER = {
    "name": "node-1",
    "gpu": "h100-sxm",
    "device_uuids": ["GPU-0000-1", "GPU-0000-2"],
    "country": "NL",
    "vcpus": 64,
    "ram_gb": 512,
    "disk_gb": 2000,
    "network_mbit_s": 10000,
    "interconnect": "nvlink",
}


class Caller:
    """Calls with a key of one organisation."""

    def __init__(self, client, organisation: Organisation, *scopes: str) -> None:
        self.client = client
        self.secret = issue_key(
            organisation=organisation,
            name="t",
            scopes=scopes or ("provider",),
            created_by=None,
            expires_at=None,
            now=NOW,
        ).secret

    def call(self, method: str, path: str, body=None, *, key: str = ""):
        headers = {"Authorization": f"Bearer {self.secret}", **({"Idempotency-Key": key} if key else {})}
        data = "" if body is None else json.dumps(body)
        return self.client.generic(method, URL + path, data, content_type="application/json", headers=headers)

    def get(self, path: str = "") -> dict:
        answer = self.call("GET", path)
        assert answer.status_code == HTTPStatus.OK, answer.content
        return answer.json()

    def post(self, path: str, body=None, *, key: str = ""):
        return self.call("POST", path, body, key=key)


def fields_of(answer) -> set[str]:
    assert answer.status_code == HTTPStatus.BAD_REQUEST, answer.content
    return {error["field"] for error in answer.json()["errors"]}


@pytest.fixture
def company(db) -> Organisation:
    return make_company()


@pytest.fixture
def provider(company) -> Provider:
    return approved(company, operator=make_operator())


@pytest.fixture
def caller(client, company) -> Caller:
    return Caller(client, company)


def test_a_company_that_has_said_nothing_reads_all_that_is_missing(caller):
    found = caller.get()
    assert (found["state"], found["application"], found["reviews"]) == ("draft", None, [])
    assert {"company_name", "iban", "accept_terms"} <= set(found["missing"])
    assert found["next"][0] == "application"
    assert not Provider.objects.exists(), "reading writes nothing"


def test_an_application_is_saved_part_by_part_and_then_sent(caller):
    first = caller.post("application/", {"company_name": "Noord Compute B.V.", "iban": IBAN})
    assert first.status_code == HTTPStatus.OK, first.content
    assert (first.json()["state"], first.json()["application"]["iban_hint"]) == ("draft", "NL..4300")
    assert IBAN not in first.content.decode()
    lacking = caller.post("application/", {"submit": True})
    assert {"register_number", "accept_terms", "accept_self_billing"} <= fields_of(lacking)
    sent = caller.post("application/", {**STATED, **AGREES, "submit": True}).json()
    assert (sent["state"], sent["missing"], sent["next"][0]) == ("submitted", [], "review")
    assert [step["step"] for step in sent["reviews"]] == ["submitted"]
    again = caller.post("application/", {"city": "Utrecht"})
    assert (again.status_code, again.json()["errors"][0]["code"]) == (HTTPStatus.CONFLICT, "application_locked")


def test_what_is_sent_and_lacks_something_is_not_stored_either(caller):
    caller.post("application/", {"company_name": "Noord", "submit": True})
    assert not ProviderApplication.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"iban": "NL00"}, "iban"),
        ({"vat_id": "NL1"}, "vat_id"),
        ({"contact_email": "x"}, "contact_email"),
        ({"accept_terms": "0"}, "accept_terms"),
        ({"city": 7}, "city"),
        ({"town": "Delft"}, "town"),
    ],
)
def test_a_bad_application_names_its_field(caller, body, field):
    assert fields_of(caller.post("application/", body)) == {field}


def test_a_server_is_added_and_told_with_what_it_lacks(caller, provider, h100):
    added = caller.post("servers/", SERVER)
    assert added.status_code == HTTPStatus.CREATED, added.content
    row = added.json()
    assert (row["gpu"], row["device_count"], row["sold_devices"]) == ("h100-sxm", 2, 0)
    assert (row["is_live"], row["verified_at"], row["listing"]) == (False, None, None)
    assert [server["id"] for server in caller.get("servers/")["results"]] == [row["id"]]
    assert caller.get()["next"] == ["verification", "listing", "heartbeat"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gpu": "none-such"}, "gpu"),
        ({"device_uuids": []}, "device_uuids"),
        ({"device_uuids": ["GPU-0000-1", "GPU-0000-1"]}, "device_uuids"),
        ({"vcpus": 0}, "vcpus"),
        ({"interconnect": "string"}, "interconnect"),
        ({"country": "NLD"}, "country"),
        ({"country": "XX"}, "country"),
        ({"serial": "1"}, "serial"),
    ],
)
def test_a_bad_server_names_its_field(caller, provider, h100, change, field):
    assert {name.split(".")[0] for name in fields_of(caller.post("servers/", {**SERVER, **change}))} == {field}


def test_a_known_device_and_a_taken_name_are_refused(caller, provider, h100):
    caller.post("servers/", SERVER)
    assert fields_of(caller.post("servers/", {**SERVER, "name": "node-2"})) == {"device_uuids"}
    assert fields_of(caller.post("servers/", {**SERVER, "device_uuids": ["GPU-0000-9"]})) == {"name"}


def test_who_is_not_approved_adds_nothing(caller, h100):
    answer = caller.post("servers/", SERVER)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (HTTPStatus.CONFLICT, "not_approved")


def test_an_enrol_token_is_told_once(caller, provider, h100):
    server = make_server(gpu=h100, provider=provider)
    answer = caller.post(f"servers/{server.pk}/enrol-token/")
    assert answer.status_code == HTTPStatus.CREATED, answer.content
    assert answer.json()["token"].startswith("enrol_")
    assert EnrolToken.objects.count() == 1


def test_a_listing_is_made_once_per_key_changed_paused_and_resumed(caller, provider, h100):
    server = make_server(gpu=h100, provider=provider)
    body = {"server": str(server.pk), "price_usd_per_gpu_hour": "2.88", "min_gpus": 2}
    assert fields_of(caller.post("listings/", body)) == {"Idempotency-Key"}
    made = caller.post("listings/", body, key="k1")
    assert made.status_code == HTTPStatus.CREATED, made.content
    row = made.json()
    assert (row["price_usd_per_gpu_hour"], row["min_gpus"], row["max_hours"]) == ("2.8800", 2, 720)
    assert caller.post("listings/", body, key="k1").json() == row
    assert caller.post("listings/", {**body, "min_gpus": 1}, key="k1").status_code == 422
    second = caller.post("listings/", body, key="k2")
    assert (second.status_code, second.json()["errors"][0]["code"]) == (HTTPStatus.CONFLICT, "already_listed")
    path = f"listings/{row['id']}/"
    changed = caller.call("PATCH", path, {"price_usd_per_gpu_hour": "2.50"}).json()
    assert (changed["price_usd_per_gpu_hour"], changed["min_gpus"]) == ("2.5000", 2)
    for _ in range(2):
        assert caller.post(f"{path}pause/").json()["state"] == "paused"
    for _ in range(2):
        assert caller.post(f"{path}resume/").json()["state"] == "active"
    assert Listing.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"price_usd_per_gpu_hour": "0"}, "price_usd_per_gpu_hour"),
        ({"price_usd_per_gpu_hour": "2.88888"}, "price_usd_per_gpu_hour"),
        ({"price_usd_per_gpu_hour": 2.88}, "price_usd_per_gpu_hour"),
        ({"min_gpus": 9}, "min_gpus"),
        ({"max_hours": 8761}, "max_hours"),
        ({"available_until": "2020-01-01T00:00:00Z"}, "available_until"),
    ],
)
def test_a_bad_term_names_its_field(caller, provider, h100, change, field):
    server = make_server(gpu=h100, provider=provider)
    body = {"server": str(server.pk), "price_usd_per_gpu_hour": "2.88", **change}
    assert fields_of(caller.post("listings/", body, key="k")) == {field}
    listing = make_listing(gpu=h100, provider=provider)
    assert fields_of(caller.call("PATCH", f"listings/{listing.pk}/", change)) == {field}


def test_what_is_another_providers_is_not_found(caller, provider, h100):
    listing = make_listing(gpu=h100, provider=make_provider(name="Other B.V."))
    body = {"server": str(listing.server_id), "price_usd_per_gpu_hour": "2.88"}
    answers = [
        caller.post(f"servers/{listing.server_id}/enrol-token/"),
        caller.call("PATCH", f"listings/{listing.pk}/", {"min_gpus": 1}),
        caller.post(f"listings/{listing.pk}/pause/"),
        caller.post(f"listings/{listing.pk}/resume/"),
        caller.post(f"listings/{uuid4()}/pause/"),
    ]
    assert {answer.status_code for answer in answers} == {HTTPStatus.NOT_FOUND}
    assert fields_of(caller.post("listings/", body, key="k")) == {"server"}
    assert caller.get("servers/")["results"] == []
    assert caller.get("earnings/")["results"] == []
    assert caller.get("rentals/")["results"] == []


def test_earnings_are_told_by_the_hour_and_rentals_by_their_sum(caller, provider, h100, renter):
    listing = make_listing(gpu=h100, provider=provider, price="2.88", devices=2)
    rental = make_running_rental(renter=renter, gpu=h100, ready_at=READY, hours=3, gpu_count=2, listing=listing)
    end_rental(rental, stop_at=READY + HOUR * 2)
    settle_due(until=READY + 4 * HOUR, now=READY + 4 * HOUR)
    second, first = caller.get("earnings/")["results"]
    assert (first["starts_at"], second["starts_at"]) == ("2026-11-30T11:00:00Z", "2026-11-30T12:00:00Z")
    money = {name: first[name] for name in ("net", "fee", "payable", "credited", "paid_out", "currency")}
    assert money == {
        "net": "5.760000",
        "fee": "0.576000",
        "payable": "5.184000",
        "credited": "0.000000",
        "paid_out": "0.000000",
        "currency": "USD",
    }
    assert len(caller.get("earnings/?from=2026-11-30T12:00:00Z")["results"]) == 1
    assert caller.get("earnings/?to=2026-11-29")["results"] == []
    (row,) = caller.get("rentals/")["results"]
    assert (row["settled_hours"], row["payable"], row["fee_percent"]) == (2, "10.368000", "10.00")
    assert renter.name not in str(row)


def test_a_renters_key_has_no_such_scope_and_another_scope_does_not_do(client, company):
    reader = Caller(client, company, "read")
    renter = Caller(client, make_organisation(name="Orla Labs B.V."), "read", "trade", "billing")
    for caller in (reader, renter):
        for path in ("", "servers/", "earnings/", "rentals/"):
            assert caller.call("GET", path).status_code == HTTPStatus.FORBIDDEN
    assert client.get(URL).status_code == HTTPStatus.UNAUTHORIZED
