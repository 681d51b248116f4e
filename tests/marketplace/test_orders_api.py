"""`market/`, `quotes/` and `orders/`: what API.md promises of each; every refusal names its reason and holds nothing."""

import json
import threading
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import Client
from uuid6 import uuid7

from billing.models import Account, BooksStop, Hold
from marketplace.models import Fill, Order, Rental
from tests.billing.conftest import wallet_of
from tests.billing.test_ledger_race import together
from tests.billing.test_receivables import claw
from tests.marketplace.on_pages import just_now, on_offer, rate_of_yesterday, renter_with
from users.api_keys import issue_key
from users.freezing import freeze
from users.models import Organisation, Scope

API = "/api/v1/"
ORDERS, QUOTES, MARKET = f"{API}orders/", f"{API}quotes/", f"{API}market/"
BODY = {"gpu": "h100-sxm", "gpu_count": 1, "hours": 1, "limit_price_usd_per_gpu_hour": "2.88", "wallet": "USD"}
ASKED = {name: value for name, value in BODY.items() if name != "limit_price_usd_per_gpu_hour"}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@here"
HUGE = 10**40
pytestmark = pytest.mark.django_db


@pytest.fixture
def renter(db) -> Organisation:
    """A Dutch business with 1,000 USD by the clock of this moment."""
    return renter_with()


@pytest.fixture
def bearer(renter) -> str:
    return secret(renter)


def secret(organisation: Organisation, *scopes: Scope) -> str:
    issued = issue_key(
        organisation=organisation,
        name="test",
        scopes=scopes or (Scope.READ, Scope.TRADE),
        created_by=None,
        expires_at=None,
        now=just_now(),
    )
    return issued.secret


def post(body: object = BODY, *, bearer: str, key: str | None = None, path: str = ORDERS, raw: str | None = None):
    headers = {"Authorization": f"Bearer {bearer}"}
    if key != "":
        headers["Idempotency-Key"] = key or str(uuid4())
    data = json.dumps(body) if raw is None else raw
    return Client(raise_request_exception=False).post(path, data, content_type="application/json", headers=headers)


def get(path: str, *, bearer: str | None = None, **headers: str):
    if bearer:
        headers["Authorization"] = f"Bearer {bearer}"
    return Client(raise_request_exception=False).get(path, headers=headers)


def problem(answer, status: int) -> dict:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), answer.content
    return json.loads(answer.content)


def fields(answer) -> dict[str | None, str]:
    return {error["field"]: error["code"] for error in problem(answer, 400)["errors"]}


def code(answer, status: int) -> str:
    return problem(answer, status)["errors"][0]["code"]


def nothing_was_written() -> bool:
    return not (Order.objects.exists() or Hold.objects.exists() or Rental.objects.exists())


# placing


def test_an_order_that_fills_tells_its_fills_and_its_rental(h100, bearer):
    on_offer(h100)
    body = post({**BODY, "gpu_count": 2, "hours": 3}, bearer=bearer)
    assert body.status_code == 201, body.content
    order, rental = Order.objects.get(), Rental.objects.get()
    assert body.json() == {
        "id": str(order.pk),
        "state": "filled",
        "close_reason": "",
        "gpu": "h100-sxm",
        "gpu_count": 2,
        "server_count": 1,
        "hours": 3,
        "limit_price_usd_per_gpu_hour": "2.8800",
        "time_in_force": "gtc",
        "filters": {
            "countries": [],
            "interconnect": "",
            "min_ram_gb": 0,
            "min_vcpus": 0,
            "min_disk_gb": 0,
            "verified": True,
        },
        "filled_servers": 1,
        "fills": [{"rental": str(rental.pk), "gpu_count": 2, "price_usd_per_gpu_hour": "2.8800"}],
        "hold": {"amount": "0.000000", "currency": "USD"},
        "wallet": "USD",
        "fx": None,
        "tax_rate_percent": "21.00",
        "placed_at": told(order.placed_at),
        "expires_at": told(order.expires_at),
        "closed_at": told(order.closed_at),
        "why_open": None,
    }
    assert get(f"{ORDERS}{order.pk}/", bearer=bearer).json() == body.json()
    assert body["Cache-Control"] == "private, no-store"


