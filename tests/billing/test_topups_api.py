"""`topups/`: started once per key, shown as stored, refunded; every refusal names its reason and charges nothing."""

import json
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from django.test import Client
from uuid6 import uuid7

from billing import books as books_of
from billing.gateway.errors import GatewayRefused, GatewayUnavailable
from billing.models import Account, BooksStop, Refund, TopUp
from billing.topups.credit import credit_top_up
from tests.billing.conftest import NOW, UNIT, paid_top_up
from tests.billing.gateway_double import GatewayDouble, install
from tests.billing.test_ledger_race import together
from tests.factories import make_member, make_organisation
from users.api_keys import issue_key
from users.models import Organisation, Scope

TOPUPS = "/api/v1/topups/"
BODY = {"currency": "EUR", "amount": "100.00"}
pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway(monkeypatch) -> GatewayDouble:
    double = GatewayDouble(at=datetime.now(UTC))
    install(monkeypatch, double)
    return double


def secret(*scopes: Scope, organisation: Organisation | None = None) -> str:
    issued = issue_key(
        organisation=organisation or make_organisation(),
        name="test",
        scopes=scopes or (Scope.READ, Scope.BILLING),
        created_by=None,
        expires_at=None,
        now=datetime.now(UTC),
    )
    return issued.secret


def post(body: object = BODY, *, key: str | None = None, bearer: str, path: str = TOPUPS, raw: str | None = None):
    headers = {"Authorization": f"Bearer {bearer}"}
    if key != "":
        headers["Idempotency-Key"] = key or str(uuid4())
    data = json.dumps(body) if raw is None else raw
    return Client(raise_request_exception=False).post(path, data, content_type="application/json", headers=headers)


def get(path: str, *, bearer: str):
    return Client().get(path, headers={"Authorization": f"Bearer {bearer}"})


def problem(answer, status: int) -> dict:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), answer.content
    return json.loads(answer.content)


def fields(answer) -> dict[str | None, str]:
    return {error["field"]: error["code"] for error in problem(answer, 400)["errors"]}


def test_a_top_up_is_started_and_says_where_it_is_paid(gateway):
    bearer = secret()
    answer = post(bearer=bearer)
    assert answer.status_code == 201
    body = answer.json()
    top_up = TopUp.objects.get()
    assert top_up.expires_at is not None
    assert body == {
        "id": str(top_up.pk),
        "state": "open",
        "amount": "100.00",
        "currency": "EUR",
        "checkout_url": "https://pay.example/c",
        "refunded": "0.00",
        "created_at": top_up.created_at.isoformat().replace("+00:00", "Z"),
        "expires_at": top_up.expires_at.isoformat().replace("+00:00", "Z"),
        "paid_at": None,
    }
    assert UUID(body["id"]).version == 7
    assert top_up.gateway_request["return_url"] == f"http://testserver/wallet/top-up/{top_up.pk}/"
    assert get(f"{TOPUPS}{top_up.pk}/", bearer=bearer).json() == body
    assert Account.objects.get(kind="wallet").posted_micros == 0


