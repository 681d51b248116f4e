"""`/wallet/top-up/`: one form is one top-up, nothing is charged by asking, and the page after says what the row says."""

import re
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from uuid import uuid4

import pytest
from django.test import Client
from uuid6 import uuid7

from billing.accounts import open_account
from billing.gateway import client as gateway
from billing.gateway.errors import GatewayRefused
from billing.models import Account, TopUp
from billing.topups.apply_event import apply_due_events
from billing.views.top_up import LOOK_AFTER_SECONDS
from tests.billing.conftest import UNIT, paid_top_up
from tests.billing.statements import book
from tests.billing.test_ledger_race import together
from tests.billing.test_wallet_page import signed_in, words
from tests.factories import make_member, make_organisation
from users.models import Organisation, Role

pytestmark = pytest.mark.django_db
URL = "/wallet/top-up/"


def filled(client: Client, **values: str) -> dict[str, str]:
    """Open the form and fill it in."""
    page = client.get(URL)
    return {"currency": "EUR", "amount": "100", "ticket": page.context["form"]["ticket"].value(), **values}


def top_up(state: str = "open", **values) -> TopUp:
    organisation = values.pop("organisation", None) or make_organisation()
    wallet = open_account(kind=Account.Kind.WALLET, currency="EUR", owner_id=organisation.pk)
    now = datetime.now(UTC)
    defaults = {
        "checkout_session_id": f"cs_{uuid4().hex}",
        "checkout_url": "https://pay.example/c/1",
        "expires_at": now + timedelta(hours=2),
    }
    return TopUp.objects.create(
        organisation=organisation,
        wallet=wallet,
        currency="EUR",
        amount_micros=100 * UNIT,
        state=state,
        gateway_key=uuid4().hex,
        created_at=now,
        **{**defaults, **values},
    )


def test_the_form_says_limits_tax_and_what_the_button_does_before_anything_is_paid(fake_stripe):
    page = signed_in().get(URL)
    text = words(page)
    assert "From 10.00 up to 250.00 now, in any currency." in text
    assert "No fee: the whole amount goes into the wallet. No tax is added now" in text
    assert "250.00 in 24 hours and 500.00 in 7 days" in text
    assert "Nothing is charged before you confirm" in text
    assert b'href="/account/tax/"' in page.content
    assert page.context["room"].suggestions == [25, 50, 100, 250]
    assert page.content.count(b'class="btn"') == 1


def test_an_amount_taken_by_a_click_is_in_the_form(fake_stripe):
    form = signed_in().get(f"{URL}?currency=GBP&amount=250").context["form"]
    assert (form["currency"].value(), form["amount"].value()) == ("GBP", "250")
    for nonsense in ("currency=JPY&amount=-5", "amount=NaN", "amount=" + "9" * 30, "amount=x"):
        form = signed_in().get(f"{URL}?{nonsense}").context["form"]
        assert (form["currency"].value(), form["amount"].value()) == ("EUR", "")


def test_the_form_leads_to_the_payment_page_and_credits_nothing(fake_stripe):
    client = signed_in()
    answer = client.post(URL, filled(client, amount="99,50"))
    assert answer.status_code == HTTPStatus.SEE_OTHER
    row = TopUp.objects.get()
    assert answer["Location"] == row.checkout_url
    assert answer["Location"].startswith(fake_stripe.url)
    assert (row.state, row.amount_micros, row.currency) == ("open", 99_500_000, "EUR")
    assert row.created_by is not None
    assert row.wallet.posted_micros == 0


def test_the_same_form_sent_twice_is_one_top_up(fake_stripe):
    client = signed_in()
    form = filled(client)
    first, second = client.post(URL, form), client.post(URL, form)
    assert first["Location"] == second["Location"]
    assert TopUp.objects.count() == 1
    client.post(URL, filled(client))  # a form of its own is a top-up of its own
    assert TopUp.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_same_form_sent_by_many_clicks_at_once_is_one_top_up(fake_stripe):
    client = signed_in()
    form = filled(client)

    def click(_number: int) -> str:
        again = Client()
        again.cookies = client.cookies
        return again.post(URL, form)["Location"]

    places = together(4, click)
    assert len(set(places)) == 1
    assert TopUp.objects.count() == 1


