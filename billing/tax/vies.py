"""Who is asked about a VAT number: the Commission's VIES, or in the demo a sample that says so.

An answer is valid, invalid, or unknown. Whatever VIES does instead of saying yes or no (a member state that does not
answer, too many requests, a timeout, a page that is no answer) is unknown: it is not a no. Asking takes time: call it
outside transactions, and count `waited` on top of the time at which you asked.
"""

import logging
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

import httpx

from billing.tax.company_names import NameMatch
from billing.tax.vat_ids import VatId

URL = "https://ec.europa.eu/taxation_customs/vies/rest-api/check-vat-number"
MOST_BYTES = 100_000
# Faults that are about the number itself; every other fault is about the service, or about us.
_FAULTS_OF_THE_NUMBER = ("INVALID_INPUT",)
_OUR_FAULTS = ("INVALID_REQUESTER_INFO", "VAT_BLOCKED", "IP_BLOCKED")
_NOT_TOLD = ("", "---")
_MATCHES = {"VALID": NameMatch.SAME, "INVALID": NameMatch.DIFFERS}
log = logging.getLogger(__name__)


class Outcome(StrEnum):
    """What is known after asking."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer as it came. Name and address are "" where the register does not tell them; `fault` says why unknown."""

    outcome: Outcome
    name: str = ""
    address: str = ""
    name_match: NameMatch = NameMatch.NOT_TOLD
    consultation_number: str = ""
    fault: str = ""
    waited: timedelta = timedelta()


class VatRegister(Protocol):
    """Something that can be asked about numbers of member states. It never raises: no answer is an answer."""

    name: str

    def ask(self, vat_id: VatId, *, trader_name: str) -> Answer:
        """Return what is known about a number and whether the name fits it."""
        ...


class NotInVies(ValueError):
    """VIES knows member states' numbers only: British ones, and those for Northern Ireland's goods, are not sent to it."""


class Vies:
    """VIES over its REST interface. With our own number in the question the answer carries a consultation number."""

    name = "vies"

    def __init__(self, client: httpx.Client, *, requester: VatId | None) -> None:
        self._client = client
        self._requester = requester

    def ask(self, vat_id: VatId, *, trader_name: str) -> Answer:
        """Ask once. Raises NotInVies."""
        if not vat_id.is_in_union:
            raise NotInVies(vat_id.text)
        began = time.monotonic()
        answer = self._ask(vat_id, trader_name)
        return replace(answer, waited=timedelta(seconds=time.monotonic() - began))

    def _ask(self, vat_id: VatId, trader_name: str) -> Answer:
        question = {"countryCode": vat_id.prefix, "vatNumber": vat_id.number, "traderName": trader_name}
        if self._requester is not None:
            question["requesterMemberStateCode"] = self._requester.prefix
            question["requesterNumber"] = self._requester.number
        try:
            response = self._client.post(URL, json=question)
        except httpx.TimeoutException:
            return _unknown("TIMEOUT")
        except httpx.HTTPError as why:
            return _unknown(type(why).__name__)
        return read_answer(_json(response), status=response.status_code, vat_id=vat_id)


class SampleRegister:
    """The demo's stand-in, which has no network: every number with right check digits is valid, no name is told.

    It gives no consultation number, and whatever shows its answer says that it is a sample.
    """

    name = "sample"

    def ask(self, vat_id: VatId, *, trader_name: str) -> Answer:
        """Return valid at once: numbers with wrong check digits are refused before anybody is asked."""
        return Answer(outcome=Outcome.VALID)


def read_answer(body: Any, *, status: int, vat_id: VatId) -> Answer:
    """Return what a body of VIES says. Anything but a plain yes or no about this very number is unknown."""
    if not isinstance(body, dict):
        return _unknown(f"HTTP {status}, not JSON")
    fault = _fault(body)
    if fault in _FAULTS_OF_THE_NUMBER:
        return Answer(outcome=Outcome.INVALID, fault=fault)
    is_about_it = body.get("countryCode") == vat_id.prefix and body.get("vatNumber") == vat_id.number
    if fault or status != httpx.codes.OK or not is_about_it or not isinstance(body.get("valid"), bool):
        return _unknown(fault or f"HTTP {status}, no answer about the number")
    return Answer(
        outcome=Outcome.VALID if body["valid"] else Outcome.INVALID,
        name=_text(body, "name")[:300],
        address=_text(body, "address")[:500],
        name_match=_MATCHES.get(_text(body, "traderNameMatch"), NameMatch.NOT_TOLD),
        consultation_number=_text(body, "requestIdentifier")[:60],
    )


def _json(response: httpx.Response) -> Any:
    if len(response.content) > MOST_BYTES:
        return None
    try:
        return response.json()
    except ValueError:
        return None


def _fault(body: dict[str, Any]) -> str:
    """Return the fault's name: VIES may send it with any HTTP status, 200 too."""
    wrapped = body.get("errorWrappers")
    if body.get("actionSucceed") is not False and not wrapped:
        return ""
    first = wrapped[0] if isinstance(wrapped, list) and wrapped and isinstance(wrapped[0], dict) else {}
    return _text(first, "error") or "FAULT"


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    text = value.strip() if isinstance(value, str) else ""
    return "" if text in _NOT_TOLD else text


def _unknown(fault: str) -> Answer:
    if fault in _OUR_FAULTS:
        log.error("VIES does not serve us: %s", fault)
    return Answer(outcome=Outcome.UNKNOWN, fault=fault[:100])