def test_the_same_key_is_the_same_top_up_and_another_body_is_refused(gateway):
    """A top-up call without a key books two (getlago/lago-api#4326, #5870); a key with another body (failure kind 3)."""
    bearer = secret()
    first, again = post(key="k1", bearer=bearer), post(key="k1", bearer=bearer)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    problem(post({**BODY, "amount": "100.01"}, key="k1", bearer=bearer), 422)
    assert fields(post(bearer=bearer, key="")) == {"Idempotency-Key": "required"}
    assert (TopUp.objects.count(), len(gateway.sessions)) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_the_same_key_from_eight_at_once_is_one_top_up(gateway):
    bearer, barrier = secret(), threading.Barrier(8)

    def work(_number: int) -> tuple[int, bytes]:
        barrier.wait(10)
        answer = post(key="k1", bearer=bearer)
        return answer.status_code, answer.content

    answers = together(8, work)
    assert len(set(answers)) == 1, answers
    assert isinstance(answers[0], tuple)
    assert answers[0][0] == 201
    assert (TopUp.objects.count(), len(gateway.sessions)) == (1, 1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"amount": "0"}, {"amount": "below_minimum"}),
        ({"amount": "0.00"}, {"amount": "below_minimum"}),
        ({"amount": "9.99"}, {"amount": "below_minimum"}),
        ({"amount": "-100.00"}, {"amount": "invalid"}),
        ({"amount": "0.001"}, {"amount": "too_fine"}),
        ({"amount": "100.001"}, {"amount": "too_fine"}),
        ({"amount": "1e2"}, {"amount": "invalid"}),
        ({"amount": "NaN"}, {"amount": "invalid"}),
        ({"amount": "Infinity"}, {"amount": "invalid"}),
        ({"amount": "1_000"}, {"amount": "invalid"}),
        ({"amount": " 100"}, {"amount": "invalid"}),
        ({"amount": "١٠٠"}, {"amount": "invalid"}),
        ({"amount": "1" * 13}, {"amount": "invalid"}),
        ({"amount": "999999999"}, {"amount": "above_limit"}),
        ({"amount": ""}, {"amount": "blank"}),
        ({"amount": None}, {"amount": "null"}),
        ({"amount": 100}, {"amount": "invalid"}),
        ({"amount": 100.0}, {"amount": "invalid"}),
        ({"amount": True}, {"amount": "invalid"}),
        ({"amount": ["100"]}, {"amount": "invalid"}),
        ({"amount": {"value": "100"}}, {"amount": "invalid"}),
        ({"currency": "JPY"}, {"currency": "invalid_choice"}),
        ({"currency": "eur"}, {"currency": "invalid_choice"}),
        ({"currency": ""}, {"currency": "invalid_choice"}),
        ({"currency": None}, {"currency": "null"}),
        ({"currency": 978}, {"currency": "invalid_choice"}),
        ({"organisation": 2}, {"organisation": "unknown_field"}),
        ({"state": "paid", "amount": "x"}, {"state": "unknown_field", "amount": "invalid"}),
    ],
)
def test_a_bad_field_is_named_and_nothing_is_written(gateway, change, expected):
    found = fields(post({**BODY, **change}, bearer=secret()))
    if change.get("amount") == "1" * 13:
        assert found.keys() == {"amount"}
    else:
        assert found == expected
    assert (TopUp.objects.count(), gateway.calls) == (0, [])


@pytest.mark.parametrize("name", ["currency", "amount"])
def test_a_missing_field_is_named(gateway, name):
    body = {key: value for key, value in BODY.items() if key != name}
    assert fields(post(body, bearer=secret())) == {name: "required"}


@pytest.mark.parametrize(
    "raw", ["", "{", "[]", "null", '"x"', '{"amount": NaN}', '{"amount": "1", "amount": "2"}', "\x00"]
)
def test_a_body_that_is_no_object_is_refused(gateway, raw):
    assert problem(post(raw=raw, bearer=secret()), 400)
    assert not TopUp.objects.exists()


def test_a_refused_request_may_be_sent_again_with_the_same_key(gateway):
    bearer = secret()
    assert fields(post({**BODY, "amount": "5"}, key="k1", bearer=bearer)) == {"amount": "below_minimum"}
    assert post(key="k1", bearer=bearer).status_code == 201


def test_a_gateway_that_does_not_answer_loses_nothing_and_charges_once(gateway):
    bearer = secret()
    gateway.breaks = [GatewayUnavailable("down")]
    answer = post(key="k1", bearer=bearer)
    assert problem(answer, 503)["errors"][0]["code"] == "gateway_unavailable"
    assert int(answer["Retry-After"]) > 0
    kept = TopUp.objects.get()
    assert kept.state == "created"
    gateway.answers_lost = 2  # the customer is made, then the page, and nobody hears of it
    for _ in range(2):
        problem(post(key="k1", bearer=bearer), 503)
    problem(post({**BODY, "amount": "11"}, key="k1", bearer=bearer), 422)
    answer = post(key="k1", bearer=bearer)
    assert (answer.status_code, answer.json()["id"], answer.json()["state"]) == (201, str(kept.pk), "open")
    assert (TopUp.objects.count(), len(gateway.sessions)) == (1, 1)


