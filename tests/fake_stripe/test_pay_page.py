"""The test gateway's hosted page, read as a browser without a script reads it."""

from html import unescape

import httpx
import pytest

from fake_stripe.words import amount_text
from tests.billing.gateway_server import BAD_DEBIT, CHALLENGED_CARD, DECLINED_CARD, GOOD_CARD, GOOD_DEBIT, FakeStripe
from tests.fake_stripe.conftest import new_session


@pytest.fixture
def http():
    with httpx.Client(trust_env=False) as http:
        yield http


def test_the_page_says_what_is_to_pay_and_that_no_money_moves(api, http):
    session = new_session(api, amount=123_456)
    page = http.get(session.url)
    assert page.status_code == 200
    assert "Test payments: no real money moves" in page.text
    assert "€1,234.56" in page.text
    assert "GPU &lt;Bourse&gt;" in page.text, "names are text"
    assert 'href="http://localhost:1/cancelled"' in page.text
    for number in (GOOD_CARD, DECLINED_CARD, CHALLENGED_CARD, GOOD_DEBIT, BAD_DEBIT):
        assert f'value="{number}"' in page.text
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert http.get(f"{session.url.partition('/c/')[0]}/pay.css").status_code == 200


@pytest.mark.parametrize(
    ("locale", "ribbon", "amount"),
    [
        ("nl", "Testbetalingen: er wordt geen echt geld verplaatst", "€\xa01.234,56"),
        ("pl", "Płatności testowe: bez prawdziwych pieniędzy", "1\xa0234,56\xa0€"),
        ("auto", "Test payments: no real money moves", "€1,234.56"),
    ],
)
def test_the_page_speaks_the_language_of_its_session(api, http, locale, ribbon, amount):
    page = http.get(new_session(api, amount=123_456, locale=locale).url)
    assert ribbon in page.text
    assert amount in unescape(page.text)
    assert f'<html lang="{locale if locale != "auto" else "en"}">' in page.text


def test_amounts_are_written_in_their_currency():
    assert amount_text(5, "gbp", "en") == "£0.05"
    assert amount_text(100_000_000, "usd", "en") == "$1,000,000.00"


def test_a_good_card_leads_back_to_the_site(api, http):
    session = new_session(api)
    answer = http.post(session.url, data={"method": GOOD_CARD})
    assert (answer.status_code, answer.headers["Location"]) == (303, f"http://localhost:1/back?session={session.id}")
    assert api.v1.checkout.sessions.retrieve(session.id).payment_status == "paid"
    assert http.get(session.url).headers["Location"] == answer.headers["Location"], "it is paid: nothing to choose"
    http.post(session.url, data={"method": GOOD_CARD})
    assert len(api.v1.charges.list().data) == 1


def test_a_declined_card_comes_back_to_the_page_and_says_so(api, http):
    session = new_session(api)
    answer = http.post(session.url, data={"method": DECLINED_CARD})
    assert answer.status_code == 303, "to load the page again is not to pay again"
    page = http.get(httpx.URL(session.url).join(answer.headers["Location"]))
    assert 'role="alert"' in page.text
    assert "The card was declined. Nothing was charged." in page.text
    assert len(api.v1.charges.list().data) == 1


@pytest.mark.parametrize(("choice", "status"), [("yes", "paid"), ("no", "unpaid")])
def test_a_challenge_is_a_page_of_its_own(api, http, choice, status):
    session = new_session(api)
    answer = http.post(session.url, data={"method": CHALLENGED_CARD})
    challenge = httpx.URL(session.url).join(answer.headers["Location"])
    assert "Do you confirm this payment?" in http.get(challenge).text
    assert api.v1.checkout.sessions.retrieve(session.id).payment_status == "unpaid"
    answer = http.post(challenge, data={"answer": choice})
    assert ("/back?" in answer.headers["Location"]) == (status == "paid")
    assert api.v1.checkout.sessions.retrieve(session.id).payment_status == status


def test_a_bank_debit_is_offered_for_euros_only(api, http):
    assert "sepa" not in http.get(new_session(api, currency="usd").url).text.lower()
    session = new_session(api)
    answer = http.post(session.url, data={"method": GOOD_DEBIT})
    assert "/back?" in answer.headers["Location"]
    assert api.v1.checkout.sessions.retrieve(session.id).payment_status == "unpaid"


@pytest.mark.parametrize("choice", [{}, {"method": "nonsense"}, {"method": "1234"}])
def test_a_choice_that_is_none_charges_nothing(api, http, choice):
    session = new_session(api)
    answer = http.post(session.url, data=choice)
    assert "Choose how to pay." in http.get(httpx.URL(session.url).join(answer.headers["Location"])).text
    assert api.v1.charges.list().data == []


def test_an_expired_page_says_so_and_takes_nothing(gateway, api, http):
    session = new_session(api)
    gateway.expire(session.id)
    assert "This page has expired" in http.get(session.url).text
    answer = http.post(session.url, data={"method": GOOD_CARD})
    assert "This page has expired" in http.get(httpx.URL(session.url).join(answer.headers["Location"])).text
    assert api.v1.charges.list().data == []


def test_a_page_that_does_not_exist_is_404(gateway, http):
    for path in ("/c/pay/cs_test_nothing", "/c/pay/cs_test_nothing/challenge", "/nothing"):
        assert http.get(f"{gateway.url}{path}").status_code == 404
    assert http.post(f"{gateway.url}/c/pay/cs_test_nothing", data={"method": GOOD_CARD}).status_code == 404


def test_its_own_address_says_what_it_is_and_how_it_is_controlled(gateway: FakeStripe, api, http):
    new_session(api)
    page = http.get(f"{gateway.url}/")
    assert "no money moves" in page.text
    assert "€100.00" in page.text
    assert "refund_outcome" in page.text


def test_forms_lead_to_the_gateway_and_to_the_site_of_the_session_only(api, http):
    policy = http.get(new_session(api).url).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "form-action 'self' http://localhost:1;" in policy


def test_it_serves_its_own_machine_by_its_own_names_only(gateway, http):
    assert http.get(f"{gateway.url}/", headers={"Host": "evil.example"}).status_code == 403
    for path in ("/_control/reset", "/v1/customers"):
        answer = http.post(f"{gateway.url}{path}", headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403
    assert http.get(f"{gateway.url}/_control/reset").status_code == 405
    assert http.post(f"{gateway.url}/_control/nothing").status_code == 404
    assert http.post(f"{gateway.url}/_control/advance", json={"seconds": "x"}).status_code == 400
    assert http.post(f"{gateway.url}/_control/switches", data={"withhold": "true"}).json()["withhold"] is True