def test_a_form_sent_again_with_another_amount_starts_nothing_by_itself(fake_stripe):
    client = signed_in()
    form = filled(client)
    client.post(URL, form)
    page = client.post(URL, {**form, "amount": "50"})
    assert "This form has started a top-up already" in words(page)
    assert TopUp.objects.count() == 1
    again = {"currency": "EUR", "amount": "50", "ticket": page.context["form"]["ticket"].value()}
    assert client.post(URL, again).status_code == HTTPStatus.SEE_OTHER
    assert sorted(TopUp.objects.values_list("amount_micros", flat=True)) == [50 * UNIT, 100 * UNIT]


def test_a_form_of_another_organisation_or_made_up_starts_nothing(fake_stripe):
    other = signed_in(organisation=make_organisation(name="Other Ltd"))
    client = signed_in()
    for ticket in (filled(other)["ticket"], str(uuid7()), "", "x" * 5000):
        page = client.post(URL, filled(client, ticket=ticket))
        assert page.status_code == HTTPStatus.OK
        assert TopUp.objects.count() == 0
        assert "Nothing was charged." in words(page)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("", "This field is required."),
        ("9.99", "The smallest top-up is 10.00 EUR."),
        ("250.01", "You can pay in at most 250.00 EUR now."),
        ("1,000", "Write the amount with digits"),
        ("1.000", "Write the amount with digits"),
        ("99.999", "Write the amount with digits"),
        ("-20", "Write the amount with digits"),
        ("1e2", "Write the amount with digits"),
        ("٢٥", "Write the amount with digits"),
        ("NaN", "Write the amount with digits"),
        ("9" * 30, "Write the amount with digits"),
    ],
)
def test_an_amount_that_cannot_be_paid_in_is_refused_at_its_field(fake_stripe, amount, said):
    client = signed_in()
    page = client.post(URL, filled(client, amount=amount))
    assert page.status_code == HTTPStatus.OK
    assert said in words(page)
    assert list(page.context["form"].errors) == ["amount"]
    assert b'aria-invalid="true"' in page.content
    assert "Nothing was charged." in words(page)
    assert TopUp.objects.count() == 0


@pytest.mark.parametrize("amount", ["100", " 100 ", "100.5", "100,50", "0100.50"])
def test_an_amount_is_read_as_people_write_it(fake_stripe, amount):
    client = signed_in()
    assert client.post(URL, filled(client, amount=amount)).status_code == HTTPStatus.SEE_OTHER
    assert TopUp.objects.get().amount_micros in (100 * UNIT, 100_500_000)


def test_a_gateway_that_does_not_answer_charges_nothing_and_the_same_form_goes_on(fake_stripe):
    client = signed_in()
    form = filled(client)
    fake_stripe.fault("fail_before", times=9)
    page = client.post(URL, form)
    assert page.status_code == HTTPStatus.OK
    assert "The payment partner does not answer" in words(page)
    assert "Nothing was charged." in words(page)
    assert TopUp.objects.get().state == "created"
    assert page.context["form"]["ticket"].value() == form["ticket"]
    fake_stripe.reset()
    assert client.post(URL, form).status_code == HTTPStatus.SEE_OTHER
    assert TopUp.objects.get().state == "open"


def test_a_gateway_that_refuses_charges_nothing_and_the_next_form_is_a_new_one(fake_stripe, monkeypatch):
    client = signed_in()
    form = filled(client)

    def refuse(**_values) -> None:
        raise GatewayRefused(code="amount_too_small", message="no")

    with monkeypatch.context() as patched:
        patched.setattr(gateway, "create_checkout", refuse)
        page = client.post(URL, form)
    assert "The payment partner refused to open a payment page Nothing was charged." in words(page)
    assert TopUp.objects.get().state == "failed"
    ticket = page.context["form"]["ticket"].value()
    assert client.post(URL, {**form, "ticket": ticket}).status_code == HTTPStatus.SEE_OTHER
    assert sorted(TopUp.objects.values_list("state", flat=True)) == ["failed", "open"]
    old = client.post(URL, form)  # the form that was refused says what became of it, whenever it is sent again
    assert old["Location"].startswith(URL)


