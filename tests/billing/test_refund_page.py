"""`/wallet/refund/`: where each cent goes is shown before it goes, and one form sends it once."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import pytest
from django.test import Client

from billing import holds
from billing.accounts import open_account
from billing.models import Account, BooksStop, Dispute, Refund
from tests.billing.conftest import NOW, UNIT, paid_top_up
from tests.billing.statements import book
from tests.billing.stub_gateway import stub
from tests.billing.test_ledger_race import together
from tests.billing.test_wallet_page import signed_in, wallet, words
from tests.factories import make_organisation
from users.models import Organisation, Role

__all__ = ["stub"]
pytestmark = pytest.mark.django_db
URL = "/wallet/refund/"
DAY = timedelta(days=1)


def preview(client: Client, *, currency: str = "EUR", amount: str = "40"):
    """Ask where an amount would go."""
    return client.get(URL, {"currency": currency, "amount": amount})


def confirm(page) -> dict[str, str]:
    """Return what the button of a preview sends."""
    form = page.context["form"]
    return {name: form[name].value() for name in ("currency", "amount", "ticket")}


def balance(account: Account) -> int:
    account.refresh_from_db()
    return account.posted_micros


def two_payments() -> Account:
    """A wallet of two payments of thirty, ten of them spent."""
    eur = wallet()
    paid_top_up(eur, units=30, paid_at=NOW - 2 * DAY)
    paid_top_up(eur, units=30, paid_at=NOW - DAY)
    book(eur, -10 * UNIT)
    return eur


def test_the_page_says_how_much_can_go_back_of_which_wallet(stub):
    eur = two_payments()
    holds.place_hold(key="h", account_id=eur.pk, amount_micros=15_500_001)
    page = signed_in().get(URL)
    assert "EUR, from 2 payments 34.49 EUR" in words(page)  # neither spent nor held, in whole cents
    form = page.context["form"]
    assert (form["currency"].value(), form["amount"].value()) == ("EUR", "34.49")
    assert [choice for choice, _ in form.fields["currency"].choices] == ["EUR"]


def test_a_preview_shows_each_payment_oldest_first_and_moves_nothing(stub):
    eur = two_payments()
    page = preview(signed_in(), amount="40")
    assert [share.amount_micros for share in page.context["shares"]] == [30 * UNIT, 10 * UNIT]
    text = words(page)
    assert "40.00 EUR would go back" in text
    assert "28 Nov 2026 30.00 0.00 30.00 29 Nov 2026 30.00 0.00 10.00" in text
    assert "Send 40.00 EUR back" in text
    assert balance(eur) == 50 * UNIT
    assert Refund.objects.count() == stub.asked == 0


def test_the_button_sends_what_was_shown(stub):
    eur = two_payments()
    client = signed_in()
    answer = client.post(URL, confirm(preview(client, amount="40,00")))
    assert (answer.status_code, answer["Location"]) == (HTTPStatus.SEE_OTHER, f"{URL}#refunds")
    assert sorted(Refund.objects.values_list("amount_micros", flat=True)) == [10 * UNIT, 30 * UNIT]
    assert balance(eur) == 10 * UNIT
    text = words(client.get(URL))
    assert "40.00 EUR has left your wallet and is on its way back." in text
    assert text.count("paid back") == 2


def test_the_same_form_sent_twice_is_one_refund(stub):
    eur = two_payments()
    client = signed_in()
    form = confirm(preview(client, amount="20"))
    for _ in range(3):
        assert client.post(URL, form).status_code == HTTPStatus.SEE_OTHER
    assert Refund.objects.count() == 1
    assert balance(eur) == 30 * UNIT


@pytest.mark.django_db(transaction=True)
def test_the_same_form_sent_by_many_clicks_at_once_is_one_refund(stub):
    eur = two_payments()
    client = signed_in()
    form = confirm(preview(client, amount="10"))

    def click(_number: int) -> int:
        again = Client()
        again.cookies = client.cookies
        return again.post(URL, form).status_code

    assert together(4, click) == [HTTPStatus.SEE_OTHER] * 4
    assert Refund.objects.count() == 1
    assert balance(eur) == 40 * UNIT


def test_a_form_sent_again_with_another_amount_sends_nothing(stub):
    two_payments()
    client = signed_in()
    form = confirm(preview(client, amount="20"))
    client.post(URL, form)
    page = client.post(URL, {**form, "amount": "5"})
    assert page.status_code == HTTPStatus.OK
    assert "This form was sent before." in words(page)
    assert Refund.objects.count() == 1


def test_a_form_without_a_ticket_of_ours_sends_nothing(stub):
    two_payments()
    client = signed_in()
    for ticket in ("", "made-up", confirm(preview(client))["ticket"][:-1]):
        page = client.post(URL, {"currency": "EUR", "amount": "5", "ticket": ticket})
        assert page.status_code == HTTPStatus.OK
        assert "Nothing was sent back." in words(page)
    assert Refund.objects.count() == 0


@pytest.mark.parametrize("amount", ["50.01", "0", "0.00", "1.005", "-5", "many", "9" * 30])
def test_an_amount_that_cannot_go_back_is_refused_at_its_field(stub, amount):
    two_payments()
    page = preview(signed_in(), amount=amount)
    assert list(page.context["form"].errors) == ["amount"]
    assert "Nothing was sent back." in words(page)
    assert page.context["shares"] == []
    assert b"Send" not in page.content.partition(b"<main")[2].partition(b'id="refunds"')[0].replace(b"Send it", b"")


def test_an_amount_that_was_spent_meanwhile_is_refused_and_nothing_is_kept(stub):
    eur = two_payments()
    client = signed_in()
    form = confirm(preview(client, amount="50"))
    book(eur, -45 * UNIT)
    page = client.post(URL, form)
    assert "Between 0.01 and 5.00 EUR can go back now." in words(page)
    assert Refund.objects.count() == 0
    assert client.post(URL, {**form, "amount": "5"}).status_code == HTTPStatus.SEE_OTHER


def test_a_gateway_that_refuses_leaves_the_money_in_the_wallet_and_says_so(stub):
    eur = two_payments()
    stub.answer = "refused"
    client = signed_in()
    client.post(URL, confirm(preview(client, amount="20")))
    assert balance(eur) == 50 * UNIT
    text = words(client.get(URL))
    assert "The payment partner refused to send 20.00 EUR back. It is in your wallet again." in text
    assert "failed, money is back in the wallet" in text


@pytest.mark.parametrize(
    ("answer", "state"),
    [("pending", "on its way at the payment partner"), ("no answer", "asked for, not answered yet")],
)
def test_a_refund_that_is_not_decided_says_where_it_stands(stub, answer, state):
    two_payments()
    stub.answer = answer
    client = signed_in()
    client.post(URL, confirm(preview(client, amount="20")))
    page = client.get(URL)
    assert state in words(page)
    assert f'id="refund-{Refund.objects.get().pk}"'.encode() in page.content


def owe() -> None:
    book(open_account(kind=Account.Kind.RECEIVABLE, currency="USD", owner_id=make_organisation().pk), -UNIT)


def freeze() -> None:
    Organisation.objects.update(frozen_at=NOW)


def stop() -> None:
    BooksStop.objects.create(breach="test", stopped_at=NOW)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (owe, "1.00 USD are owed. Nothing goes back while this is open."),
        (freeze, "Orla Labs B.V. is frozen Refunds wait until we lift this."),
        (stop, "Refunds pause while our books are checked Your money is safe and unchanged."),
    ],
)
def test_what_stands_in_the_way_is_said_with_what_to_do(stub, block, said):
    two_payments()
    client = signed_in()
    form = confirm(preview(client, amount="20"))
    block()
    page = client.get(URL)
    assert said in words(page)
    assert b"Show where it goes" not in page.content
    assert client.post(URL, form).status_code == HTTPStatus.OK
    assert Refund.objects.count() == stub.asked == 0


@pytest.mark.broken_books
def test_a_disputed_payment_stops_refunds(stub):
    eur = wallet()
    disputed = paid_top_up(eur, units=30)
    paid_top_up(eur, units=30)
    Dispute.objects.create(
        top_up=disputed,
        gateway_dispute_id="dp",
        currency="EUR",
        amount_micros=30 * UNIT,
        clawed_micros=30 * UNIT,
        opened_at=NOW,
    )
    assert "A payment of yours is disputed" in words(signed_in().get(URL))


def test_nothing_to_give_back_says_why():
    text = words(signed_in().get(URL))
    assert "There is nothing to give back." in text
    assert "Refunds so far None yet." in text


def test_money_that_no_payment_brought_cannot_go_back(stub):
    eur = wallet()
    paid_top_up(eur, units=10)
    book(eur, 100 * UNIT)  # a credit we granted
    assert "EUR, from 1 payment 10.00 EUR" in words(signed_in().get(URL))


def test_payers_alone_may_ask_for_a_refund(stub):
    two_payments()
    for role in Role:
        client = signed_in(role=role)
        page, may_pay = preview(client, amount="1"), role in (Role.OWNER, Role.BILLING)
        assert (b"Show where it goes" in page.content) == may_pay
        answer = client.post(URL, confirm(page))
        assert answer.status_code == (HTTPStatus.SEE_OTHER if may_pay else HTTPStatus.FORBIDDEN)
    assert Refund.objects.count() == 2


def test_an_organisation_sees_its_own_payments_and_refunds_alone(stub):
    two_payments()
    client = signed_in()
    client.post(URL, confirm(preview(client, amount="20")))
    other = signed_in(organisation=make_organisation(name="Other Ltd"))
    assert "There is nothing to give back." in words(other.get(URL))
    assert "None yet." in words(other.get(URL))


def test_a_provider_has_nothing_to_refund():
    client = signed_in(organisation=make_organisation(name="Rack Ltd", kind="provider"))
    assert "Providers have no wallet." in words(client.get(URL))
    assert client.post(URL, {"currency": "EUR", "amount": "1"}).status_code == HTTPStatus.OK


def test_the_page_takes_at_most_twelve_queries(stub, django_assert_max_num_queries):
    eur = two_payments()
    for number in range(5):
        paid_top_up(eur, units=1, paid_at=datetime.now(UTC) - number * DAY)
    client = signed_in()
    client.post(URL, confirm(preview(client, amount="20")))
    with django_assert_max_num_queries(12):
        preview(client, amount="10")