def told(moment: datetime | None) -> str | None:
    return moment and moment.isoformat().replace("+00:00", "Z")


def test_an_order_that_rests_says_why_and_what_it_holds(h100, renter, bearer):
    on_offer(h100, price="2.88", country="US")
    on_offer(h100, price="3.10", country="NL")
    answer = post({**BODY, "hours": 10, "filters": {"countries": ["nl"], "verified": True}}, bearer=bearer).json()
    assert (answer["state"], answer["fills"], answer["closed_at"]) == ("open", [], None)
    assert answer["hold"] == {"amount": "34.848022", "currency": "USD"}
    assert answer["filters"]["countries"] == ["NL"]
    assert answer["why_open"] == {
        "best_price_usd_per_gpu_hour": "3.1000",
        "gap_usd_per_gpu_hour": "0.2200",
        "removed_devices": {"countries": 8},
        "devices_for_rent": 16,
        "servers_fitting": 1,
        "fills_7d": 0,
        "gpus_7d": 0,
    }
    assert datetime.fromisoformat(answer["expires_at"]) - datetime.fromisoformat(answer["placed_at"]) == timedelta(7)
    assert Account.objects.get(owner=renter, kind="wallet").held_micros == 34_848_022


@pytest.mark.parametrize(
    ("force", "filled", "state"), [("ioc", 1, "cancelled"), ("fok", 0, "cancelled"), ("gtc", 1, "partly_filled")]
)
def test_what_becomes_of_the_half_that_is_there(h100, bearer, force, filled, state):
    on_offer(h100)
    answer = post({**BODY, "server_count": 2, "time_in_force": force}, bearer=bearer).json()
    assert (answer["state"], answer["filled_servers"], len(answer["fills"])) == (state, filled, filled)


def test_an_order_in_euro_tells_its_rate(h100, renter, bearer):
    rate_of_yesterday()
    wallet_of(renter.name, currency="EUR", units=100)
    on_offer(h100)
    answer = post({**BODY, "wallet": "EUR", "ssh_public_key": KEY, "image": "ubuntu:24.04"}, bearer=bearer).json()
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    assert (answer["state"], answer["wallet"]) == ("filled", "EUR")
    assert answer["fx"] == {"rate": "0.8713837574", "date": yesterday, "margin": "0.0000"}
    rental = Rental.objects.get()
    assert (rental.ssh_public_key, rental.image, rental.currency) == (KEY, "ubuntu:24.04", "EUR")


def test_an_order_without_a_key_takes_the_organisations_and_a_blank_one_takes_none(h100, bearer):
    on_offer(h100)
    for body in ({**BODY, "ssh_public_key": KEY}, BODY, {**BODY, "ssh_public_key": ""}):
        assert post(body, bearer=bearer).json()["state"] == "filled"
    keys = Rental.objects.order_by("fill__sequence").values_list("ssh_public_key", flat=True)
    assert list(keys) == [KEY, KEY, ""]


def test_an_open_ended_order_has_no_hours(h100, bearer):
    on_offer(h100)
    answer = post({**BODY, "hours": None}, bearer=bearer).json()
    assert (answer["state"], answer["hours"]) == ("filled", None)


# once per key


def test_the_same_key_and_body_is_the_same_order_and_another_body_is_refused(h100, bearer):
    on_offer(h100)
    first, again = post(key="k1", bearer=bearer), post(key="k1", bearer=bearer)
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert code(post({**BODY, "gpu_count": 2}, key="k1", bearer=bearer), 422) == "idempotency_key_reused"
    assert (Order.objects.count(), Rental.objects.count()) == (1, 1)
    assert post(key="k2", bearer=bearer).json()["id"] != first.json()["id"]


def test_without_a_key_nothing_is_placed(h100, bearer):
    assert fields(post(key="", bearer=bearer)) == {"Idempotency-Key": "required"}
    assert nothing_was_written()


