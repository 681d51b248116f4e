"""VAT numbers: one spelling, right check digits, and the country they belong to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.tax.company_names import NameMatch, compare
from billing.tax.territories import COUNTRIES, MEMBER_STATES
from billing.tax.vat_ids import NoRegister, OtherCountry, VatIdRefused, WrongForm, parse, read_stored

# Published examples with right check digits.
VALID = {
    "AT": "ATU13585627", "BE": "BE0428759497", "DE": "DE136695976", "DK": "DK13585628", "EE": "EE100931558",
    "ES": "ESB58378431", "FI": "FI20774740", "FR": "FR40303265045", "GR": "EL094259216", "IE": "IE6433435F",
    "IT": "IT00743110157", "NL": "NL004495445B01", "PL": "PL8567346215", "PT": "PT501964843", "SE": "SE123456789701",
}  # fmt: skip


@pytest.mark.parametrize(("country", "number"), VALID.items())
def test_a_right_number_is_read_with_or_without_its_letters_and_separators(country, number):
    found = parse(number, country=country)
    assert (found.text, found.country, found.is_in_union) == (number, country, True)
    spaced = " ".join(number[start : start + 3] for start in range(0, len(number), 3)).lower()
    for spelling in (spaced, number.replace("", ".").strip("."), number[2:], f"  {number[:2]}-{number[2:]} "):
        assert parse(spelling, country=country) == found
    assert read_stored(found.text) == found


@pytest.mark.parametrize(("country", "number"), VALID.items())
def test_a_number_with_two_digits_swapped_or_one_missing_is_refused(country, number):
    with pytest.raises(VatIdRefused):
        parse(number[:-1], country=country)
    digits = [index for index in range(2, len(number) - 1) if number[index] != number[index + 1]]
    refused = 0
    for index in digits:
        swapped = number[:index] + number[index + 1] + number[index] + number[index + 2 :]
        try:
            parse(swapped, country=country)
        except VatIdRefused:
            refused += 1
    assert refused >= len(digits) - 1


def test_tax_13_greek_numbers_go_by_el_and_come_from_gr():
    for spelling in ("EL094259216", "GR094259216", "gr 094259216", "094259216"):
        found = parse(spelling, country="GR")
        assert (found.prefix, found.country, found.text) == ("EL", "GR", "EL094259216")
    with pytest.raises(OtherCountry):
        parse("EL094259216", country="CY")


def test_tax_11_xi_is_a_british_number_for_services():
    for spelling in ("XI980780684", "GB980780684", "980780684"):
        found = parse(spelling, country="GB")
        assert (found.country, found.is_in_union) == ("GB", False)
    with pytest.raises(OtherCountry):
        parse("XI980780684", country="IE")


def test_monaco_has_french_numbers():
    assert parse("FR40303265045", country="MC").country == "FR"


def test_another_countrys_number_says_so():
    with pytest.raises(OtherCountry):
        parse("DE136695976", country="NL")


@pytest.mark.parametrize("country", ["US", "CH", "NO", "IM"])
def test_elsewhere_there_is_no_register_to_ask(country):
    with pytest.raises(NoRegister):
        parse("CHE123456788", country=country)


@pytest.mark.parametrize(
    "text", ["", " ", "NL", "0" * 33, "NL004495445B01" * 3, "NL\x00004495445B01", "<script>", "NL００4495445B0x"]
)
def test_what_is_no_number_is_refused(text):
    with pytest.raises(WrongForm):
        parse(text, country="NL")


@given(text=st.text(max_size=40), country=st.sampled_from(sorted(MEMBER_STATES | {"GB", "MC", "US"})))
def test_no_text_breaks_the_reader(text, country):
    try:
        found = parse(text, country=country)
    except VatIdRefused:
        return
    assert parse(found.text, country=country) == found


@given(number=st.text("0123456789ABUX", min_size=7, max_size=14), country=st.sampled_from(sorted(MEMBER_STATES)))
def test_what_is_read_belongs_to_the_country_asked_for(number, country):
    try:
        found = parse(number, country=country)
    except VatIdRefused:
        return
    assert found.country == country
    assert len(found.text) <= 16


def test_every_country_has_a_sign_up_page_entry():
    assert {"NL", "GR", "GB", "AX", "MC"} <= COUNTRIES
    assert not {"EL", "XI", "UK", "EU"} & COUNTRIES
    assert len(COUNTRIES) == 249


@pytest.mark.parametrize(
    ("ours", "theirs", "match"),
    [
        ("Orla Labs", "ORLA LABS B.V.", NameMatch.SAME),
        ("Orla Labs B.V.", "Orla Labs Holding B.V.", NameMatch.SAME),
        ("Spółka Żółw Sp. z o.o.", "SPÓŁKA ŻÓŁW SP Z O O", NameMatch.SAME),
        ("Müller GmbH", "MULLER GMBH & CO. KG", NameMatch.SAME),
        ("Orla Labs B.V.", "Bolt Labs B.V.", NameMatch.DIFFERS),
        ("A B.V.", "B B.V.", NameMatch.DIFFERS),
        ("Alfa SA", "ΑΛΦΑ Α.Ε.", NameMatch.NOT_TOLD),
        ("Alfa", "", NameMatch.NOT_TOLD),
        ("Alfa", "---", NameMatch.NOT_TOLD),
    ],
)
def test_names_are_compared_without_marks_capitals_and_legal_forms(ours, theirs, match):
    assert compare(ours, theirs) == match
    assert compare(theirs, ours) == match