def test_a_gateway_that_refuses_is_told_and_the_key_is_free_again(gateway):
    bearer = secret()
    gateway.breaks = [GatewayRefused(code="account_closed", message="no")]
    assert problem(post(key="k1", bearer=bearer), 409)["errors"][0]["code"] == "gateway_refused"
    assert post(key="k1", bearer=bearer).status_code == 201


def test_a_top_up_that_ended_meanwhile_is_not_handed_out_again(gateway):
    bearer = secret()
    gateway.breaks = [GatewayUnavailable("down")]
    problem(post(key="k1", bearer=bearer), 503)
    TopUp.objects.update(state="expired")
    assert problem(post(key="k1", bearer=bearer), 409)["errors"][0]["code"] == "top_up_ended"
    assert post(key="k1", bearer=bearer).status_code == 201
    assert TopUp.objects.count() == 2


def test_without_a_gateway_top_ups_are_off_and_say_so(gateway):
    gateway.on = False
    assert problem(post(bearer=secret()), 503)["errors"][0]["code"] == "top_ups_off"


def test_too_many_in_an_hour_say_when(gateway):
    bearer = secret()
    for _ in range(5):
        assert post({**BODY, "amount": "10"}, bearer=bearer).status_code == 201
    answer = post({**BODY, "amount": "10"}, bearer=bearer)
    assert problem(answer, 429)["errors"][0]["code"] == "too_many_top_ups"
    assert 0 < int(answer["Retry-After"]) <= 3601


def test_providers_have_no_wallets(gateway):
    provider = make_organisation(name="Racks", kind="provider")
    assert problem(post(bearer=secret(organisation=provider)), 409)["errors"][0]["code"] == "not_a_renter"


def test_scopes_are_asked_for(gateway):
    reader, biller = secret(Scope.READ), secret(Scope.BILLING)
    assert problem(post(bearer=reader), 403)["scope"] == "billing"
    assert problem(get(TOPUPS, bearer=biller), 403)["scope"] == "read"
    assert problem(post(bearer="nonsense"), 401)
    top_up = post(bearer=biller).json()
    assert problem(post(bearer=reader, path=f"{TOPUPS}{top_up['id']}/refund/"), 403)["scope"] == "billing"


def test_another_organisations_top_up_is_not_there(gateway):
    theirs = post(bearer=secret(organisation=make_organisation(name="theirs"))).json()
    mine = secret()
    problem(get(f"{TOPUPS}{theirs['id']}/", bearer=mine), 404)
    problem(post({"amount": "1"}, bearer=mine, path=f"{TOPUPS}{theirs['id']}/refund/"), 404)
    assert get(TOPUPS, bearer=mine).json()["results"] == []
    for path in (f"{TOPUPS}{uuid7()}/", f"{TOPUPS}nonsense/"):
        problem(get(path, bearer=mine), 404)


def test_the_list_is_newest_first_and_paged(gateway, settings):
    settings.TOP_UPS_PER_HOUR = 100
    bearer = secret()
    ids = [post({**BODY, "amount": f"{10 + number}.00"}, bearer=bearer).json()["id"] for number in range(5)]
    seen, url = [], f"{TOPUPS}?limit=2"
    while url:
        page = get(url, bearer=bearer).json()
        seen += [row["id"] for row in page["results"]]
        url = page["next"]
    assert seen == ids[::-1]
    for query in ("?limit=0", "?limit=501", "?state=paid", "?cursor=x"):
        problem(get(TOPUPS + query, bearer=bearer), 400)
    problem(post(bearer=bearer, path=f"{TOPUPS}?dry_run=1"), 400)


def test_looking_writes_nothing_and_asks_nobody(gateway):
    bearer = secret()
    top_up = post(bearer=bearer).json()
    gateway.pay(UUID(top_up["id"]))
    gateway.calls.clear()
    assert get(f"{TOPUPS}{top_up['id']}/", bearer=bearer).json()["state"] == "open"
    assert gateway.calls == []