@pytest.mark.django_db(transaction=True)
def test_the_same_key_from_eight_at_once_is_one_order(h100, bearer):
    on_offer(h100)
    barrier = threading.Barrier(8)

    def work(_number: int) -> tuple[int, bytes]:
        barrier.wait(10)
        answer = post(key="k1", bearer=bearer)
        return answer.status_code, answer.content

    answers = together(8, work)
    assert len(set(answers)) == 1, answers
    assert answers[0][0] == 201
    assert (Order.objects.count(), Fill.objects.count()) == (1, 1)


def test_after_too_little_money_the_same_key_may_be_tried_again(h100, renter, bearer):
    on_offer(h100)
    body = {**BODY, "gpu_count": 8, "hours": 720}
    refused = problem(post(body, key="k1", bearer=bearer), 402)
    assert (refused["needed"], refused["available"]) == ("20072.449442", "1000.000000")
    assert refused["errors"][0]["code"] == "not_enough_money"
    assert nothing_was_written()
    wallet_of(renter.name, currency="USD", units=20_000)
    assert post(body, key="k1", bearer=bearer).json()["state"] == "filled"


# refused


def test_a_limit_far_above_the_market_is_asked_about(h100, bearer):
    on_offer(h100, price="2.00")
    body = {**BODY, "limit_price_usd_per_gpu_hour": "3.0001"}
    assert fields(post(body, bearer=bearer)) == {"limit_price_usd_per_gpu_hour": "price_far_above_reference"}
    assert nothing_was_written()
    answer = post({**body, "confirm_price": True}, bearer=bearer).json()
    assert (answer["state"], answer["fills"][0]["price_usd_per_gpu_hour"]) == ("filled", "2.0000")


LIMIT = "limit_price_usd_per_gpu_hour"
BAD_LIMITS = {
    "0": "out_of_range",
    "0.000000": "out_of_range",
    "100000.0001": "out_of_range",
    "9999999999": "out_of_range",
    "2.88001": "too_fine",
    "99999999999": "invalid",
    "-2.88": "invalid",
    "+2.88": "invalid",
    "1e2": "invalid",
    "NaN": "invalid",
    "Infinity": "invalid",
    "2,88": "invalid",
    " 2.88": "invalid",
    "٢.٨٨": "invalid",
    "": "blank",
}
BAD_WHOLES = {
    "gpu_count": [0, -1, 65, HUGE, 1e300, 1.5, "1", True, None, [1]],
    "server_count": [0, -1, 17, HUGE, 1.5, "1", None],
    "hours": [0, -1, 721, HUGE, 0.5, "1", False, {}],
}
BAD_WORDS = {
    "gpu": ["nope", "", "x" * 61, "h100\x00", None, 5, ["h100-sxm"]],
    "wallet": ["JPY", "usd", "", None, 5],
    "time_in_force": ["day", "GTC", "", None, 1],
    "expires_at": ["soon", "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", 5, []],
    "image": ["x" * 201, None, 5, "a\x00b"],
    "ssh_public_key": [
        "nonsense",
        "ssh-rsa AAAA",
        "ssh-dss AAAAB3NzaC1kc3MAAACB",
        f'command="sh" {KEY}',
        f"{KEY}\n{KEY}",
        "ssh-ed25519 " + "A" * 900,
        None,
        5,
    ],
    "confirm_price": ["perhaps", "true", 1, None, []],
    "quote": ["x", str(uuid7()), 5, []],
    "filters": [
        [],
        "NL",
        None,
        {"cloud": "x"},
        {"countries": "NL"},
        {"countries": ["NLD"]},
        {"countries": ["ßß"]},  # four letters once it is in capitals
        {"countries": [5]},
        {"countries": ["NL"] * 61},
        {"interconnect": "string"},
        {"min_ram_gb": -1},
        {"min_ram_gb": HUGE},
        {"min_vcpus": "64"},
        {"min_disk_gb": 1.5},
        {"verified": "true"},
        {"verified": 1},
    ],
}


@pytest.mark.parametrize(("value", "expected"), BAD_LIMITS.items())
def test_a_limit_out_of_place_is_named(h100, bearer, value, expected):
    assert fields(post({**BODY, LIMIT: value}, bearer=bearer)) == {LIMIT: expected}
    assert nothing_was_written()