def test_without_a_gateway_the_page_says_that_top_ups_are_off():
    client = signed_in()
    page = client.get(URL)
    assert "Top-ups are off" in words(page)
    assert b"Continue to payment" not in page.content
    ticket = page.context["form"]["ticket"].value()
    answer = client.post(URL, {"currency": "EUR", "amount": "100", "ticket": ticket})
    assert "Top-ups are off" in words(answer)
    assert TopUp.objects.count() == 0


def test_nothing_more_may_be_paid_in_once_the_limit_is_reached(fake_stripe):
    paid_top_up(top_up(state="failed").wallet, units=245, paid_at=datetime.now(UTC))
    text = words(signed_in().get(URL))
    assert "Nothing more can be paid in for now." in text
    assert "245.00 of 250.00 in these 24 hours" in text


def test_what_is_owed_is_said_before_paying(fake_stripe):
    receivable = open_account(kind=Account.Kind.RECEIVABLE, currency="EUR", owner_id=make_organisation().pk)
    book(receivable, -35 * UNIT)
    assert "35.00 EUR are owed A top-up in EUR pays this first" in words(signed_in().get(URL))


def test_payers_alone_may_top_up(fake_stripe):
    for role in Role:
        client = signed_in(role=role)
        page, may_pay = client.get(URL), role in (Role.OWNER, Role.BILLING)
        assert (b"Continue to payment" in page.content) == may_pay
        answer = client.post(URL, filled(client))
        assert answer.status_code == (HTTPStatus.SEE_OTHER if may_pay else HTTPStatus.FORBIDDEN)
    assert TopUp.objects.count() == 2


def test_a_provider_pays_nothing_in(fake_stripe):
    client = signed_in(organisation=make_organisation(name="Rack Ltd", kind="provider"))
    assert "Providers have no wallet." in words(client.get(URL))
    assert client.post(URL, {"currency": "EUR", "amount": "100"}).status_code == HTTPStatus.OK
    assert TopUp.objects.count() == 0


def test_the_form_takes_at_most_twelve_queries(fake_stripe, django_assert_max_num_queries):
    client = signed_in()
    for _ in range(3):
        top_up(state="expired")
    with django_assert_max_num_queries(12):
        assert client.get(URL).status_code == HTTPStatus.OK


# --- where a top-up stands ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "said", "way_on"),
    [
        ("created", "The payment page could not be opened.", "Try to open the payment page"),
        ("open", "Not paid yet, as far as we know.", "Continue to payment"),
        ("processing", "The payment is on its way.", "Ask the payment partner now"),
        ("failed", "The payment failed. Nothing was charged.", "Try again"),
        ("expired", "It ran out before it was paid. Nothing was charged.", "Try again"),
        ("quarantined", "A person is looking at this payment.", "How to reach us"),
    ],
)
def test_each_state_is_said_in_words_with_a_way_on(state, said, way_on):
    page = signed_in().get(f"{URL}{top_up(state).pk}/")
    assert said in words(page)
    assert way_on in words(page)


def test_a_paid_top_up_says_what_is_in_the_wallet():
    row = paid_top_up(top_up("failed").wallet, units=100)
    page = signed_in().get(f"{URL}{row.pk}/")
    assert "100.00 EUR are in your wallet." in words(page)
    assert "Refresh" not in page


def test_coming_back_credits_nothing_and_asks_nobody(fake_stripe):
    client = signed_in()
    client.post(URL, filled(client))
    row = TopUp.objects.get()
    fake_stripe.pay(row.checkout_session_id)
    fake_stripe.fault("drop_before", times=9)  # whoever would ask now would be heard of
    page = client.get(f"{URL}{row.pk}/")
    assert "Not paid yet, as far as we know." in words(page)
    assert row.wallet.posted_micros == TopUp.objects.get().wallet.posted_micros == 0


def test_the_message_of_the_gateway_turns_the_page(fake_stripe):
    client = signed_in()
    client.post(URL, filled(client))
    row = TopUp.objects.get()
    fake_stripe.pay(row.checkout_session_id)
    fake_stripe.deliver(client)
    apply_due_events(now=datetime.now(UTC))
    assert "100.00 EUR are in your wallet." in words(client.get(f"{URL}{row.pk}/"))