def test_a_paid_top_up_shows_no_payment_page_and_is_refunded_in_parts(gateway):
    bearer = secret()
    top_up = post(bearer=bearer).json()
    credit_top_up(payment=gateway.pay(UUID(top_up["id"])), now=datetime.now(UTC))
    shown = get(f"{TOPUPS}{top_up['id']}/", bearer=bearer).json()
    assert (shown["state"], shown["checkout_url"]) == ("paid", None)
    path = f"{TOPUPS}{top_up['id']}/refund/"
    answer = post({"amount": "40.00"}, bearer=bearer, path=path, key="")
    assert answer.status_code == 201
    refund = Refund.objects.get()
    assert answer.json() == {
        "id": str(refund.pk),
        "top_up": top_up["id"],
        "state": "succeeded",
        "amount": "40.00",
        "currency": "EUR",
    }
    assert get(f"{TOPUPS}{top_up['id']}/", bearer=bearer).json()["refunded"] == "40.00"
    assert fields(post({"amount": "60.01"}, bearer=bearer, path=path)) == {"amount": "more_than_refundable"}
    first = post({"amount": "60.00"}, bearer=bearer, path=path, key="r1")
    again = post({"amount": "60.00"}, bearer=bearer, path=path, key="r1")
    assert (first.status_code, again.content) == (201, first.content)
    assert Account.objects.get(kind="wallet").posted_micros == 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, {"amount": "required"}),
        ({"amount": None}, {"amount": "null"}),
        ({"amount": 40}, {"amount": "invalid"}),
        ({"amount": "0"}, {"amount": "not_an_amount"}),
        ({"amount": "0.001"}, {"amount": "not_an_amount"}),
        ({"amount": "-1"}, {"amount": "invalid"}),
        ({"amount": "1000000000"}, {"amount": "more_than_refundable"}),
        ({"amount": "1", "to": "me"}, {"to": "unknown_field"}),
    ],
)
def test_a_bad_refund_is_named(gateway, books, body, expected):
    top_up = paid_top_up(books.ana, units=100)
    bearer = secret(organisation=books.ana.owner)
    assert fields(post(body, bearer=bearer, path=f"{TOPUPS}{top_up.pk}/refund/")) == expected
    assert not Refund.objects.exists()


def test_a_refund_that_is_refused_says_why(gateway, books):
    top_up = paid_top_up(books.ana, units=100)
    bearer, path = secret(organisation=books.ana.owner), f"{TOPUPS}{top_up.pk}/refund/"
    stop = BooksStop.objects.create(breach="x", stopped_at=NOW)
    assert problem(post({"amount": "1"}, bearer=bearer, path=path), 503)["errors"][0]["code"] == "books_stopped"
    books_of.lift_stop(operator="op", reason="fine", now=NOW + timedelta(hours=1))
    assert stop.pk
    gateway.breaks = [GatewayRefused(code="charge_disputed", message="no")]
    assert problem(post({"amount": "1"}, bearer=bearer, path=path), 409)["errors"][0]["code"] == "refund_refused"
    Organisation.objects.filter(pk=books.ana.owner_id).update(frozen_at=NOW)
    assert problem(post({"amount": "1"}, bearer=bearer, path=path), 409)["errors"][0]["code"] == "organisation_frozen"


def test_a_member_who_made_the_key_is_remembered(gateway):
    owner = make_member()
    issued = issue_key(
        organisation=make_organisation(),
        name="mine",
        scopes=[Scope.BILLING],
        created_by=owner,
        expires_at=None,
        now=datetime.now(UTC),
    )
    post(bearer=issued.secret)
    assert TopUp.objects.get().created_by == owner


def test_amounts_are_exact_to_the_cent(gateway, settings):
    settings.TOP_UP_TIERS = [(0, 0, 100_000_000, 100_000_000)]
    bearer = secret()
    for amount in ("10.01", "33333333.33", "10.1", "12"):
        answer = post({**BODY, "amount": amount}, bearer=bearer).json()
        assert Decimal(answer["amount"]) == Decimal(amount)
        assert TopUp.objects.get(pk=answer["id"]).amount_micros == Decimal(amount) * UNIT