@pytest.mark.parametrize("value", [2.88, 3, True, ["2.88"], {"usd": "2.88"}, None])
def test_a_limit_is_a_string(h100, bearer, value):
    assert fields(post({**BODY, LIMIT: value}, bearer=bearer)).keys() == {LIMIT}


@pytest.mark.parametrize("name", [*BAD_WHOLES, *BAD_WORDS])
def test_every_other_bad_value_is_named_and_nothing_is_written(h100, bearer, name):
    for value in (BAD_WHOLES | BAD_WORDS)[name]:
        found = fields(post({**BODY, name: value}, bearer=bearer))
        assert {str(field).split(".")[0] for field in found} == {name}, (value, found)
    assert nothing_was_written()


def test_what_never_rests_never_expires(h100, bearer):
    tomorrow = told(just_now() + timedelta(days=1))
    body = {**BODY, "time_in_force": "ioc", "expires_at": tomorrow}
    assert fields(post(body, bearer=bearer)) == {"expires_at": "never_rests"}


@pytest.mark.parametrize("name", BODY)
def test_a_missing_field_is_named(h100, bearer, name):
    body = {key: value for key, value in BODY.items() if key != name}
    assert fields(post(body, bearer=bearer)) == {name: "required"}


def test_unknown_fields_and_parameters_are_refused(h100, bearer):
    assert fields(post({**BODY, "organisation": 2, "hours": 0}, bearer=bearer)) == {
        "organisation": "unknown_field",
        "hours": "min_value",
    }
    assert fields(post(bearer=bearer, path=f"{ORDERS}?dry_run=1")) == {"dry_run": "unknown_parameter"}
    assert fields(post({**ASKED, LIMIT: "2.88"}, bearer=bearer, path=QUOTES)) == {LIMIT: "unknown_field"}
    assert nothing_was_written()


@pytest.mark.parametrize("raw", ["", "{", "[]", "null", '"x"', '{"hours": NaN}', '{"hours": 1, "hours": 2}', "\x00"])
def test_a_body_that_is_no_object_is_refused(h100, bearer, raw):
    for path in (ORDERS, QUOTES):
        problem(post(raw=raw, bearer=bearer, path=path), 400)
    assert nothing_was_written()


def test_who_may_not_order_is_told_why(h100, renter, bearer, monkeypatch, settings):
    on_offer(h100)
    settings.FX_MAX_AGE_DAYS = 5
    assert code(post({**BODY, "wallet": "EUR"}, bearer=bearer), 409) == "fx_too_old"
    stop = BooksStop.objects.create(breach="x", stopped_at=just_now())
    assert code(post(bearer=bearer), 503) == "books_stopped"
    BooksStop.objects.filter(pk=stop.pk).update(lifted_at=just_now(), lifted_by="op", lift_reason="fine")
    monkeypatch.setattr("marketplace.orders.place.MOST_RESTING_ORDERS", 0)
    assert code(post(bearer=bearer), 409) == "too_many_orders"
    claw(Account.objects.get(owner=renter, kind="wallet"), 1100)
    assert code(post(bearer=bearer), 409) == "receivable_open"
    freeze(organisation_id=renter.pk, reason="disputed", now=just_now())
    assert code(post(bearer=bearer), 409) == "organisation_frozen"
    assert nothing_was_written()


def test_scopes_are_asked_for(h100, renter):
    reader, trader = secret(renter, Scope.READ), secret(renter, Scope.TRADE)
    order = post(bearer=trader).json()
    for answer in (
        post(bearer=reader),
        post(ASKED, bearer=reader, path=QUOTES),
        post({}, bearer=reader, path=f"{ORDERS}{order['id']}/cancel/"),
    ):
        assert problem(answer, 403)["scope"] == "trade"
    for path in (ORDERS, f"{ORDERS}{order['id']}/"):
        assert problem(get(path, bearer=trader), 403)["scope"] == "read"
        problem(get(path), 401)
        problem(get(path, bearer="nonsense"), 401)
