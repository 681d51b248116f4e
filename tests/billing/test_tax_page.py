"""`/account/tax/`: what will be charged and why, before any money; owners change what it hangs on."""

import html
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client

from billing.models import TaxDecision, TaxDetails, VatCheck
from billing.tax.record import decide_for, next_hour
from tests.factories import make_member, make_organisation
from users.models import AuditRecord, Organisation, Role

pytestmark = pytest.mark.django_db

PATH = "/account/tax/"
MINUTE = timedelta(minutes=1)
DETAILS = {"country": "NL", "postcode": "", "vat_id": "", "register_number": ""}


def signed_in(organisation: Organisation, *, role: Role = Role.OWNER) -> Client:
    client = Client()
    client.force_login(make_member(organisation=organisation, role=role))
    return client


def text_of(client: Client, path: str = PATH) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return words(answer)


def words(answer) -> str:
    visible = re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", answer.content.decode(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(visible))


def test_a_dutch_business_sees_its_rate_its_reason_and_an_example_before_any_money():
    text = text_of(signed_in(make_organisation()))
    assert "21% VAT is added to every price. Country of tax: Netherlands." in text
    assert "You are a business in the seller's own country" in text
    assert "VAT of the seller's country." in text
    assert "One GPU for one hour, net price 2.88 USD" in text
    assert "VAT, 21% 0.6048 USD" in text
    assert "Taken from the wallet 3.4848 USD" in text
    assert not TaxDecision.objects.exists()


def test_a_finnish_consumer_sees_the_rate_of_finland():
    text = text_of(signed_in(make_organisation(country="FI", type="consumer")))
    assert "25.5% VAT is added to every price. Country of tax: Finland." in text
    assert "Taken from the wallet 3.6144 USD" in text


def test_tax_22_the_page_says_that_wallet_money_is_gross_and_taxed_at_use():
    text = text_of(signed_in(make_organisation()))
    assert "Wallet money is gross: tax is added when hours are used, not when you top up." in text
    assert "Prices are net: without tax." in text


def test_tax_18_a_number_shows_its_state_its_last_check_and_the_lack_of_proof():
    organisation = make_organisation(country="DE")
    client = signed_in(organisation)
    answer = client.post(
        PATH, {**DETAILS, "country": "DE", "vat_id": "de 136 695 976", "postcode": "10115"}, follow=True
    )
    text = words(answer)
    assert "Saved." in text
    assert "No VAT is charged: you account for it yourself in your country (reverse charge)." in text
    assert "Reverse charge: the customer accounts for the VAT" in text
    assert "DE136695976" in text
    assert "sample answer, not VIES" in text
    assert "none: a weak proof" in text
    assert VatCheck.objects.get().outcome == "valid"
    assert TaxDecision.objects.get().en16931_code == "AE"
    record = AuditRecord.objects.get(action="tax.details_changed")
    assert record.after == {"postcode": "10115", "vat_id": "DE136695976"}
    assert record.ip_address == "127.0.0.1"


def test_a_change_shows_from_when_it_counts():
    organisation = make_organisation(type="consumer")
    now = datetime.now(UTC)
    decide_for(organisation=organisation, now=now)
    answer = signed_in(organisation).post(PATH, {**DETAILS, "country": "SE"}, follow=True)
    starts_at = next_hour(now)
    text = words(answer)
    assert "21% VAT is added to every price. Country of tax: Netherlands." in text
    assert re.search(
        rf"From \d+ \w+ \d+, {starts_at:%H}:00 UTC 25% VAT is added to every price. Country of tax: Sweden.", text
    )
    rows = re.findall(r"<tr><th scope=\"row\">\d.*?</tr>", answer.content.decode())
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        ({"vat_id": "NL004495446B01"}, "vat_id", "its length or its check digits are wrong"),
        ({"vat_id": "DE136695976"}, "vat_id", "belongs to another country"),
        ({"country": "US", "vat_id": "12-3456789"}, "vat_id", "write it as the business number"),
        ({"country": "ES"}, "postcode", "found by postcode"),
        ({"country": "ZZ"}, "country", "Select a valid choice"),
        ({"register_number": "1" * 41}, "register_number", "at most 40 characters"),
        ({"postcode": "1" * 21}, "postcode", "at most 20 characters"),
    ],
)
def test_a_fault_stands_at_its_field_and_above_the_form_and_changes_nothing(values, field, message):
    organisation = make_organisation()
    answer = signed_in(organisation).post(PATH, {**DETAILS, **values})
    page = answer.content.decode()
    (at_field,) = re.findall(rf'<span class="error" id="id_{field}_error">(.*?)</span>', page)
    assert message in at_field
    assert f'<a href="#id_{field}">' in page
    assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', page)
    organisation.refresh_from_db()
    assert organisation.country == "NL"
    assert not AuditRecord.objects.filter(action="tax.details_changed").exists()


