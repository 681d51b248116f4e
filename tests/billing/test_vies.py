"""Asking about VAT numbers: three answers, proof kept, and nobody asked twice or inside a transaction."""

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured

from billing.models import VatCheck
from billing.tax.company_names import NameMatch
from billing.tax.seller import vat_register
from billing.tax.vat_ids import parse
from billing.tax.vies import URL, Answer, NotInVies, Outcome, SampleRegister, Vies

NOW = datetime(2026, 11, 30, 12, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
GERMAN = parse("DE136695976", country="DE")
GREEK = parse("EL094259216", country="GR")
OURS = parse("NL004495445B01", country="NL")
YES = {"countryCode": "DE", "vatNumber": "136695976", "valid": True, "name": "ORLA LABS GMBH", "address": "Berlin"}


def vies(handler, *, requester=OURS) -> Vies:
    client = httpx.Client(transport=httpx.MockTransport(handler), timeout=1)
    return Vies(client, requester=requester)


def ask(body: object, *, status: int = 200, vat_id=GERMAN) -> Answer:
    with_body = (
        httpx.Response(status, json=body) if not isinstance(body, bytes) else httpx.Response(status, content=body)
    )
    return vies(lambda request: with_body).ask(vat_id, trader_name="Orla Labs")


def fault(name: str) -> dict[str, object]:
    return {"actionSucceed": False, "errorWrappers": [{"error": name}]}


def test_the_question_names_both_numbers_and_the_trader():
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, str(request.url), json.loads(request.content)))
        return httpx.Response(200, json={**YES, "requestIdentifier": "WAPIAAAAWsuGTKC9"})

    found = vies(answer).ask(GERMAN, trader_name="Orla Labs")
    assert asked == [
        (
            "POST",
            URL,
            {
                "countryCode": "DE",
                "vatNumber": "136695976",
                "traderName": "Orla Labs",
                "requesterMemberStateCode": "NL",
                "requesterNumber": "004495445B01",
            },
        )
    ]
    assert (found.outcome, found.consultation_number) == (Outcome.VALID, "WAPIAAAAWsuGTKC9")
    assert (found.name, found.address) == ("ORLA LABS GMBH", "Berlin")
    assert found.waited >= timedelta()


def test_tax_13_greece_is_asked_about_as_el():
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content)["countryCode"])
        return httpx.Response(200, json={"countryCode": "EL", "vatNumber": "094259216", "valid": True, "name": "---"})

    assert vies(answer).ask(GREEK, trader_name="x").outcome == Outcome.VALID
    assert asked == ["EL"]


def test_tax_10_british_and_northern_irish_numbers_are_never_sent():
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError("sent")

    for number in ("GB980780684", "XI980780684"):
        with pytest.raises(NotInVies):
            vies(answer).ask(parse(number, country="GB"), trader_name="x")


def test_without_a_number_of_ours_there_is_no_consultation_number():
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json=YES)

    found = vies(answer, requester=None).ask(GERMAN, trader_name="x")
    assert "requesterNumber" not in asked[0]
    assert (found.outcome, found.consultation_number) == (Outcome.VALID, "")


def test_a_plain_yes_and_a_plain_no():
    assert ask(YES).outcome == Outcome.VALID
    assert ask({**YES, "valid": False, "name": "---"}).outcome == Outcome.INVALID
    not_told = ask({**YES, "name": "---", "address": "---"})
    assert (not_told.outcome, not_told.name, not_told.address) == (Outcome.VALID, "", "")


def test_the_registers_own_verdict_on_the_name_is_kept():
    assert ask({**YES, "traderNameMatch": "VALID"}).name_match == NameMatch.SAME
    assert ask({**YES, "traderNameMatch": "INVALID"}).name_match == NameMatch.DIFFERS
    assert ask({**YES, "traderNameMatch": "NOT_PROCESSED"}).name_match == NameMatch.NOT_TOLD


@pytest.mark.parametrize("status", [200, 400, 500, 503])
@pytest.mark.parametrize(
    "name",
    ["MS_UNAVAILABLE", "MS_MAX_CONCURRENT_REQ", "GLOBAL_MAX_CONCURRENT_REQ", "SERVICE_UNAVAILABLE", "TIMEOUT", "INVALID_REQUESTER_INFO", "IP_BLOCKED"],
)  # fmt: skip
def test_tax_04_a_fault_of_the_service_is_no_answer(name, status):
    found = ask(fault(name), status=status)
    assert (found.outcome, found.fault) == (Outcome.UNKNOWN, name)


def test_a_fault_of_the_number_itself_is_a_no():
    assert ask(fault("INVALID_INPUT"), status=400).outcome == Outcome.INVALID


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>busy</html>", 200), (b"", 200), (b"[]", 200), (b"null", 200), (b'{"valid": "yes"}', 200), (b"\xff", 200),
        ({}, 200), ({**YES, "valid": "true"}, 200), ({**YES, "valid": None}, 200), ({**YES, "vatNumber": "1"}, 200),
        ({**YES, "countryCode": "FR"}, 200), (YES, 500), (YES, 302), ({"actionSucceed": False}, 200),
        ({"actionSucceed": False, "errorWrappers": "x"}, 200), (b'{"valid": true, "name": "' + b"x" * 200_000 + b'"}', 200),
    ],
)  # fmt: skip
def test_whatever_is_not_an_answer_about_the_number_is_no_answer(body, status):
    assert ask(body, status=status).outcome == Outcome.UNKNOWN


@pytest.mark.parametrize("error", [httpx.ReadTimeout, httpx.ConnectError, httpx.RemoteProtocolError])
def test_a_network_that_fails_is_no_answer(error):
    def answer(request: httpx.Request) -> httpx.Response:
        raise error("no", request=request)

    found = vies(answer).ask(GERMAN, trader_name="x")
    assert found.outcome == Outcome.UNKNOWN
    assert found.fault


def test_the_sample_register_says_yes_and_tells_nothing_that_could_pass_for_proof():
    found = SampleRegister().ask(GERMAN, trader_name="x")
    assert (found.outcome, found.name, found.consultation_number) == (Outcome.VALID, "", "")
    assert str(VatCheck.Register(SampleRegister.name).label) == "sample answer, not VIES"


def test_the_setting_names_the_register(settings):
    with vat_register() as register:
        assert isinstance(register, SampleRegister)
    settings.VAT_REGISTER = "vies"
    with vat_register() as register:
        assert isinstance(register, Vies)
    settings.VAT_REGISTER = "hearsay"
    with pytest.raises(ImproperlyConfigured), vat_register():
        pass