def test_a_message_that_is_lost_can_be_made_up_for_by_asking(fake_stripe):
    client = signed_in()
    client.post(URL, filled(client))
    row = TopUp.objects.get()
    fake_stripe.pay(row.checkout_session_id)
    for _ in range(2):  # asking twice credits once
        answer = client.post(f"{URL}{row.pk}/ask/")
        assert (answer.status_code, answer["Location"]) == (HTTPStatus.SEE_OTHER, f"{URL}{row.pk}/")
    assert TopUp.objects.get().wallet.posted_micros == 100 * UNIT


def test_a_payment_page_that_never_opened_is_opened_by_asking(fake_stripe):
    client = signed_in()
    fake_stripe.fault("fail_before", times=9)
    client.post(URL, filled(client))
    row = TopUp.objects.get()
    answer = client.post(f"{URL}{row.pk}/ask/")
    assert answer["Location"] == f"{URL}{row.pk}/"
    assert "gave no answer that helps. Nothing was charged by asking." in words(client.get(answer["Location"]))
    fake_stripe.reset()
    answer = client.post(f"{URL}{row.pk}/ask/")
    assert answer["Location"].startswith(fake_stripe.url)
    assert TopUp.objects.get().state == "open"


def test_a_declined_card_leaves_the_payment_page_open(fake_stripe):
    client = signed_in()
    client.post(URL, filled(client))
    row = TopUp.objects.get()
    assert fake_stripe.pay(row.checkout_session_id, "4000000000000002") == "declined"
    client.post(f"{URL}{row.pk}/ask/")
    page = client.get(f"{URL}{row.pk}/")
    assert "nothing was charged and the payment page is still open" in words(page)
    assert row.checkout_url.encode() in page.content


def test_a_page_that_waits_looks_again_less_and_less_and_stops():
    row = top_up("open")
    client, url, waits = signed_in(), f"{URL}{row.pk}/", []
    while True:
        page = client.get(url)
        if "Refresh" not in page:
            break
        seconds, _, url = page["Refresh"].partition("; url=")
        waits.append(int(seconds))
    assert waits == list(LOOK_AFTER_SECONDS)
    assert waits == sorted(waits)
    assert "This page has stopped looking by itself. Look again" in words(page)
    for nonsense in ("x", "-1", "9" * 50, "²"):
        assert client.get(f"{URL}{row.pk}/?look={nonsense}").status_code == HTTPStatus.OK


@pytest.mark.parametrize("state", ["failed", "expired", "quarantined"])
def test_a_page_that_waits_for_nothing_does_not_look_again(state):
    assert "Refresh" not in signed_in().get(f"{URL}{top_up(state).pk}/")


def test_try_again_fills_in_the_form_again(fake_stripe):
    client = signed_in()
    page = client.get(f"{URL}{top_up('expired').pk}/")
    href = re.search(r'class="btn" href="([^"]+)"', page.content.decode())
    assert href is not None
    form = client.get(href[1].replace("&amp;", "&")).context["form"]
    assert (form["currency"].value(), form["amount"].value()) == ("EUR", "100.00")


def test_a_top_up_of_another_organisation_does_not_exist():
    row = top_up(organisation=make_organisation(name="Other Ltd"))
    client = signed_in()
    assert client.get(f"{URL}{row.pk}/").status_code == HTTPStatus.NOT_FOUND
    assert client.post(f"{URL}{row.pk}/ask/").status_code == HTTPStatus.NOT_FOUND
    assert client.get(f"{URL}{uuid7()}/").status_code == HTTPStatus.NOT_FOUND


def test_a_viewer_sees_where_a_top_up_stands_and_cannot_ask():
    row = top_up("open")
    client = signed_in(role=Role.VIEWER)
    page = client.get(f"{URL}{row.pk}/")
    assert page.status_code == HTTPStatus.OK
    assert b"pay.example" not in page.content
    assert client.post(f"{URL}{row.pk}/ask/").status_code == HTTPStatus.FORBIDDEN
    assert client.get(f"{URL}{row.pk}/ask/").status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert Organisation.objects.count() == 1
    assert make_member(role=Role.VIEWER).pk