def test_saving_what_is_there_already_changes_nothing():
    client = signed_in(make_organisation())
    assert "Nothing was changed." in words(client.post(PATH, DETAILS, follow=True))
    assert not AuditRecord.objects.exists()


@pytest.mark.parametrize("role", [Role.TRADER, Role.BILLING, Role.VIEWER])
def test_only_owners_change_it_and_every_member_sees_it(role):
    organisation = make_organisation()
    TaxDetails.objects.create(organisation=organisation, vat_id="NL004495445B01", next_check_at=datetime.now(UTC))
    client = signed_in(organisation, role=role)
    page = client.get(PATH).content.decode()
    assert "Save and check" not in page
    assert "Ask the register now" not in page
    assert client.post(PATH, {**DETAILS, "country": "FI"}).status_code == 403
    assert client.post(f"{PATH}check/").status_code == 403
    organisation.refresh_from_db()
    assert organisation.country == "NL"


def test_nobody_else_sees_it_and_nothing_of_it_is_kept():
    answer = Client().get(PATH)
    assert answer.status_code == 302
    assert "/login/" in answer["Location"]
    own = signed_in(make_organisation()).get(PATH)
    assert "no-store" in own["Cache-Control"]
    assert '<meta name="robots" content="noindex">' in own.content.decode()


def test_the_register_is_asked_at_a_press_of_the_button_once_a_minute():
    organisation = make_organisation(country="DE")
    TaxDetails.objects.create(organisation=organisation, vat_id="DE136695976", next_check_at=datetime.now(UTC) + MINUTE)
    client = signed_in(organisation)
    assert "not answered yet; VAT is charged meanwhile" in text_of(client)
    assert "Your purchase" not in words(client.post(f"{PATH}check/", follow=True))
    assert VatCheck.objects.count() == 1
    assert "less than a minute ago" in words(client.post(f"{PATH}check/", follow=True))
    assert VatCheck.objects.count() == 1
    assert client.get(f"{PATH}check/").status_code == 405


def test_a_blocked_buyer_and_one_in_a_special_area_read_why():
    blocked = text_of(signed_in(make_organisation(name="a", country="US")))
    assert "Nothing can be bought: we may not sell to you there." in blocked
    assert "No register number or local tax number proves a business yet." in blocked
    assert "For example" not in blocked
    waiting = text_of(signed_in(make_organisation(name="b", country="ES", postcode="35001")))
    assert "Nothing can be bought yet: a person has to look at your area first." in waiting


def test_without_a_sellers_country_the_page_says_so_and_stands(settings):
    settings.SELLER_COUNTRY = ""
    client = signed_in(make_organisation())
    assert "the seller has not told its own country" in text_of(client)
    assert "Saved." in words(client.post(PATH, {**DETAILS, "country": "SE"}, follow=True))


def test_a_provider_is_charged_nothing():
    text = text_of(signed_in(make_organisation(kind="provider")))
    assert "You list servers and buy nothing here" in text
    assert "For example" not in text


def test_the_page_takes_few_queries_however_long_the_history(django_assert_max_num_queries):
    organisation = make_organisation(country="DE")
    client = signed_in(organisation)
    at = datetime.now(UTC) - timedelta(days=3)
    for hours in range(30):
        Organisation.objects.filter(pk=organisation.pk).update(country=["DE", "FI"][hours % 2])
        decide_for(organisation=organisation, now=at + timedelta(hours=hours))
    with django_assert_max_num_queries(12):
        client.get(PATH)


@pytest.mark.parametrize(("prefix", "tax"), [("", "0.6048"), ("/nl", "0,6048"), ("/pl", "0,6048")])
def test_the_page_stands_in_every_language(prefix, tax):
    assert tax in text_of(signed_in(make_organisation()), f"{prefix}{PATH}")


def test_rates_on_the_page_are_exact():
    client = signed_in(make_organisation(type="consumer", country="FI"))
    assert str(Decimal("2.88") * Decimal("25.5") / 100).rstrip("0") in text_of(client)
