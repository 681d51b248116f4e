"""The operator's pages about payments: everything that waits for a person, and decisions that leave a record."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from billing.disputes import follow_dispute
from billing.models import Account, GatewayEvent, GatewayTransaction, TopUp
from tests.billing.conftest import NOW, UNIT, paid_top_up, wallet_of
from tests.billing.stub_gateway import dispute_of
from tests.factories import make_member, make_operator, make_organisation
from users.audit import record
from users.freezing import freeze
from users.models import AuditRecord, Organisation

pytestmark = pytest.mark.django_db
TOP_UPS, DISPUTES = "/operator/top-ups/", "/operator/disputes/"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(make_operator())
    return client


def make_top_up(state: str = "open", units: int = 40, **values) -> TopUp:
    wallet = wallet_of("Orla Labs B.V.")
    return TopUp.objects.create(
        organisation=make_organisation(),
        wallet=wallet,
        currency="EUR",
        amount_micros=units * UNIT,
        state=state,
        gateway_key=f"{state} {units}",
        created_at=NOW - timedelta(hours=1),
        **values,
    )


def make_event(*, event_id: str = "evt_1", **values) -> GatewayEvent:
    whole = {
        "type": "charge.dispute.created",
        "object_id": "dp_1",
        "payload": {},
        "is_live": False,
        "received_at": NOW,
        "attempts": 3,
        "next_attempt_at": NOW + timedelta(hours=1),
        "last_error": "PaymentNotCredited('not in the books yet')",
    }
    return GatewayEvent.objects.create(event_id=event_id, **{**whole, **values})


def make_close(currency: str, *, books: int, gateway: int) -> None:
    figures = {"books_micros": books * UNIT, "gateway_micros": gateway * UNIT}
    record(at=NOW, action="gateway.closed", subject_type="currency", subject_id=currency, after=figures)


def decided(action: str) -> tuple[str, str]:
    """Who made the one decision of this kind, and why."""
    [written] = AuditRecord.objects.filter(action=action).values_list("actor__email", "reason")
    return written


@pytest.mark.parametrize("address", [TOP_UPS, DISPUTES])
def test_only_operators_get_in(client, address):
    assert client.get(address).status_code == 302
    client.force_login(make_member())
    assert client.get(address).status_code == 403
    client.force_login(make_operator())
    answer = client.get(address)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert '<meta name="robots" content="noindex">' in answer.text


def test_empty_pages_say_so(operator):
    page = operator.get(TOP_UPS).text
    for words in ("There are none.", "not been closed yet", "every movement has its entry", "every message is applied"):
        assert words in page
    page = operator.get(DISPUTES).text
    for words in ("No payment has been disputed.", "None is frozen."):
        assert words in page


def test_top_ups_are_listed_and_filtered_by_state(operator):
    paid = paid_top_up(wallet_of("Ana B.V."), units=1234)
    make_top_up("quarantined", failure_reason="differs: amount")
    page = operator.get(TOP_UPS).text
    assert "1,234.00" in page
    assert "differs: amount" in page
    page = operator.get(TOP_UPS, {"state": "quarantined"}).text
    assert "differs: amount" in page
    assert str(paid.pk) not in page
    assert operator.get(TOP_UPS, {"state": "made-up"}).status_code == 404


def test_a_long_list_has_pages_that_keep_the_filter(operator):
    for units in range(1, 53):
        make_top_up("expired", units)
    page = operator.get(TOP_UPS, {"state": "expired"}).text
    assert "?state=expired&amp;page=2" in page
    page = operator.get(TOP_UPS, {"state": "expired", "page": 2}).text
    assert "page 2 of 2" in page
    for number in ("3", "0", "x"):
        assert operator.get(TOP_UPS, {"page": number}).status_code == 404


def test_movements_without_an_entry_and_differences_are_shown(operator):
    GatewayTransaction.objects.create(
        transaction_id="txn_1",
        type="tax_fund",
        currency="EUR",
        amount_micros=-3 * UNIT,
        happened_at=NOW,
        seen_at=NOW,
        note="a type we do not know",
    )
    make_close("EUR", books=100, gateway=93)
    make_close("EUR", books=100, gateway=97)
    make_close("USD", books=50, gateway=50)
    page = operator.get(TOP_UPS).text
    assert "txn_1" in page
    assert "a type we do not know" in page
    assert '<b class="bad">-3.00</b>' in page or '<b class="bad">−3.00</b>' in page, "the last close of the currency"
    assert "93.00" not in page


def test_a_message_that_failed_shows_its_error_and_is_tried_again(operator):
    event = make_event()
    page = operator.get(TOP_UPS).text
    assert "not in the books yet" in page
    again = reverse("billing:operator-try-again", args=[event.pk])
    assert again in page
    answer = operator.post(again, follow=True)
    assert "due again" in answer.text
    before = event.next_attempt_at
    event.refresh_from_db()
    assert event.next_attempt_at != before
    written = AuditRecord.objects.get(action="gateway_event.retried")
    assert (written.subject_id, written.before) == ("evt_1", {"attempts": 3, "last_error": event.last_error})
    GatewayEvent.objects.update(applied_at=NOW)
    assert "applied already" in operator.post(again, follow=True).text
    assert operator.get(again).status_code == 405


def test_disputes_show_who_bears_what(operator):
    wallet = wallet_of("Dora GmbH")
    top_up = paid_top_up(wallet, units=60)
    follow_dispute(dispute_of(top_up, micros=65 * UNIT), now=NOW)
    page = operator.get(DISPUTES).text
    for words in ("Dora GmbH", "65.00", "60.00", "5.00", "fraudulent", "payer&#x27;s bank"):
        assert words in page, words


def test_an_organisation_is_frozen_and_released_with_a_reason(operator):
    organisation = make_organisation()
    answer = operator.post(
        DISPUTES, {"decision": "freeze", "organisation": organisation.pk, "reason": "stolen cards"}, follow=True
    )
    assert "Orla Labs B.V. is frozen." in answer.text
    assert "stolen cards" in answer.text
    assert decided("organisation.frozen") == ("operator@example.com", "stolen cards")
    again = operator.post(DISPUTES, {"decision": "freeze", "organisation": organisation.pk, "reason": "x"}, follow=True)
    assert "frozen already" in again.text
    answer = operator.post(
        DISPUTES, {"decision": "unfreeze", "organisation": organisation.pk, "reason": "cleared by phone"}, follow=True
    )
    assert "is no longer frozen" in answer.text
    assert Organisation.objects.get(pk=organisation.pk).frozen_at is None
    assert decided("organisation.unfrozen") == ("operator@example.com", "cleared by phone")
    answer = operator.post(
        DISPUTES, {"decision": "unfreeze", "organisation": organisation.pk, "reason": "x"}, follow=True
    )
    assert "is not frozen; nothing was changed" in answer.text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"reason": "x", "organisation": "999999"}, "There is no organisation with this number."),
        ({"reason": "x", "organisation": "NaN"}, "There is no organisation with this number."),
        ({"reason": " "}, "This field is required."),
        ({"reason": "x" * 501}, "at most 500 characters"),
        ({"reason": "x", "decision": "delete"}, "thing"),
    ],
)
def test_a_decision_without_a_reason_or_an_organisation_changes_nothing(operator, values, words):
    organisation = make_organisation()
    answer = operator.post(DISPUTES, {"decision": "freeze", "organisation": organisation.pk, **values})
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
    assert words in answer.text
    assert Organisation.objects.get(pk=organisation.pk).frozen_at is None


def test_a_reason_with_markup_is_shown_as_text(operator):
    freeze(organisation_id=make_organisation().pk, reason="<b>bold</b>", now=NOW)
    page = operator.get(DISPUTES).text
    assert "<b>bold</b>" not in page
    assert "&lt;b&gt;bold" in page


@pytest.mark.parametrize("address", [TOP_UPS, DISPUTES])
def test_a_full_page_needs_few_queries(operator, address, django_assert_max_num_queries):
    for number in range(6):
        wallet = wallet_of(f"organisation {number}")
        follow_dispute(dispute_of(paid_top_up(wallet, units=20)), now=NOW)
        make_event(event_id=f"evt_{number}")
        make_top_up("failed", number + 1)
    make_close("EUR", books=1, gateway=1)
    operator.get(address)
    with django_assert_max_num_queries(12):
        operator.get(address)
    assert Account.objects.filter(kind="wallet").count() == 7


@pytest.mark.parametrize("language", ["nl", "pl"])
def test_the_pages_answer_in_every_language(operator, language):
    for address in (TOP_UPS, DISPUTES):
        with translation.override(language):
            assert operator.get(f"/{language}{address}").status_code == 200
